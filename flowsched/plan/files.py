"""Plan files: a plan in JSON or npz, with all that is needed to know whether it is whole and for which graph."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flowsched.errors import GraphError
from flowsched.graph import Graph
from flowsched.graph.from_document import graph_from_dict
from flowsched.plan import file_errors
from flowsched.plan.graph_changes import graph_changes
from flowsched.plan.misfit import find_misfit
from flowsched.plan.npz import read_npz, write_npz
from flowsched.plan.plan import FORMAT_NAME, FORMAT_VERSION, Plan
from flowsched.plan.table import COLUMN_TYPES, Table, seal
from flowsched.replacing import replace_file

PLAN_SUFFIXES = (".json", ".npz")

_LONGEST_SAID = 60
_BEGINS_AS_PLAN = re.compile(rb'\s*\{\s*"format"\s*:\s*"%s"' % FORMAT_NAME.encode())

_HEADER_TYPES = {"format": str, "version": int, "samples": int, "hash": str, "graph": dict}


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Save a plan to a ``.json`` or ``.npz`` file; the same plan always gives the same bytes.

    The file appears whole or not at all: what stood there before stays until all is written.

    Raises:
        PlanFileError: the suffix is another, or the file cannot be written.
    """
    file = _path(path)
    data = plan.to_json().encode() if file.suffix == ".json" else write_npz(_header(plan), plan.table)
    try:
        replace_file(file, data)
    except (OSError, ValueError) as error:  # a path that holds a zero byte
        raise file_errors.unwritable(file, error) from error


def load_plan(path: str | os.PathLike[str], graph: Graph | None = None) -> Plan:
    """Load a plan from a ``.json`` or ``.npz`` file.

    Args:
        path: the file.
        graph: the graph that the plan must have been made for; None takes any.

    Raises:
        PlanFileError: the file cannot be read, is damaged, is of another format version, or holds a plan for
            another graph; it says what differs.
    """
    file = _path(path)
    try:
        data = file.read_bytes()
    except (OSError, ValueError) as error:  # a path that holds a zero byte
        raise file_errors.unreadable(file, error) from error
    header, columns = _parse_json(file, data) if file.suffix == ".json" else read_npz(file, data)
    _check_header(file, header)
    made_for = _parse_graph(file, header["graph"])
    if graph is not None and made_for != graph:
        raise file_errors.other_graph(file, graph_changes(made_for, graph))
    plan = Plan(made_for, header["samples"], _parse_table(file, made_for, columns))
    if plan.hash != header["hash"]:
        raise file_errors.other_hash(file, header["hash"], plan.hash)
    return plan


def is_plan_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a plan (a graph may end in ``.json``, too); no more of it is checked."""
    file = Path(path)
    if file.suffix != ".json":
        return file.suffix == ".npz"
    try:
        data = file.read_bytes()
        if _BEGINS_AS_PLAN.match(data):  # as we write them, which spares reading all of it twice
            return True
        parsed = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return False  # whoever reads it as a graph says what is wrong with it
    return isinstance(parsed, dict) and parsed.get("format") == FORMAT_NAME


def plan_to_json(plan: Plan) -> str:
    """Return a plan as JSON text, one line for the graph and one for each column of the table."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in _header(plan).items()]
    columns = [
        f"    {json.dumps(name)}: {json.dumps(column.tolist(), separators=(',', ':'))}"
        for name, column in plan.table.columns()
    ]
    lines.append('  "table": {\n' + ",\n".join(columns) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _header(plan: Plan) -> dict[str, Any]:
    return {**plan.header(), "hash": plan.hash}


def _path(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    if file.suffix not in PLAN_SUFFIXES:
        raise file_errors.other_suffix(file, PLAN_SUFFIXES)
    return file


def _parse_json(file: Path, data: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        parsed = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise file_errors.damaged(file, f"it is not JSON: {error}") from error
    if not isinstance(parsed, dict) or not isinstance(parsed.get("table", {}), dict):
        raise file_errors.damaged(file, "it does not hold an object with a table")
    return parsed, {name: _as_column(name, values) for name, values in parsed.pop("table", {}).items()}


def _as_column(name: str, values: object) -> object:
    """Return a list of whole numbers as the column of that name; what cannot be one as it is."""
    if name not in COLUMN_TYPES or not isinstance(values, list):
        return values
    kind = np.dtype(COLUMN_TYPES[name])
    limit = 1 << (8 * kind.itemsize - 1)
    if all(type(value) is int and -limit <= value < limit for value in values):
        return np.array(values, kind)
    return values


def _check_header(file: Path, header: Mapping[str, Any]) -> None:
    if header.get("format") != FORMAT_NAME:
        raise file_errors.no_plan(file, header.get("format"))
    if header.get("version") != FORMAT_VERSION:
        raise file_errors.other_version(file, header.get("version"), FORMAT_VERSION)
    for key, kind in _HEADER_TYPES.items():
        if type(header.get(key)) is not kind:
            raise file_errors.damaged(file, f"its {key} is {_say(header.get(key))}")
    if header["samples"] < 0:
        raise file_errors.damaged(file, f"its samples are {header['samples']}")


def _parse_graph(file: Path, data: Mapping[str, Any]) -> Graph:
    try:
        return graph_from_dict(data, os.fspath(file))
    except GraphError as error:
        raise file_errors.damaged(file, f"it holds no graph: {error}") from error


def _parse_table(file: Path, graph: Graph, columns: Mapping[str, Any]) -> Table:
    missing = [name for name in COLUMN_TYPES if name not in columns]
    surplus = [name for name in columns if name not in COLUMN_TYPES]
    if missing or surplus:
        problem = (
            f"its table lacks {', '.join(missing)}" if missing else f"its table has {', '.join(surplus)} too"
        )
        raise file_errors.damaged(file, problem)
    for name, column in columns.items():
        kind = np.dtype(COLUMN_TYPES[name])
        if not isinstance(column, np.ndarray) or column.ndim != 1 or column.dtype.newbyteorder("=") != kind:
            raise file_errors.damaged(file, f"its column {name} is {_say(column)}, not {kind} numbers")
    table = Table(**{name: seal(column) for name, column in columns.items()})
    misfit = find_misfit(table, [len(node.inputs) for node in graph])
    if misfit:
        raise file_errors.damaged(file, misfit)
    return table


def _say(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with {value.ndim} axes"
    text = repr(value)
    return text if len(text) <= _LONGEST_SAID else f"{text[:_LONGEST_SAID]}... ({type(value).__name__})"
