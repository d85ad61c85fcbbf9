"""What is shown of a sharding agrees with the sharding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsched.inspect.sharding import deal_to_dict, render_deal, render_rank, say_ids
from flowsched.sharding import Deal, Sharding

SHARDINGS = st.builds(
    lambda groups, ranks, most, group, mode, tail, shuffle: Sharding(
        groups * group, ranks, most * group, mode, group, shuffle, tail=tail if mode == "even" else "cut"
    ),
    st.integers(0, 90), st.integers(1, 7), st.integers(1, 9), st.integers(1, 3),
    st.sampled_from(["exact", "even", "local"]), st.sampled_from(["cut", "pad", "drop"]), st.booleans(),
)  # fmt: skip


@given(SHARDINGS)
def test_the_numbers_of_each_rank_are_those_of_its_batches(sharding: Sharding) -> None:
    deal = Deal(sharding)
    for share in deal_to_dict(deal)["shares"]:
        rank = share["rank"]
        rows = sum(len(ids) for ids in deal.lists(rank))
        assert share["samples"] == len(deal.ids(rank))
        assert share["batches"] == len(list(deal.lists(rank)))
        assert share["padding"] == rows - share["samples"]


@given(SHARDINGS)
def test_the_table_has_each_ranks_samples_and_batches(sharding: Sharding) -> None:
    deal = Deal(sharding)
    table = render_deal(deal).split("first batch")[1].splitlines()[1:]
    for rank in range(sharding.sharers):
        cells = table[rank].split()
        assert cells[1] == str(len(deal.ids(rank)))
        assert cells[2] == str(deal.batches(rank))


@given(SHARDINGS, st.data())
def test_a_rank_in_full_lists_every_row_of_its_batches(sharding: Sharding, data: st.DataObject) -> None:
    deal = Deal(sharding)
    rank = data.draw(st.integers(0, sharding.ranks - 1))
    shown = render_rank(deal, rank, everything=True).splitlines()[4:]
    lines = [line for line in shown if line.strip() and not line.lstrip().startswith("batch")]
    assert len(lines) == deal.batches(rank)
    for line, ids in zip(lines, deal.lists(rank), strict=True):
        listed = "".join(part.partition("]")[0] + "," for part in line.split("[")[1:]).split(",")
        read: list[int] = []
        for term in filter(None, (part.strip() for part in listed)):
            start, _, stop = term.partition(":")
            read += range(int(start), int(stop) if stop else int(start) + 1)
        assert read == ids


def test_the_arithmetic_of_the_reported_case_stands_in_one_line() -> None:
    text = render_deal(Deal(Sharding(1021, 4, 16)))
    assert "15 steps of 64 (4 x 16) + 1 of 61; of 4 ranks 1 gets 256, 3 get 255" in text
    assert "each sample once, none left out" in text


def test_what_pads_and_what_is_left_out_is_listed_by_id() -> None:
    padded = render_deal(Deal(Sharding(1021, 4, 16, "even", tail="pad")))
    assert "Come again to pad, with weight 0: [0:3]" in padded
    dropped = render_deal(Deal(Sharding(1021, 4, 16, "even", tail="drop")))
    assert "Left out of this epoch: [960:1021]" in dropped
    assert "1,021 samples to 4 ranks in batches of 16: each sample once but 61" in dropped


def test_even_batches_show_their_weights() -> None:
    lines = render_deal(Deal(Sharding(1021, 4, 16, "even"))).splitlines()
    assert "1, 1.049" in lines[5]
    assert "1, 0.9836" in lines[6]


def test_lengths_show_what_each_rank_costs() -> None:
    lengths = np.arange(40)
    deal = Deal(Sharding(40, 3, 4, lengths=lengths))
    lines = render_deal(deal).splitlines()
    at = lines[4].index("length")
    shown = [int(line[: at + 6].split()[-1]) for line in lines[5:8]]
    assert shown == [int(lengths[deal.ids(rank)].sum()) for rank in range(3)]


def test_many_ranks_and_batches_are_shown_by_their_ends_and_in_full_if_asked() -> None:
    deal = Deal(Sharding(10_000, 100, 1))
    assert "... 84 more: --all" in render_deal(deal)
    assert len(render_deal(deal, everything=True).splitlines()) == 105
    assert "... 88 more: --all" in render_rank(deal, 3)
    assert "more" not in render_rank(deal, 3, everything=True)


@pytest.mark.parametrize(
    ("ids", "said"),
    [([], "[]"), ([4], "[4]"), ([4, 5], "[4:6]"), ([5, 4], "[5, 4]"), ([0, 0, 1], "[0, 0:2]")],
)
def test_ids_are_runs_as_half_open_ranges(ids: list[int], said: str) -> None:
    assert say_ids(np.array(ids, dtype=np.int64)) == said
