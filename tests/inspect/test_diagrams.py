"""Mermaid and DOT pictures of graphs and plans."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

import flowsched as fs
from tests.inspect.plans import grpo_graph, grpo_plan, seed_graph, seed_plan

_AWKWARD = fs.Graph(
    "digraph",
    sources=["end", "a-b"],
    nodes=[
        fs.Node("graph", inputs=["end"]),
        fs.Node("subgraph", inputs=["a-b", "graph"], after=["class"]),
        fs.Node("class", inputs=["end"]),
        fs.Node("o--x", inputs=["graph"]),
        fs.Node("node", inputs=["o--x"], replicas_of="graph", method="end"),
    ],
)


def test_a_graph_as_mermaid_shows_what_was_declared() -> None:
    assert grpo_graph().to_mermaid() == dedent("""\
        flowchart LR
          s0(["prompts"])
          n0["policy<br/>4 replicas<br/>batch size 2<br/>expand 4"]
          n1["logprob<br/>4 replicas of policy<br/>batch size 6"]
          n2["reward<br/>3 replicas<br/>batch size 5"]
          n3["advantage<br/>2 replicas<br/>batch size 10<br/>group 4"]
          n4["best<br/>9 replicas<br/>collapse 4"]
          n5["loss<br/>4 replicas of policy"]
          s0 --> n0
          n0 --> n1
          n0 --> n2
          s0 --> n2
          n2 --> n3
          n2 --> n4
          n0 --> n4
          n1 --> n5
          n3 --> n5
          n4 --> n5
          n2 -.->|"after"| n5
          classDef output stroke-width:3px
          class n5 output
    """)


def test_a_plan_as_mermaid_shows_rows_fragments_calls_and_idle_replicas() -> None:
    lines = grpo_plan().to_mermaid().splitlines()
    assert '  s0(["prompts<br/>5 rows"])' in lines
    assert '  n4["best<br/>9 replicas, 4 idle<br/>5 calls, at most 4 rows"]' in lines
    assert '  s0 -->|"5 rows, 6 fragments"| n2' in lines
    assert '  n2 -->|"20 rows, 7 fragments"| n3' in lines
    assert '  n4 -->|"5 rows, 8 fragments"| n5' in lines


def test_a_plan_as_dot_shows_the_same() -> None:
    assert seed_plan().to_dot() == dedent("""\
        digraph "ppo" {
          rankdir=LR
          node [shape=box]
          s0 [label="prompts\\n16 rows", shape=oval]
          n0 [label="policy\\n2 replicas\\n4 calls, at most 4 rows"]
          n1 [label="reference\\n8 replicas\\n8 calls, at most 2 rows"]
          n2 [label="value\\n8 replicas\\n8 calls, at most 2 rows", penwidth=3]
          n3 [label="reward\\n8 replicas\\n8 calls, at most 2 rows", penwidth=3]
          s0 -> n0 [label="16 rows, 4 fragments"]
          n0 -> n1 [label="16 rows, 8 fragments"]
          n0 -> n2 [label="16 rows, 8 fragments"]
          n0 -> n3 [label="16 rows, 8 fragments"]
          n1 -> n3 [label="16 rows, 8 fragments"]
        }
    """)


def test_an_order_without_data_is_drawn_dashed_in_dot() -> None:
    assert '  n2 -> n5 [label="after", style=dashed]' in grpo_graph().to_dot().splitlines()


@pytest.mark.parametrize("shown", [_AWKWARD, fs.compile(_AWKWARD, samples=3)], ids=["graph", "plan"])
def test_names_that_are_keywords_or_hold_hyphens_stand_in_quotes_only(shown: fs.Graph | fs.Plan) -> None:
    for text in (shown.to_mermaid(), shown.to_dot()):
        unquoted = re.sub(r'"[^"]*"', '""', text)
        body = unquoted.split("\n", 1)[1]
        names = ["end", "a-b", "subgraph", "class", "o--x"]
        quoted = re.findall(r'"([^"]*)"', text)
        assert all(any(part.startswith(name) for part in quoted) for name in names)
        ids = re.findall(r"(?<![\w-])[sn]\d(?![\w-])", body)
        assert {"s0", "s1", "n0", "n1", "n2", "n3", "n4"} == set(ids)
        assert not re.search(r"(?<![\w-])(end|subgraph|graph|a-b|o--x)(?![\w-])", body)


def test_a_plan_of_no_samples_can_be_drawn() -> None:
    text = fs.compile(seed_graph(), samples=0).to_mermaid()
    assert 'n3["reward<br/>8 replicas, 8 idle<br/>0 calls"]' in text
    assert 'n1 -->|"0 rows, 0 fragments"| n3' in text
