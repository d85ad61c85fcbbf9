"""Pass 3, route: which rows of which producer calls each call reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph, Node
from flowsched.graph.rows import NodeRows
from flowsched.plan.table import Int64
from flowsched.planner.cut import Calls, blocks


@dataclass(frozen=True, eq=False)
class Feeds:
    """What all calls read. The feeds of a call, one for each input, are consecutive; so are a feed's fragments.

    Attributes:
        offsets: (nodes + 1,) node ``i`` has the feeds from ``offsets[i]`` to ``offsets[i + 1]``.
        feed: (feeds + 1,) feed ``f`` has the fragments from ``feed[f]`` to ``feed[f + 1]``.
        producer: (fragments,) number of the call that made the rows; ``-1 - s`` for source ``s``.
        start, stop: (fragments,) half-open range of the rows, counted over all that the producing node makes.
    """

    offsets: Int64
    feed: Int64
    producer: Int64
    start: Int64
    stop: Int64


def route_calls(graph: Graph, rows: Mapping[str, NodeRows], calls: Calls, samples: int) -> Feeds:
    """Find the fragments of all calls.

    Args:
        graph: the graph.
        rows: rows of each node per sample.
        calls: the calls of all nodes.
        samples: rows of every source.
    """
    ends = _made_ends(graph, calls, samples)
    widths = [len(node.inputs) for node in graph]
    offsets = np.concatenate([[0], np.cumsum(np.diff(calls.offsets) * widths)])
    most = _most_fragments(graph, calls)
    feeds = Feeds(offsets, np.zeros(offsets[-1] + 1, np.int64), *(np.empty(most, np.int64) for _ in range(3)))
    for index, node in enumerate(graph):
        for block in blocks(calls.of(index)):
            first, last = _find_producers(graph, node, rows[node.name].times, calls, block, ends)
            at = int(offsets[index]) + (block.start - int(calls.offsets[index])) * len(node.inputs)
            _fill_block(feeds, at, first, last, rows[node.name].times, calls, block, ends)
    used = slice(int(feeds.feed[-1]))
    return Feeds(offsets, feeds.feed, feeds.producer[used], feeds.start[used], feeds.stop[used])


def _made_ends(graph: Graph, calls: Calls, samples: int) -> Int64:
    """Return where the rows that each call makes end; for source ``s``, at index ``-1 - s``, where all end."""
    total = int(calls.offsets[-1])
    ends = np.full(total + len(graph.sources), samples, np.int64)
    ends[:total] = calls.stop
    for index, node in enumerate(graph):
        if node.collapse != node.expand:
            own = ends[calls.of(index)]
            own //= node.collapse
            own *= node.expand
    return ends


def _most_fragments(graph: Graph, calls: Calls) -> int:
    """Return a bound on the fragments: each begins where a call begins to read or a producer to make."""
    count = dict(zip((node.name for node in graph), np.diff(calls.offsets).tolist(), strict=True))
    return sum(count[node.name] + count.get(name, 1) for node in graph for name in node.inputs)


def _find_producers(
    graph: Graph, node: Node, times: tuple[int, ...], calls: Calls, block: slice, ends: Int64
) -> tuple[Int64, Int64]:
    """Return (calls, inputs) the numbers of the first and the last producer that each call reads from."""
    stop = calls.stop[block]
    first, last = (np.empty((len(stop), len(node.inputs)), np.int64) for _ in range(2))
    for i, (name, each) in enumerate(zip(node.inputs, times, strict=True)):
        if name in graph.sources:
            first[:, i] = last[:, i] = -1 - graph.sources.index(name)
            continue
        producers = calls.of(graph.index(name))
        opening = producers.start + int(
            np.searchsorted(ends[producers], calls.start[block.start] // each, side="right")
        )
        made = ends[opening : producers.stop]
        reached = np.searchsorted(made, _input_end(stop, each))
        last[:, i] = reached + opening
        # A call begins in the producer in which the one before it ends, unless both end at the same row.
        first[0, i] = opening
        first[1:, i] = last[:-1, i] + (made[reached[:-1]] * each == stop[:-1])
    return first, last


def _fill_block(
    feeds: Feeds,
    at: int,
    first: Int64,
    last: Int64,
    times: tuple[int, ...],
    calls: Calls,
    block: slice,
    ends: Int64,
) -> None:
    """Write the feeds from number ``at`` on and their fragments, given the producers that they read from."""
    feed = feeds.feed[at : at + first.size + 1]
    np.cumsum(last - first + 1, out=feed[1:])
    feed[1:] += feed[0]
    opening, ending = feed[:-1].reshape(first.shape), feed[1:].reshape(first.shape)
    own = slice(int(feed[0]), int(feed[-1]))
    producer, start, stop = feeds.producer[own], feeds.start[own], feeds.stop[own]
    producer[:] = np.repeat((first - opening).ravel(), (ending - opening).ravel())
    producer += np.arange(own.start, own.stop)
    stop[:] = ends[producer]
    start[1:] = stop[:-1]
    # So far whole producers: a feed's first and last fragment are what the call reads of them.
    for i, each in enumerate(times):
        feeds.start[opening[:, i]] = calls.start[block] // each
        feeds.stop[ending[:, i] - 1] = _input_end(calls.stop[block], each)


def _input_end(stop: Int64, times: int) -> Int64:
    """Return where reading ends in an input each row of which stands for ``times`` rows."""
    return -(-stop // times)
