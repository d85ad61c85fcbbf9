"""What is said of a peer comes from what the workers told: calls, idle replicas, samples lost or repeated."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.peers.flowsched_sides import bring_flowsched
from benchmarks.peers.jobs import IDLE, JOBS, SEED, TOLD, Worker
from benchmarks.peers.side import Run, bring_steps
from benchmarks.peers.told import read_told


def _call(folder: Path, node: str, *batches: range) -> None:
    """Let one replica be called with these samples."""
    worker = Worker(node, (0.0, 0.0), str(folder))
    rows = SEED.prompts(TOLD)
    for batch in batches:
        worker(rows[batch.start : batch.stop])


def test_a_replica_without_a_call_is_idle_and_a_sample_that_does_not_come_is_lost(tmp_path: Path) -> None:
    _call(tmp_path, "policy", range(4), range(4, 8), range(8, 12), range(12, 16))
    for replica in range(8):
        _call(tmp_path, "value", range(2 * replica, 2 * replica + 2))
        _call(tmp_path, "reward", range(2 * replica, 2 * replica + 2))
    for replica in range(4):
        _call(tmp_path, "reference", range(4 * replica, 4 * replica + 3), range(4 * replica, 4 * replica + 1))
    told = read_told(SEED, tmp_path)
    assert (told.calls, told.idle, told.lost, told.repeated) == (28, 1 + 4, 4, 4)
    assert told.largest == {"policy": 4, "reference": 3, "value": 2, "reward": 2}


def test_a_node_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    _call(tmp_path, "policy", range(16))
    with pytest.raises(RuntimeError, match="'reference'"):
        read_told(SEED, tmp_path)


def test_a_worker_that_idles_returns_what_it_is_given_and_tells_nothing(tmp_path: Path) -> None:
    rows = SEED.prompts(IDLE)
    assert Worker("policy", (9.0, 9.0), str(tmp_path))(rows, rows) is rows
    assert not list(tmp_path.iterdir())


LARGEST = {
    "seed": {node.name: node.batch_size for node in SEED.graph},
    "chain": {"generate": 31, "score": 32, "pack": 32},
    "whole": {"generate": 334, "score": 250, "pack": 500},
}


@pytest.mark.parametrize("job", JOBS)
def test_flowsched_leaves_no_replica_idle_and_loses_and_repeats_nothing(job: str, tmp_path: Path) -> None:
    with bring_steps(_threads, job, str(tmp_path)) as steps:
        steps["told"]()
    told = read_told(JOBS[job], tmp_path)
    assert (told.idle, told.lost, told.repeated) == (0, 0, 0)
    assert told.calls == {"seed": 28, "chain": 97, "whole": 9}[job]
    assert told.largest == LARGEST[job]


def _threads(job: str, folder: str) -> AbstractContextManager[Run]:
    return bring_flowsched("threads", {}, job, folder)
