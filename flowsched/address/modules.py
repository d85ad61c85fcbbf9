"""Modules by path or by name, and what stands in them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from flowsched.errors import AddressError, FlowschedError, say_known
from flowsched.graph.files import GRAPH_SUFFIXES

FORMS = "Write path/graph.yaml, path/file.py, path/file.py:name or package.module:name"
_FORMS_OF_OBJECTS = "Write path/file.py, path/file.py:name or package.module:name"
MISSING = object()

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def load_object(address: str, default: str) -> Any:
    """Load what stands at ``path/file.py:name`` or ``package.module:name``, or at ``path/file.py`` by default.

    Args:
        address: the address.
        default: what the object is called in a file that is named alone.

    Raises:
        AddressError: there is no such thing; where the user's module failed, its exception is the cause.
    """
    target, name = split_address(address, _FORMS_OF_OBJECTS)
    module, folder = open_module(target, address)
    wanted = name or default
    with first_on_path(folder):
        found = read_attribute(module, wanted, address, MISSING)
    if found is not MISSING:
        return found
    known = [key for key in vars(module) if not key.startswith("_")]
    mend = say_known(wanted, known, "names in it")
    example = "" if name else f". Write {target}:name for what stands under another name"
    raise AddressError(f"{target} has no {wanted!r}. {mend}{example}")


@contextmanager
def importable(address: str | None) -> Iterator[None]:
    """Keep the folder that an address imports from first on ``sys.path``, for what is imported later on."""
    folder = None if address is None else _folder_of(split_address(address, _FORMS_OF_OBJECTS)[0])
    with first_on_path(folder):
        yield


def split_address(address: str, forms: str = FORMS) -> tuple[str, str | None]:
    """Return the file or module, and the name in it if one is given."""
    if address.endswith(".py"):
        return address, None
    target, colon, name = address.rpartition(":")
    is_relative = target.startswith(".") and not target.endswith(".py")  # to what, nobody says
    if not colon or not target or is_relative or not name.isidentifier():
        raise AddressError(f"{address!r} is no address. {forms}")
    return target, name


def open_module(target: str, address: str) -> tuple[ModuleType, Path]:
    """Import a file or a module; return it with the folder that its own imports are looked for in first."""
    folder = _folder_of(target)
    with first_on_path(folder):
        if not target.endswith(".py"):
            return _import_module(target, address), folder
        path = Path(target)
        if not path.is_file():
            raise AddressError(f"there is no file {target}. {_say_neighbours(path)}")
        return _import_file(path, address), folder


def _folder_of(target: str) -> Path:
    return Path(target).resolve().parent if target.endswith(".py") else Path.cwd()


def _import_file(path: Path, address: str) -> ModuleType:
    """Run a file as a module under a name that no other module has."""
    stem = f"flowsched_job_{path.stem}"
    name = next(name for name in (f"{stem}_{number}" for number in count()) if name not in sys.modules)
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise AddressError(f"{path} cannot be imported. {FORMS}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, as dataclasses and pickle look it up there
    try:
        with _import_errors(address):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str, address: str) -> ModuleType:
    with _import_errors(address):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            mend = f"Install it, or start where it can be imported. {FORMS}"
            raise AddressError(f"there is no module {error.name!r}. {mend}") from None


@contextmanager
def _import_errors(address: str) -> Iterator[None]:
    """Name the address when the user's module fails; what flowsched refuses in it stays what it is."""
    try:
        yield
    except AddressError:
        raise
    except FlowschedError as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<"))]
        if own:
            error.add_note(f"declared at {own[-1].filename}:{own[-1].lineno}")
        raise
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise AddressError(
            f"importing {address} failed with {said}. Mend the module, its traceback says where"
        ) from error


def read_attribute(module: ModuleType, name: str, address: str, default: Any) -> Any:
    """Return a module's attribute, which its ``__getattr__`` may make."""
    try:
        return getattr(module, name, default)
    except Exception as error:
        raise AddressError(
            f"reading {name!r} of {address} failed with {type(error).__name__}: {error}"
        ) from error


def _say_neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no folder {folder} either"
    names = [entry.name for entry in folder.iterdir() if entry.suffix in (".py", *GRAPH_SUFFIXES)]
    close = get_close_matches(path.name, names, n=1)
    return f"Did you mean {folder / close[0]}?" if close else FORMS


@contextmanager
def first_on_path(folder: Path | None) -> Iterator[None]:
    """Look for modules in a folder first, as Python does for the folder of a script."""
    if folder is None:
        yield
        return
    entry = str(folder)
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)
