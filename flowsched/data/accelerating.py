"""What accelerate wants to know of a loader while it is iterated, where accelerate is in use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def tell_accelerate(loader: Any) -> Iterator[Any]:
    """Make the loader the one that accelerate's ``accumulate`` steps at the end of.

    Gradients that are accumulated over several batches are then applied after the last batch, as with loaders of
    accelerate's own. Nothing happens where accelerate is not in use.

    Args:
        loader: whose ``end_of_dataloader`` is to be set at its last batch.
    """
    loader.end_of_dataloader, loader.remainder = False, -1
    module = sys.modules.get("accelerate.state")
    known = getattr(module, "GradientState", None)
    if known is None or not getattr(known, "_shared_state", None):
        yield loader
        return
    state = known()
    state._add_dataloader(loader)
    try:
        yield loader
    finally:
        state._remove_dataloader(loader)
