"""Models reach other processes by value where those could not import them, and by name where they could."""

from __future__ import annotations

import subprocess
import sys
import threading
import traceback
from functools import partial
from pathlib import Path

import pytest

import flowsched as fs
from flowsched.address import load_object
from flowsched.errors import BackendError
from flowsched.runtime.shipping import pack_object, unpack_object
from tests.runtime.test_carrying import TwoArgumentsError

_UNPACK = """
import sys
from flowsched.runtime.shipping import unpack_object
print(unpack_object(sys.stdin.buffer.read())(20))
"""


def _call_elsewhere(packed: bytes, folder: Path) -> str:
    """Return what a packed function says to 20 in a process that knows nothing of this one's modules."""
    done = subprocess.run(
        [sys.executable, "-c", _UNPACK], input=packed, capture_output=True, cwd=folder, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def test_a_function_of_a_file_loaded_by_path_goes_by_value(tmp_path: Path) -> None:
    (tmp_path / "helper_of_job.py").write_text("def twice(x): return 2 * x\n")
    job = tmp_path / "job.py"
    job.write_text("from helper_of_job import twice\n\ndef work(x): return twice(x) + 2\n")
    work = load_object(f"{job}:work", "work")
    (tmp_path / "elsewhere").mkdir()
    assert _call_elsewhere(pack_object(work), tmp_path / "elsewhere") == "42"


def test_an_element_of_a_file_loaded_by_path_goes_by_value(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("class Answer:\n    def __call__(self, x): return x + 22\n\nanswers = [Answer()]\n")
    answers = load_object(f"{job}:answers", "answers")
    (tmp_path / "elsewhere").mkdir()
    assert _call_elsewhere(pack_object(answers[0]), tmp_path / "elsewhere") == "42"


def test_code_that_goes_by_value_keeps_the_name_of_its_file(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("def work(x):\n    raise ValueError(x)\n")
    work = unpack_object(pack_object(load_object(f"{job}:work", "work")))
    with pytest.raises(ValueError, match="1") as caught:
        work(1)
    where = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (where.filename, where.lineno, where.line) == (str(job), 2, "raise ValueError(x)")


def test_a_class_of_a_module_that_can_be_imported_goes_by_name() -> None:
    assert unpack_object(pack_object(TwoArgumentsError)) is TwoArgumentsError
    assert len(pack_object(fs.Graph)) < 100


def test_closures_and_partials_travel() -> None:
    add = 40
    assert unpack_object(pack_object(partial(lambda x, y: x + y + add, y=1)))(1) == 42


def test_what_cannot_be_pickled_is_refused_with_the_mend() -> None:
    lock = threading.Lock()
    with pytest.raises(
        BackendError, match=r"the models cannot be sent to another process.*in the model's constr"
    ):
        pack_object(lambda x: (lock, x))


def test_packing_leaves_nothing_registered_behind() -> None:
    import cloudpickle

    before = cloudpickle.list_registry_pickle_by_value()
    pack_object(fs.Graph)
    assert cloudpickle.list_registry_pickle_by_value() == before
