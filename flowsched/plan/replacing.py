"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(file: Path, data: bytes) -> None:
    """Write a file beside ``file`` and put it in its place when all of it is on the disk.

    Raises:
        OSError: it cannot be written; what stood there before is untouched.
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
