"""The commands that the README of the graphs shows work as they are written."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flowsched.address import load_object
from flowsched.cli.app import make_app

ROOT = Path(__file__).parents[2]
README = (ROOT / "graphs" / "README.md").read_text("utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    if not language  # others show what is printed
    for line in block.splitlines()
]


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command[0] == "flowsched"], ids=" ".join
)
def test_a_command_of_flowsched_ends_well(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if "chatlearn_209" in command[2]:
        pytest.importorskip("torch")
    result = CliRunner().invoke(make_app(), command[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout


def test_the_readme_shows_planning_explaining_and_running() -> None:
    assert {command[1] for command in COMMANDS if command[0] == "flowsched"} == {"plan", "explain", "run"}


def test_scripts_are_there_and_know_the_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    scripts = [command for command in COMMANDS if command[0] in ("python", "torchrun")]
    assert len(scripts) == 9
    for command in scripts:
        start = next(place for place, word in enumerate(command) if word.endswith(".py"))
        script, *options = command[start:]
        main = load_object(f"{script}:main", "main")
        with pytest.raises(SystemExit) as stopped:
            main(["--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr().out
        assert all(option in shown for option in options if option.startswith("--"))


def test_packages_are_installed_from_the_checkout_with_extras_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installed = [command for command in COMMANDS if command[:3] == ["pip", "install", "-e"]]
    assert len(installed) == 4
    for command in installed:
        asked = re.fullmatch(r"\.\[(.+)\]", command[3])
        assert asked is not None
        assert set(asked[1].split(",")) <= set(extras)


def test_the_price_of_divergence_is_the_one_of_the_code() -> None:
    coefficient = load_object(str(ROOT / "graphs" / "grpo.py") + ":KL_COEFFICIENT", "models")
    assert f"pays {coefficient} (`KL_COEFFICIENT` in `grpo.py`)" in README
