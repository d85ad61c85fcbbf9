"""Actions in one line each, and back."""

from __future__ import annotations

import pytest

from flowsched.plan.notation import NotationError
from flowsched.programs import Recv, Run, Send, parse_action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("RUN  policy.1.0[4:8]", Run("policy.1.0", 4, 8)),
        ("RECV prompts[4:8] from home for policy.1.0", Recv("prompts", 4, 8, None, ("policy.1.0",))),
        (
            "SEND policy.1.0[4:6] to rank 5 for reference.2.0, reward.2.0",
            Send("policy.1.0", 4, 6, 5, ("reference.2.0", "reward.2.0")),
        ),
        ("SEND reward.0.0[0:2] to home for output", Send("reward.0.0", 0, 2, None, ("output",))),
        ("RECV done train.1.1 from rank 1 for sync.0.0", Recv("train.1.1", 0, 0, 1, ("sync.0.0",))),
        ("SEND a-b_1.0.12[100:1000] to rank 0", Send("a-b_1.0.12", 100, 1000, 0)),
    ],
)
def test_an_action_is_written_in_one_line_and_read_back(text: str, action: Recv | Run | Send) -> None:
    assert str(action) == text
    assert parse_action(f"    {text}\n") == action
    assert parse_action(" ".join(text.split())) == action


def test_numbers_are_no_part_of_what_is_written() -> None:
    assert Run("a.0.0", 0, 1, number=7) == Run("a.0.0", 0, 1)
    assert Send("a.0.0", 0, 1, 2, message=7) == Send("a.0.0", 0, 1, 2)
    assert Send("a.0.0", 0, 1, 2) != Recv("a.0.0", 0, 1, 2)  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RUN",
        "RUN policy[4:8]",
        "RUN policy.1.0",
        "WAIT policy.1.0[4:8]",
        "RECV prompts[4:8] to home",
        "SEND policy.1.0[4:6] from rank 5",
        "SEND policy.1.0[4:6] to rank five",
        "SEND policy.1.0 to rank 5",
        "SEND done prompts to rank 5",
        "SEND policy.1.0[4:6] to rank 5 for reference",
        "SEND policy.1.0[4:6] to rank 5 for reference.2.0,",
        "RUN policy.1.0[4:8] RUN policy.1.1[4:8]",
    ],
)
def test_what_is_no_action_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(NotationError, match=r"is not an action. Write it like 'SEND policy"):
        parse_action(text)
