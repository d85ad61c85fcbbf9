"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(file: Path) -> Iterator[BinaryIO]:
    """Open a file beside ``file`` for writing, which takes its place when the block ends well.

    A link stays, and what it leads to is replaced; an old file's permissions are kept. A pipe or a device has no
    place to take, and is written to as it is.

    Raises:
        OSError: it cannot be written; what stood there before is untouched.
    """
    if _is_special(file):
        with file.open("wb") as stream:
            yield stream
        return
    target = _target(file)
    beside = _name_beside(target)
    try:
        opener = _open_for_owner if target.exists() else None
        with open(beside, "xb", opener=opener) as stream:
            _copy_permissions(target, beside)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def replace_file(file: Path, data: bytes) -> None:
    """Write a file whole, in place of what stood there.

    Raises:
        OSError: it cannot be written; what stood there before is untouched.
    """
    with replacing(file) as stream:
        stream.write(data)


def refuse_unwritable(file: Path) -> None:
    """Raise what opening a file for :func:`replacing` it would raise, and leave no trace of the attempt.

    Raises:
        OSError: the file cannot be written.
    """
    if _is_special(file):
        return  # opening a pipe may wait for its reader
    beside = _name_beside(_target(file))
    with beside.open("xb"):
        pass
    beside.unlink()


def _is_special(file: Path) -> bool:
    return file.exists() and not file.is_file() and not file.is_dir()


def _target(file: Path) -> Path:
    """Return the file that a path leads to.

    Raises:
        OSError: no file can stand there, or the one that does may not be written to.
    """
    target = Path(os.path.realpath(file))
    if target.is_symlink():  # links in a circle are left as they are
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(file))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    return target


def _name_beside(target: Path) -> Path:
    return target.with_name(f".flowsched-{secrets.token_hex(8)}")  # short, whatever the length of the other


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # what nobody else may read must not be readable for a moment


def _copy_permissions(old: Path, new: Path) -> None:
    try:
        found = old.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "chown"):
        with suppress(OSError):  # only some may give files away
            os.chown(new, found.st_uid, found.st_gid)
    new.chmod(stat.S_IMODE(found.st_mode))
