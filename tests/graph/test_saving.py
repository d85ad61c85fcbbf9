"""Files that are saved appear whole or not at all, where links lead, with the permissions they had."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import flowsched as fs
from flowsched.errors import GraphError, PlanFileError
from flowsched.replacing import refuse_unwritable, replace_file, replacing

GRAPH = fs.Graph("g", ["x"], [fs.Node("a", ["x"])])
SAVERS: dict[str, Callable[[Path], None]] = {
    "graph": lambda file: fs.save_graph(GRAPH, file),
    "plan": lambda file: fs.compile(GRAPH, samples=3).save(file),
}
saved = pytest.mark.parametrize("save", SAVERS.values(), ids=SAVERS.keys())


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def write_half_of(file: Path, error: type[BaseException]) -> None:
    with replacing(file) as stream:
        stream.write(b"half")
        raise error


@saved
def test_a_link_stays_and_what_it_leads_to_is_replaced(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() not in ("", "old")
    assert names(tmp_path) == ["link.json", "real.json"]


@saved
def test_a_link_that_leads_to_nothing_yet_gets_its_file(save: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("new.json")
    save(tmp_path / "link.json")
    assert names(tmp_path) == ["link.json", "new.json"]
    assert (tmp_path / "link.json").is_symlink()


@saved
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_permissions(save: Callable[[Path], None], tmp_path: Path, mode: int) -> None:
    file = tmp_path / "old.json"
    file.write_text("old")
    file.chmod(mode)
    save(file)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@saved
def test_a_new_file_gets_the_permissions_of_any_new_file(
    save: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "any").touch()
    save(tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_mode == (tmp_path / "any").stat().st_mode


@saved
def test_a_disk_that_fills_leaves_the_old_file(
    save: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "old.json").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises((GraphError, PlanFileError), match=r"(?i)no space left on device"):
        save(tmp_path / "old.json")
    assert (tmp_path / "old.json").read_text() == "old"
    assert names(tmp_path) == ["old.json"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_what_is_interrupted_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(error):
        write_half_of(tmp_path / "old", error)
    assert (tmp_path / "old").read_text() == "old"
    assert names(tmp_path) == ["old"]


def test_what_only_its_owner_may_read_is_never_readable_for_others(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o600)
    with replacing(tmp_path / "old"):
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()} == {0o600}


def test_a_name_as_long_as_names_can_be_is_saved(tmp_path: Path) -> None:
    replace_file(tmp_path / ("n" * 255), b"new")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"new")
    reader.join(10)
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_is_refused_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    (tmp_path / "circle").symlink_to("circle")
    before = names(tmp_path)
    for name in ("folder", "missing/file", "file/new", "circle"):
        with pytest.raises(OSError, match=r"\[Errno"):
            refuse_unwritable(tmp_path / name)
        with pytest.raises(OSError, match=r"\[Errno"):
            replace_file(tmp_path / name, b"new")
    refuse_unwritable(tmp_path / "file")
    refuse_unwritable(tmp_path / "new")
    assert names(tmp_path) == before
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_that_may_only_be_read_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever tests may be allowed everything
    for write in (refuse_unwritable, lambda file: replace_file(file, b"new")):
        with pytest.raises(PermissionError):
            write(tmp_path / "old")
    assert (tmp_path / "old").read_text() == "old"
