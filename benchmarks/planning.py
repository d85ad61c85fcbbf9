"""Planning 1,000,000 samples through ten nodes: time, memory, how both grow, and what checking the plan costs.

Each measurement is taken in a process of its own, so that it pays for the memory that it touches and the peak
is its own. The graph has 1 to 1,024 replicas a node, batch sizes from 256 down to 1, and three joins; few of
these numbers divide each other, so that most calls read several fragments.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.figures import Figure, Section, at_most
from benchmarks.machine import peak_memory
from flowsched import Graph, Node
from flowsched.check import check_plan
from flowsched.planner import compile_plan

SIZES = (100_000, 1_000_000, 10_000_000)
_MEBI = 1024**2


def ten_nodes() -> Graph:
    """Return the graph that is planned."""
    return Graph(
        "ten",
        sources=["prompts"],
        nodes=[
            Node("tokenize", inputs=["prompts"], replicas=1, batch_size=256),
            Node("policy", inputs=["tokenize"], replicas=3, batch_size=96),
            Node("reference", inputs=["policy"], replicas=8, batch_size=40),
            Node("value", inputs=["policy"], replicas=24, batch_size=16),
            Node("rules", inputs=["policy"], replicas=96, batch_size=7),
            Node("reward", inputs=["policy", "reference"], replicas=200, batch_size=4),
            Node("judge", inputs=["policy", "rules"], replicas=1_024, batch_size=1),
            Node("scores", inputs=["reward", "judge", "value"], replicas=512, batch_size=2),
            Node("advantage", inputs=["scores"], replicas=64, batch_size=32),
            Node("report", inputs=["advantage"], replicas=16, batch_size=128),
        ],
    )


def measure(runs: int) -> Section:
    """Measure everything, ``runs`` times; the largest size at most three times."""
    _in_own_process(SIZES[-1])  # not counted: a virtual machine may have to ask for memory it never touched
    measured: dict[int, list[dict[str, Any]]] = {size: [] for size in SIZES}
    for run in range(runs):
        for size in SIZES:
            if size < SIZES[-1] or run < 3:
                measured[size].append(_in_own_process(size))
    traced = _in_own_process(SIZES[1], "--traced")
    million = measured[SIZES[1]]
    cpu = {size: median(result["cpu"] for result in results) for size, results in measured.items()}
    wall, system = (median(result[key] for result in million) for key in ("wall", "system"))
    rows = f"{million[0]['calls']:,} calls and {million[0]['fragments']:,} fragments"
    table = f"{million[0]['table']:.0f} MiB of them the table"
    figures = [
        at_most(f"plan 1,000,000 samples ({rows}), CPU", cpu[SIZES[1]], 1, "s"),
        Figure("the same: wall; the system's part of the CPU, for memory", f"{wall:.2f} s; {system:.2f} s"),
        at_most(
            f"peak memory over the imports, resident ({table})",
            median(result["peak"] for result in million),
            500,
            "MiB",
            0,
        ),
        Figure("peak of numpy's own allocations (traced)", f"{traced['peak']:.0f} MiB"),
        *(
            at_most(f"CPU for {large:,} over {small:,} samples", cpu[large] / cpu[small], 12, "x", 1)
            for small, large in pairwise(SIZES)
        ),
        at_most("check over planning, CPU", median(result["check"] for result in million), 3, "x"),
    ]
    how = (
        f"Ten nodes with three joins, 1 to 1,024 replicas, batch sizes 1 to 256. Medians of {runs} processes, "
        "which plan once and are cold; check and planning alternate in a warm one."
    )
    return Section("Planning", how, figures)


def measure_here(samples: int) -> dict[str, Any]:
    """Plan once, cold; then, up to a million samples, plan and check in turn."""
    graph = ten_nodes()
    check_plan(compile_plan(graph, 10))
    before = peak_memory()
    wall, began = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    plan = compile_plan(graph, samples)
    wall, ended = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF)
    system = ended.ru_stime - began.ru_stime
    found: dict[str, Any] = {
        "wall": wall,
        "cpu": ended.ru_utime - began.ru_utime + system,
        "system": system,
        "peak": peak_memory() - before,
        "calls": plan.table.calls,
        "fragments": plan.table.fragments,
        "table": sum(column.nbytes for _, column in plan.table.columns()) / _MEBI,
    }
    if samples <= SIZES[1]:
        found["check"] = median(_check_ratio(graph, samples) for _ in range(3))
    return found


def trace_here(samples: int) -> dict[str, Any]:
    """Plan once and return the most that numpy had allocated."""
    graph = ten_nodes()
    compile_plan(graph, 10)
    gc.collect()
    tracemalloc.start()
    compile_plan(graph, samples)
    return {"peak": tracemalloc.get_traced_memory()[1] / _MEBI, "numpy": np.__version__}


def _check_ratio(graph: Graph, samples: int) -> float:
    began = time.process_time()
    plan = compile_plan(graph, samples)
    planned = time.process_time()
    check_plan(plan)
    return (time.process_time() - planned) / (planned - began)


def _in_own_process(samples: int, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.planning", str(samples), *options]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure planning in this process; prints JSON.")
    parser.add_argument("samples", type=int)
    parser.add_argument("--traced", action="store_true", help="trace memory instead of taking time")
    given = parser.parse_args()
    print(json.dumps((trace_here if given.traced else measure_here)(given.samples)))
