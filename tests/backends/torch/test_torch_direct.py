"""Tensors that go from device to device keep to one order of all ranks, in which no send can wait for itself."""

from __future__ import annotations

import queue
import threading
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from flowsched_torch.mesh import Mesh
from flowsched_torch.plans import Plans
from flowsched_torch.steps import RankStep
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.backend import Program, Step
from flowsched.programs import Placement
from flowsched.runtime.binding import bind_models

pytestmark = pytest.mark.timeout(100)

_PATIENCE = 20.0


class Handed:
    """A message that has been handed over."""

    def wait(self, *_: Any) -> None:
        """Return at once."""


class Strict:
    """Stands for NCCL at its strictest: a send does not return before its receiver has taken the tensor.

    Every tensor of float64 counts as one on an accelerator.
    """

    device = torch.device("cpu")

    def __init__(self, rank: int, pairs: dict[tuple[int, int], Any]) -> None:
        self.rank, self.pairs = rank, pairs
        self.moved = 0

    def takes(self, tensor: torch.Tensor) -> bool:
        return tensor.dtype == torch.float64

    def send(self, tensor: torch.Tensor, peer: int) -> Handed:
        offered, taken = self.pairs[self.rank, peer]
        offered.put(tensor.clone())
        taken.get(timeout=_PATIENCE)
        self.moved += 1
        return Handed()

    def receive(self, tensor: torch.Tensor, peer: int) -> None:
        offered, taken = self.pairs[peer, self.rank]
        found = offered.get(timeout=_PATIENCE)
        assert found.shape == tensor.shape
        tensor.copy_(found)
        taken.put(None)

    def close(self) -> None:
        """Leave."""


def _run_on_ranks(
    graph: fs.Graph, models: dict[str, Any], inputs: list[Any], ranks: int, steps: int, limit: int
) -> tuple[list[Any], int]:
    """Run steps on ranks that are threads of this process; return outputs and tensors that went directly."""
    distributed: Any = torch.distributed
    store = distributed.HashStore()
    binding = bind_models(graph, models)
    plan = fs.compile(graph, len(inputs[0]))
    placement = Placement.spread(graph, ranks, home=0)
    pairs: dict[tuple[int, int], Any] = {
        (sender, receiver): (queue.Queue(), queue.Queue())
        for sender in range(ranks)
        for receiver in range(ranks)
    }
    strict = [Strict(rank, pairs) for rank in range(ranks)]
    found: list[Any] = []
    failures: list[BaseException] = []

    def serve(rank: int) -> None:
        try:
            plans = Plans(placement, rank, Mesh(store, rank, ranks, host="127.0.0.1"), direct=strict[rank])
            program = Program(plan)
            window = [max(limit, span) for span in program.spans]
            workers = {
                (graph.index(node.name), replica): (models[graph.owner(node.name).name], None)
                for node in graph
                for replica in range(graph.owner(node.name).replicas)
            }
            own = plans.add(0, program, window, checked=False)
            part = RankStep(own, workers, lambda: False, lambda _: None, lambda _: None, {})
            for number in range(steps):
                step = Step(program, binding, inputs if rank == 0 else [None], number, 0, window)
                part.begin(step)
                part.run_calls()
                if rank == 0:
                    made: list[Any] = [None] * plan.table.calls
                    for call, output in part.take_outputs().items():
                        made[call] = output
                    found.append(step.collect(made))
                part.end()
            plans.close()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=serve, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE * 2)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    return found, sum(one.moved for one in strict)


def _add(batch: Any) -> Any:
    return {"on": batch["on"] + 1, "text": batch["text"]}


def _merge(*batches: Any) -> Any:
    return {"on": sum((batch["on"] for batch in batches[1:]), batches[0]["on"]), "text": batches[0]["text"]}


@settings(max_examples=20, deadline=None)
@given(
    cuts=st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(1, 4)), min_size=4, max_size=4),
    ranks=st.integers(1, 4),
    samples=st.integers(0, 14),
    limit=st.integers(1, 12),
)
def test_any_graph_makes_what_threads_make_though_every_send_waits(
    cuts: list[tuple[int, int | None]], ranks: int, samples: int, limit: int
) -> None:
    sizes: list[dict[str, Any]] = [{"replicas": count, "batch_size": size} for count, size in cuts]
    graph = fs.Graph(
        "any",
        ["x"],
        [
            fs.Node("a", ["x"], **sizes[0]),
            fs.Node("b", ["a"], **sizes[1]),
            fs.Node("c", ["a", "x"], **sizes[2], after=["b"]),
            fs.Node("d", ["b", "c", "x"], **sizes[3]),
        ],
        ["d", "a"],
    )
    models = {"a": _add, "b": _add, "c": _merge, "d": _merge}
    numbers = torch.arange(samples * 3, dtype=torch.float64).reshape(samples, 3)
    inputs = {"on": numbers, "text": [str(at) for at in range(samples)]}
    steps, moved = _run_on_ranks(graph, models, [_Rows(inputs)], ranks, 2, limit)
    expected = fs.run(fs.compile(graph, samples), models, {"x": inputs})
    for outputs in steps:
        for name in ("a", "d") if samples else ():
            assert torch.equal(outputs[name]["on"], expected[name]["on"])
            assert outputs[name]["text"] == expected[name]["text"]
    assert ranks > 1 or not moved


class _Rows(dict[str, Any]):
    """A batch that knows how many rows it has."""

    def __len__(self) -> int:
        return len(self["text"])


def test_tensors_that_stay_on_the_host_go_beside_those_that_do_not() -> None:
    graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"], replicas=3)])
    models = {"a": _mixed, "b": _same}
    inputs = np.arange(6)
    steps, moved = _run_on_ranks(graph, models, [inputs], 5, 3, 8)
    assert moved > 0
    for outputs in steps:
        assert torch.equal(outputs["b"]["on"], torch.arange(6, dtype=torch.float64).reshape(6, 1))
        assert torch.equal(outputs["b"]["host"], torch.arange(6, dtype=torch.float32))
        assert outputs["b"]["numbers"].tolist() == list(range(6))


def _mixed(numbers: Any) -> Any:
    return {
        "on": torch.from_numpy(numbers.astype(np.float64)).reshape(-1, 1),
        "host": torch.from_numpy(numbers.astype(np.float32)),
        "numbers": numbers,
    }


def _same(batch: Any) -> Any:
    return batch


@pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="NCCL joins no two ranks on one CUDA device; this needs two"
)
def test_ranks_on_cuda_devices_exchange_tensors_by_nccl() -> None:
    graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["a"])])
    models = {"a": _to_device, "b": _double}
    with fs.start(graph, models, backend="torch", start="local", ranks=2, device="cuda") as session:
        for _ in range(3):
            out = session.run({"x": torch.arange(8.0)})["b"]
            assert torch.equal(out.cpu(), torch.arange(8.0) * 2)


def _to_device(batch: Any, context: fs.Context) -> Any:
    return batch.to(context.device)


def _double(batch: Any) -> Any:
    assert batch.is_cuda
    return batch * 2
