"""Graphs, models and data are found by path, by module and by name."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from flowsched.address import load_data, load_job, load_object
from flowsched.errors import AddressError, GraphError

GRAPH = 'import flowsched as fs\ngraph = fs.Graph("g", ["x"], [fs.Node("a", ["x"])])\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> str:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(dedent(text))
    return name


def test_a_python_file_gives_its_graph_models_and_data() -> None:
    address = write("job.py", GRAPH + "models = {'a': len}\ndata = {'x': [1, 2]}\n")
    job = load_job(address)
    assert job.graph.name == "g"
    assert job.models == {"a": len}
    assert job.data == {"x": [1, 2]}
    assert job.address == "job.py"


def test_a_path_object_is_an_address_too(folder: Path) -> None:
    write("job.py", GRAPH)
    assert load_job(folder / "job.py").graph.name == "g"


def test_a_graph_under_another_name_is_addressed_by_it() -> None:
    write("jobs.py", GRAPH + "big = fs.Graph('big', ['x'], [fs.Node('a', ['x'], replicas=9)])\n")
    assert load_job("jobs.py:big").graph.name == "big"


def test_a_module_in_the_current_folder_is_addressed_by_name() -> None:
    write("addressed_package/__init__.py", "")
    write("addressed_package/inner.py", GRAPH)
    assert load_job("addressed_package.inner:graph").graph.name == "g"


def test_a_graph_file_has_neither_models_nor_data() -> None:
    job = load_job(write("g.yaml", "name: g\nsources: [x]\nnodes: [{name: a, inputs: [x]}]\n"))
    assert (job.graph.name, job.models, job.data) == ("g", None, None)


def test_models_and_data_are_read_only_when_asked_for() -> None:
    text = GRAPH + "def __getattr__(name):\n    if name == 'data':\n        raise OSError('no corpus')\n"
    job = load_job(write("job.py", text + "    raise AttributeError(name)\n"))
    assert job.models is None
    with pytest.raises(
        AddressError, match=r"reading 'data' of job.py failed with OSError: no corpus"
    ) as caught:
        _ = job.data
    assert isinstance(caught.value.__cause__, OSError)


def test_models_that_are_no_mapping_are_refused() -> None:
    job = load_job(write("job.py", GRAPH + "models = [len]\n"))
    with pytest.raises(AddressError, match=r"models beside job.py is a list"):
        _ = job.models


def test_a_file_imports_its_neighbours_as_a_script_does_and_leaves_the_path_alone() -> None:
    before = list(sys.path)
    write("jobs/neighbour_of_job.py", "size = 7\n")
    write("jobs/job.py", GRAPH + "import neighbour_of_job\nmodels = {'a': neighbour_of_job.size}\n")
    job = load_job("jobs/job.py")
    assert job.models == {"a": 7}
    assert sys.path == before


def test_models_may_import_neighbours_late_while_the_job_is_importable() -> None:
    write("jobs/late_neighbour.py", "size = 7\n")
    text = (
        GRAPH
        + "def late():\n    import late_neighbour\n    return late_neighbour.size\nmodels = {'a': late}\n"
    )
    job = load_job(write("jobs/job.py", text))
    assert job.models is not None
    with job.importable():
        assert job.models["a"]() == 7


def test_classes_of_a_file_can_be_pickled_and_hold_dataclasses() -> None:
    text = (
        GRAPH
        + "from dataclasses import dataclass\n@dataclass\nclass A:\n    size: int = 3\nmodels = {'a': A}\n"
    )
    job = load_job(write("job.py", text))
    assert job.models is not None
    assert pickle.loads(pickle.dumps(job.models["a"]())).size == 3


def test_two_files_of_one_name_are_two_modules() -> None:
    first = load_job(write("one/job.py", GRAPH + "models = {'a': 1}\n"))
    second = load_job(write("two/job.py", GRAPH + "models = {'a': 2}\n"))
    assert (first.models, second.models) == ({"a": 1}, {"a": 2})


def test_a_file_without_a_graph_says_which_graphs_it_has() -> None:
    write("job.py", GRAPH.replace("graph =", "ppo ="))
    with pytest.raises(
        AddressError, match=r"job.py has no 'graph'. Known graphs in it: ppo. Write job.py:ppo"
    ):
        load_job("job.py")
    with pytest.raises(AddressError, match="Did you mean 'ppo'"):
        load_job("job.py:pppo")


def test_something_else_called_graph_is_refused_with_its_type() -> None:
    with pytest.raises(AddressError, match="a dict, no Graph, called 'graph'"):
        load_job(write("job.py", "graph = {}\n"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [("1 / 0\n", ZeroDivisionError), ("def (\n", SyntaxError), ("import sys; sys.exit(3)\n", SystemExit)],
)
def test_a_file_that_fails_keeps_its_own_exception_as_cause(text: str, cause: type[BaseException]) -> None:
    modules = set(sys.modules)
    with pytest.raises(AddressError, match=r"importing job.py failed") as caught:
        load_job(write("job.py", text))
    assert isinstance(caught.value.__cause__, cause)
    assert not [name for name in set(sys.modules) - modules if "job" in name]


def test_a_missing_module_inside_a_file_is_the_file_s_fault() -> None:
    with pytest.raises(
        AddressError, match=r"importing job.py failed with ModuleNotFoundError: .*no_such_module"
    ):
        load_job(write("job.py", "import no_such_module\n"))


def test_a_graph_that_cannot_be_stays_a_graph_error_with_the_line_that_declares_it() -> None:
    text = 'import flowsched as fs\n\ngraph = fs.Graph("g", ["x"], [fs.Node("a", ["y"])])\n'
    with pytest.raises(GraphError, match="it names 'y'") as caught:
        load_job(write("job.py", text))
    assert caught.value.__notes__[0].endswith("job.py:3")


@pytest.mark.parametrize("address", ["graph", "", ":", "job:", "job:1x", "a b", "job.toml"])
def test_what_is_no_address_is_refused_with_the_forms(address: str) -> None:
    with pytest.raises(AddressError, match=r"is no address. Write path/graph.yaml, path/file.py"):
        load_job(address)


def test_a_missing_file_gets_the_closest_of_its_folder() -> None:
    write("jobs/rollout.py", GRAPH)
    with pytest.raises(AddressError, match=r"there is no file jobs/rolout.py. Did you mean jobs/rollout.py"):
        load_job("jobs/rolout.py")
    with pytest.raises(AddressError, match="There is no folder nowhere either"):
        load_job("nowhere/job.py")


def test_a_missing_module_is_named() -> None:
    with pytest.raises(AddressError, match="there is no module 'no_such_package'"):
        load_job("no_such_package.jobs:graph")


def test_objects_are_loaded_from_files_and_modules() -> None:
    write("things.py", "models = {'a': 1}\n")
    assert load_object("things.py:models", "models") == {"a": 1}
    assert load_object("math:pi", "models") > 3
    with pytest.raises(AddressError, match="Did you mean 'models'"):
        load_object("things.py:model", "models")


def test_a_file_named_alone_gives_what_stands_under_the_usual_name() -> None:
    write("things.py", "models = {'a': 1}\n")
    assert load_object("things.py", "models") == {"a": 1}
    message = r"things.py has no 'data'. .*Write things.py:name for what stands under another name"
    with pytest.raises(AddressError, match=message):
        load_object("things.py", "data")


def test_data_in_json_is_an_object_by_source() -> None:
    address = write("data.json", '{"x": [1, 2], "y": {"text": ["a", "b"]}}')
    assert load_data(address, ["x", "y"]) == {"x": [1, 2], "y": {"text": ["a", "b"]}}


def test_rows_in_jsonl_become_columns_of_the_single_source() -> None:
    address = write("data.jsonl", '{"text": "a", "n": 1}\n\n{"n": 2, "text": "b\\u2028"}\n')
    assert load_data(address, ["x"]) == {"x": {"text": ["a", "b\u2028"], "n": [1, 2]}}


def test_rows_that_are_no_objects_become_a_list() -> None:
    assert load_data(write("data.jsonl", '"a"\n"b"\n'), ["x"]) == {"x": ["a", "b"]}


def test_data_in_python_is_a_dict_by_source() -> None:
    write("things.py", "data = {'x': [1]}\nwrong = 3\n")
    assert load_data("things.py:data", ["x"]) == load_data("things.py", ["x"]) == {"x": [1]}
    with pytest.raises(
        AddressError,
        match=r"things.py:wrong holds a value of type int. Give an object by source, {x: \[...\]}",
    ):
        load_data("things.py:wrong", ["x"])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("d.json", "[1]", "holds a value of type list"),
        ("d.json", '{"x": [1,\n 2', "d.json:2:3"),
        ("d.json", "[" * 100_000, "d.json:1"),
        ("d.jsonl", '{"a": 1}\n{"b": 1}\n', "d.jsonl:2: the row has the keys b, line 1 has a"),
        ("d.jsonl", '{"a": 1}\n3\n', "d.jsonl:2: the row has a value of type int"),
        ("d.jsonl", '{"a": 1}\n{"a": \n', "d.jsonl:2:7"),
        ("d.csv", "a,b", "is no address of data"),
    ],
)
def test_data_that_is_none_is_refused_at_its_line(name: str, text: str, said: str) -> None:
    with pytest.raises(AddressError, match=said):
        load_data(write(name, text), ["x"])


def test_rows_in_jsonl_are_refused_for_several_sources() -> None:
    with pytest.raises(AddressError, match="the graph has 2: x, y"):
        load_data(write("d.jsonl", "1\n"), ["x", "y"])


def test_missing_and_undecodable_data_is_refused() -> None:
    with pytest.raises(AddressError, match=r"missing.json: no such file"):
        load_data("missing.json", ["x"])
    Path("d.json").write_bytes(b'{"x": ["\xff"]}')
    with pytest.raises(AddressError, match="byte 8 is not UTF-8"):
        load_data("d.json", ["x"])


@pytest.mark.parametrize("address", [".x:y", "..x:y", ".:y", "./x:y"])
def test_an_address_relative_to_no_package_is_no_address(address: str) -> None:
    with pytest.raises(AddressError, match=r"is no address. Write path") as caught:
        load_job(address)
    assert caught.value.__cause__ is None  # no module of the user's is at fault
