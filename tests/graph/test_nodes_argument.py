"""What stands where a graph's nodes must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flowsched as fs
from flowsched.errors import GraphError


@pytest.mark.parametrize("nodes", [3, None, "ab", {"a": 1}, fs.Node("x", inputs=["x"]), [3], [None]])
def test_what_is_no_list_of_nodes_is_refused_with_its_value(nodes: Any) -> None:
    with pytest.raises(GraphError, match=r"wrong-type.*nodes"):
        fs.Graph("g", ["x"], nodes=nodes)


def test_any_iterable_of_nodes_will_do() -> None:
    def chain() -> Iterator[fs.Node]:
        yield fs.Node("n0", inputs=["x"])
        for i in range(1, 4):
            yield fs.Node(f"n{i}", inputs=[f"n{i - 1}"])

    assert fs.Graph("g", ["x"], nodes=chain()) == fs.Graph("g", ["x"], nodes=list(chain()))
