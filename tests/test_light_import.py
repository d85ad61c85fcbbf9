"""Importing flowsched loads nothing heavy, and no backend before one is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["torch", "ray", "matplotlib", "plotly", "pandas"]
WHEN_NEEDED = ["networkx", "typer", "rich", "yaml", "IPython"]
BACKENDS = ["flowsched_threads", "flowsched_ray", "flowsched_torch"]

DECLARE = """
graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2)])
"""
PLAN = DECLARE + "plan = fs.compile(graph, 4); str(plan); repr(plan)\n"
RUN = PLAN + "assert fs.run(plan, {'a': lambda x: x}, {'x': [1, 2, 3, 4]})['a'] == [1, 2, 3, 4]\n"


def _loaded_after(program: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter has loaded after a program."""
    code = f"import flowsched as fs\n{program}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("program", ["", DECLARE, PLAN, RUN], ids=["import", "declare", "plan", "run"])
def test_neither_importing_nor_running_on_threads_loads_a_heavy_library(program: str) -> None:
    assert _loaded_after(program) & set(HEAVY) == set()


def test_importing_loads_what_only_some_things_need_when_they_need_it() -> None:
    assert _loaded_after("") & set(WHEN_NEEDED) == set()


@pytest.mark.parametrize("program", ["", PLAN], ids=["import", "plan"])
def test_no_backend_is_imported_until_it_is_named(program: str) -> None:
    assert _loaded_after(program) & set(BACKENDS) == set()


def test_running_imports_the_backend_that_is_named_and_no_other() -> None:
    loaded = _loaded_after(RUN)
    assert [name for name in BACKENDS if name in loaded] == ["flowsched_threads"]
    assert loaded.isdisjoint(["typer", "IPython"])
