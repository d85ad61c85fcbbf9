"""Gathering returns each row once, in the order of the input, on real processes; what does not fit hangs nobody."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from flowsched.data import GatherError, ShardedBatchSampler, gather
from flowsched.data.ordering import find_wrong_rows
from flowsched.sharding import Deal, Sharding, ShardingError
from tests.data.gathering_cases import CASES, Loader, make_loader, quantize
from tests.data.ranks import Outcomes, Refusal, run_on_ranks

RANKS = (1, 3, 4)


@pytest.fixture(scope="module", params=RANKS, ids=lambda ranks: f"{ranks} ranks")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of all cases on each rank."""
    return run_on_ranks(request.param, CASES, tmp_path_factory.mktemp("ranks"))


def test_each_row_comes_once_in_the_order_of_the_input(outcomes: Outcomes) -> None:
    for own in outcomes:
        for (name, samples), found in own["every deal"].items():
            loader = make_loader(name, samples, len(outcomes))
            whole = Deal(loader.deal.sharding)
            seen = {int(one) for rank in range(len(outcomes)) for one in whole.ids(rank)} - {
                int(one) for rank in range(len(outcomes)) for one in loader.deal.ids(rank)
            }
            expected = [
                one
                for one in range(loader.deal.sharding.samples)
                if one not in seen and one not in loader.deal.dropped
            ]
            if not any(loader.ids(rank) for rank in range(len(outcomes))):
                assert found is None
                continue
            assert found["id"].tolist() == expected, (name, samples)
            assert found["text"] == [f"sample {one}" for one in expected], (name, samples)


def test_every_kind_of_column_comes_back_as_it_was(outcomes: Outcomes) -> None:
    at = torch.arange(7)
    for own in outcomes:
        found = own["kinds"]
        assert list(found)[:3] == ["bool", "bfloat16", "complex"]
        assert found["bool"].tolist() == [one % 2 == 0 for one in range(7)]
        assert torch.equal(found["bfloat16"], at.to(torch.bfloat16)[:, None] * torch.ones(3).bfloat16())
        assert torch.equal(found["complex"], torch.complex(at.double(), at.double()))
        assert found["float8"].dtype == torch.float8_e4m3fn
        assert found["float8"].float().tolist() == at.tolist()
        assert torch.equal(found["int64"], at * 2**40)
        assert torch.equal(found["strided"], at[:, None] * torch.ones(1, 3))
        assert found["no elements"].shape == (7, 0)
        assert torch.equal(found["gradient"], at.float() * 2)
        assert not found["gradient"].requires_grad
        assert found["numpy"].dtype == np.float16
        assert found["numpy"].tolist() == [[one] for one in range(7)]
        assert found["read-only"].tolist() == [[1, 1]] * 7
        assert found["text"].tolist() == ["x" * one for one in range(7)]
        assert found["time"].tolist() == np.arange(7).astype("datetime64[D]").tolist()
        assert found["objects"].tolist() == [{"id": one} for one in range(7)]
        assert [(one.dtype, one.tolist()) for one in found["ragged"]] == [
            (torch.int16, [[one, one]] * (one % 3)) for one in range(7)
        ]
        assert [one.tolist() for one in found["one numbers"]] == list(range(7))
        assert [one["t"].tolist() for one in found["unlike"][::2]] == [[]] + [[1.0]] * 3
        assert [len(one) for one in found["unlike"][1::2]] == [1, 3, 5]
        assert found["strings"] == [f"é{one}" for one in range(7)]
        assert found["nested"]["inner"]["id"].tolist() == list(range(7))
        assert found["nested"]["nothing"] is None
        assert found["nobody"] is None


def test_a_loop_that_stops_early_has_the_rows_so_far(outcomes: Outcomes) -> None:
    loader = Loader(100, len(outcomes), shuffle=True)
    for own in outcomes:
        for steps, found in zip((1, 3), own["in part"], strict=True):
            assert found == sorted(one for rank in range(len(outcomes)) for one in loader.ids(rank, steps))


def test_without_a_loader_rows_lie_rank_after_rank(outcomes: Outcomes) -> None:
    ranks = range(len(outcomes))
    for own in outcomes:
        tensor, listed, nothing, empty = own["without loader"]
        assert tensor.tolist() == [[rank, rank] for rank in ranks for _ in range(rank)]
        assert listed == [rank for rank in ranks for _ in range(2 - rank % 2)]
        assert (nothing, empty) == (None, [])


def test_where_nobody_has_rows_what_is_known_of_them_stays(outcomes: Outcomes) -> None:
    for own in outcomes:
        assert own["nobody has rows"].shape == (0, 5)
        assert own["nobody has rows"].dtype == torch.int32


def test_samples_of_each_rank_come_rank_after_rank_in_its_order(outcomes: Outcomes) -> None:
    expected = [(rank, one) for rank in range(len(outcomes)) for one in range(rank + 2)]
    assert [own["local"] for own in outcomes] == [expected] * len(outcomes)


def test_rows_can_go_to_one_rank_alone(outcomes: Outcomes) -> None:
    *others, last = [own["to one"] for own in outcomes]
    assert others == [None] * len(others)
    assert last["id"].tolist() == list(range(10))
    assert last["text"] == list(map(str, range(10)))


def test_a_group_of_some_ranks_gathers_theirs_and_refuses_others(outcomes: Outcomes) -> None:
    if len(outcomes) < 3:
        assert outcomes[0]["some ranks"] is None  # there are no two ranks besides another
        return
    first, outside, second = [own["some ranks"] for own in outcomes[:3]]
    assert first == (list(range(9)), None)
    assert second[0] == list(range(9))
    assert second[1].tolist() == [0, 1]
    assert outside.kind == "ShardingError"
    assert "this process, rank 1 of the default group, is not in it" in outside.text


def test_rows_of_other_shapes_are_filled_on_the_right_where_that_is_asked_for(outcomes: Outcomes) -> None:
    ranks = len(outcomes)
    for own in outcomes:
        found = own["padding"]
        for row in range(ranks):
            rest = ranks - row - 1
            assert found["ids"][row].tolist() == [row] * (row + 1) + [-1] * rest
            assert found["mask"][row].tolist() == [bool(row)] * (row + 1) + [False] * rest
            assert np.isnan(found["scores"][row]).tolist() == [False] * (row + 1) + [True] * rest


def test_any_number_of_columns_can_be_told(outcomes: Outcomes) -> None:
    for own in outcomes:
        found = list(own["many columns"].values())
        assert [one.tolist() for one in found] == [
            [rank + at for rank in range(len(outcomes))] for at in range(100)
        ]


def test_what_comes_back_shares_no_memory_with_what_was_given(outcomes: Outcomes) -> None:
    for own in outcomes:
        rows, stored = own["lent"]
        assert rows.tolist() == [0, 1, 2, 3]
        assert stored == 4


def test_many_rows_come_in_turns_and_are_the_same(outcomes: Outcomes) -> None:
    ranks = range(len(outcomes))
    width = 2 if len(outcomes) > 1 else 1
    of = {sample: rank for rank in ranks for sample in Loader(21, len(outcomes), shuffle=True).ids(rank)}
    wide = [[at] * (1 + of[at] % 2) + [-1] * (width - 1 - of[at] % 2) for at in range(21)]
    for rank, own in enumerate(outcomes):
        ordered, listed, first = own["in turns"]
        assert ordered["id"].tolist() == list(range(21))
        assert ordered["wide"].tolist() == wide
        assert listed.tolist() == [[one, one] for one in ranks for _ in range(7 * one)]
        assert first.tolist() == list(range(21)) if rank == 0 else first is None


def test_all_ranks_meet_once_and_then_only_rows_travel(outcomes: Outcomes) -> None:
    assert {own["collectives"] for own in outcomes} == {int(len(outcomes) > 1)}


def _refusals(outcomes: Outcomes, case: str) -> list[Refusal]:
    found = [own[case] for own in outcomes]
    assert all(isinstance(one, Refusal) and one.kind == "GatherError" for one in found), (case, found)
    assert len({one.text for one in found}) == 1
    return found


def test_a_wrong_number_of_rows_is_refused_on_every_rank_with_both_numbers(outcomes: Outcomes) -> None:
    for refusal in _refusals(outcomes, "wrong rows"):
        said = f"[wrong-rows] rank {len(outcomes) - 1}: it has 5 rows, and 4 samples are dealt to it in all 2 steps"
        assert said in refusal.text
        assert refusal.codes == ["wrong-rows"]


def test_batches_that_were_not_joined_are_called_that(outcomes: Outcomes) -> None:
    for refusal in _refusals(outcomes, "batches for rows"):
        assert refusal.codes == ["wrong-rows"] * len(outcomes)
        assert "it has 3 rows, and 6 samples" in refusal.text
        assert "3 is the number of its batches: join their rows first, as torch.cat does" in refusal.text


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            "other shape",
            "[other-shape] rank {last}, the bare column: its rows have shape (4,), and (3,) on rank 0",
        ),
        (
            "other axes",
            "[other-shape] rank {last}, the bare column: its rows have shape (), and (3,) on rank 0",
        ),
        ("other dtype", "[other-dtype] rank {last}, column 'x': its dtype is float64, and float32 on rank 0"),
        (
            "other kind",
            "[other-kind] rank {last}, the bare column: it is a list, and a torch tensor on rank 0",
        ),
        (
            "other keys",
            "[other-columns] rank {last}: its columns are 'x', 'z', and those of rank 0 are 'x', 'y'",
        ),
        ("other epoch", "[ranks-disagree] rank {last}: epoch is {last}, and 0 on rank 0"),
        ("unlike arguments", "[ranks-disagree] rank {last}: to is {last}, and 0 on rank 0"),
        (
            "local, too few",
            "[wrong-rows] rank 0: it has 3 rows, and 4 samples are dealt to it in the only step of the epoch",
        ),
    ],
)
def test_ranks_that_do_not_fit_together_are_told_how(outcomes: Outcomes, case: str, said: str) -> None:
    if len(outcomes) == 1 and case != "local, too few":
        assert not isinstance(outcomes[0][case], Refusal)
        return
    for refusal in _refusals(outcomes, case):
        assert said.format(last=len(outcomes) - 1) in refusal.text


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("no padding", "[bad-padding] padding: 'none' is no number"),
        ("no deal", "[no-deal] loader: a str does not know which samples each rank has"),
        ("other ranks", "[other-ranks] loader: it deals to 9 ranks, and the process group has"),
        ("no such rank", "[no-such-rank] to: 4 is no rank of the group"),
    ],
)
def test_arguments_that_cannot_be_are_refused_once_for_all_ranks(
    outcomes: Outcomes, case: str, said: str
) -> None:
    for refusal in _refusals(outcomes, case):
        assert said in refusal.text
        assert len(refusal.codes) == 1


def test_a_loader_of_another_rank_is_refused_on_every_rank(outcomes: Outcomes) -> None:
    if len(outcomes) == 1:
        assert outcomes[0]["other rank"].tolist() == list(range(4))
        return
    for refusal in _refusals(outcomes, "other rank"):
        last = len(outcomes) - 1
        assert refusal.codes == ["other-rank"] * (len(outcomes) - len(outcomes) % 2)
        assert f"[other-rank] rank {last}: its loader is that of rank 0" in refusal.text


def test_padding_that_a_dtype_cannot_hold_is_refused(outcomes: Outcomes) -> None:
    if len(outcomes) > 1:
        for refusal in _refusals(outcomes, "bad padding"):
            assert "[bad-padding] padding: 0.5 is no int32, which the bare column is" in refusal.text


def test_padding_that_would_overflow_is_refused_on_ranks_that_get_no_rows_too(outcomes: Outcomes) -> None:
    for refusal in _refusals(outcomes, "padding overflows"):
        assert refusal.codes == ["bad-padding"]
        assert "[bad-padding] padding: 1000000.0 is no float16, which the bare column is" in refusal.text


@pytest.mark.parametrize("to", [np.int64(0), np.uint8(0)])
def test_numbers_of_numpy_are_numbers(to: Any) -> None:
    rows = {"a": torch.ones(1, 2), "b": np.ones((1, 2), bool), "c": torch.ones(1, dtype=torch.int64)}
    padding: Any = {"c": np.int16(-1), "a": np.float32(0.5), "b": np.bool_(False)}
    assert gather(rows, padding=padding, to=to).keys() == rows.keys()
    assert gather([1], padding=Fraction(1, 2), to=to) == [1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"to": True}, "no-such-rank. to: True is no rank"),
        ({"to": 0.0}, "no-such-rank. to: 0.0 is no rank"),
        ({"to": np.int64(-1)}, "no-such-rank. to: -1 is no rank"),
        ({"padding": 1j}, "bad-padding. padding: 1j is no number"),
        ({"padding": np.array([0])}, r"bad-padding. padding: array\(\[0\]\) is no number"),
        ({"padding": Fraction(10**400)}, "bad-padding. padding: Fraction"),
        ({"padding": {"a": "0", 1: None}}, "bad-padding. padding: '0' is no number"),
    ],
)
def test_what_is_no_number_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(GatherError, match=said):
        gather([1], **arguments)


@pytest.mark.parametrize(
    ("rows", "padding"),
    [
        (torch.ones(1, 2, dtype=torch.float16), 65510),
        (torch.ones(1, 2, dtype=torch.bfloat16), 1e39),
        (torch.ones(1, 2, dtype=torch.float8_e4m3fn), 1e6),
        (torch.ones(1, 2, dtype=torch.float8_e4m3fn), math.inf),
        (torch.ones(1, 2, dtype=torch.complex64), 1e39),
        (torch.ones(1, 2, dtype=torch.uint8), -1),
        (torch.ones(1, 2, dtype=torch.bool), 0.5),
        (torch.ones(1, 2, dtype=torch.int64), math.nan),
        (np.ones((1, 2), np.float16), 1e6),
        (np.ones((1, 2), np.float64), 10**400),
        (np.ones((1, 2), np.int8), 128),
    ],
)
def test_padding_is_refused_where_a_dtype_would_change_it(rows: Any, padding: float) -> None:
    with pytest.raises(GatherError, match=r"\[bad-padding\] padding: "):
        gather(rows, padding=padding)


@pytest.mark.parametrize(
    ("rows", "padding"),
    [
        (torch.ones(1, 2, dtype=torch.float16), -65504),
        (torch.ones(1, 2, dtype=torch.float8_e5m2), 0.3),
        (torch.ones(1, 2, dtype=torch.float8_e5m2), -math.inf),
        (torch.ones(1, 2, dtype=torch.bfloat16), 1e38),
        (torch.ones(1, 2, dtype=torch.complex64), math.nan),
        (torch.ones(1, 2, dtype=torch.int64), -100.0),
        (torch.ones(1, 2, dtype=torch.bool), 0),
        (np.ones((1, 2), np.float16), 1e-30),
        (np.ones((1, 2), np.float32), 0.1),
    ],
)
def test_padding_may_be_rounded(rows: Any, padding: float) -> None:
    assert gather(rows, padding=padding).shape == (1, 2)


@pytest.mark.parametrize(
    ("case", "said", "cause"),
    [
        ("unsendable", "TypeError: cannot pickle 'generator' object", "TypeError"),
        ("quantized", "BatchError: the bare column is quantized, so that its bytes", "BatchError"),
        ("no column", "BatchError: the batch is a tuple, which is not a column", "BatchError"),
    ],
)
def test_what_one_rank_cannot_send_ends_all_with_its_error(
    outcomes: Outcomes, case: str, said: str, cause: str
) -> None:
    *others, last = _refusals(outcomes, case)
    assert f"[unsendable] rank {len(outcomes) - 1}: {said}" in last.text
    assert [one.cause for one in (*others, last)] == [None] * len(others) + [cause]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: torch.eye(2).to_sparse(), "layout torch.sparse_coo, which is not a column"),
        (lambda: torch.ones(2, 2, device="meta"), "column 'x' is on the meta device and has no elements"),
        (lambda: quantize(torch.ones(2, 2)), "column 'x' is quantized"),
    ],
)
def test_tensors_that_have_no_bytes_of_their_own_are_no_columns(
    make: Callable[[], torch.Tensor], said: str
) -> None:
    with pytest.raises(GatherError, match=rf"\[unsendable\] rank 0: BatchError: .*{said}"):
        gather({"x": make()})


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_list_may_hold_tensors_that_are_no_columns() -> None:
    quantized, sparse = gather([quantize(torch.ones(2)), torch.eye(2).to_sparse()])
    assert quantized.is_quantized
    assert quantized.dequantize().tolist() == [1, 1]
    assert sparse.to_dense().tolist() == [[1, 0], [0, 1]]


def test_ranks_that_were_called_for_other_things_are_refused_with_both_names(outcomes: Outcomes) -> None:
    if len(outcomes) == 1:
        return
    found = [own["other call"] for own in outcomes]
    last = len(outcomes) - 1
    assert [one.kind for one in found] == ["GatherError"] * last + ["MeanError"]
    for refusal in found:
        assert refusal.codes == ["other-call"]
        assert (
            f"[other-call] rank {last}: it called weighted_mean, where rank 0 called gather" in refusal.text
        )


def test_elements_that_do_not_unpickle_are_refused_on_every_rank_once_all_have_come(
    outcomes: Outcomes,
) -> None:
    last = len(outcomes) - 1
    for refusal in _refusals(outcomes, "unreadable"):
        assert refusal.codes == ["unreadable"]
        assert (
            f"[unreadable] rank {last}, column 'text': its rows have come and cannot be read: "
            in refusal.text
        )
        assert refusal.cause == "ZeroDivisionError"


def test_elements_that_do_not_unpickle_are_refused_where_they_go_and_the_group_goes_on(
    outcomes: Outcomes,
) -> None:
    (refusal, _), *others = [own["unreadable, to one"] for own in outcomes]
    assert (refusal.kind, refusal.codes, refusal.cause) == (
        "GatherError",
        ["unreadable"],
        "ZeroDivisionError",
    )
    assert [found for found, _ in others] == [None] * len(others)
    assert [own["unreadable, to one"][1] for own in outcomes] == [list(range(len(outcomes)))] * len(outcomes)


def test_after_a_refusal_the_group_works_as_before(outcomes: Outcomes) -> None:
    assert [own["recovers"] for own in outcomes] == [list(range(len(outcomes)))] * len(outcomes)


def test_one_process_without_a_group_gathers_its_own() -> None:
    loader = Loader(5, 1, batch_size=2, shuffle=True)
    assert gather([str(one) for one in loader.ids(0)], loader, to=0) == list("01234")


def test_started_processes_without_a_group_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(
        ShardingError, match="the launcher started 4 processes, and they have no process group"
    ):
        gather([1])


def test_the_deal_is_found_in_what_holds_it() -> None:
    batches = ShardedBatchSampler(5, 2, shuffle=True, rank=0, ranks=1)
    loader: Any = DataLoader(range(5), batch_sampler=batches)  # type: ignore[arg-type]
    rows = torch.cat(list(loader))
    for holder in (batches, loader, batches.deal):
        assert gather(rows, holder).tolist() == [0, 1, 2, 3, 4]


def test_rows_are_counted_against_the_steps_that_most_ranks_have_been_through() -> None:
    deal = Deal(Sharding(100, 4, 5))
    assert not list(find_wrong_rows(deal, [25] * 4))
    assert not list(find_wrong_rows(deal, [10] * 4))
    assert [one.place for one in find_wrong_rows(deal, [10, 10, 5, 10])] == ["rank 2"]
    assert [one.place for one in find_wrong_rows(deal, [25, 25, 25, 26])] == ["rank 3"]
    assert [one.place for one in find_wrong_rows(deal, [1, 2, 3, 4])] == [f"rank {at}" for at in range(4)]
    problem = next(find_wrong_rows(deal, [10, 10, 5, 10]))
    assert "it has 5 rows, and 10 samples are dealt to it in 2 of the 5 steps of the epoch" in str(problem)


def test_ranks_that_die_end_the_launch(tmp_path: Path) -> None:
    def die(*_: int) -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"ranks ended with \[3, 3\]"):
        run_on_ranks(2, {"die": die}, tmp_path)
