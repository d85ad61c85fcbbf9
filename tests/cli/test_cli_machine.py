"""What the command line says of this machine, its backends and the schema; help and exit codes."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from flowsched.backend import find_backends
from flowsched.cli.app import COMMANDS
from flowsched.cli.doctor import _JOBS
from flowsched.cli.exit_codes import MEANINGS
from flowsched.graph.schema import graph_schema
from tests.cli.command_line import Cli, joined


def test_schema_prints_the_published_schema(cli: Cli) -> None:
    assert cli("schema").json == graph_schema()
    assert cli("schema", "--json").out == cli("schema").out


def test_backends_lists_what_is_installed(cli: Cli) -> None:
    (threads,) = [entry for entry in cli("backends", "--json").json["backends"] if entry["name"] == "threads"]
    assert set(threads) == {"name", "target", "distribution", "version", "missing", "install"}
    assert (threads["missing"], threads["install"]) == ([], None)
    assert threads["target"] == "flowsched_threads:ThreadsBackend"
    assert "flowsched_threads:ThreadsBackend" in cli("backends").out


def test_backends_gives_the_command_for_what_a_backend_lacks(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, "ray")
    found = {entry["name"]: entry for entry in cli("backends", "--json").json["backends"]}
    assert found["ray"]["missing"] == ["no-such-package"]
    assert found["ray"]["install"] == 'pip install "flowsched[ray]"'
    out = joined(cli("backends").out)
    assert 'lacks no-such-package: pip install "flowsched[ray]"' in out


def test_doctor_says_what_is_there(cli: Cli) -> None:
    found = cli("doctor", "threads", "--json").json
    assert set(found) == {"python", "system", "cores", "packages", "extras", "backends"}
    assert found["cores"] >= 1
    assert found["packages"]["flowsched"] == importlib.metadata.version("flowsched")
    assert found["backends"][0]["problem"] is None
    assert found["backends"][0]["facts"]["threads_left"] > 0
    out = cli("doctor", "threads").out
    assert "backend threads" in out
    assert "threads_left" in out


def lacking(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    """Let flowsched have an extra whose package is not there."""
    lists = ["numpy>=1", "numpy>=1; extra == 'here'", f"no-such-package>=1; extra == '{extra}'"]
    monkeypatch.setattr("flowsched.cli.extras.requires", lambda _: lists)


def test_doctor_says_which_extras_are_installed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, "dream")
    assert cli("doctor", "threads", "--json").json["extras"] == {"here": [], "dream": ["no-such-package"]}
    lines = [joined(line) for line in cli("doctor", "threads").out.splitlines()]
    assert "extra here installed" in lines
    assert "extra dream not installed: no-such-package" in lines


def test_doctor_promises_nothing_of_an_extra_that_nothing_needs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, "dream")
    assert "pip install" not in cli("doctor", "threads").out


def test_doctor_gives_the_command_for_an_extra_that_a_job_or_a_backend_needs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, "torch")
    both = "backend torch and graphs/chatlearn_209.py"
    expected = f'{both} need the extra torch: pip install "flowsched[torch]"\n'
    assert cli("doctor", "threads").out.endswith(expected)
    lacking(monkeypatch, "dream")
    announced = EntryPoint("dream", "no_such_backend_package:Backend", "flowsched.backends")
    real = importlib.metadata.entry_points(group="flowsched.backends")
    monkeypatch.setattr("flowsched.backend.discovery.entry_points", lambda **_: [*real, announced])
    expected = 'backend dream needs the extra dream: pip install "flowsched[dream]"\n'
    assert cli("doctor", "threads").out.endswith(expected)


def test_the_jobs_that_need_extras_are_there() -> None:
    for job in _JOBS.values():
        assert (Path(__file__).parents[2] / job).is_file()


def test_doctor_exits_with_4_where_a_named_backend_does_not_work(cli: Cli) -> None:
    assert "there is no backend 'dream'" in cli("doctor", "dream", ends=4).out
    found = cli("doctor", "threads", "dream", "--json", ends=4).json
    assert [entry["problem"] is None for entry in found["backends"]] == [True, False]


def test_doctor_survives_a_backend_that_breaks_while_it_loads(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = EntryPoint("broken", "no_such_backend_package:Backend", "flowsched.backends")
    real = importlib.metadata.entry_points(group="flowsched.backends")
    monkeypatch.setattr("flowsched.backend.discovery.entry_points", lambda **_: [*real, broken])
    found = {entry["name"]: entry for entry in cli("doctor", "--json").json["backends"]}
    assert "no_such_backend_package" in found["broken"]["problem"]
    assert found["threads"]["problem"] is None
    assert "broken" in {entry.name for entry in find_backends()}


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_documents_every_exit_code(cli: Cli, command: list[str]) -> None:
    out = cli(*command, "--help").out
    for code, meaning in MEANINGS.items():
        assert f"{code:>3}  {meaning}" in out
    assert not command or "--json" in out


def test_the_version_is_that_of_the_distribution(cli: Cli) -> None:
    assert cli("--version").out.strip() == importlib.metadata.version("flowsched")
