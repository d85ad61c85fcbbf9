"""Objects as bytes for other processes, also where those cannot import what an object is made of."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

from flowsched.errors import BackendError, say_exception

_REGISTERING = threading.Lock()  # cloudpickle's list of modules is one for the whole process


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
    import cloudpickle

    try:
        with _by_value(cloudpickle):
            packed: bytes = cloudpickle.dumps(value)
    except Exception as error:  # an object may refuse in any way
        raise BackendError(
            f"{what} cannot be sent to another process: {say_exception(error)}. Make what cannot be pickled "
            "(open files, locks, live models) in the model's constructor, which runs where the replica is"
        ) from error
    return packed


def unpack_object(packed: bytes) -> Any:
    """Return the object that :func:`pack_object` was given, or its equal in another process."""
    return pickle.loads(packed)


@contextmanager
def _by_value(cloudpickle: Any) -> Iterator[None]:
    """Have modules that another process could not import pickled by value."""
    with _REGISTERING:
        taken = [module for module in _loaded_by_path() if module.__name__ not in _registered(cloudpickle)]
        for module in taken:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in taken:
                cloudpickle.unregister_pickle_by_value(module)


def _registered(cloudpickle: Any) -> set[str]:
    names: set[str] = cloudpickle.list_registry_pickle_by_value()
    return names


def _loaded_by_path() -> list[ModuleType]:
    """Return the modules that stand under no name by which anything can import them."""
    found: dict[str, bool] = {}
    modules, path = [], tuple(sys.path)
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top not in found:
            found[top] = top in sys.builtin_module_names or top == "__main__" or _can_import(top, path)
        if not found[top] and isinstance(module, ModuleType) and module.__name__ == name:
            modules.append(module)
    return modules


@lru_cache(maxsize=4096)
def _can_import(name: str, _path: tuple[str, ...]) -> bool:
    # importlib.util.find_spec would answer from sys.modules, where files loaded by path stand as well.
    for finder in sys.meta_path:
        try:
            if finder.find_spec(name, None) is not None:
                return True
        except Exception:  # noqa: BLE001 - a finder of somebody else's that cannot tell
            continue
    return False
