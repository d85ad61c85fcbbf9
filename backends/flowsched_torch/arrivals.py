"""Which of the ranks that end a step ends it last: only that one tells home, which sleeps until then."""

from __future__ import annotations

import os
from typing import Self


class Arrivals:
    """A pipe that home and all local ranks share: home puts a byte in for each rank but one, and each takes one.

    Args:
        files: the pipe, where bytes come out and where they go in.
    """

    def __init__(self, files: tuple[int, int]) -> None:
        self.files = files

    @classmethod
    def make(cls) -> Self:
        """Make one; ``files`` is what others are given."""
        out, into = os.pipe()
        os.set_blocking(out, False)
        return cls((out, into))

    def expect(self, ranks: int) -> None:
        """At home, before so many ranks can arrive: let all but the last of them find a byte."""
        if ranks > 1:
            os.write(self.files[1], bytes(ranks - 1))

    def is_last(self) -> bool:
        """On a rank that arrives: whether all others have."""
        try:
            os.read(self.files[0], 1)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        """Let go of it."""
        for file in self.files:
            os.close(file)
