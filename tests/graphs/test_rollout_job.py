"""What the rollout jobs share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GRAPHS = Path(__file__).parents[2] / "graphs"
SCRIPTS = pytest.mark.parametrize("script", ["rollout_ngram", "rollout_smollm2"])


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the folder of graphs, as a script in that folder does."""
    monkeypatch.syspath_prepend(GRAPHS)
    return importlib.import_module


@SCRIPTS
@pytest.mark.parametrize("output", ["missing/out.jsonl", "folder", "file/out.jsonl", "link"])
def test_an_output_that_cannot_be_written_is_refused_in_one_sentence_before_anything_is_read(
    load: Callable[[str], ModuleType],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    script: str,
    output: str,
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the corpus was read")

    job = load(script)
    monkeypatch.setattr(load("rollout_job"), "draw_prompts", fail)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "out.jsonl")
    with pytest.raises(SystemExit) as stopped:
        job.main(["--output", str(tmp_path / output)])
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"--output {tmp_path / output} cannot be written: ")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_an_output_that_can_be_written_is_left_as_it_is(
    load: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text("before")
    for output in (old, new):
        load("rollout_job").parse_options("about", 1, 1, str(output), [])
    assert old.read_text() == "before"
    assert not new.exists()
