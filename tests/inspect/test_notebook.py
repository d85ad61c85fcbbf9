"""What a notebook displays."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import flowsched as fs
from tests.inspect.plans import grpo_graph, grpo_plan, seed_graph, seed_plan, wide_graph


class _Page(HTMLParser):
    """Text by tag, and whether every tag that opens also closes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: dict[str, list[str]] = {}
        self.attributes: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1], []).append(data)


def test_a_plan_is_a_table_of_its_nodes_and_its_routing_as_printed() -> None:
    plan = grpo_plan()
    page = _Page(plan._repr_html_())
    assert page.open == []
    assert page.texts["p"] == [str(plan).splitlines()[0]]
    assert page.texts["th"][:4] == ["node", "reads", "replicas", "idle"]
    cells = page.texts["td"]
    assert cells[cells.index("loss") + 1] == "logprob, advantage, best"
    assert "".join(page.texts["pre"]) in str(plan)
    assert "  reward    |0.0    |1.0    |2.0  |0.1  |1.1  |2.1  |" in "".join(page.texts["pre"])


def test_a_graph_is_a_table_of_its_nodes() -> None:
    page = _Page(grpo_graph()._repr_html_())
    assert page.texts["p"] == ["grpo: sources prompts; outputs loss"]
    assert page.texts["th"] == [
        *("name", "inputs", "replicas", "batch_size", "replicas_of", "method", "after"),
        *("expand", "group", "collapse"),
    ]
    assert page.texts["td"][:10] == ["policy", "prompts", "4", "2", "-", "-", "-", "4", "1", "1"]


def test_the_calls_of_a_node_are_a_table_with_a_column_for_each_input() -> None:
    page = _Page(grpo_plan()["best"]._repr_html_())
    assert page.texts["p"][0].startswith("best of grpo: 20 rows in 5 groups of 4 over 9 replicas: 5 get 4;")
    assert page.texts["th"] == ["call", "reward", "policy"]
    assert page.texts["td"][:3] == ["best.0.0[0:1]", "reward.0.0[0:4]", "policy.0.0[0:4]"]
    assert page.texts["td"][6:9] == [
        "best.2.0[2:3]",
        "reward.2.0[8:11] + reward.0.1[11:12]",
        "policy.1.0[8:12]",
    ]


def test_of_many_calls_of_a_node_the_first_and_the_last_are_shown() -> None:
    cells = _Page(fs.compile(seed_graph(), samples=16_000)["value"]._repr_html_()).texts["td"]
    assert "... 7,968 more" in cells
    assert cells[-2:] == ["value.7.999[15998:16000]", "policy.1.1999[15998:16000]"]


@pytest.mark.parametrize("samples", [0, 16, 30_000])
@pytest.mark.parametrize("graph", [seed_graph(), wide_graph()], ids=lambda graph: graph.name)
def test_displays_hold_no_script_no_link_and_no_colour_of_their_own(graph: fs.Graph, samples: int) -> None:
    plan = fs.compile(graph, samples)
    for html in (graph._repr_html_(), plan._repr_html_(), *(calls._repr_html_() for calls in plan)):
        page = _Page(html)
        assert page.open == []
        assert page.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "pre"}
        assert page.attributes == {"style"}
        assert set(re.findall(r"(?:color|background): ([^;\"]+)", html)) <= {"inherit", "transparent"}
        assert len(html) < 60_000


def test_arrows_and_quotes_of_calls_are_escaped() -> None:
    html = fs.compile(seed_graph(), samples=16_000)._repr_html_()
    assert re.search(r"policy\.0\.0\[0:4\] +&lt;- prompts\[0:4\]", html)
    assert "<-" not in html
    assert "plan.explain(node=&#x27;value&#x27;)" in html


def test_the_seeds_plan_shows_its_reasons() -> None:
    assert (
        "16 rows over 8 replicas: 2 each; batch size 2: 1 call of 2 each; 0 idle" in seed_plan()._repr_html_()
    )
