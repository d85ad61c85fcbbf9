"""Growth is measured on the same graph at every size."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flowsched as fs
from benchmarks.growth import measure_programs, measure_threads, wide_graph
from benchmarks.processes import count_cpu, count_memory, free_memory


@pytest.mark.parametrize("replicas", [8, 64])
def test_every_replica_has_two_calls_of_one_row(replicas: int) -> None:
    plan = fs.compile(wide_graph(replicas), samples=replicas)
    assert plan.table.calls == 2 * replicas
    for node in plan:
        assert {(call.stop - call.start) for call in node} == {1}
        assert sorted(call.replica for call in node) == sorted(2 * list(range(replicas // 2)))


def test_a_size_is_measured_on_threads_and_by_programs_alone() -> None:
    threads, programs = measure_threads(8, runs=1), measure_programs(8, runs=1)
    assert threads["calls"] == programs["calls"] == 16
    assert 0 < threads["wall"] < 1
    assert programs["ranks"] == 9
    assert programs["messages"] == 24


def test_memory_of_this_process_is_counted() -> None:
    own, processes = count_memory()
    assert own > 1
    assert free_memory() > 0
    assert processes >= 1
    assert count_memory("no such command line")[1] == 0


def test_processor_time_of_what_was_started_is_counted() -> None:
    busy = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\nsys.stdin.read()"
    before = count_cpu()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", busy], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert count_cpu() - before >= 0.19
        process.communicate("")
