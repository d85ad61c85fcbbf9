"""Graph files in JSON: the json module judges the text, a scan of its tokens says where everything stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from flowsched.errors import Problem
from flowsched.graph.document import (
    DEEPEST,
    MOST_VALUES,
    Document,
    Mark,
    Where,
    duplicate_key,
    file_subject,
    nesting_error,
    size_error,
    syntax_error,
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^\s\[\]{},:"]+')


def read_json(text: str, path: str) -> Document:
    """Read a JSON document.

    Raises:
        GraphError: the text is not JSON, is nested too deep, or holds too much.
    """
    tokens = []
    depth = 0
    for token, mark in _tokens(text, path):
        tokens.append((token, mark))
        depth += (token in "[{") - (token in "]}")
        if depth > DEEPEST:
            raise nesting_error(mark)
        if len(tokens) > MOST_VALUES:
            raise size_error(mark)
    _check_syntax(text, path, tokens)
    scan = _Scan(iter(tokens))
    data = scan.value(*next(scan.tokens), ())
    return Document(file_subject(path), data, scan.values[()], scan.values, scan.keys, tuple(scan.problems))


def _tokens(text: str, path: str) -> Iterator[tuple[str, Mark]]:
    """Yield brackets, strings and other scalars with their places; commas and colons say nothing more."""
    line, line_start, seen = 1, 0, 0
    for match in _TOKEN.finditer(text):
        newlines = text.count("\n", seen, match.start())
        if newlines:
            line, line_start = line + newlines, text.rindex("\n", seen, match.start()) + 1
        seen = match.start()
        yield match.group(), Mark(path, line, match.start() - line_start + 1)


def _check_syntax(text: str, path: str, tokens: list[tuple[str, Mark]]) -> None:
    if not text.strip():
        raise syntax_error(Mark(path, 1, 1), "JSON", "the file is empty")
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        mark = Mark(path, error.lineno, error.colno)
        raise syntax_error(mark, "JSON", error.msg[:1].lower() + error.msg[1:]) from None
    except ValueError:
        token, mark = next((token, mark) for token, mark in tokens if not _is_number_or_bracket(token))
        raise syntax_error(mark, "JSON", f"{token[:20]} is not a number that JSON can hold") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_number_or_bracket(token: str) -> bool:
    try:
        return token in "[]{}" or json.loads(token, parse_constant=_refuse_constant) is not Ellipsis
    except ValueError:
        return False


class _Scan:
    """One walk over the tokens of a text that is known to be JSON."""

    def __init__(self, tokens: Iterator[tuple[str, Mark]]) -> None:
        self.tokens = tokens
        self.values: dict[Where, Mark] = {}
        self.keys: dict[Where, Mark] = {}
        self.problems: list[tuple[Mark, Problem]] = []

    def value(self, token: str, mark: Mark, where: Where) -> Any:
        self.values[where] = mark
        if token == "{":
            return self.mapping(where)
        if token == "[":
            return self.sequence(where)
        return json.loads(token)

    def mapping(self, where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for token, mark in self.tokens:
            if token == "}":
                break
            key = json.loads(token)
            inner = (*where, key)
            if key in found:
                self.problems.append(duplicate_key(mark, key, self.keys[inner]))
            self.keys.setdefault(inner, mark)
            found[key] = self.value(*next(self.tokens), inner)
        return found

    def sequence(self, where: Where) -> list[Any]:
        found: list[Any] = []
        for token, mark in self.tokens:
            if token == "]":
                break
            found.append(self.value(token, mark, (*where, len(found))))
        return found
