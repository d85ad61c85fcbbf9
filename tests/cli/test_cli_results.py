"""Files of results appear whole or not at all, and hold what was returned or say why they cannot."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.cli.result_errors import ResultError, ResultFileError
from flowsched.cli.results import save_results
from tests.cli.command_line import Cli

ROW_ERRORS: dict[str, tuple[Any, str]] = {
    "two keys of one text": ({1: 2, "1": 3}, "keys 1 and '1' are both \"1\" in JSON. Rename one"),
    "not a number": (math.nan, "JSON has no NaN and no infinity. Save it as .npz, which keeps them"),
    "an infinity": ([-math.inf], "JSON has no NaN and no infinity. Save it as .npz, which keeps them"),
    "too many digits": (10**5000, "Exceeds the limit .*digits.* Return smaller numbers"),
    "another type": (1j, "complex.* Return numbers and strings"),
}


def save(outputs: Mapping[str, Any], path: Path) -> None:
    nodes = [fs.Node(name, inputs=["x"]) for name in outputs]
    rows = max(len(next(iter(o.values())) if isinstance(o, dict) else o) for o in outputs.values())
    save_results(outputs, fs.compile(fs.Graph("g", ["x"], nodes), samples=rows), path)


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize(("value", "said"), ROW_ERRORS.values(), ids=ROW_ERRORS.keys())
def test_a_row_that_json_cannot_hold_is_named_and_the_old_file_stays(
    tmp_path: Path, suffix: str, value: Any, said: str
) -> None:
    file = tmp_path / f"out{suffix}"
    file.write_text("old")
    with pytest.raises(ResultError, match=rf"output 'a', row 2: JSON cannot hold it, .*{said}"):
        save({"a": {"score": [0, 1, value]}}, file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("make", [circle, lambda: deep(100_000)], ids=["circle", "deep"])
def test_a_row_that_holds_itself_or_has_no_bottom_is_named(tmp_path: Path, suffix: str, make: Any) -> None:
    message = (
        r"output 'a', row 1: JSON cannot hold it, it is nested too deep, or holds itself\. Return flatter"
    )
    with pytest.raises(ResultError, match=message):
        save({"a": [0, make()]}, tmp_path / f"out{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_two_columns_of_one_text_are_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ResultError, match="output 'a': JSON cannot hold it, its keys 1 and '1' are both"):
        save({"a": {1: [2], "1": [3]}}, tmp_path / f"out{suffix}")


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_half_a_surrogate_pair_comes_back_as_it_was(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"out{suffix}"
    save({"a": ["\ud800 é"]}, file)
    found = json.loads(file.read_text())
    assert (found["a"][0] if suffix == ".json" else found["value"]) == "\ud800 é"


def test_letters_stay_readable_in_json(tmp_path: Path) -> None:
    save({"a": ["é"]}, tmp_path / "out.json")
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == '{"a": ["é"]}\n'


def test_arrays_keep_what_json_has_not(tmp_path: Path) -> None:
    save({"a": [math.nan, math.inf]}, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert np.array_equal(arrays["a"], [math.nan, math.inf], equal_nan=True)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "kwds", "self", "arr_0"])
def test_an_output_may_have_any_name_in_an_array_file(tmp_path: Path, name: str) -> None:
    save({name: [1, 2], "other": {"file": [3, 4]}}, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert {key: arrays[key].tolist() for key in arrays} == {name: [1, 2], "other/file": [3, 4]}


@pytest.mark.parametrize(
    "columns",
    [{"a/b": [1], "a": {"b": [2]}}, {1: [1], "1": [2]}, {"a": [1], "a.npy": [2]}, {"a.npy": [1], "a": [2]}],
    ids=str,
)
def test_columns_that_would_have_one_name_are_refused(tmp_path: Path, columns: dict[Any, Any]) -> None:
    (tmp_path / "out.npz").write_text("old")
    with pytest.raises(ResultError, match=r"output 'n', column .*is there already.* Rename one of the two"):
        save({"n": columns}, tmp_path / "out.npz")
    assert (tmp_path / "out.npz").read_text() == "old"


@pytest.mark.parametrize("column", ["a\0b", "\ud800"], ids=ascii)
def test_a_column_that_no_array_can_be_called_is_refused(tmp_path: Path, column: str) -> None:
    with pytest.raises(ResultError, match="no array in the file can be called"):
        save({"n": {column: [1]}}, tmp_path / "out.npz")


def test_the_same_arrays_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        save({"a": np.arange(3), "b": {"c": np.ones((3, 2), order="F")}}, tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".npz"])
def test_a_disk_that_fills_while_saving_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / f"out{suffix}"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultFileError, match=r"cannot be written: no space left on device\. Make room"):
        save({"a": [1, 2]}, file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


SLOW = """
import pathlib, time
import flowsched as fs
from flowsched.cli.results import save_results

class Rows(list):
    def __getitem__(self, row):
        if isinstance(row, int) and row == 50_000:
            pathlib.Path("reached").touch()
            time.sleep(60)
        return super().__getitem__(row)

plan = fs.compile(fs.Graph("g", ["x"], [fs.Node("a", ["x"])]), samples=100_000)
save_results({"a": Rows([0] * 100_000)}, plan, pathlib.Path("out.jsonl"))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_ended_while_it_saves_leaves_the_old_file(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "out.jsonl").write_text("old")
    with subprocess.Popen([sys.executable, "-c", SLOW], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "reached").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=30)
    assert (tmp_path / "reached").exists()
    assert (tmp_path / "out.jsonl").read_text() == "old"


def test_a_result_that_cannot_be_saved_exits_with_3_and_says_so_in_json(cli: Cli, folder: Path) -> None:
    (folder / "models.py").write_text(
        "models = {'policy': lambda x: [float('nan')] * 2 * len(x), 'reward': lambda x: x}\n"
    )
    given = ["run", "job.py", "--models", "models.py", "--output", "out.jsonl"]
    assert "error: output 'policy', row 0: JSON cannot hold it" in cli(*given, ends=3).err
    error = cli(*given, "--json", ends=3).json["error"]
    assert error["code"] == "result"
    assert error["message"].startswith("output 'policy', row 0: JSON cannot hold it, JSON has no NaN")
    assert not (folder / "out.jsonl").exists()
