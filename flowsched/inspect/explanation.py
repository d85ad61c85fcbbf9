"""An answer about a plan: lines to read, and the same as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Explanation:
    """The answer to one question about a plan; prints as text.

    Attributes:
        lines: the answer as text, one element a line.
        facts: the same as plain data; ``kind`` says which question it answers.
    """

    lines: tuple[str, ...]
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON: dicts, lists, strings, numbers and None."""
        copied: dict[str, Any] = json.loads(json.dumps(dict(self.facts)))
        return copied

    def __hash__(self) -> int:
        return hash(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__  # an answer is there to be read, at a prompt as well
