"""A plan's header and table as the bytes of an npz file, the same for the same plan."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.plan import file_errors
from flowsched.plan.table import Table

_HEADER = "header.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # with _UNIX: the bytes must not tell when and where they were written
_UNIX = 3
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    OSError,
    KeyError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    struct.error,
)


def write_npz(header: Mapping[str, Any], table: Table) -> bytes:
    """Return an npz file; its columns can also be read by ``numpy.load``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, _HEADER, json.dumps(header).encode())
        for name, column in table.columns():
            _add(archive, f"{name}.npy", _npy(column))
    return buffer.getvalue()


def read_npz(file: Path, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the columns of an npz file, whatever they hold; nothing in it is executed.

    Raises:
        PlanFileError: it is not an npz file, or is cut off or altered.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            header = json.loads(archive.read(_HEADER))
            columns = {
                name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name != _HEADER
            }
    except _DAMAGE as error:
        raise file_errors.damaged(file, f"it is not an npz file of a plan: {error}") from error
    if not isinstance(header, dict):
        raise file_errors.damaged(file, "its header is not an object")
    return header, columns


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.create_system = _UNIX
    member.external_attr = 0o644 << 16
    archive.writestr(member, data)


def _npy(column: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    little = np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
    np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()
