"""Where every rank runs the same program, what one of them refuses before a step begins ends that step on all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.torch.launching import Launched, by_hand, torchrun

pytestmark = pytest.mark.timeout(120)

PROGRAM = Path(__file__).with_name("refusing_program.py")
AT_ONCE = 8.0  # seconds; the time limit is 300
ALL = {"inputs_on": "all", "outputs_on": "all"}


def _the_error(launched: Launched, ranks: int) -> tuple[str, str]:
    """Return class and text of the one error that all ranks have raised in time."""
    assert sorted(launched.said) == list(range(ranks)), launched.output
    errors = []
    for said in launched.said.values():
        assert len(said.get("errors", [])) == 1, (launched.said, launched.output)
        assert said["seconds"] < AT_ONCE
        errors.append(tuple(said["errors"][0][1:]))
    assert len(set(errors)) == 1, errors
    return errors[0]


def _goes_on(launched: Launched, *, everywhere: bool = False) -> None:
    """Whether the steps before and after the refused one were run on all ranks."""
    for rank, said in launched.said.items():
        right = [list(range(1, 7)), list(range(1, 10))]
        assert said["outputs"] == (right if rank == 0 or everywhere else ["elsewhere"] * 2)


@pytest.mark.parametrize(("kind", "group"), [("names", False), ("lengths", True)])
def test_inputs_that_rank_0_refuses_end_the_step_on_all_ranks_and_the_next_one_runs(
    tmp_path: Path, kind: str, group: bool
) -> None:
    settings = {"kind": kind, "at": [0], "group": group}
    launched = torchrun(tmp_path, 3, settings, program=PROGRAM)
    name, text = _the_error(launched, 3)
    assert name == "InputError"
    assert ("surplus-input" if kind == "names" else "rows-disagree") in text
    _goes_on(launched)


def test_inputs_that_another_rank_refuses_end_the_step_on_all_ranks(tmp_path: Path) -> None:
    settings = {"kind": "lengths", "at": [1], "options": ALL}
    launched = by_hand(tmp_path, 3, settings, program=PROGRAM)
    assert _the_error(launched, 3)[0] == "InputError"
    _goes_on(launched, everywhere=True)


@pytest.mark.parametrize("late", [[0], [2]])
def test_a_rank_that_comes_late_to_a_refused_step_is_told_as_the_others(
    tmp_path: Path, late: list[int]
) -> None:
    settings = {"kind": "lengths", "at": [0, 1], "options": ALL, "late": late}
    launched = by_hand(tmp_path, 3, settings, program=PROGRAM)
    assert _the_error(launched, 3)[0] == "InputError"
    _goes_on(launched, everywhere=True)


@pytest.mark.parametrize("at", [0, 1])
def test_a_rank_that_comes_when_all_others_have_ended_over_a_refused_step_is_told(
    tmp_path: Path, at: int
) -> None:
    settings = {"kind": "names", "at": [at], "options": ALL, "late": [2], "ends": True}
    launched = by_hand(tmp_path, 3, settings, program=PROGRAM)
    assert _the_error(launched, 3)[0] == "InputError"


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("other rows", "SessionError", "rank 1 would run a step of 8 samples, and rank 0 one of 6"),
        ("other plan", "PlanError", "wrong-graph"),
        ("other samples", "SessionError", "rank 1 would run a step of 8 samples, and rank 0 one of 6"),
    ],
)
def test_a_step_that_is_another_on_one_rank_is_refused_on_all_and_the_next_one_runs(
    tmp_path: Path, kind: str, error: str, text: str
) -> None:
    options = ALL if kind == "other rows" else {}
    settings: dict[str, Any] = {"kind": kind, "at": [1], "options": options}
    launched = by_hand(tmp_path, 2, settings, program=PROGRAM)
    name, said = _the_error(launched, 2)
    assert name == error
    assert text in said
    _goes_on(launched, everywhere=bool(options))


@pytest.mark.parametrize(
    ("kind", "at"), [("inputs", 1), ("models", 0), ("models", 1), ("placement", 1), ("observer", 0)]
)
def test_a_run_that_one_rank_refuses_is_refused_on_all(tmp_path: Path, kind: str, at: int) -> None:
    settings = {"kind": kind, "at": [at], "options": ALL if kind == "inputs" else {}}
    launched = by_hand(tmp_path, 3, settings, program=PROGRAM)
    names = {"inputs": "InputError", "models": "BindingError", "placement": "PlacementError"}
    assert _the_error(launched, 3)[0] == names.get(kind, "WatchError")


@pytest.mark.parametrize("group", [False, True])
def test_an_address_that_rank_0_does_not_have_is_told_to_all(tmp_path: Path, group: bool) -> None:
    settings = {"kind": "interface", "at": [0], "group": group, "late": [1]}
    launched = torchrun(tmp_path, 2, settings, program=PROGRAM)
    name, text = _the_error(launched, 2)
    assert name == "BackendError"
    assert "nothing0" in text
