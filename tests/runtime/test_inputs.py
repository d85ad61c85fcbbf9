"""Inputs that do not fit the graph or the plan are refused with all that is wrong, before anything is built."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import InputError

GRAPH = fs.Graph("ppo", ["prompts", "images"], [fs.Node("policy", ["prompts", "images"], replicas=2)])


class NeverBuilt:
    """Fails the test when it is built."""

    def __init__(self) -> None:
        pytest.fail("a replica was built although the inputs do not fit")

    def __call__(self, prompts: Any, images: Any) -> Any:
        return prompts, images


def problems_of(inputs: Any, **options: Any) -> list[tuple[str, str]]:
    """Return code and sentence of each problem."""
    with pytest.raises(InputError) as caught:
        fs.run(fs.compile(GRAPH, 4), {"policy": NeverBuilt}, inputs, **options)
    return [(problem.code, str(problem)) for problem in caught.value.problems]


def test_all_that_is_wrong_is_told_at_once() -> None:
    problems = problems_of({"promts": [1], "images": "a picture"})
    assert [code for code, _ in problems] == ["missing-input", "bad-input", "surplus-input"]
    assert "Give inputs['prompts'], one batch" in problems[0][1]
    assert "a str" in problems[1][1]
    assert "Did you mean 'prompts'? Known sources: prompts, images" in problems[2][1]


def test_sources_that_disagree_on_rows_are_told_with_both_numbers() -> None:
    ((code, sentence),) = problems_of({"prompts": [1] * 4, "images": np.zeros(3)})
    assert code == "rows-disagree"
    assert "'prompts' has 4, 'images' has 3" in sentence


def test_another_number_of_rows_than_the_plan_has_is_told_with_both_numbers() -> None:
    ((code, sentence),) = problems_of({"prompts": [1] * 5, "images": [2] * 5})
    assert code == "wrong-samples"
    assert "they have 5 rows, the plan 4. Compile a plan for 5 samples, or use fs.start" in sentence


@pytest.mark.parametrize("nothing", [None, {}, {"text": None}], ids=repr)
def test_an_input_without_any_column_is_not_taken_for_no_rows(nothing: Any) -> None:
    ((code, sentence),) = problems_of({"prompts": nothing, "images": [2] * 4})
    assert code == "bad-input"
    assert "source 'prompts'" in sentence
    assert "holds no column" in sentence


@pytest.mark.parametrize(
    "given", [(n for n in range(4)), iter([1, 2]), range(4), {1, 2}, (1, 2, 3, 4)], ids=repr
)
def test_an_iterator_is_refused_with_the_mend_and_not_consumed(given: Any) -> None:
    ((code, sentence),) = problems_of({"prompts": given, "images": [2] * 4})
    assert code == "bad-input"
    assert "Use a" in sentence
    assert len(list(given)) in (2, 4)


@pytest.mark.parametrize("inputs", [None, [1, 2, 3, 4], np.zeros(4), iter(["prompts", "images"])], ids=repr)
def test_inputs_are_a_mapping(inputs: Any) -> None:
    ((code, sentence),) = problems_of(inputs)
    assert code == "wrong-type"
    assert "Give a dict of one batch for each source: prompts, images" in sentence


class Batches(dict[str, Any]):
    """A dict of somebody else's."""


@pytest.mark.parametrize("mapping", [dict, Batches, UserDict])
def test_inputs_may_be_any_mapping_and_batches_any_dict(mapping: Any) -> None:
    inputs = mapping(prompts=Batches(text=["a"] * 4, ids=np.arange(4)), images=[0] * 4)
    graph = fs.Graph("ppo", GRAPH.sources, [fs.Node("policy", GRAPH.sources, replicas=3, batch_size=1)])
    out = fs.run(fs.compile(graph, 4), {"policy": lambda prompts, images: prompts}, inputs)  # noqa: ARG005
    assert out["policy"]["text"] == ["a"] * 4
    assert out["policy"]["ids"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed is -1 (int). Give a whole number of 0 or more"),
        ({"seed": 1.5}, "seed is 1.5 (float)"),
        ({"seed": True}, "seed is True (bool)"),
        ({"max_in_flight": 0}, "max_in_flight is 0 (int). Give a whole number of 1 or more"),
        ({"max_in_flight": "8"}, "max_in_flight is '8' (str)"),
    ],
)
def test_numbers_of_a_session_are_whole_and_not_too_small(options: dict[str, Any], said: str) -> None:
    ((code, sentence),) = problems_of({"prompts": [1] * 4, "images": [2] * 4}, **options)
    assert code == "wrong-number"
    assert said in sentence
