"""The reported cases as graphs, and which of them wait for what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import flowsched as fs

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))
}

WAITING = {
    "B13": "training nodes",
    "B14": "training nodes",
    "B15": "training nodes",
    "B16": "training nodes",
    "B20": "training nodes",
    "C06": "a declared way to drop samples",
    "C08": "training nodes",
    "C17": "collective nodes",
    "G03": "training nodes with groups",
    "H02": "refilling what was filtered out",
    "H03": "rejecting samples while running",
    "I02": "resuming a run",
    "I03": "resuming a run",
    "J05": "retries",
    "L01": "placement",
    "L02": "placement",
    "L03": "placement",
    "L05": "balance by cost",
    "L06": "training nodes with token budgets",
    "L07": "training nodes with token budgets",
    "L09": "collective nodes",
}
"""Cases that are not tested yet, and the capability that they wait for."""

PART_WAITS = {
    "S01": ("training nodes", {"train"}),
    "S02": ("launchers and loaders", {"len_train"}),
    "A09": ("training nodes", {"train"}),
    "B19": ("training nodes", {"train"}),
    "E07": ("training nodes", {"train"}),
    "L08": ("training nodes", {"train"}),
}
"""Cases of which these checks wait, and the capability that they wait for; the rest of the case is tested."""

AT_RUN_TIME = {
    "B10": {"placeholders_in_result"},
    "C10": {"metric_mean", "filler_in_result"},
    "C11": {"metric_mean"},
    "D03": {"group_order"},
    "E01": {"row_alignment"},
    "E02": {"either"},
    "E04": {"outputs"},
    "F01": {"row_alignment"},
    "F03": {"row_alignment"},
    "F05": {"either"},
    "G02": {"group_order"},
    "H04": {"error"},
    "J02": {"error"},
    "J03": {"either"},
    "J04": {"error", "max_seconds"},
    "J07": {"error"},
    "J08": {"error", "max_seconds"},
    "K01": {"max_in_flight"},
    "K02": {"peak_live_outputs"},
    "L04": {"progress"},
    "L08": {"threads_left"},
    "S02": {"gathered"},
}
"""Checks that a test of its own makes while the case runs; its name begins with ``test_``, the id and ``_``."""

PLANNED = tuple(case for case in CASES if case not in WAITING and case not in ("S02", "B12"))
"""Cases that are planned and run; S02 has no graph, and B12 is refused before there is a plan."""


class Run(NamedTuple):
    """One planning that a case asks for.

    Attributes:
        graph: the graph.
        samples: samples of the step.
        check: what must hold.
    """

    graph: fs.Graph
    samples: int
    check: dict[str, Any]


def runs_of(case: str) -> Iterator[Run]:
    """Yield what a case asks to be planned: its own graph, and the variations in ``check.runs``."""
    given = CASES[case]
    if given.get("num_samples") is not None:
        yield Run(graph_of(case), given["num_samples"], given["check"])
    for variation in given["check"].get("runs", ()):
        changed = {key: variation[key] for key in variation if key not in ("n", "counts")}
        yield Run(graph_of(case, **changed), variation["n"], {"counts": variation["counts"]})


def graph_of(case: str, **changed: Any) -> fs.Graph:
    """Return the graph of a case without its training nodes, but for those that stand for a plain forward pass.

    Args:
        case: id of the case.
        changed: fields that replace those of every node.
    """
    declared = CASES[case]["graph"]["nodes"]
    nodes = [_node({**node, **changed}) for node in declared if node["kind"] != "train" or case == "A08"]
    return fs.Graph(case, sources=["source"], nodes=nodes)


def _node(given: dict[str, Any]) -> fs.Node:
    """Return a node of a case. The ranks of a data-parallel node are replicas.

    A group larger than the batch size is what the step's rows are sorted by, not what must stay in one call.
    """
    batch_size, group = given["batch_size"], given.get("group_size", 1)
    return fs.Node(
        given["name"],
        inputs=[name.replace("@source", "source") for name in given["inputs"]],
        replicas=given.get("dp") or given["replicas"],
        batch_size=batch_size,
        group=group if batch_size is None or group <= batch_size else 1,
        expand=given.get("fanout", 1),
    )
