"""Where an epoch stands, as plain data: written, and read again only for the same samples in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from flowsched.errors import Problem
from flowsched.sharding import Deal, Mode, Sharding, ShardingError

FORMAT = 1


def write_state(
    deal: Deal,
    batches: int,
    lengths: str | None = None,
    fingerprint: str | None = None,
    counted: bool = True,
) -> dict[str, Any]:
    """Return where an epoch stands after so many batches of each rank.

    Args:
        deal: the epoch.
        batches: how many steps have been taken of it; ranks that have fewer batches count the steps of the others.
        lengths: digest of the samples' lengths, where they are known.
        fingerprint: what the user calls the data set.
        counted: whether it was known beforehand how many samples there are.

    Raises:
        ShardingError: more batches than the epoch has, or fewer than none.
    """
    if not _counts(batches) or batches > deal.steps:
        problem = Problem(
            "no-such-step",
            "batches",
            f"{batches!r} is none of 0 to {deal.steps}",
            "Count from the epoch's beginning",
        )
        raise ShardingError("the state of an epoch", [problem])
    given = deal.sharding
    ended = batches == deal.steps > 0
    return {
        "format": FORMAT,
        **_describe(given, lengths, fingerprint, counted),
        "epoch": int(deal.epoch),
        "seen": int(given.samples if ended else deal.seen_after(batches)),
    }


def read_state(
    state: Mapping[str, Any],
    sharding: Sharding,
    lengths: str | None = None,
    fingerprint: str | None = None,
    counted: bool = True,
) -> tuple[int, int]:
    """Return the epoch of a state and how many samples of it have been seen.

    Ranks, batch size, tail, and whether the mode is "exact" or "even" may be others than they were.

    Raises:
        ShardingError: a state that was written for other samples or another order, with both values; or none.
    """
    problems = list(_find_problems(state, _describe(sharding, lengths, fingerprint, counted)))
    if problems:
        raise ShardingError("the state of an epoch", problems)
    return state["epoch"], state["seen"]


def digest_lengths(sharding: Sharding) -> str | None:
    """Return what tells lengths from others, or None where there are none."""
    if sharding.lengths is None:
        return None
    return hashlib.blake2b(np.ascontiguousarray(sharding.lengths).tobytes(), digest_size=16).hexdigest()


def check_epoch(epoch: int) -> int:
    """Return the number of an epoch if it is one.

    Raises:
        ShardingError: it is not whole, or below 0.
    """
    if not _counts(epoch):
        problem = Problem("no-such-epoch", "epoch", f"{epoch!r} is no number of an epoch", "Count from 0")
        raise ShardingError("the epoch", [problem])
    return int(epoch)


def _describe(
    sharding: Sharding, lengths: str | None, fingerprint: str | None, counted: bool
) -> dict[str, Any]:
    """Return all that must be as it was for a position in an epoch to mean the same samples."""
    return {
        "samples": int(sharding.samples) if counted else None,
        "group": int(sharding.group),
        "shuffle": bool(sharding.shuffle),
        "seed": int(sharding.seed),
        "local": sharding.mode == Mode.LOCAL,
        "lengths": lengths,
        "fingerprint": fingerprint,
    }


def _find_problems(state: Mapping[str, Any], here: dict[str, Any]) -> Iterator[Problem]:
    mend = "Load the state where it was written, or begin the epoch anew"
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        said = state.get("format") if isinstance(state, Mapping) else type(state).__name__
        yield Problem("other-format", "format", f"it is {said!r}, and {FORMAT} is read here", mend)
        return
    missing = [name for name in (*here, "epoch", "seen") if name not in state]
    if missing:
        yield Problem("other-format", "format", f"{', '.join(missing)} is missing", mend)
        return
    for name, value in here.items():
        unsaid = name in ("lengths", "fingerprint") and (state[name] is None or value is None)
        ordered = name != "seed" or here["shuffle"]
        if state[name] != value and ordered and not unsaid:
            yield Problem(
                "other-data", name, f"the state has {state[name]!r}, and here it is {value!r}", mend
            )
    samples, group = here["samples"], here["group"]
    seen = state["seen"]
    if not _counts(seen) or (samples is not None and seen > samples) or seen % group:
        yield Problem("damaged", "seen", f"{seen!r} is no number of samples that have been seen", mend)
    if not _counts(state["epoch"]):
        yield Problem("damaged", "epoch", f"{state['epoch']!r} is no number of an epoch", mend)


def _counts(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0
