"""What a call and a replica cost with 8 to 1,024 replicas: two nodes, half of the replicas each, no work.

Every replica has two calls of one row a step, and a call of the second node reads what one call of the first made.
Each size is measured in a process of its own. Ray gets as many actors as the memory that it may use here holds,
torch up to 16 ranks; beyond, the programs of all ranks are made, checked and simulated, which takes no ranks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import flowsched as fs
from benchmarks.figures import Figure, Section, say_number, say_seconds
from benchmarks.processes import count_memory, free_memory
from benchmarks.timing import time_runs
from benchmarks.workload import WIDTH, first

REPLICAS = (8, 64, 256, 1_024)
RANKS = 16
RAY_MEMORY, RAY_ACTOR = 8 * 1024, 100
"""MiB that Ray's actors may take in all and, to be on the safe side, that one takes."""
CALLS = 4_000
"""About as many calls are run for each median."""


def wide_graph(replicas: int) -> fs.Graph:
    """Return two nodes with so many replicas together."""
    half = replicas // 2
    return fs.Graph(
        "wide",
        sources=["rows"],
        nodes=[
            fs.Node("first", inputs=["rows"], replicas=half, batch_size=1),
            fs.Node("second", inputs=["first"], replicas=half, batch_size=1),
        ],
    )


def measure(runs: int) -> Section:
    """Measure each size once, with ``runs`` medians of several steps inside."""
    figures = [*_say_threads(runs), *_say_ray(runs), *_say_torch(runs), *_say_programs(runs)]
    how = (
        f"Two nodes, half of the replicas each, two calls of one row of {WIDTH:,} floats a replica and step, no "
        f"work. Medians of {runs} times a few steps; memory is that of all processes, shared pages divided."
    )
    return Section("Growth", how, figures)


def measure_threads(replicas: int, runs: int) -> dict[str, float]:
    """Measure a session on threads."""
    return _measure_session("threads", {}, replicas, runs)


def measure_torch(replicas: int, runs: int) -> dict[str, float]:
    """Measure a session on torch with at most 16 ranks."""
    return _measure_session("torch", {"ranks": min(replicas, RANKS)}, replicas, runs)


def measure_ray(replicas: int, runs: int) -> dict[str, float]:
    """Measure a session on Ray."""
    return _measure_session("ray", {"num_cpus": 0}, replicas, runs)


def measure_programs(replicas: int, runs: int) -> dict[str, float]:
    """Measure lowering, checking and simulating the programs of one rank a replica."""
    from flowsched.programs import check_programs
    from flowsched.programs.simulate import simulate

    plan = fs.compile(wide_graph(replicas), samples=replicas)
    began, _ = count_memory()
    programs = plan.programs()
    found = {
        "lower": _time(plan.programs, runs),
        "check": _time(lambda: check_programs(programs, plan), runs),
        "simulate": _time(lambda: simulate(programs), runs),
    }
    ended, _ = count_memory()
    messages = {"messages": float(len(programs.messages)), "ranks": float(len(programs))}
    return {**found, **messages, "calls": float(plan.table.calls), "memory": ended - began}


MEASURES: dict[str, Callable[[int, int], dict[str, float]]] = {
    "threads": measure_threads,
    "ray": measure_ray,
    "torch": measure_torch,
    "programs": measure_programs,
}


def _measure_session(backend: str, options: dict[str, Any], replicas: int, runs: int) -> dict[str, float]:
    graph = wide_graph(replicas)
    rows: Any = np.zeros((replicas, WIDTH), np.float32)
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
        rows = torch.from_numpy(rows)
    calls = fs.compile(graph, samples=replicas).table.calls
    repeats = max(1, CALLS // calls // runs)
    with _instance(backend):
        empty, _ = count_memory()
        began = time.perf_counter()
        with fs.start(
            graph, dict.fromkeys(("first", "second"), first), backend=backend, **options
        ) as session:
            started = time.perf_counter() - began

            def step() -> None:
                session.run({"rows": rows})["second"]

            for _ in range(2):
                step()
            timings = [time_runs(step, repeats) for _ in range(runs)]
            full, processes = count_memory()
    return {
        "calls": calls,
        "wall": median(timing.wall for timing in timings) / calls,
        "cpu": median(timing.cpu for timing in timings) / calls,
        "start": started,
        "memory": full - empty,
        "processes": processes - 1,
    }


def _instance(backend: str) -> Any:
    if backend != "ray":
        return nullcontext()
    from benchmarks.local_ray import local_ray

    return local_ray()


def _say_threads(runs: int) -> Iterator[Figure]:
    for replicas in REPLICAS:
        found = _in_own_process("threads", replicas, runs)
        yield Figure(f"threads: {replicas:,} replicas", _say_session(found, replicas))


def _say_ray(runs: int) -> Iterator[Figure]:
    holds = int(min(RAY_MEMORY, free_memory() / 2) / RAY_ACTOR)
    sizes = sorted({replicas for replicas in REPLICAS if replicas <= holds} | {holds // 2 * 2})
    for replicas in sizes:
        found = _in_own_process("ray", replicas, runs)
        yield Figure(f"ray: {replicas:,} replicas", _say_session(found, replicas))
    left = ", ".join(f"{replicas:,}" for replicas in REPLICAS if replicas > holds)
    if left:
        yield Figure(
            f"ray: {left} replicas", f"not measured: {RAY_MEMORY // 1024} GiB hold about {holds} actors"
        )


def _say_torch(runs: int) -> Iterator[Figure]:
    for replicas in REPLICAS:
        found = _in_own_process("torch", replicas, runs)
        ranks = min(replicas, RANKS)
        yield Figure(f"torch: {replicas:,} replicas on {ranks} ranks", _say_session(found, replicas))


def _say_programs(runs: int) -> Iterator[Figure]:
    for replicas in REPLICAS:
        found = _in_own_process("programs", replicas, runs)
        calls = found["calls"]
        parts = ("lower", "check", "simulate")
        each = ", ".join(f"{what} {say_seconds(found[what] / calls)}" for what in parts)
        measured = f"{each} a call; {say_number(found['memory'], 2)} MiB, {found['messages']:,.0f} messages"
        yield Figure(f"programs only: one rank for each of {replicas:,} replicas", measured)


def _say_session(found: dict[str, float], replicas: int) -> str:
    each = f"{say_seconds(found['wall'])} a call, {say_seconds(found['cpu'])} CPU of the driver"
    memory = f"{say_number(found['memory'] / replicas, 2)} MiB a replica"
    if found["processes"]:
        memory += f" ({found['memory']:,.0f} MiB in {found['processes']:.0f} processes)"
    return f"{each}; {memory}; up in {say_seconds(found['start'], 2)}"


def _time(run: Callable[[], object], runs: int) -> float:
    return median(time_runs(run, 1).wall for _ in range(runs))


def _in_own_process(what: str, replicas: int, runs: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.growth", what, str(replicas), str(runs)]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure one size in this process; prints JSON.")
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("replicas", type=int)
    parser.add_argument("runs", type=int)
    given = parser.parse_args()
    print(json.dumps(MEASURES[given.what](given.replicas, given.runs)))
