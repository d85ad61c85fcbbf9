"""Every reported case runs, on every backend, as it should have; the ids are those of cases.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Backend
from flowsched.errors import OutputError
from flowsched.testing.workers import meeting
from tests.cases.reported import CASES, PLANNED, Run, graph_of, runs_of
from tests.cases.running import Ids, Notes, assert_mentions, passed, passing, run_alone, run_case

MOST_ON_RAY = 6  # replicas; each is a process that takes a second to start
RUNS = [
    pytest.param(run, id=f"{case}-{run.samples}" if number else case)
    for case in PLANNED
    for number, run in enumerate(runs_of(case))
]


@pytest.mark.parametrize("run", RUNS)
def test_reported_case_passes_each_sample_once_and_returns_them_in_order(
    run: Run, backend: str | Backend, tmp_path: Path
) -> None:
    replicas = sum(owner.replicas for owner in run.graph.owners())
    if getattr(backend, "name", backend) == "ray" and replicas > MOST_ON_RAY:
        pytest.skip(
            f"{replicas} replicas on Ray take too long for every run; threads and torch run this case"
        )
    plan = fs.compile(run.graph, run.samples)
    models = passing(run.graph, tmp_path)
    out = fs.run(plan, models, {"source": np.arange(run.samples)}, backend=backend)
    for node in run.graph:
        read, calls = plan.rows[node.name].read, passed(node.name, tmp_path)
        given = [sample for call in calls for sample in call]
        assert sorted(given) == np.repeat(np.arange(run.samples), int(read)).tolist(), node.name
        assert [] not in calls
    for name in run.graph.outputs:
        assert out[name].tolist() == np.repeat(np.arange(run.samples), int(plan.rows[name].made)).tolist()


def test_s01_the_last_replica_of_every_model_works_in_both_episodes(
    backend: str | Backend, tmp_path: Path
) -> None:
    graph = graph_of("S01")
    notes = Notes(tmp_path)

    def note(context: fs.Context) -> None:
        notes.add([context.node, context.replica, context.step])

    def policy(prompts: Ids, context: fs.Context) -> dict[str, Ids]:
        note(context)
        return {"query": prompts, "out": np.ones((len(prompts), 4), np.int64)}

    def later(*inputs: dict[str, Ids], context: fs.Context) -> dict[str, Ids]:
        note(context)
        return {"query": inputs[0]["query"], "out": sum(batch["out"] for batch in inputs)}  # type: ignore[dict-item]

    models: dict[str, Any] = {"policy": policy, "reference": later, "value": later, "reward": later}
    with fs.start(graph, models, backend=backend) as session:
        for episode in range(2):
            out = session.run({"source": np.arange(16) + 16 * episode})
            assert out["reward"]["query"].tolist() == [i + 16 * episode for i in range(16)]
            assert out["value"]["query"][0] == 16 * episode
    for node in graph:
        assert {
            step for name, replica, step in notes.all() if (name, replica) == (node.name, node.replicas - 1)
        } == {0, 1}


@pytest.mark.parametrize("samples", CASES["S02"]["check"]["gathered"])
def test_s02_evaluation_returns_exactly_as_many_rows_as_prompts_in_their_order(
    samples: int, backend: str | Backend
) -> None:
    node = fs.Node("eval", inputs=["source"], replicas=4, batch_size=16)
    assert run_alone(node, np.arange(samples), backend).tolist() == list(range(samples))


def test_b10_no_placeholder_is_in_the_result_where_samples_are_fewer_than_replicas(
    backend: str | Backend, tmp_path: Path
) -> None:
    notes = Notes(tmp_path)

    def llm(prompts: Ids) -> Ids:
        notes.add(prompts.tolist())
        return prompts + 100

    plan = fs.compile(graph_of("B10", replicas=4), 2)
    out = fs.run(plan, {"llm": llm}, {"source": np.array([7, 9])}, backend=backend)
    assert sorted(notes.all()) == [[7], [9]]
    assert out["llm"].tolist() == [107, 109]


def test_c10_the_mean_over_uneven_replicas_counts_no_filler(backend: str | Backend) -> None:
    values = run_alone(graph_of("C10")["val"], np.arange(10), backend)
    assert len(values) == 10
    assert values.mean() == CASES["C10"]["check"]["metric_mean"]


def test_c11_the_mean_does_not_weigh_the_shorter_last_batch_as_a_full_one(
    backend: str | Backend, tmp_path: Path
) -> None:
    notes = Notes(tmp_path)

    def loss(values: Ids) -> Ids:
        notes.add(len(values))
        return values

    out = run_case("C11", {"loss": loss}, backend)
    assert len(set(notes.all())) > 1, "there is a shorter batch"
    assert out["loss"].mean() == CASES["C11"]["check"]["metric_mean"]


def test_d01_results_are_in_order_when_the_last_replica_finishes_first(
    backend: str | Backend, tmp_path: Path
) -> None:
    notes = Notes(tmp_path)

    def slow_at_first(ids: Ids, context: fs.Context) -> Ids:
        if context.replica < 2:
            meeting.wait_for_arrivals(tmp_path, f"replica {context.replica + 1}", 1)
        notes.add(context.replica)
        meeting.arrive(tmp_path, f"replica {context.replica}")
        return ids

    out = run_case("D01", {"m": slow_at_first}, backend)
    assert list(dict.fromkeys(notes.all())) == [2, 1, 0]
    assert out["m"].tolist() == list(range(10))


def test_d03_answers_of_one_prompt_are_neighbours_and_meet_in_one_call(
    backend: str | Backend, tmp_path: Path
) -> None:
    nodes = [
        fs.Node("gen", inputs=["prompts"], replicas=2, expand=2),
        fs.Node("group_stat", inputs=["gen"], replicas=2, group=2),
    ]
    notes = Notes(tmp_path)

    def group_stat(prompts: Ids) -> Ids:
        notes.add(prompts.tolist())
        return prompts

    models: dict[str, Any] = {"gen": lambda prompts: np.repeat(prompts, 2), "group_stat": group_stat}
    plan = fs.compile(fs.Graph("D03", sources=["prompts"], nodes=nodes), 2)
    out = fs.run(plan, models, {"prompts": np.array([0, 1])}, backend=backend)
    assert out["group_stat"].tolist() == CASES["D03"]["check"]["group_order"]
    assert sorted(notes.all()) == [[0, 0], [1, 1]]


def test_e01_branches_cut_at_different_rows_meet_row_by_row(backend: str | Backend) -> None:
    def join(a: Ids, b: Ids) -> dict[str, Ids]:
        return {"a": a, "b": b}

    models: dict[str, Any] = {"a": lambda rows: rows * 2, "b": lambda rows: rows * 3, "z": join}
    out = run_case("E01", models, backend)
    assert (out["z"]["a"] // 2 == out["z"]["b"] // 3).all()
    assert out["z"]["a"].tolist() == list(range(0, 200, 2))


def test_e02_every_answer_is_joined_with_the_baseline_of_its_own_prompt(backend: str | Backend) -> None:
    models: dict[str, Any] = {
        "gen": lambda prompts: {
            "prompt": np.repeat(prompts, 4),
            "answer": np.tile(np.arange(4), len(prompts)),
        },
        "baseline": lambda prompts: prompts * 10,
        "adv": lambda answers, baseline: {**answers, "baseline": baseline},
    }
    adv = run_case("E02", models, backend)["adv"]
    assert len(adv["prompt"]) == 4096
    for k in range(4):
        assert (adv["answer"][k::4] == k).all()
        assert adv["baseline"][k::4].tolist() == [10 * i for i in range(1024)]


def test_e04_both_outputs_come_back_and_what_they_share_runs_once(
    backend: str | Backend, tmp_path: Path
) -> None:
    out = run_case("E04", passing(graph_of("E04"), tmp_path), backend)
    assert sorted(out) == CASES["E04"]["check"]["outputs"]
    assert all(out[name].tolist() == list(range(7)) for name in out)
    assert sorted(sample for call in passed("split", tmp_path) for sample in call) == list(range(7))


def test_f01_answers_of_different_width_meet_padded_and_keep_their_lengths(
    backend: str | Backend, tmp_path: Path
) -> None:
    later = fs.Node("later", inputs=["sink"], replicas=3)
    graph = fs.Graph("F01", sources=["source"], nodes=[*graph_of("F01").nodes, later])
    notes = Notes(tmp_path)

    @fs.pads(tokens=fs.Padding(-1, lengths="length"))
    def gen(prompts: Ids, context: fs.Context) -> dict[str, Ids]:
        width = 5120 if context.replica == 0 else 1000
        return {"prompt": prompts, "tokens": np.repeat(prompts[:, None], width, axis=1)}

    def sink(batch: dict[str, Ids]) -> dict[str, Ids]:
        notes.add(batch["tokens"].shape)
        return batch

    models: dict[str, Any] = {"gen": gen, "sink": sink, "later": lambda batch: batch}
    plan = fs.compile(graph, 302)
    out = fs.run(plan, models, {"source": np.arange(302)}, backend=backend)["later"]
    assert notes.all() == [[302, 5120]]
    assert out["prompt"].tolist() == list(range(302))
    assert out["length"].tolist() == [5120] * 151 + [1000] * 151
    assert (out["tokens"][:151] == np.arange(151)[:, None]).all()
    assert (out["tokens"][151:, :1000] == np.arange(151, 302)[:, None]).all()
    assert (out["tokens"][151:, 1000:] == -1).all()


def test_f03_lists_of_strings_and_flags_are_chained_row_by_row(backend: str | Backend) -> None:
    def tok(ids: Ids) -> dict[str, Any]:
        return {"ids": ids, "text": [f"text {i}" for i in ids], "flag": [bool(ids[0])] * len(ids)}

    models: dict[str, Any] = {"tok": tok, "sink": lambda batch: batch}
    out = run_case("F03", models, backend)["sink"]
    assert out["text"] == ["text 0", "text 1", "text 2", "text 3"]
    assert out["flag"] == [False, False, True, True], "what two calls said is both kept"


def test_f03_one_value_for_a_whole_call_is_an_error_and_not_replaced_by_the_first(
    backend: str | Backend,
) -> None:
    def tok(ids: Ids) -> dict[str, Any]:
        return {"ids": ids, "flag": bool(ids[0])}

    with pytest.raises(OutputError) as caught:
        run_case("F03", {"tok": tok, "sink": lambda batch: batch}, backend)
    assert_mentions(caught.value, ["tok", "flag"])


def test_g02_group_ids_travel_with_their_samples(backend: str | Backend) -> None:
    def gen(batch: dict[str, Any]) -> dict[str, Any]:
        return {"group": batch["group"], "reward": batch["reward"]}

    def norm(batch: dict[str, Any]) -> dict[str, Any]:
        group, reward = batch["group"], batch["reward"]
        means = np.array([reward[group == each].mean() for each in group])
        return {"group": group, "advantage": reward - means}

    inputs = {"group": np.array([0, 0, 1]), "reward": np.array([1.0, 3.0, 5.0])}
    plan = fs.compile(graph_of("G02"), 3)
    out = fs.run(plan, {"gen": gen, "norm": norm}, {"source": inputs}, backend=backend)["norm"]
    assert out["group"].tolist() == CASES["G02"]["check"]["group_order"]
    assert out["advantage"].tolist() == [-1, 1, 0]
