"""``flowsched shard`` on the command line: who gets what."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from flowsched.inspect.sharding import render_deal, render_rank
from flowsched.sharding import Deal, Sharding
from tests.cli.command_line import Cli, joined

CASE = ["--samples", 1021, "--ranks", 4, "--batch-size", 16]


def test_shard_prints_who_gets_what(cli: Cli) -> None:
    assert cli("shard", *CASE).out == render_deal(Deal(Sharding(1021, 4, 16))) + "\n"
    out = cli("shard", *CASE, "--mode", "even", "--tail", "pad", "--shuffle", "--seed", 3, "--epoch", 2).out
    assert out == render_deal(Deal(Sharding(1021, 4, 16, "even", 1, True, 3, "pad"), 2)) + "\n"


def test_shard_with_a_rank_lists_its_batches(cli: Cli) -> None:
    assert cli("shard", *CASE, "--rank", 0).out == render_rank(Deal(Sharding(1021, 4, 16)), 0) + "\n"
    found = cli("shard", *CASE, "--rank", 2, "--json").json
    deal = Deal(Sharding(1021, 4, 16))
    assert [batch["ids"] for batch in found["batches"]] == list(deal.lists(2))
    assert found["shares"] == [{"rank": 2, "samples": 255, "batches": 16, "padding": 0}]


def test_shard_in_json_has_its_documented_shape(cli: Cli) -> None:
    found = cli("shard", *CASE, "--mode", "even", "--tail", "drop", "--json").json
    assert found["dropped"] == list(range(960, 1021))
    assert {"samples", "ranks", "batch_size", "mode", "group", "shuffle", "seed", "tail"} < set(found)
    assert {"epoch", "steps", "shares", "padding", "dropped"} < set(found)
    assert [share["samples"] for share in found["shares"]] == [240] * 4


@pytest.mark.parametrize("kind", ["npy", "json", "txt"])
def test_lengths_come_from_a_file_of_each_kind(cli: Cli, folder: Path, kind: str) -> None:
    lengths = [float(i % 7) for i in range(50)]
    if kind == "npy":
        np.save(folder / "lengths.npy", lengths)
    else:
        text = json.dumps(lengths) if kind == "json" else "\n".join(map(str, lengths))
        (folder / f"lengths.{kind}").write_text(text)
    out = cli("shard", "-n", 50, "--ranks", 3, "--batch-size", 4, "--lengths", f"lengths.{kind}").out
    assert out == render_deal(Deal(Sharding(50, 3, 4, lengths=lengths))) + "\n"


@pytest.mark.parametrize("text", ["[1, 2", '{"a": 1}', "[[1], [2]]", '["x"]'])
def test_a_file_without_lengths_is_refused(cli: Cli, folder: Path, text: str) -> None:
    (folder / "bad.json").write_text(text)
    err = cli("shard", "-n", 2, "--ranks", 1, "--batch-size", 4, "--lengths", "bad.json", ends=3).err
    assert "bad.json holds" in err


def test_lengths_of_a_file_that_is_not_there_are_refused(cli: Cli) -> None:
    err = cli("shard", "-n", 2, "--ranks", 1, "--batch-size", 4, "--lengths", "no.npy", ends=3).err
    assert "no such file" in err


def test_what_cannot_be_dealt_is_refused_with_every_problem(cli: Cli) -> None:
    err = cli("shard", *CASE, "--mode", "exakt", "--group", 2, ends=3).err
    assert "Did you mean 'exact'?" in err
    assert "1021 samples make 510 groups of 2" in err


def test_options_that_lack_are_named(cli: Cli) -> None:
    assert "--ranks, --batch-size: give it, or --check" in joined(cli("shard", "-n", 5, ends=2).err)
    assert "there are ranks 0 to 3" in joined(cli("shard", *CASE, "--rank", 4, ends=2).err)
    assert "it goes with --check" in joined(cli("shard", *CASE, "--even", ends=2).err)


def test_options_of_deals_are_refused_where_a_loader_is_checked(cli: Cli) -> None:
    err = cli("shard", "--check", "no.py:loader", "--batch-size", 4, "--mode", "exact", ends=2).err
    assert "--batch-size, --mode: it goes without --check" in joined(err)
