"""Costs are kept one record for each backend and set of options, and come back as they were."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from flowsched.costs import BackendCosts, CostsFileError, costs_file, load_costs, save_costs

RAY = BackendCosts(
    "ray", 0.1, 0.02, 0.003, 0.0004, {"compiled": True}, "box, 2 cores", {"ray": "2.60"}, "2026-11-30"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "costs.json"


def test_costs_come_back_as_they_were(file: Path) -> None:
    assert load_costs("ray", file=file) is None
    assert save_costs(RAY, file) == file
    assert load_costs("ray", file=file) == load_costs("ray", {"compiled": True}, file) == RAY
    assert load_costs("ray", {}, file) is None
    assert load_costs("torch", file=file) is None


def test_the_newest_record_of_a_backend_and_its_options_takes_the_place_of_the_older(file: Path) -> None:
    plain = replace(RAY, options={}, call=1.0)
    for costs in (RAY, plain, replace(RAY, call=0.5)):
        save_costs(costs, file)
    assert len(json.loads(file.read_text())["costs"]) == 2
    assert load_costs("ray", {"compiled": True}, file) == replace(RAY, call=0.5)
    assert load_costs("ray", {}, file) == plain
    assert load_costs("ray", file=file) == replace(RAY, call=0.5)  # the last one measured


def test_the_variable_names_the_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("FLOWSCHED_COSTS", str(file))
    assert costs_file() == save_costs(RAY) == file
    assert load_costs("ray") == RAY
    monkeypatch.delenv("FLOWSCHED_COSTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file.parent))
    assert costs_file().name == "costs.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it holds no costs"),
        ("[]", "it holds no costs"),
        ('{"version": 2, "costs": []}', "format version 2, and this flowsched reads 1"),
        (json.dumps({"version": 1, "costs": [{**asdict(RAY), "call": "fast"}]}), "costs.0.call"),
        (json.dumps({"version": 1, "costs": [{"backend": "ray"}]}), "costs.0.step"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name_and_the_mend(file: Path, text: str, said: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(CostsFileError, match="flowsched calibrate") as caught:
        load_costs("ray", file=file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    with pytest.raises(CostsFileError):
        save_costs(RAY, file)
    assert file.read_text() == text
