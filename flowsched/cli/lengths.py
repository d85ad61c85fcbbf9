"""The cost of each sample, from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMS = "Give a .npy file, a .json list, or text with one number a line"


def read_lengths(path: Path) -> NDArray[np.float64]:
    """Return (samples,) numbers from a ``.npy`` file, a ``.json`` list, or text with one number a line.

    Raises:
        AddressError: it cannot be read, or holds something else.
    """
    import numpy as np

    from flowsched.errors import AddressError

    try:
        found: Any
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
        elif path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
        else:
            found = path.read_text(encoding="utf-8").split()
        lengths = np.asarray(found, dtype=np.float64)
    except OSError as error:
        said = str(error.strerror or error).lower()
        raise AddressError(f"{path}: {said}. Give the path of a file that can be opened") from None
    except (TypeError, ValueError, EOFError) as error:
        raise AddressError(f"{path} holds no lengths: {error}. {_FORMS}") from None
    if lengths.ndim != 1:
        raise AddressError(f"{path} holds an array of shape {lengths.shape}. Give one number for each sample")
    return lengths
