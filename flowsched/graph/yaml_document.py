"""Graph files in YAML: what PyYAML's nodes hold and where, without what it would let pass in silence."""

from __future__ import annotations

import re
from typing import Any

import yaml

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
from flowsched.graph.yaml_syntax import yaml_error

_TAG = "tag:yaml.org,2002:"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_Fields = dict[str, tuple[yaml.Node, yaml.Node]]


def read_yaml(text: str, path: str) -> Document:
    """Read a YAML document. Anchors, aliases and ``<<`` merges are followed.

    Raises:
        GraphError: the text is not YAML, is empty, is nested too deep, or holds too much.
    """
    try:
        _check_depth(text, path)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise yaml_error(error, text, path, _LOADER) from None
    if root is None:
        raise syntax_error(Mark(path, 1, 1), "YAML", "the file is empty")
    reading = _Reading(path)
    data = reading.value(root, ())
    return Document(
        file_subject(path), data, reading.values[()], reading.values, reading.keys, tuple(reading.problems)
    )


def _check_depth(text: str, path: str) -> None:
    """Refuse deep nesting before the composer, which recurses, meets it."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise nesting_error(_mark(event, path))


def _mark(part: Any, path: str, written: str | None = None) -> Mark:
    return Mark(path, part.start_mark.line + 1, part.start_mark.column + 1, written)


class _Reading:
    """One walk over the nodes of a document."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[Where, Mark] = {}
        self.keys: dict[Where, Mark] = {}
        self.problems: list[tuple[Mark, Problem]] = []
        self.scalars = yaml.constructor.SafeConstructor()
        self.fields: dict[int, _Fields] = {}

    def value(self, node: yaml.Node, where: Where) -> Any:
        self.values[where] = self.mark(node)
        if len(where) > DEEPEST:  # an alias inside what it stands for
            raise nesting_error(self.values[where])
        if len(self.values) > MOST_VALUES:
            raise size_error(self.values[where])
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self.mapping(node, where)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.value(item, (*where, i)) for i, item in enumerate(node.value)]
        return self.scalar(node, where)

    def mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, Any]:
        found = {}
        for key, (key_node, value_node) in self.fields_of(node).items():
            self.keys[*where, key] = self.mark(key_node)
            found[key] = self.value(value_node, (*where, key))
        return found

    def scalar(self, node: yaml.Node, where: Where) -> Any:
        try:
            if isinstance(node, yaml.ScalarNode):
                value = self.scalars.construct_object(node)
                if not isinstance(value, str):
                    self.values[where] = self.mark(node, node.value)
                if type(value) is int and not _DECIMAL.fullmatch(node.value):
                    message = f"{node.value} is {value} to some readers of YAML and something else to others"
                    self.problem("ambiguous-number", node, message, "Write plain decimal digits", where)
                return value
        except (yaml.YAMLError, ValueError, LookupError, AttributeError):
            pass  # how PyYAML says that a scalar is not what its tag says
        message = f"it does not read as {node.tag.removeprefix(_TAG)}"
        self.problem("bad-tag", node, message, "Write names, whole numbers, lists and mappings only", where)
        return None

    def fields_of(self, node: yaml.MappingNode) -> _Fields:
        """Return the keys of a mapping, its own before those that ``<<`` brings."""
        if id(node) in self.fields:
            return self.fields[id(node)]
        own: _Fields = {}
        self.fields[id(node)] = own  # known from here on, so that a mapping that merges itself ends
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif not isinstance(key, yaml.ScalarNode):
                self.problem("bad-key", key, "a key is not a name", "Write the name of a field")
            elif key.value in own:
                first = self.mark(own[key.value][0])
                self.problems.append(duplicate_key(self.mark(key), key.value, first))
            else:
                own[key.value] = key, value
        for other in merged:
            if isinstance(other, yaml.MappingNode):
                own.update({**self.fields_of(other), **own})
            else:
                self.problem("bad-merge", other, "<< brings no fields", "Give it an alias of a mapping")
        return own

    def problem(self, code: str, node: yaml.Node, message: str, mend: str, where: Where = ()) -> None:
        mark = self.mark(node)
        self.problems.append((mark, Problem(code, str(mark), message, mend, where)))

    def mark(self, node: yaml.Node, written: str | None = None) -> Mark:
        return _mark(node, self.path, written)
