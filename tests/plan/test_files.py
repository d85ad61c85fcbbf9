"""Plan files: the same plan comes back, or a reason why not."""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.errors import PlanFileError
from flowsched.plan import load_plan, save_plan
from tests.strategies import Workload, graphs

_SUFFIXES = [".json", ".npz"]


def _graph(**reward: Any) -> fs.Graph:
    return fs.Graph(
        "ppo",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4, expand=2),
            fs.Node("reward", **{"inputs": ["policy", "prompts"], "replicas": 8, "batch_size": 2, **reward}),
        ],
    )


@pytest.fixture(params=_SUFFIXES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"plan{request.param}"
    fs.compile(_graph(), samples=16).save(path)
    return path


def _refusal(path: Path, graph: fs.Graph | None = None) -> str:
    with pytest.raises(PlanFileError) as caught:
        load_plan(path, graph)
    message = str(caught.value)
    assert message.startswith(f"plan file {str(path)!r}: ")
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    return message.removeprefix(f"plan file {str(path)!r}: ")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(work=graphs(max_nodes=6, max_samples=60, max_rows=400))
@pytest.mark.parametrize("suffix", _SUFFIXES)
def test_any_plan_comes_back_equal_with_the_same_hash_graph_and_columns(
    suffix: str, tmp_path: Path, work: Workload
) -> None:
    plan = fs.compile(work.graph, work.samples)
    path = tmp_path / f"plan{suffix}"
    plan.save(path)
    loaded = load_plan(path, work.graph)
    assert loaded == plan
    assert (loaded.hash, loaded.graph, loaded.samples) == (plan.hash, plan.graph, plan.samples)
    for (name, column), (_, other) in zip(loaded.table.columns(), plan.table.columns(), strict=True):
        assert column.dtype == other.dtype, name
        assert column.tobytes() == other.tobytes(), name
        assert not column.flags.writeable
    assert str(loaded) == str(plan)


def test_the_same_plan_gives_the_same_bytes_whenever_and_wherever_it_is_saved(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    monkeypatch.setattr("sys.platform", "win32")
    again = tmp_path / f"again{file.suffix}"
    save_plan(load_plan(file), again)
    assert again.read_bytes() == file.read_bytes()


def test_the_json_text_of_a_plan_is_its_json_file(tmp_path: Path) -> None:
    plan = fs.compile(_graph(), samples=16)
    plan.save(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == plan.to_json()
    data = json.loads(plan.to_json())
    assert (data["format"], data["version"], data["samples"]) == ("flowsched-plan", 1, 16)
    assert data["hash"] == plan.hash
    assert data["graph"] == plan.graph.to_dict()
    assert data["table"]["replica"] == plan.table.replica.tolist()


def test_the_columns_of_an_npz_file_can_be_read_with_numpy_alone(tmp_path: Path) -> None:
    plan = fs.compile(_graph(), samples=16)
    plan.save(tmp_path / "plan.npz")
    with np.load(tmp_path / "plan.npz", allow_pickle=False) as columns:
        assert columns["stop"].tolist() == plan.table.stop.tolist()
        assert columns["stop"].dtype == np.int64


@pytest.mark.parametrize("name", ["plan.yaml", "plan", "plan.json.gz"])
def test_a_suffix_that_names_no_format_is_refused_with_those_that_do(name: str, tmp_path: Path) -> None:
    plan = fs.compile(_graph(), samples=16)
    with pytest.raises(PlanFileError, match=r"says no format\. Name it plan.*\.json or plan.*\.npz"):
        plan.save(tmp_path / name)
    assert "says no format" in _refusal(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_for_another_graph_is_refused_with_what_differs(file: Path) -> None:
    given_graph = fs.Graph(
        "grpo",
        sources=["prompts", "targets"],
        nodes=[
            fs.Node("reward", inputs=["prompts"], replicas=6, batch_size=None, collapse=2),
            fs.Node("value", inputs=["reward"]),
        ],
    )
    assert _refusal(file, given_graph).splitlines() == [
        "it was made for another graph:",
        "  graph name is 'ppo' in the plan, 'grpo' in the graph",
        "  graph sources is ['prompts'] in the plan, ['prompts', 'targets'] in the graph",
        "  graph outputs is ['reward'] in the plan, ['value'] in the graph",
        "  node 'policy' is in the plan only",
        "  node 'value' is in the graph only",
        "  node 'reward': inputs is ['policy', 'prompts'] in the plan, ['prompts'] in the graph",
        "  node 'reward': replicas is 8 in the plan, 6 in the graph",
        "  node 'reward': batch_size is 2 in the plan, None in the graph",
        "  node 'reward': collapse is 1 in the plan, 2 in the graph",
        "Compile a plan for this graph, or load the file with the graph it was made for",
    ]


def test_a_graph_whose_nodes_stand_in_another_order_is_another_graph(file: Path) -> None:
    graph = fs.Graph("ppo", ["prompts"], list(reversed(list(_graph()))), outputs=["reward"])
    assert (
        "the order of the nodes is ['policy', 'reward'] in the plan, ['reward', 'policy'] in the graph"
        in _refusal(file, graph)
    )


def test_the_graph_that_the_plan_was_made_for_is_taken(file: Path) -> None:
    assert load_plan(file, _graph()) == load_plan(file)


def _rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Change a plan file's header and columns behind its back, and leave it well-formed."""
    if path.suffix == ".json":
        header = json.loads(path.read_text(encoding="utf-8"))
        columns = header["table"]
        change(header, columns)
        path.write_text(json.dumps(header), encoding="utf-8")
        return
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        columns = {name[:-4]: np.load(io.BytesIO(archive.read(name))).tolist() for name in names}
    types: dict[str, Any] = {name: np.asarray(column, np.int64).dtype for name, column in columns.items()}
    types |= dict.fromkeys(("node", "replica", "wave", "position"), np.dtype(np.int32))
    change(header, columns)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, column in columns.items():
            buffer = io.BytesIO()
            ready = column if isinstance(column, np.ndarray) else np.array(column, types.get(name))
            np.save(buffer, ready, allow_pickle=True)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def test_another_format_version_is_refused_with_both_numbers(file: Path) -> None:
    _rewrite(file, lambda header, _: header.update(version=2))
    assert _refusal(file) == (
        "it is of format version 2, and this flowsched reads version 1. "
        "Compile the plan and save it again with this flowsched"
    )


def test_a_file_of_another_kind_is_refused(file: Path) -> None:
    _rewrite(file, lambda header, _: header.update(format="other"))
    assert "it says that it is 'other'" in _refusal(file)
    _rewrite(file, lambda header, _: header.pop("format"))
    assert "it does not say that it is a plan" in _refusal(file)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("samples", "16", "its samples is '16'"),
        ("samples", True, "its samples is True"),
        ("samples", -1, "its samples are -1"),
        ("hash", None, "its hash is None"),
        ("graph", [], "its graph is []"),
        ("graph", {"name": "x"}, "it holds no graph"),
    ],
)
def test_a_header_that_is_wrong_is_refused(file: Path, key: str, value: object, said: str) -> None:
    _rewrite(file, lambda header, _: header.update({key: value}))
    assert said in _refusal(file)


def test_a_graph_with_an_unknown_key_is_refused_with_the_key(file: Path) -> None:
    _rewrite(file, lambda header, _: header["graph"]["nodes"][0].update(replica=3))
    assert "Did you mean 'replicas'?" in _refusal(file)


def _swap_replicas(_: dict[str, Any], columns: dict[str, Any]) -> None:
    columns["replica"][0], columns["replica"][1] = columns["replica"][1], columns["replica"][0]


def _more_samples(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["samples"] = 17


def _other_batch_size(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["graph"]["nodes"][1]["batch_size"] = 3


@pytest.mark.parametrize("change", [_swap_replicas, _more_samples, _other_batch_size])
def test_contents_that_do_not_have_the_saved_hash_are_refused_with_both(
    file: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    saved = load_plan(file).hash
    _rewrite(file, change)
    message = _refusal(file)
    assert message.startswith("what it holds has the hash ")
    assert f", and it says {saved[:12]}. It is damaged: compile the plan and save it again" in message


def _shorten(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, columns: columns[name].pop()


def _set(name: str, value: object) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, columns: columns.update({name: value})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_shorten("wave"), "its columns differ in length: node 20, replica 20, wave 19,"),
        (_shorten("fragment_stop"), "its columns differ in length: producer"),
        (_shorten("feed"), "its column feed has 36 numbers for 36 feeds, not 37"),
        (lambda _, columns: columns["feed"].__setitem__(0, 1), "its column feed does not rise from 0 to"),
        (lambda _, columns: columns["node"].__setitem__(0, 7), "its column node does not run from 0 to 1"),
        (lambda _, columns: columns["node"].__setitem__(0, -1), "its column node does not run from 0 to 1"),
        (lambda _, columns: columns.pop("wave"), "its table lacks wave"),
        (_set("extra", [1]), "its table has extra too"),
    ],
)
def test_columns_that_do_not_fit_each_other_are_refused_with_their_names(
    file: Path, change: Callable[[dict[str, Any], dict[str, Any]], None], said: str
) -> None:
    _rewrite(file, change)
    assert said in _refusal(file)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.5, 1.0], "its column node is [0.5, 1.0], not int32 numbers"),
        ([True], "its column node is [True], not int32 numbers"),
        ([[0]], "its column node is [[0]], not int32 numbers"),
        ([2**31], "its column node is [2147483648], not int32 numbers"),
        (["a"], "its column node is ['a'], not int32 numbers"),
        ("abc", "its column node is 'abc', not int32 numbers"),
        ([1.5] * 1000, "... (list), not int32 numbers"),
    ],
    ids=str,
)
def test_json_columns_must_be_whole_numbers_that_fit(tmp_path: Path, values: object, said: str) -> None:
    path = tmp_path / "plan.json"
    fs.compile(_graph(), samples=16).save(path)
    _rewrite(path, _set("node", values))
    assert said in _refusal(path)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.zeros(20, np.int64), "its column node is an array of int64 with 1 axes, not int32 numbers"),
        (np.zeros(20, np.float32), "its column node is an array of float32 with 1 axes, not int32 numbers"),
        (np.zeros((20, 1), np.int32), "its column node is an array of int32 with 2 axes, not int32 numbers"),
    ],
    ids=["int64", "float32", "two axes"],
)
def test_npz_columns_must_have_the_exact_type(tmp_path: Path, column: Any, said: str) -> None:
    path = tmp_path / "plan.npz"
    fs.compile(_graph(), samples=16).save(path)
    _rewrite(path, _set("node", column))
    assert said in _refusal(path)


class _Bomb:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("executed",)


def test_a_pickle_in_an_npz_file_is_refused_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan.npz"
    fs.compile(_graph(), samples=16).save(path)
    _rewrite(path, _set("node", np.array([_Bomb()], object)))
    assert "it is not an npz file of a plan" in _refusal(path)
    assert not (tmp_path / "executed").exists()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("suffix", _SUFFIXES)
def test_a_file_with_an_altered_byte_is_refused_unless_it_still_holds_the_same_plan(
    suffix: str, tmp_path: Path, data: st.DataObject
) -> None:
    plan, path = fs.compile(_graph(), samples=2), tmp_path / f"plan{suffix}"
    plan.save(path)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with suppress(PlanFileError):
        assert load_plan(path) == plan


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("suffix", _SUFFIXES)
def test_a_file_that_was_cut_off_anywhere_is_refused(
    suffix: str, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / f"plan{suffix}"
    fs.compile(_graph(), samples=2).save(path)
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert "It is damaged: compile the plan and save it again" in _refusal(path)


@pytest.mark.parametrize("suffix", _SUFFIXES)
def test_a_file_that_is_not_there_is_refused_with_the_systems_reason(suffix: str, tmp_path: Path) -> None:
    assert _refusal(tmp_path / f"missing{suffix}").startswith(
        "it cannot be read: No such file or directory. "
    )


def test_a_deeply_nested_json_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("[" * 200_000, encoding="utf-8")
    assert "it is not JSON" in _refusal(path)


def test_saving_where_there_is_no_folder_is_refused(tmp_path: Path) -> None:
    plan = fs.compile(_graph(), samples=16)
    with pytest.raises(PlanFileError, match=r"it cannot be written: No such file or directory\. Give a path"):
        plan.save(tmp_path / "missing" / "plan.json")


def test_a_save_that_fails_leaves_the_former_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlanFileError, match="it cannot be written: No space left on device"):
        fs.compile(_graph(replicas=3), samples=16).save(file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_saved_file_replaces_the_former_one_and_can_be_read_by_those_whom_the_umask_allows(
    file: Path,
) -> None:
    plan = fs.compile(_graph(replicas=3), samples=16)
    former = os.umask(0o022)
    try:
        plan.save(file)
    finally:
        os.umask(former)
    assert load_plan(file) == plan
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("name", ["\0.json", "\0.npz", "plan\udcff\0.json"])
def test_a_path_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(PlanFileError, match="cannot be read"):
        load_plan(name)
    with pytest.raises(PlanFileError, match="cannot be written"):
        save_plan(fs.compile(_graph(), samples=16), name)
