"""Exceptions arrive in another process as what they were, with what caused them and where."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flowsched.errors import OutputError, WorkerError
from flowsched.runtime.carrying import RemoteError, RemoteTraceback, pack_error, unpack_error


class TwoArgumentsError(Exception):
    """Cannot be pickled in the usual way: its constructor takes other arguments than it passes on."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text}")


class HoldsALockError(Exception):
    """Cannot be pickled at all."""

    def __init__(self) -> None:
        import threading

        self.lock = threading.Lock()
        super().__init__("busy")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("this error cannot be printed")


def _raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:  # noqa: BLE001 - any kind is tried
        return caught


def _causes(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *_causes(error.__cause__)]


@pytest.mark.parametrize(
    "error",
    [ValueError("boom"), KeyError(3), SystemExit(4), KeyboardInterrupt(), TwoArgumentsError(7, "bad")],
)
def test_an_exception_keeps_its_type_and_what_it_says(error: BaseException) -> None:
    back = unpack_error(pack_error(_raised(error)))
    assert type(back) is type(error)
    assert (back.args, vars(back)) == (error.args, vars(error))


def test_the_users_own_traceback_is_printed_first() -> None:
    cause = _raised(ValueError("boom"))
    place: dict[str, Any] = {"node": "a", "replica": 1, "call": "a.1.0[4:8]", "samples": (4, 8)}
    error = unpack_error(pack_error(_raised(WorkerError(**place, cause=cause), cause)))
    assert [type(link) for link in _causes(error)] == [WorkerError, ValueError, RemoteTraceback]
    lines = "".join(traceback.format_exception(error))
    assert lines.index("in _raised") < lines.index("ValueError: boom") < lines.index("node 'a', replica 1")
    assert 'test_carrying.py", line' in lines


def test_places_of_a_run_error_are_kept() -> None:
    place: dict[str, Any] = {"node": "a", "replica": 1, "call": "a.1.0[4:8]", "samples": (4, 8)}
    error = unpack_error(pack_error(OutputError("it is bad", "Mend it", **place)))
    assert isinstance(error, OutputError)
    assert {
        "node": error.node,
        "replica": error.replica,
        "call": error.call,
        "samples": error.samples,
    } == place
    assert "it is bad. Mend it" in str(error)


def test_causes_of_causes_and_contexts_are_kept() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904 - without a cause, on purpose
    except ValueError as caught:
        error = unpack_error(pack_error(_raised(RuntimeError("third"), caught)))
    assert [type(link) for link in _causes(error)] == [RuntimeError, ValueError, KeyError, RemoteTraceback]


@pytest.mark.parametrize("error", [HoldsALockError(), UnprintableError()])
def test_what_cannot_be_brought_or_printed_is_told_in_words(error: Exception) -> None:
    back = unpack_error(pack_error(_raised(error)))
    name = type(error).__name__
    assert type(back) is type(error) or (isinstance(back, RemoteError) and back.kind.endswith(name))
    assert name in str(_causes(back)[-1])


def test_notes_travel_along() -> None:
    error = ValueError("boom")
    error.add_note("see the log")
    assert unpack_error(pack_error(error)).__notes__ == ["see the log"]


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert len(_causes(unpack_error(pack_error(first)))) == 3


def test_an_exception_of_a_module_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "nowhere.py").write_text("class GoneError(Exception): pass\n")
    program = """
        import sys
        from flowsched.runtime.carrying import pack_error
        import nowhere
        sys.stdout.buffer.write(pack_error(nowhere.GoneError("it is gone")))
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    back = unpack_error(done.stdout)
    assert isinstance(back, RemoteError)
    assert (back.kind, str(back)) == ("nowhere.GoneError", "GoneError: it is gone")
