"""The suite as somebody else meets it: light to import, whole in one line, clear where it cannot run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import flowsched.testing as public
from flowsched.testing import BackendSuite, Suite


def _loaded_after(program: str) -> set[str]:
    code = f"{program}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_neither_the_library_nor_the_workers_load_pytest() -> None:
    heavy = {"pytest", "hypothesis", "torch", "ray"}
    assert _loaded_after("import flowsched, flowsched.session, flowsched.backend") & heavy == set()
    assert "flowsched.testing" not in _loaded_after("import flowsched, flowsched.cli")
    names = ["failing", "meeting", "observing", "odd_outputs", "rows", "spoiling"]
    workers = "\n".join(f"import flowsched.testing.workers.{name}" for name in names)
    assert _loaded_after(workers) & heavy == set()


def test_all_public_names_exist_and_are_documented() -> None:
    for name in public.__all__:
        assert getattr(public, name).__doc__, f"{name} says nothing about itself"
        assert name in dir(public)
    with pytest.raises(AttributeError, match="has no attribute 'Suit'"):
        public.Suit  # noqa: B018


def test_the_whole_suite_is_made_of_the_public_parts() -> None:
    parts = {getattr(public, name) for name in public.__all__ if name.endswith("Tests")}
    assert set(BackendSuite.__bases__) == parts
    for part in parts:
        assert part.__bases__ == (Suite,)
        assert [name for name in vars(part) if name.startswith("test_")]


def test_no_test_of_one_part_hides_one_of_another() -> None:
    names = [name for part in BackendSuite.__bases__ for name in vars(part) if name.startswith("test_")]
    assert len(set(names)) == len(names)


_MINE = """
from flowsched_threads import ThreadsBackend

class Mine(ThreadsBackend):
    name = "mine"
"""


def _pytest(folder: Path, text: str, *options: str) -> str:
    """Run pytest on a file of somebody else's, far from this repository, and return what it says."""
    (folder / "my_backend.py").write_text(_MINE)
    (folder / "test_mine.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout


def test_one_line_runs_the_suite_against_an_instance_of_a_backend(tmp_path: Path) -> None:
    said = _pytest(
        tmp_path,
        "from flowsched.testing import BackendSuite\n"
        "from my_backend import Mine\n"
        "class TestMine(BackendSuite): backend = Mine()\n",
        *("-k", "test_joins or test_an_interrupted_program or test_a_replica_that_dies or bfloat16"),
    )
    assert "12 passed" in said, said
    assert "5 skipped" in said, said


def test_a_part_is_run_alone_against_a_backend_by_name_and_options(tmp_path: Path) -> None:
    said = _pytest(
        tmp_path,
        "from flowsched.testing import SharedReplicaTests\n"
        "class TestMine(SharedReplicaTests):\n"
        "    backend = 'threads'\n"
        "    options = {'grace': 1.0}\n",
    )
    assert "4 passed" in said, said


def test_a_misspelt_backend_fails_the_suite(tmp_path: Path) -> None:
    said = _pytest(
        tmp_path,
        "from flowsched.testing import SharedReplicaTests\n"
        "class TestMine(SharedReplicaTests): backend = 'treads'\n",
    )
    assert "4 errors" in said, said
    assert "there is no backend 'treads'. Did you mean 'threads'?" in said, said


@pytest.mark.parametrize(("required", "outcome"), [(False, "4 skipped"), (True, "4 errors")])
def test_a_backend_that_cannot_work_here_is_skipped_with_its_message_unless_it_must(
    tmp_path: Path, required: bool, outcome: str
) -> None:
    said = _pytest(
        tmp_path,
        "from flowsched.testing import SharedReplicaTests\n"
        "from my_backend import Mine\n"
        "class Broken(Mine):\n"
        "    @classmethod\n"
        "    def problem(cls): return 'there is no network. Buy a cable'\n"
        "class TestMine(SharedReplicaTests):\n"
        "    backend = Broken()\n"
        f"    required = {required}\n",
        "-rsE",
    )
    assert outcome in said, said
    assert "backend 'mine' cannot work here: there is no network. Buy a cable" in said, said


def test_a_backend_that_hangs_fails_in_time(tmp_path: Path) -> None:
    said = _pytest(
        tmp_path,
        "import time\n"
        "from flowsched.testing import SharedReplicaTests\n"
        "from my_backend import Mine\n"
        "class Hanging(Mine):\n"
        "    def start(self, deployment):\n"
        "        if 'policy' in deployment.replicas: time.sleep(60)\n"
        "        return super().start(deployment)\n"
        "class TestMine(SharedReplicaTests):\n"
        "    backend = Hanging()\n"
        "    time_limit = 0.5\n",
    )
    assert "2 failed, 2 passed" in said, said
    assert "it took longer than 0.5 seconds" in said, said
