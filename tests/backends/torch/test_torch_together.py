"""Under torchrun, without it, and inside a process group, every rank runs the same program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.torch.launching import Launched, by_hand, torchrun

pytestmark = pytest.mark.timeout(120)

AT_ONCE = 5.0  # seconds; a collective would wait for half an hour


def _all_right(launched: Launched, ranks: int, steps: int, *, everywhere: bool = False) -> None:
    assert sorted(launched.said) == list(range(ranks)), launched.output
    for rank, said in launched.said.items():
        assert "error" not in said, said["error"]
        assert len(said["outputs"]) == steps
        assert said["threads"] == ["MainThread"]
        for outputs in said["outputs"]:
            if rank and not everywhere:
                assert outputs == "elsewhere"
            else:
                assert outputs["right"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_torchrun_on_any_ranks_makes_the_same_outputs(tmp_path: Path, ranks: int) -> None:
    launched = torchrun(tmp_path, ranks, {"samples": [12, 5, 12, 12, 1, 0, 40]})
    assert sorted(launched.said) == list(range(ranks)), launched.output
    steps = [said["outputs"] for said in launched.said.values()]
    assert steps[0][0]["ranks"] == list(range(min(ranks, 3)))
    _all_right(launched, ranks, 7)


def test_inputs_and_outputs_can_be_everywhere_and_wide(tmp_path: Path) -> None:
    options = {"inputs_on": "all", "outputs_on": "all"}
    launched = torchrun(tmp_path, 3, {"options": options, "samples": [12, 12, 7], "wide": True})
    _all_right(launched, 3, 3, everywhere=True)


def test_rank_0_is_told_of_all_calls_and_the_others_of_their_own(tmp_path: Path) -> None:
    said = torchrun(tmp_path, 2, {"samples": [12]}).said
    assert said[0]["calls"] == 6 + 4
    assert said[0]["built"] == 5
    assert 0 < said[1]["calls"] < 10


@pytest.mark.parametrize("ranks", [2])
def test_the_variables_of_a_launcher_are_enough(tmp_path: Path, ranks: int) -> None:
    _all_right(by_hand(tmp_path, ranks, {"samples": [12, 5]}), ranks, 2)


def test_a_process_group_is_used_and_left_as_it_was(tmp_path: Path) -> None:
    launched = torchrun(tmp_path, 3, {"samples": [12, 5], "group": True, "options": {"start": "group"}})
    _all_right(launched, 3, 2)
    assert all(said["group"] == [3, 3] for said in launched.said.values())


@pytest.mark.parametrize(("at", "group"), [(0, True), (2, False), (2, True)])
def test_a_worker_that_raises_ends_every_rank_with_that_cause(tmp_path: Path, at: int, group: bool) -> None:
    settings: dict[str, Any] = {"samples": [12, 12], "fault": "raise", "at": at, "group": group}
    launched = torchrun(tmp_path, 3, settings)
    assert launched.said, launched.output
    for said in launched.said.values():
        assert said["error"][0] == "WorkerError", said["error"]
        assert f"node 'a', replica {at}" in said["error"][1]
        assert said["error"][2:] == ["UserError", "a bad sample"]
        assert said["seconds"] < AT_ONCE


@pytest.mark.parametrize(("at", "group"), [(0, True), (2, False), (2, True)])
def test_a_rank_that_dies_ends_all_others_with_its_name(tmp_path: Path, at: int, group: bool) -> None:
    settings: dict[str, Any] = {"samples": [12, 12], "fault": "die", "at": at, "group": group}
    launched = by_hand(tmp_path, 3, settings)
    assert sorted(launched.said) == sorted({0, 1, 2} - {at}), launched.output
    for said in launched.said.values():
        assert said["error"][0] == "ReplicaLostError", said["error"]
        assert f"node 'a', replica {at}" in said["error"][1]
        assert f"rank {at}" in said["error"][1]
        assert said["seconds"] < AT_ONCE


def test_a_rank_that_stops_answering_is_given_up(tmp_path: Path) -> None:
    settings = {"samples": [12], "fault": "stop", "at": 1, "options": {"timeout": 4}}
    said = by_hand(tmp_path, 2, settings, awaited=1).said  # the stopped rank itself never ends
    assert said[0]["error"][0] == "ReplicaLostError"
    assert "does not answer" in said[0]["error"][1]


def test_a_constructor_that_raises_ends_every_rank(tmp_path: Path) -> None:
    launched = torchrun(tmp_path, 2, {"fault": "build", "at": 1})
    assert launched.said, launched.output
    for said in launched.said.values():
        assert said["error"][0] == "BuildError"
        assert said["error"][2:] == ["UserError", "the weights are missing"]


@pytest.mark.parametrize(
    ("fault", "part"),
    [("other graph", "the hash of the graph is"), ("other seed", "seed, max_in_flight or the plans before")],
)
def test_ranks_that_do_not_run_the_same_are_refused_with_what_differs(
    tmp_path: Path, fault: str, part: str
) -> None:
    launched = by_hand(tmp_path, 2, {"fault": fault, "at": 1})
    assert sorted(launched.said) == [0, 1], launched.output
    for said in launched.said.values():
        assert said["error"][0] == "SessionError"
        assert part in said["error"][1]
        assert "rank 1" in said["error"][1]
        assert "rank 0" in said["error"][1]
