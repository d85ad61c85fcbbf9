"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.graph.files import load_graph

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    """Run the first example; what it prints stands under ``printed``."""
    namespace: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(blocks("python")[0], namespace)
    return {**namespace, "printed": printed.getvalue()}


def test_the_example_prints_what_the_readme_says(example: dict[str, Any]) -> None:
    shown = README.split("It prints:\n\n```\n")[1].split("```")[0]
    assert example["printed"] == shown


def test_the_graph_file_is_the_same_graph(example: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "ppo.yaml").write_text(blocks("yaml")[0])
    assert load_graph(tmp_path / "ppo.yaml") == example["graph"]


@pytest.mark.timeout(300)  # one of them starts Ray
def test_every_other_example_runs(
    example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    later = blocks("python")[1:]
    assert len(later) >= 2
    given = {
        "prompts": np.arange(16),
        "loader": [np.arange(16), np.arange(5)],
        "dataset": list(range(37)),
        "score": float,
    }
    for block in later:
        exec(block, {**example, **given})
    assert fs.load_plan("ppo.json") == example["plan"]


def test_all_public_names_exist_and_are_documented() -> None:
    for name in fs.__all__:
        value = getattr(fs, name)
        assert value.__doc__ or name == "Batch", f"{name} says nothing about itself"
