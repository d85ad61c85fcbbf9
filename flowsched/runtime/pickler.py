"""How functions, classes and modules are pickled for processes that cannot import them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

_REGISTERING = threading.Lock()  # cloudpickle's list of modules is one for the whole process


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler of cloudpickle's that knows files loaded by path, and keeps the file names of code.

    Functions and classes of ``__main__``, of notebooks and of files loaded by path go by value; those of modules
    that can be imported go by name. cloudpickle itself would name a file loaded by path, and would rename the file
    of all code that goes by value, which a traceback then points to.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled; see :meth:`pickle.Pickler.reducer_override`."""
        if type(value) is CodeType:
            return _make_code, (*self.dispatch_table[CodeType](value), value.co_filename)
        if isinstance(value, (type, FunctionType)):
            with _by_value(sys.modules.get(value.__module__ or "")):
                return super().reducer_override(value)
        if type(value) is ModuleType:
            with _by_value(value):
                return self.dispatch_table[ModuleType](value)
        return super().reducer_override(value)


def _make_code(make: Callable[..., CodeType], parts: tuple[Any, ...], file: str) -> CodeType:
    return make(*parts).replace(co_filename=file)


@contextmanager
def _by_value(module: ModuleType | None) -> Iterator[None]:
    """Have what belongs to a module pickled by value if another process could not import it."""
    if module is None or not _is_loaded_by_path(module):
        yield
        return
    with _REGISTERING:
        is_new = module.__name__ not in cloudpickle.list_registry_pickle_by_value()
        if is_new:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            if is_new:
                cloudpickle.unregister_pickle_by_value(module)


def _is_loaded_by_path(module: ModuleType) -> bool:
    """Whether a module stands in ``sys.modules`` under a name by which nothing can import it."""
    name = module.__name__
    top = name.partition(".")[0]
    if top == "__main__" or top in sys.builtin_module_names or sys.modules.get(name) is not module:
        return False
    return not _can_import(top, tuple(sys.path))


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
