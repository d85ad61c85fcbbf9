"""The workers of Ray Train are dealt their samples as ranks of any process group are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.data.sessions import run_session

SCRIPT = Path(__file__).with_name("ray_trained.py")
LONGEST = 200  # seconds


@pytest.mark.timeout(LONGEST + 40)
def test_workers_of_ray_train_gather_every_row_once_and_a_second_sharding_is_refused(tmp_path: Path) -> None:
    reason = 'ray.train is not installed: pip install "ray[train]"'
    pytest.importorskip("ray.train.torch", reason=reason, exc_type=ImportError)
    run_session([sys.executable, str(SCRIPT), str(tmp_path)], tmp_path / "log", LONGEST)
    for rank in range(2):
        report = json.loads((tmp_path / f"{rank}.json").read_text())
        assert report.pop("refused").endswith(
            "Give prepare_data_loader add_dist_sampler=False, or leave it out and give the loader device="
        )
        assert report == {
            "23 as it is": list(range(23)),
            "23 prepared": list(range(23)),
            "1 as it is": [0],
            "1 prepared": [0],
            "data set": list(range(23)),
        }
