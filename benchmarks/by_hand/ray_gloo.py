"""A small fan-out twice by hand: Ray moves the rows, or Ray only calls and a gloo group of the actors moves them.

Two producers make two batches each; each half of a batch goes to one of four consumers, which returns one float of
it. The rows themselves never come back to the driver: what is measured is the way from actor to actor.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

Array = NDArray[Any]

PRODUCERS, CONSUMERS, BATCHES = 2, 4, 4
HALVES = 2
FRAGMENTS = BATCHES * HALVES


def reader_of(batch: int, half: int) -> int:
    """Return the consumer that reads this half of this batch."""
    return (batch * HALVES + half) % CONSUMERS


def _read_by(consumer: int) -> list[int]:
    """Return the batches of which a consumer reads a half, in order."""
    return [batch for batch in range(BATCHES) for half in range(HALVES) if reader_of(batch, half) == consumer]


class Actor:
    """A producer or a consumer whose rows Ray moves.

    Args:
        floats: floats of a fragment.
    """

    def __init__(self, floats: int) -> None:
        self._made = np.zeros(HALVES * floats, np.float32)

    @ray.method(num_returns=HALVES)
    def produce(self) -> tuple[Array, ...]:
        """Return the two halves of a batch."""
        return tuple(np.split(self._made, HALVES))

    def consume(self, half: Array) -> float:
        """Return a float of what was read."""
        return float(half[-1])


class GlooActor:
    """A producer or a consumer that is a rank of a gloo group; consumers follow producers.

    Args:
        floats: floats of a fragment.
        rank: its rank.
        meeting: a file by which the group finds itself.
    """

    def __init__(self, floats: int, rank: int, meeting: str) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        self._dist = dist
        dist.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=PRODUCERS + CONSUMERS
        )
        self._made = torch.zeros(HALVES * floats)
        self._read = torch.empty(floats)
        self._sending: list[Any] = []

    def produce(self, batch: int) -> None:
        """Send the two halves of a batch; those before have arrived, or are waited for."""
        for work in self._sending:
            work.wait()
        self._sending = [
            self._dist.isend(part, PRODUCERS + reader_of(batch, half))
            for half, part in enumerate(self._made.chunk(HALVES))
        ]

    def consume(self, batch: int) -> float:
        """Receive a half of a batch and return a float of it."""
        self._dist.recv(self._read, batch % PRODUCERS)
        return float(self._read[-1])

    def produce_all(self, batches: list[int]) -> None:
        """Send the halves of these batches."""
        for batch in batches:
            self.produce(batch)

    def consume_all(self, batches: list[int]) -> list[float]:
        """Receive a half of each of these batches and return a float of each."""
        return [self.consume(batch) for batch in batches]


class ObjectStoreProgram:
    """Six actors between which Ray moves the rows; use it in a ``with`` statement, after ``ray.init``."""

    def __init__(self, floats: int) -> None:
        actor: Any = ray.remote(num_cpus=0)(Actor)
        self._actors = [actor.remote(floats) for _ in range(PRODUCERS + CONSUMERS)]

    def run(self) -> list[float]:
        """Run one step."""
        read = []
        for batch in range(BATCHES):
            for half, part in enumerate(self._actors[batch % PRODUCERS].produce.remote()):
                read.append(self._actors[PRODUCERS + reader_of(batch, half)].consume.remote(part))
        return list(ray.get(read))

    def __enter__(self) -> ObjectStoreProgram:
        return self

    def __exit__(self, *error: object) -> None:
        for actor in self._actors:
            ray.kill(actor)


class GlooGroupProgram:
    """Six actors that Ray calls and that send each other the rows; use it likewise."""

    def __init__(self, floats: int) -> None:
        actor: Any = ray.remote(num_cpus=0)(GlooActor)
        self._folder = tempfile.TemporaryDirectory()
        meeting = str(Path(self._folder.name) / "meeting")
        self._actors = [actor.remote(floats, rank, meeting) for rank in range(PRODUCERS + CONSUMERS)]

    def run(self) -> list[float]:
        """Run one step."""
        read = []
        for batch in range(BATCHES):
            self._actors[batch % PRODUCERS].produce.remote(batch)
            for half in range(HALVES):
                read.append(self._actors[PRODUCERS + reader_of(batch, half)].consume.remote(batch))
        return list(ray.get(read))

    def run_by_step(self) -> list[float]:
        """Run one step with one call an actor, which works off its part by itself."""
        for rank in range(PRODUCERS):
            self._actors[rank].produce_all.remote(list(range(rank, BATCHES, PRODUCERS)))
        read = [self._actors[PRODUCERS + at].consume_all.remote(_read_by(at)) for at in range(CONSUMERS)]
        return [found for own in ray.get(read) for found in own]

    def __enter__(self) -> GlooGroupProgram:
        return self

    def __exit__(self, *error: object) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._folder.cleanup()
