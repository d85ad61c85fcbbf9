"""Pass 3, route: which rows of which producer calls each call reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsched.plan.table import Int64


@dataclass(frozen=True, eq=False)
class Feeds:
    """What the calls of one node read from one input, fragments in the order of the calls.

    Attributes:
        counts: (calls,) number of fragments of each call.
        producer: (fragments,) index among the producer's calls.
        start, stop: (fragments,) half-open range of the producer's rows.
    """

    counts: Int64
    producer: Int64
    start: Int64
    stop: Int64


def route_input(
    read_start: Int64, read_stop: Int64, made_start: Int64, made_stop: Int64, times: int
) -> Feeds:
    """Find the fragments of one input.

    Args:
        read_start, read_stop: (calls,) rows that the consumer's calls read.
        made_start, made_stop: (producer calls,) rows that the producer's calls make, without gaps from 0.
        times: consumer rows that share one row of this input.
    """
    first_row, last_row = read_start // times, (read_stop - 1) // times
    first = np.searchsorted(made_stop, first_row, side="right")
    last = np.searchsorted(made_stop, last_row, side="right")
    counts = last - first + 1
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    producer = np.arange(total) + np.repeat(first - (ends - counts), counts)
    start = made_start[producer]
    stop = made_stop[producer]
    if total:
        opening, closing = ends - counts, ends - 1
        start[opening] = first_row
        stop[closing] = last_row + 1
    return Feeds(counts, producer, start, stop)


def interleave(inputs: list[Feeds]) -> tuple[Int64, Int64, Int64, Int64]:
    """Join the feeds of a node's inputs so that those of one call are consecutive.

    Returns:
        counts of fragments (calls x inputs,), then producer, start and stop (fragments,).
    """
    if len(inputs) == 1:
        only = inputs[0]
        return only.counts, only.producer, only.start, only.stop
    counts = np.stack([feeds.counts for feeds in inputs], axis=1)
    ends = np.cumsum(counts.ravel()).reshape(counts.shape)
    total = int(counts.sum())
    joined = [np.empty(total, np.int64) for _ in range(3)]
    for i, feeds in enumerate(inputs):
        own_ends = np.cumsum(feeds.counts)
        place = np.arange(len(feeds.producer)) + np.repeat(ends[:, i] - own_ends, feeds.counts)
        for target, column in zip(joined, (feeds.producer, feeds.start, feeds.stop), strict=True):
            target[place] = column
    return counts.ravel(), joined[0], joined[1], joined[2]
