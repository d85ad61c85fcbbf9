"""Measuring a backend from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsched.costs import BackendCosts, load_costs
from tests.cli.command_line import Cli, joined


def test_calibrate_measures_a_backend_and_keeps_what_it_found(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWSCHED_COSTS", str(folder / "costs.json"))
    out = cli("calibrate", "--repeats", 3).out
    costs = load_costs("threads")
    assert costs is not None
    assert 0 < costs.step < 1
    assert f"a step of two calls {costs.step * 1e3:.3f} ms" in joined(out)
    assert f"each call more {costs.call * 1e3:.3f} ms" in joined(out)
    assert "saved to" in out


def test_shapes_differ_in_what_their_difference_measures(cli: Cli, folder: Path) -> None:
    found = cli("calibrate", "--repeats", 2, "--json", "--output", "costs.json", "-o", "grace=0.5").json
    shapes = {one["name"]: one for one in found["timings"]}
    sizes = {name: (one["calls"], one["fragments"], one["megabytes"]) for name, one in shapes.items()}
    assert sizes == {
        "few": (2, 2, 0.0),
        "cut": (65, 128, 0.0),
        "divide": (65, 65, 0.0),
        "many": (128, 128, 0.0),
        "small": (2, 2, 3.2e-5),
        "large": (2, 2, 16.0),
    }
    assert all(len(one["seconds"]) == 2 for one in shapes.values())
    assert BackendCosts(**found["costs"]) == load_costs("threads", {"grace": 0.5}, folder / "costs.json")


def test_a_backend_that_is_not_there_is_not_measured(cli: Cli) -> None:
    assert "there is no backend 'dream'" in joined(cli("calibrate", "--backend", "dream", ends=4).err)


@pytest.mark.parametrize("output", [".", "file.json/costs.json"])
def test_a_file_that_cannot_hold_costs_is_refused_before_anything_is_measured(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    measured: list[object] = []
    monkeypatch.setattr("flowsched.calibration.calibrate", lambda *_, **__: measured.append(1))
    (folder / "file.json").write_text("")
    said = joined(cli("calibrate", "--output", output, ends=3).err)
    assert "cannot be read or written" in said
    assert "Give the path of a file that you may write" in said
    assert not measured
