"""What ``print(plan)`` shows."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import pytest

import flowsched as fs
from flowsched.plan import parse_calls
from tests.inspect.plans import grpo_graph, grpo_plan, seed_graph, seed_plan, wide_graph

_SEED = """\
ppo: 16 samples through 4 nodes: 28 calls on 26 replicas, none idle (plan {hash})

  node       reads              replicas  idle  waves  calls  rows  rows/replica  rows/call  fragments/call
  policy     prompts                   2     0      2      4    16             8          4               1
  reference  policy                    8     0      1      8    16             2          2               1
  value      policy                    8     0      1      8    16             2          2               1
  reward     policy, reference         8     0      1      8    16             2          2            1, 1

  policy     16 rows over 2 replicas: 8 each; batch size 4: 2 calls of 4 each; 0 idle
  reference  16 rows over 8 replicas: 2 each; batch size 2: 1 call of 2 each; 0 idle
  value      16 rows over 8 replicas: 2 each; batch size 2: 1 call of 2 each; 0 idle
  reward     16 rows over 8 replicas: 2 each; batch size 2: 1 call of 2 each; 0 idle

  Calls over the samples that they read, as replica.call:
  sample     0   2   4   6   8   10  12  14
  policy    |0.0    |1.0    |0.1    |1.1    |
  reference |0.0|1.0|2.0|3.0|4.0|5.0|6.0|7.0|
  value     |0.0|1.0|2.0|3.0|4.0|5.0|6.0|7.0|
  reward    |0.0|1.0|2.0|3.0|4.0|5.0|6.0|7.0|

  More: print(plan['reward']), plan.explain(sample=5), plan.explain(node='reward')"""

_GRPO = """\
grpo: 5 samples through 6 nodes: 26 calls on 18 replicas, 4 idle (plan {hash})

  node       reads               replicas  idle  waves  calls  rows  rows/replica  rows/call  fragments/call
  policy     prompts                    4     0      1      4     5       2 + 1x3        1-2               1
  logprob    policy           4 of policy     0      1      4    20             5          5             1-2
  reward     policy, prompts            3     0      2      6    20       7x2 + 6        3-4          1-2, 1
  advantage  reward                     2     0      2      3    20        12 + 8        4-8             2-3
  best       reward, policy             9     4      1      5    20             4          4          1-2, 1
  loss       logprob, +2      4 of policy     0      1      4    20             5          5       1, 1-2, 2

  policy     5 rows over 4 replicas: 1 gets 2, 3 get 1; batch size 2: 1 call each; 0 idle
  logprob    20 rows over 4 replicas of policy: 5 each; batch size 6: 1 call of 5 each; 0 idle
  reward     20 rows over 3 replicas: 2 get 7, 1 gets 6; batch size 5: 2 calls each, of 4 or 3; 0 idle
  advantage  20 rows in 5 groups of 4 over 2 replicas: 1 gets 12, 1 gets 8;
             batch size 10, 8 in whole groups: 1 makes 2 calls, 1 makes 1, of 8 or 4; 0 idle
  best       20 rows in 5 groups of 4 over 9 replicas: 5 get 4; no batch size: 1 call of 4 each; 4 idle
  loss       20 rows over 4 replicas of policy: 5 each; no batch size: 1 call of 5 each; 0 idle

  Calls over the samples that they read, as replica.call:
  sample     0       1       2       3       4
  policy    |0.0            |1.0    |2.0    |3.0    |
  logprob   |0.1      |1.1      |2.1      |3.1      |
  reward    |0.0    |1.0    |2.0  |0.1  |1.1  |2.1  |
  advantage |0.0            |1.0            |0.1    |
  best      |0.0    |1.0    |2.0    |3.0    |4.0    |
  loss      |0.2      |1.2      |2.2      |3.2      |

  More: print(plan['loss']), plan.explain(sample=1), plan.explain(node='loss')"""


def test_the_seeds_plan_prints_its_numbers_their_reasons_and_which_replica_reads_which_samples() -> None:
    plan = seed_plan()
    assert str(plan) == _SEED.format(hash=plan.hash[:12])


def test_a_plan_with_expand_group_collapse_and_shared_replicas_prints_where_rows_meet() -> None:
    plan = grpo_plan()
    assert str(plan) == _GRPO.format(hash=plan.hash[:12])


def test_a_small_plan_too_wide_for_lanes_prints_every_call_in_notation_that_parses_back() -> None:
    graph = fs.Graph(
        "wide",
        ["prompts"],
        [
            fs.Node("policy", inputs=["prompts"], replicas=3),
            fs.Node("reward", inputs=["policy"], replicas=2, batch_size=300),
        ],
    )
    plan = fs.compile(graph, samples=1000)
    expected = dedent("""\
          policy: 1,000 rows over 3 replicas: 1 gets 334, 2 get 333; no batch size: 1 call each; 0 idle
            policy.0.0[0:334]    <- prompts[0:334]
            policy.1.0[334:667]  <- prompts[334:667]
            policy.2.0[667:1000] <- prompts[667:1000]
          reward: 1,000 rows over 2 replicas: 500 each; batch size 300: 2 calls of 250 each; 0 idle
            reward.0.0[0:250]    <- policy.0.0[0:250]
            reward.1.0[250:500]  <- policy.0.0[250:334] + policy.1.0[334:500]
            reward.0.1[500:750]  <- policy.1.0[500:667] + policy.2.0[667:750]
            reward.1.1[750:1000] <- policy.2.0[750:1000]
    """)
    routing = str(plan).split("\n\n")[2]
    assert dedent(routing) == expected.rstrip()
    printed = "\n".join(line for line in routing.splitlines() if "<-" in line)
    assert parse_calls(printed) == [call for calls in plan for call in calls]


def test_a_large_plan_prints_first_and_last_calls_and_how_many_stand_between() -> None:
    plan = fs.compile(seed_graph(), samples=16_000)
    lines = str(plan).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  value:"))
    assert lines[at + 1 : at + 5] == [
        "    value.0.0[0:2]           <- policy.0.0[0:2]",
        "    value.1.0[2:4]           <- policy.0.0[2:4]",
        "    ... 7,997 more: plan.explain(node='value')",
        "    value.7.999[15998:16000] <- policy.1.1999[15998:16000]",
    ]


def test_nobody_is_invited_to_print_hundreds_of_thousands_of_lines() -> None:
    few, many = (fs.compile(seed_graph(), samples) for samples in (1_600, 1_000_000))
    assert "... 797 more: print(plan['value'])" in str(few)
    assert "More: print(plan['reward']), plan.explain(sample=533), " in str(few)
    assert "... 788 more: print(plan['value'])" in str(few.explain(node="value"))
    assert "print(" not in str(many)
    assert "... 499,997 more: plan.explain(node='value')" in str(many)
    assert str(many).endswith("  More: plan.explain(sample=333333), plan.explain(node='reward')")
    assert "... 499,988 more\n" in str(many.explain(node="value"))


@pytest.mark.parametrize("samples", [30_000, 3_000_000])
@pytest.mark.parametrize("graph", [grpo_graph(), wide_graph()], ids=lambda graph: graph.name)
def test_the_table_of_a_large_plan_keeps_its_inputs_and_its_separators(graph: fs.Graph, samples: int) -> None:
    table = str(fs.compile(graph, samples)).split("\n\n")[1].splitlines()
    header, *rows = (line.split() for line in table)
    assert header[:6] == ["node", "reads", "replicas", "idle", "waves", "calls"]
    assert [row[1].rstrip(",") for row in rows[:2]] == ["prompts", "policy"]
    assert f"{samples:,}" in rows[0]
    assert not [word for row in rows for word in row if re.fullmatch(r"\d{4,}", word)]
    assert ("fragments/call" in header) != ("no room for the fragments of each call" in table[-1])


def test_idle_replicas_are_counted_in_the_heading_the_table_and_the_reason() -> None:
    text = str(fs.compile(seed_graph(), samples=5))
    assert "17 calls on 26 replicas, 9 idle" in text
    assert "  reward     policy, reference         8     3      1      5     5 " in text
    assert "  reward     5 rows over 8 replicas: 5 get 1; batch size 2: 1 call of 1 each; 3 idle" in text


def test_a_replica_that_serves_another_node_is_not_idle_in_the_heading() -> None:
    nodes = [
        fs.Node("few", inputs=["x"], replicas=4, group=2),
        fs.Node("many", inputs=["x"], replicas_of="few"),
    ]
    text = str(fs.compile(fs.Graph("shared", ["x"], nodes), samples=4))
    assert "on 4 replicas, none idle" in text
    assert (
        "few   4 rows in 2 groups of 2 over 4 replicas: 2 get 2; no batch size: 1 call of 2 each; 2 idle"
        in text
    )


def test_a_plan_of_no_samples_prints_that_there_is_nothing_to_run() -> None:
    text = str(fs.compile(seed_graph(), samples=0))
    assert text.startswith("ppo: 0 samples through 4 nodes: 0 calls on 26 replicas, 26 idle")
    assert text.endswith("\n\n  Nothing to run: there are no rows.")


@pytest.mark.parametrize("samples", [1, 7, 100, 1_000, 30_000])
@pytest.mark.parametrize("graph", [seed_graph(), grpo_graph(), wide_graph()], ids=lambda graph: graph.name)
def test_no_line_is_longer_than_110_columns(graph: fs.Graph, samples: int) -> None:
    lines = str(fs.compile(graph, samples)).splitlines()
    assert max(map(len, lines)) <= 110
    assert len(lines) <= 100


def test_printing_a_million_samples_makes_no_python_object_for_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [
        fs.Node("policy", inputs=["prompts"], replicas=64, batch_size=3),
        fs.Node("collect", inputs=["policy"]),
        fs.Node("reward", inputs=["policy", "collect"], replicas=1000),
    ]
    plan = fs.compile(fs.Graph("large", ["prompts"], nodes), samples=1_000_000)
    assert plan.table.calls > 300_000
    looked_at: list[int] = []
    for name in ("call", "fragment", "made_rows", "samples_of"):
        original = getattr(fs.Plan, name)

        def counting(self: fs.Plan, number: int, original: Any = original) -> Any:
            looked_at.append(number)
            return original(self, number)

        monkeypatch.setattr(fs.Plan, name, counting)
    lines = str(plan).splitlines()
    assert 0 < len(looked_at) < 300
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize("plan", [seed_plan(), grpo_plan()], ids=lambda plan: plan.graph.name)
def test_a_nodes_calls_print_one_a_line_and_parse_back(plan: fs.Plan) -> None:
    for node in plan:
        assert parse_calls(str(node)) == list(node)
        assert len(str(node).splitlines()) == len(node)


def test_the_repr_of_a_plan_and_of_a_nodes_calls_is_one_line() -> None:
    plan = seed_plan()
    assert repr(plan) == f"<Plan ppo: 16 samples, 28 calls, hash {plan.hash[:12]}>"
    assert repr(plan["reward"]) == "<NodePlan reward: 8 calls>"
