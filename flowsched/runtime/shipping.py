"""Objects as bytes for other processes, also where those cannot import what an object is made of."""

from __future__ import annotations

import io
import pickle
from typing import Any

from flowsched.errors import BackendError, say_exception


def pack_object(value: Any, what: str = "the models") -> bytes:
    """Return an object as bytes that :func:`unpack_object` understands in any process.

    Functions and classes of ``__main__``, of notebooks and of files loaded by path go by value; those of
    modules that can be imported go by name.

    Args:
        value: the object.
        what: how an error names it.

    Raises:
        BackendError: it cannot be pickled; what pickling raised is the cause.
    """
    from flowsched.runtime.pickler import Pickler

    file = io.BytesIO()
    try:
        Pickler(file).dump(value)
    except Exception as error:  # an object may refuse in any way
        raise BackendError(
            f"{what} cannot be sent to another process: {say_exception(error)}. Make what cannot be pickled "
            "(open files, locks, live models) in the model's constructor, which runs where the replica is"
        ) from error
    return file.getvalue()


def unpack_object(packed: bytes) -> Any:
    """Return the object that :func:`pack_object` was given, or its equal in another process."""
    return pickle.loads(packed)
