"""Planning 1,000,000 samples through ten nodes: time, memory, how both grow, and what checking the plan costs.

Each measurement is taken in a process of its own: it is cold, pays for all memory that it touches, and has a peak
of its own. Growth is that of the planner's own time: what the system takes to hand out memory for the first time
depends on who had it before, and varies five times between runs on a virtual machine.

The graph has 1 to 1,024 replicas a node, batch sizes from 256 down to 1, and three joins; few of these numbers
divide each other, so that most calls read several fragments.
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

from benchmarks.figures import Figure, Section, at_most
from benchmarks.machine import peak_memory
from flowsched import Graph, Node, Plan
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
    """Measure each size in ``runs`` processes, the largest in one."""
    measured: dict[int, list[dict[str, Any]]] = {size: [] for size in SIZES}
    for _ in range(runs):
        for size in SIZES[:-1]:
            measured[size].append(_in_own_process(size))
    measured[SIZES[-1]].append(_in_own_process(SIZES[-1]))
    traced = _in_own_process(SIZES[1], "--traced")
    warm = {size: median(result["warm"] for result in results) for size, results in measured.items()}
    million = {key: median(result[key] for result in measured[SIZES[1]]) for key in measured[SIZES[1]][0]}
    rows = f"{million['calls']:,.0f} calls, {million['fragments']:,.0f} fragments"
    table = f"{million['table']:.0f} MiB of it the table"
    figures = [
        at_most(f"plan 1,000,000 samples ({rows}), CPU", million["cpu"], 1, "s"),
        Figure("of it the system's, for memory touched for the first time", f"{million['system']:.2f} s"),
        Figure("the same by the clock", f"{million['wall']:.2f} s"),
        at_most(f"peak memory over the imports ({table})", million["peak"], 500, "MiB", 0),
        Figure("the same as numpy's allocations are traced", f"{traced['peak']:.0f} MiB"),
        *(
            at_most(
                f"CPU for {large:,} over {small:,} samples without the system's",
                warm[large] / warm[small],
                12,
                "x",
                1,
            )
            for small, large in pairwise(SIZES)
        ),
        at_most("checking over planning, CPU", million["check"], 3, "x"),
    ]
    how = (
        f"Ten nodes with three joins, 1 to 1,024 replicas, batch sizes 1 to 256. Medians of {runs} processes "
        "(one for the largest size), each of which plans once, and then three times more for the last three rows."
    )
    return Section("Planning", how, figures)


def measure_here(samples: int) -> dict[str, float]:
    """Plan once in the cold, then three times more; up to a million samples, check each of these plans."""
    graph = ten_nodes()
    check_plan(compile_plan(graph, 10))
    before = peak_memory()
    wall = time.perf_counter()
    plan, user, system = _time_planning(graph, samples)
    found = {
        "wall": time.perf_counter() - wall,
        "cpu": user + system,
        "system": system,
        "peak": peak_memory() - before,
        "calls": plan.table.calls,
        "fragments": plan.table.fragments,
        "table": sum(column.nbytes for _, column in plan.table.columns()) / _MEBI,
    }
    warm, ratios = [], []
    for _ in range(3):
        del plan
        plan, user, system = _time_planning(graph, samples)
        warm.append(user)
        if samples < SIZES[-1]:
            ratios.append(_time_check(plan) / (user + system))
    return found | {"warm": median(warm), "check": median(ratios or [0])}


def _time_planning(graph: Graph, samples: int) -> tuple[Plan, float, float]:
    """Return a plan and the CPU seconds that it took in the planner and in the system."""
    began = resource.getrusage(resource.RUSAGE_SELF)
    plan = compile_plan(graph, samples)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return plan, ended.ru_utime - began.ru_utime, ended.ru_stime - began.ru_stime


def _time_check(plan: Plan) -> float:
    began = time.process_time()
    check_plan(plan)
    return time.process_time() - began


def trace_here(samples: int) -> dict[str, float]:
    """Plan once and return the most that numpy had allocated."""
    graph = ten_nodes()
    compile_plan(graph, 10)
    gc.collect()
    tracemalloc.start()
    compile_plan(graph, samples)
    return {"peak": tracemalloc.get_traced_memory()[1] / _MEBI}


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
