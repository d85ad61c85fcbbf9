"""Batches where torch is not installed, or not imported."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
{before}
import numpy as np
from flowsched.batch import Padding, concat, count_rows, spread, structure, take, with_lengths
padding = {{"ids": Padding(0, lengths="n")}}
batch = with_lengths({{"ids": np.ones((4, 2)), "text": ["a"] * 4, "none": None}}, padding)
wider = with_lengths({{"ids": np.ones((1, 3)), "text": ["b"], "none": None}}, padding)
joined = concat([take(batch, 0, 2), spread(batch, 1, 4, 2), wider], padding)
assert count_rows(joined) == 6, joined
structure(joined)
try:
    count_rows({{"ids": "text"}})
except Exception as error:
    assert "'ids' is a str" in str(error), error
else:
    raise SystemExit("a str passed as a column")
{after}
"""


def _run(before: str, after: str) -> None:
    program = PROGRAM.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_batches_import_no_torch() -> None:
    _run("", "assert 'torch' not in sys.modules")


def test_batches_work_where_torch_cannot_be_imported() -> None:
    _run("sys.modules['torch'] = None", "")
