"""What ``plan.explain`` answers to each question."""

from __future__ import annotations

import json
import pickle
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import FlowschedError
from flowsched.inspect.errors import ExplainError
from tests.inspect.plans import grpo_plan, seed_graph, seed_plan, wide_graph


def _says(plan: fs.Plan, expected: str, **question: Any) -> None:
    assert str(plan.explain(**question)) == dedent(expected).strip()


def test_a_node_is_explained_by_its_arithmetic_its_neighbours_and_its_calls() -> None:
    _says(
        seed_plan(),
        """
        node policy of ppo with 16 samples
          split    16 rows over 2 replicas: 8 each; batch size 4: 2 calls of 4 each; 0 idle
          why      dealt wave by wave: the first calls of all replicas read [0:8], and so on
          reads    prompts: 16 rows of the source, 1 fragment a call
          read by  reference, value, reward
          calls    policy.0.0[0:4]   <- prompts[0:4]
                   policy.1.0[4:8]   <- prompts[4:8]
                   policy.0.1[8:12]  <- prompts[8:12]
                   policy.1.1[12:16] <- prompts[12:16]
        """,
        node="policy",
    )


def test_a_node_that_collapses_says_who_expanded_its_rows_and_why_replicas_are_idle() -> None:
    _says(
        grpo_plan(),
        """
        node best of grpo with 5 samples
          split    20 rows in 5 groups of 4 over 9 replicas: 5 get 4; no batch size: 1 call of 4 each; 4 idle
          why      4 rows for each sample: policy expands each row into 4
                   collapse 4: every 4 rows stay in one call and become 1
                   4 of 9 replicas are idle: 5 groups cannot be divided further
          reads    reward: 20 rows of 6 calls, 1-2 fragments a call
                   policy: 20 rows of 4 calls, 1 fragment a call
          read by  loss
          calls    best.0.0[0:1] <- reward.0.0[0:4], policy.0.0[0:4]
                   best.1.0[1:2] <- reward.1.0[4:8], policy.0.0[4:8]
                   best.2.0[2:3] <- reward.2.0[8:11] + reward.0.1[11:12], policy.1.0[8:12]
                   best.3.0[3:4] <- reward.0.1[12:14] + reward.1.1[14:16], policy.2.0[12:16]
                   best.4.0[4:5] <- reward.1.1[16:17] + reward.2.1[17:20], policy.3.0[16:20]
        """,
        node="best",
    )


def test_a_node_says_which_replicas_it_shares_what_it_waits_for_and_that_it_is_an_output() -> None:
    text = str(grpo_plan().explain(node="loss"))
    assert "each row of best is shared by 4 consecutive rows" in text
    assert (
        "replicas_of policy: its calls stand in the queues of those replicas, after those of policy, logprob"
        in text
    )
    assert "after reward: its first call waits until 6 calls of reward have ended" in text
    assert "  read by  no node; an output" in text


def test_rows_of_fewer_than_one_a_sample_are_said_with_who_collapsed_them() -> None:
    nodes = [fs.Node("pairs", inputs=["x"], collapse=2), fs.Node("reader", inputs=["pairs"])]
    text = str(fs.compile(fs.Graph("g", ["x"], nodes), samples=8).explain(node="reader"))
    assert "1 row for every 2 samples: pairs collapses 2 rows into 1" in text


def test_a_split_with_three_sizes_of_calls_names_them_all() -> None:
    graph = fs.Graph("g", ["x"], [fs.Node("a", inputs=["x"], replicas=3, batch_size=64)])
    split = fs.compile(graph, samples=193).explain(node="a").to_dict()["split"]
    assert split == (
        "193 rows over 3 replicas: 1 gets 65, 2 get 64; "
        "batch size 64: 1 makes 2 calls, 2 make 1, of 64, 33 or 32; 0 idle"
    )


def test_an_edge_is_explained_by_what_is_cut_what_is_merged_and_its_fragments() -> None:
    _says(
        grpo_plan(),
        """
        edge reward -> advantage: 20 rows of 6 calls reach 3 calls in 7 fragments
          1 of 6 calls of reward are cut, into 2 fragments each
          3 of 3 calls of advantage read several fragments, 2-3 each
          rows     made by     read by        as rows
          [0:4]    reward.0.0  advantage.0.0  [0:4]
          [4:8]    reward.1.0  advantage.0.0  [4:8]
          [8:11]   reward.2.0  advantage.1.0  [8:11]
          [11:14]  reward.0.1  advantage.1.0  [11:14]
          [14:16]  reward.1.1  advantage.1.0  [14:16]
          [16:17]  reward.1.1  advantage.0.1  [16:17]
          [17:20]  reward.2.1  advantage.0.1  [17:20]
        """,
        edge="reward->advantage",
    )


def test_an_edge_from_a_source_says_how_many_rows_share_one_of_it() -> None:
    _says(
        grpo_plan(),
        """
        edge prompts -> reward: 5 rows of the source reach 6 calls in 6 fragments
          0 of 6 calls of reward read several fragments
          each row is shared by 4 consecutive rows of reward
          rows   made by  read by     as rows
          [0:1]  prompts  reward.0.0  [0:4]
          [1:2]  prompts  reward.1.0  [4:8]
          [2:3]  prompts  reward.2.0  [8:11]
          [2:4]  prompts  reward.0.1  [11:14]
          [3:5]  prompts  reward.1.1  [14:17]
          [4:5]  prompts  reward.2.1  [17:20]
        """,
        edge=("prompts", "reward"),
    )


def test_a_sample_is_followed_node_by_node_through_replicas_calls_and_rows() -> None:
    _says(
        grpo_plan(),
        """
        sample 3 (of 0-4) through grpo
          node       reads    replica  call                                     makes
          policy     [3:4]    2        policy.2.0[12:16]                        [12:16]
          logprob    [12:16]  2, 3     logprob.2.1[10:15] + logprob.3.1[15:20]  [12:16]
          reward     [12:16]  0, 1     reward.0.1[11:14] + reward.1.1[14:17]    [12:16]
          advantage  [12:16]  1        advantage.1.0[8:16]                      [12:16]
          best       [12:16]  3        best.3.0[3:4]                            [3:4]
          loss       [12:16]  2, 3     loss.2.2[10:15] + loss.3.2[15:20]        [12:16]
        """,
        sample=3,
    )


def test_a_sample_at_a_node_shows_the_fragments_that_carry_it_there() -> None:
    _says(
        grpo_plan(),
        """
        sample 3 (of 0-4) at node loss: read as rows [12:16], made into rows [12:16]
          rows     made by        read by   as rows
          [10:15]  logprob.2.1    loss.2.2  [10:15]
          [15:20]  logprob.3.1    loss.3.2  [15:20]
          [10:15]  advantage.1.0  loss.2.2  [10:15]
          [15:16]  advantage.1.0  loss.3.2  [15:16]
          [3:4]    best.3.0       loss.2.2  [12:15]
          [3:4]    best.3.0       loss.3.2  [15:16]
        """,
        sample=3,
        node="loss",
    )


def test_a_sample_on_an_edge_shows_the_fragments_that_carry_it() -> None:
    _says(
        grpo_plan(),
        """
        sample 3 (of 0-4) on edge reward -> best: rows [12:16] of reward
          rows     made by     read by   as rows
          [12:14]  reward.0.1  best.3.0  [12:14]
          [14:16]  reward.1.1  best.3.0  [14:16]
        """,
        sample=3,
        edge="reward -> best",
    )


def test_a_sample_on_a_replica_shows_its_calls_there_and_who_else_reads_it() -> None:
    _says(
        grpo_plan(),
        """
        sample 3 (of 0-4) on replica policy.2: read by 3 calls
          policy.2.0[12:16]  <- prompts[3:4]
          logprob.2.1[10:15] <- policy.1.0[10:12] + policy.2.0[12:15]
          loss.2.2[10:15]    <- logprob.2.1[10:15], advantage.1.0[10:15], (best.2.0[2:3] + best.3.0[3:4]) * 4
          also read by policy.3
        """,
        sample=3,
        replica="policy.2",
    )
    _says(
        seed_plan(),
        """
        sample 3 (of 0-15) on replica reward.7: not read there
          read by reward.1
        """,
        sample=3,
        replica=("reward", 7),
    )


def test_a_replica_is_explained_by_its_queue_over_all_nodes_that_it_serves() -> None:
    _says(
        grpo_plan(),
        """
        replica policy.2 of 4: 3 calls, 1 row of policy, 5 rows of logprob, 5 rows of loss
          policy.2.0[12:16]  <- prompts[3:4]
          logprob.2.1[10:15] <- policy.1.0[10:12] + policy.2.0[12:15]
          loss.2.2[10:15]    <- logprob.2.1[10:15], advantage.1.0[10:15], (best.2.0[2:3] + best.3.0[3:4]) * 4
        """,
        replica="logprob.2",
    )


def test_a_replica_can_be_asked_for_its_calls_of_one_node() -> None:
    _says(
        grpo_plan(),
        """
        replica policy.2 of 4: 1 call, 5 rows of logprob
          logprob.2.1[10:15] <- policy.1.0[10:12] + policy.2.0[12:15]
        """,
        replica="policy.2",
        node="logprob",
    )


def test_an_idle_replica_is_said_to_be_idle() -> None:
    explanation = grpo_plan().explain(replica="best.7")
    assert str(explanation) == "replica best.7 of 9: idle; all rows are read by other replicas: 20 of best"
    assert explanation.to_dict()["idle"] is True


def test_without_a_question_every_node_is_explained_producers_first() -> None:
    nodes = list(reversed(list(seed_graph())))
    plan = fs.compile(fs.Graph("ppo", ["prompts"], nodes), samples=16)
    text = str(plan.explain())
    heads = [line.split(":")[0].strip() for line in text.splitlines() if ": reads " in line]
    assert heads == ["policy", "value", "reference", "reward"]
    assert (
        "  reward: reads policy, reference; read by no node; an output\n    16 rows over 8 replicas: 2 each;"
        in text
    )


@pytest.mark.parametrize(
    ("question", "left_out"),
    [({"node": "policy"}, 3_990), ({"edge": "policy->value"}, 7_990), ({"replica": "policy.1"}, 1_990)],
    ids=["node", "edge", "replica"],
)
def test_long_lists_show_their_beginning_and_their_last(question: dict[str, Any], left_out: int) -> None:
    explanation = fs.compile(seed_graph(), samples=16_000).explain(**question, limit=10)
    facts = explanation.to_dict()
    assert facts["left_out"] == left_out
    assert len(facts["listed"]) == 10
    assert f"... {left_out:,} more" in str(explanation).splitlines()[-2]


def test_no_limit_lists_everything() -> None:
    explanation = fs.compile(seed_graph(), samples=400).explain(replica="policy.1", limit=None)
    assert len(explanation.to_dict()["listed"]) == 50
    assert len(explanation.lines) == 51


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"node": "score_7"},
        {"edge": "policy->collect"},
        {"sample": 12_345},
        {"sample": 12_345, "node": "collect"},
        {"replica": "score_3.7"},
    ],
    ids=str,
)
def test_explanations_of_large_plans_stay_short_and_go_to_json(question: dict[str, Any]) -> None:
    explanation = fs.compile(wide_graph(), samples=30_000).explain(**question)
    assert max(map(len, explanation.lines)) <= 110
    assert len(explanation.lines) <= 60
    facts = explanation.to_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert len(json.dumps(facts)) < 30_000


def test_samples_and_replicas_may_be_numpy_integers() -> None:
    plan = seed_plan()
    assert plan.explain(sample=np.int64(5)) == plan.explain(sample=5)  # type: ignore[arg-type]
    assert plan.explain(replica=("reward", np.int32(5))) == plan.explain(replica="reward.5")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            {"node": "rewrad"},
            "graph 'grpo' has no node 'rewrad'. Did you mean 'reward'? "
            "Known nodes: policy, logprob, reward, advantage, best, loss",
        ),
        (
            {"node": "prompts"},
            "'prompts' is a source of graph 'grpo', not a node. "
            "Name a node, e.g. one that reads it: policy, reward",
        ),
        (
            {"edge": "polcy->reward"},
            "graph 'grpo' has neither a source nor a node 'polcy'. Did you mean 'policy'? "
            "Known sources and nodes: prompts, policy, logprob, reward, advantage, best, loss",
        ),
        (
            {"edge": "policy->advantage"},
            "node 'advantage' of graph 'grpo' does not read 'policy'. It reads reward",
        ),
        (
            {"edge": "reward->policy"},
            "node 'policy' of graph 'grpo' does not read 'reward'. "
            "It is the other way round: 'policy->reward'",
        ),
        (
            {"edge": "reward->loss"},
            "node 'loss' waits for 'reward' (after), but reads no rows of it. "
            "It reads logprob, advantage, best",
        ),
        (
            {"edge": "reward"},
            "edge is 'reward', which is not a producer and a consumer. "
            "Write the two with an arrow between them: 'policy->reward'",
        ),
        ({"sample": 5}, "there is no sample 5: the plan has 5. Ask for a sample from 0 to 4"),
        ({"sample": -1}, "there is no sample -1: the plan has 5. Ask for a sample from 0 to 4"),
        (
            {"sample": "3"},
            "sample is '3' (str), which is not a whole number. Give the sample's index in the step's input",
        ),
        (
            {"sample": True},
            "sample is True (bool), which is not a whole number. Give the sample's index in the step's input",
        ),
        (
            {"replica": "reward.3"},
            "node 'reward' has no replica 3: it is served by 3, counted from 0. "
            "Ask for 'reward.0' to 'reward.2'",
        ),
        (
            {"replica": "reward"},
            "replica is 'reward', which is not a node and an index. "
            "Write the two with a dot between them: 'policy.1'",
        ),
        (
            {"replica": "rewrad.1"},
            "graph 'grpo' has no node 'rewrad'. Did you mean 'reward'? "
            "Known nodes: policy, logprob, reward, advantage, best, loss",
        ),
        (
            {"node": "reward", "replica": "policy.1"},
            "replica policy.1 does not serve node 'reward'. It serves policy, logprob, loss",
        ),
        (
            {"node": "reward", "edge": "policy->reward"},
            "node and edge cannot be asked for together. "
            "Ask for one of node, edge, sample, replica; or for sample and one other; or for node and replica",
        ),
        ({"limit": 1}, "limit is 1. Give a whole number of 2 or more, or None for all"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_questions_without_an_answer_say_what_there_is_and_how_to_ask(
    question: dict[str, Any], message: str
) -> None:
    with pytest.raises(ExplainError) as caught:
        grpo_plan().explain(**question)
    assert str(caught.value) == message
    assert isinstance(caught.value, FlowschedError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (message, caught.value.code)


def test_a_plan_of_no_samples_has_no_sample_to_explain_but_explains_its_nodes() -> None:
    plan = fs.compile(seed_graph(), samples=0)
    with pytest.raises(ExplainError, match="the plan has no samples"):
        plan.explain(sample=0)
    assert "split    0 rows over 8 replicas; 8 idle" in str(plan.explain(node="reward"))
    assert "edge policy -> reward: 0 rows of 0 calls reach 0 calls in 0 fragments" in str(
        plan.explain(edge="policy->reward")
    )
    assert "idle" in str(plan.explain(replica="reward.7"))
    assert "16 rows" not in str(plan.explain())


def test_a_sample_that_becomes_very_many_rows_is_explained_in_lines_of_at_most_110_columns() -> None:
    """Each of the last node's 48 calls has a long name: with its first and last the table had 111 columns."""
    wide = fs.Graph(
        "wide",
        sources=["prompts"],
        nodes=[
            fs.Node("generate", inputs=["prompts"], expand=48),
            fs.Node("reward_model", inputs=["generate"], replicas=4, batch_size=1),
            fs.Node("critic_model", inputs=["reward_model"], batch_size=1),
        ],
    )
    plan = fs.compile(wide, samples=22)
    text = str(plan.explain(sample=21))
    assert max(map(len, text.splitlines())) <= 110
    assert "critic_model.0.1008[1008:1009] + (47 more)" in text
