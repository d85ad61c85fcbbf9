"""Why a text is not YAML: PyYAML's errors as the mistakes that people make."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import yaml

from flowsched.errors import GraphError
from flowsched.graph.document import Mark, syntax_error

_OPENERS = {"while parsing a flow sequence": "[", "while parsing a flow mapping": "{"}
_CLOSERS = {"[": "]", "{": "}"}


def yaml_error(error: yaml.YAMLError, text: str, path: str, loader: Any) -> GraphError:
    """Return the error for a text that PyYAML's ``loader`` refuses, at the place where it is to be mended."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        before = text[: getattr(error, "position", 0)]
        mark = Mark(path, before.count("\n") + 1, len(before) - before.rfind("\n"))
        return syntax_error(mark, "YAML", str(getattr(error, "reason", error)))
    at = error.problem_mark
    found = text[at.index : at.index + 1]
    if found == "\t":
        message = "a tab stands where YAML takes only spaces"
        return syntax_error(_mark(at, path), "YAML", message, "Write spaces instead of the tab")
    if error.context_mark is not None and error.context in _OPENERS:
        return _unclosed(_OPENERS[error.context], error.context_mark, at, found, path)
    opened = [] if found else _still_open(text, loader)
    if opened:
        return _unclosed(*opened[-1], at, found, path)
    if error.context_mark is not None and error.context == "while scanning a quoted scalar":
        quote = text[error.context_mark.index]
        message = f"the {quote} that stands here is not closed"
        return syntax_error(_mark(error.context_mark, path), "YAML", message, f"Close it with {quote}")
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return syntax_error(_mark(at, path), "YAML", said)


def _unclosed(opener: str, opened: yaml.Mark, at: yaml.Mark, found: str, path: str) -> GraphError:
    """Return the error for a list or mapping that goes on without a comma, or never ends."""
    closer = _CLOSERS[opener]
    place = f"{opened.line + 1}:{opened.column + 1}"
    if found and opened.line == at.line:
        message = f"a comma or the {closer} of the {opener} at {place} is missing before this"
        mend = f"Write the comma, or close it with {closer}"
        if found in _CLOSERS.values():
            message, mend = f"{found} closes the {opener} at {place}", f"Close it with {closer}"
        return syntax_error(_mark(at, path), "YAML", message, mend)
    message = f"the {opener} that stands here is not closed"
    if found:
        message += f": its {closer} or a comma is missing before {at.line + 1}:{at.column + 1}"
    return syntax_error(_mark(opened, path), "YAML", message, f"Close it with {closer}")


def _still_open(text: str, loader: Any) -> list[tuple[str, yaml.Mark]]:
    """Return the brackets that are never closed, with their places."""
    opened: list[tuple[str, yaml.Mark]] = []
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=loader):
            if isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                opened.append((token.id, token.start_mark))
            elif isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken):
                opened = opened[:-1]
    return opened


def _mark(mark: yaml.Mark, path: str) -> Mark:
    return Mark(path, mark.line + 1, mark.column + 1)
