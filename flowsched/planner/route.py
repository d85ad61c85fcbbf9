"""Pass 3, route: which rows of which producer calls each call reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows
from flowsched.plan.table import Int64
from flowsched.planner.cut import Calls


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

    def bounds(self, index: int, inputs: int) -> tuple[Int64, Int64]:
        """Return (calls, inputs) the half-open range of fragments that each call of a node reads."""
        first, last = self.offsets[index : index + 2]
        opening, ending = self.feed[first:last], self.feed[first + 1 : last + 1]
        return opening.reshape(-1, inputs), ending.reshape(-1, inputs)


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
    feed = np.zeros(offsets[-1] + 1, np.int64)
    firsts = []
    for index, node in enumerate(graph):
        first, last = _find_producers(graph, index, rows[node.name].times, calls, ends)
        feed[offsets[index] + 1 : offsets[index + 1] + 1] = (last - first + 1).ravel()
        firsts.append(first)
    np.cumsum(feed, out=feed)
    producer, start, stop = (np.empty(feed[-1], np.int64) for _ in range(3))
    feeds = Feeds(offsets, feed, producer, start, stop)
    for index, node in enumerate(graph):
        _fill_fragments(feeds, index, firsts[index], rows[node.name].times, calls, ends)
    return feeds


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


def _find_producers(
    graph: Graph, index: int, times: tuple[int, ...], calls: Calls, ends: Int64
) -> tuple[Int64, Int64]:
    """Return (calls, inputs) the numbers of the first and the last producer that each call reads from."""
    node, stop = graph.nodes[index], calls.stop[calls.of(index)]
    first, last = (np.empty((len(stop), len(node.inputs)), np.int64) for _ in range(2))
    for i, (name, each) in enumerate(zip(node.inputs, times, strict=True)):
        if name in graph.sources:
            first[:, i] = last[:, i] = -1 - graph.sources.index(name)
            continue
        producers = calls.of(graph.index(name))
        made = ends[producers]
        reached = np.searchsorted(made, _input_end(stop, each))
        last[:, i] = reached + producers.start
        # A call begins in the producer in which the one before it ends, unless both end at the same row.
        first[:1, i] = producers.start
        first[1:, i] = last[:-1, i] + (made[reached[:-1]] * each == stop[:-1])
    return first, last


def _fill_fragments(
    feeds: Feeds, index: int, first: Int64, times: tuple[int, ...], calls: Calls, ends: Int64
) -> None:
    """Write the fragments of one node's calls, given the first producer of each call and input."""
    if not len(first):
        return
    opening, ending = feeds.bounds(index, len(times))
    own = slice(int(opening[0, 0]), int(ending[-1, -1]))
    producer, start, stop = feeds.producer[own], feeds.start[own], feeds.stop[own]
    producer[:] = np.repeat((first - opening).ravel(), (ending - opening).ravel())
    producer += np.arange(own.start, own.stop)
    stop[:] = ends[producer]
    start[1:] = stop[:-1]
    # So far whole producers: a feed's first and last fragment are what the call reads of them.
    reads = calls.of(index)
    for i, each in enumerate(times):
        feeds.start[opening[:, i]] = calls.start[reads] // each
        feeds.stop[ending[:, i] - 1] = _input_end(calls.stop[reads], each)


def _input_end(stop: Int64, times: int) -> Int64:
    """Return where reading ends in an input each row of which stands for ``times`` rows."""
    return -(-stop // times)
