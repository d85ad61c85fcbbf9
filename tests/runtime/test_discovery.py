"""Backends are found by name; what is unknown, broken or misconfigured says how to mend it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_threads import ThreadsBackend

import flowsched as fs
from flowsched.backend import Backend, find_backends, load_backend
from flowsched.backend import discovery as module
from flowsched.errors import BackendError

GRAPH = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2)])
PLAN = fs.compile(GRAPH, 4)
INPUTS = {"x": np.arange(4)}


def _same(batch: Any) -> Any:
    return batch


def _run(backend: Any, **options: Any) -> fs.Outputs:
    return fs.run(PLAN, {"a": _same}, INPUTS, backend=backend, **options)


def _entry(name: str, target: str) -> EntryPoint:
    return EntryPoint(name, target, "flowsched.backends")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Make one more backend known: ``install(name, text of its module)``."""

    def installed(name: str, text: str) -> None:
        (tmp_path / f"backend_{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, f"backend_{name}", raising=False)
        entries = [*entry_points(group=module.GROUP), _entry(name, f"backend_{name}:Other")]
        monkeypatch.setattr(module, "entry_points", lambda group: entries)  # noqa: ARG005

    return installed


def test_threads_are_found_where_flowsched_is_installed() -> None:
    (entry,) = [entry for entry in find_backends() if entry.name == "threads"]
    assert (entry.target, entry.distribution) == ("flowsched_threads:ThreadsBackend", "flowsched")
    assert load_backend("threads") is ThreadsBackend


def test_finding_backends_imports_none(install: Any) -> None:
    install("never", "raise SystemExit('this module was imported')")
    assert "never" in [entry.name for entry in find_backends()]
    assert "backend_never" not in sys.modules


def test_an_unknown_backend_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(
        BackendError, match=r"no backend 'thread'. Did you mean 'threads'\? Known backends: .*threads"
    ):
        _run("thread")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("import a_library_that_is_not_there", ModuleNotFoundError),
        ("Another = 1", AttributeError),
        ("raise OSError('libcudart.so.12: cannot open shared object file')", OSError),
    ],
)
def test_a_backend_that_cannot_be_loaded_keeps_the_cause_and_gives_the_command(
    install: Any, text: str, cause: type[Exception]
) -> None:
    install("broken", text)
    with pytest.raises(
        BackendError, match=r'cannot be loaded: .*pip install "flowsched\[broken\]"'
    ) as caught:
        _run("broken")
    assert type(caught.value.__cause__) is cause


def test_a_backend_of_another_distribution_is_mended_by_that_one(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Distribution:
        """Stands for one that is installed."""

        name, version = "flowsched-mpi", "1.0"

    install("mpi", "import a_library_that_is_not_there")
    entry = _entry("mpi", "backend_mpi:Other")
    vars(entry).update(dist=Distribution)
    monkeypatch.setattr(module, "entry_points", lambda group: [entry])  # noqa: ARG005
    with pytest.raises(BackendError, match="pip install --upgrade flowsched-mpi"):
        _run("mpi")


def test_what_is_no_backend_is_refused(install: Any) -> None:
    install("odd", "class Other: pass")
    with pytest.raises(BackendError, match=r"is no subclass of flowsched.backend.Backend"):
        _run("odd")


def test_a_third_party_backend_is_found_and_run_like_any_other(install: Any) -> None:
    install(
        "mine", "from flowsched_threads import ThreadsBackend\nclass Other(ThreadsBackend): name = 'mine'"
    )
    assert issubclass(load_backend("mine"), Backend)
    assert _run("mine", grace=1.0)["a"].tolist() == [0, 1, 2, 3]


def test_an_unknown_option_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(BackendError, match=r"has no option 'device'. Did you mean 'devices'\?"):
        _run("threads", device=["cpu"])


def test_a_backend_that_is_already_made_is_taken_and_takes_no_options() -> None:
    assert _run(ThreadsBackend(grace=1.0))["a"].tolist() == [0, 1, 2, 3]
    with pytest.raises(BackendError, match=r"options grace were given .* Give them to ThreadsBackend\(...\)"):
        _run(ThreadsBackend(), grace=1.0)


@pytest.mark.parametrize("backend", [ThreadsBackend, None, 3, ["threads"]], ids=str)
def test_what_is_neither_a_name_nor_a_backend_is_refused(backend: Any) -> None:
    with pytest.raises(BackendError, match="Give the name of a backend or an instance of one"):
        _run(backend)
