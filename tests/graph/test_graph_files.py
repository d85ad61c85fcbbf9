"""Graph files are the same thing as the declaration in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsched.errors import GraphError
from flowsched.graph import Graph, Node
from flowsched.graph.files import load_graph, save_graph
from flowsched.graph.from_document import graph_from_dict

PPO = Graph(
    "ppo",
    sources=["prompts"],
    nodes=[
        Node("policy", inputs=["prompts"], replicas=2, batch_size=4, expand=4),
        Node("logprob", inputs=["policy"], replicas_of="policy", method="logprob", after=["reward"]),
        Node("reward", inputs=["policy"], replicas=8, batch_size=12, group=4),
        Node("mean", inputs=["reward"], collapse=4),
    ],
    outputs=["logprob", "mean"],
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file into the current folder and return its bare name."""
    monkeypatch.chdir(tmp_path)

    def write_text(text: str | bytes, name: str = "ppo.yaml") -> Path:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return Path(name)

    return write_text


def problems_of(path: Path) -> list[tuple[str, str]]:
    """Return the code and the place (as far as the column) of every problem of a file."""
    with pytest.raises(GraphError) as caught:
        load_graph(path)
    return [
        (problem.code, problem.place.partition(": ")[0].removeprefix(f"{path}:"))
        for problem in caught.value.problems
    ]


def message_of(path: Path) -> str:
    with pytest.raises(GraphError) as caught:
        load_graph(path)
    return str(caught.value)


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_a_saved_graph_loads_as_the_same_graph(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"ppo{suffix}"
    save_graph(PPO, path)
    assert load_graph(path) == PPO


def test_a_saved_graph_has_one_row_a_node_with_its_fields_in_columns(tmp_path: Path) -> None:
    save_graph(PPO, tmp_path / "ppo.yaml")
    lines = (tmp_path / "ppo.yaml").read_text().splitlines()
    rows = [line for line in lines if line.startswith("  - ")]
    assert len(rows) == len(PPO)
    assert len({row.index("inputs:") for row in rows}) == 1
    assert len({row.index("replicas:") for row in rows if "replicas:" in row}) == 1


_NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_-]{0,8}\Z") | st.sampled_from(
    ["no", "on", "null", "true", "Yes", "y", "e1", "_", "NaN", "None", "off"]
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = draw(st.lists(_NAMES, min_size=2, max_size=7, unique=True))
    source, *rest = names
    count = st.integers(1, 2**31 - 1)
    nodes = [
        Node(
            name,
            inputs=draw(st.lists(st.sampled_from(names[: at + 1]), min_size=1, max_size=3, unique=True)),
            replicas=draw(count),
            batch_size=draw(st.none() | count),
            method=draw(st.none() | _NAMES),
            expand=draw(count),
        )
        for at, name in enumerate(rest)
    ]
    return Graph(draw(_NAMES), [source], nodes, outputs=draw(st.none() | st.just(rest) | st.just(rest[-1:])))


@given(graph=graphs())
@settings(max_examples=60, deadline=None)
def test_any_graph_is_the_same_in_python_yaml_and_json(
    tmp_path_factory: pytest.TempPathFactory, graph: Graph
) -> None:
    folder = tmp_path_factory.mktemp("graphs")
    for name in ("g.yaml", "g.json"):
        save_graph(graph, folder / name)
        assert load_graph(folder / name) == graph
    assert graph_from_dict(graph.to_dict(), "here") == graph


def test_fields_at_their_defaults_and_outputs_may_be_left_out(write: Write) -> None:
    text = "name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [x]}\n- {name: b, inputs: [a]}\n"
    assert load_graph(write(text)) == Graph("g", ["x"], [Node("a", ["x"]), Node("b", ["a"])])


def test_the_address_of_the_schema_may_stand_in_a_file(write: Write) -> None:
    text = '{"$schema": "x.json", "name": "g", "sources": ["x"], "nodes": [{"name": "a", "inputs": ["x"]}]}'
    assert load_graph(write(text, "g.json")).name == "g"


def test_anchors_aliases_and_merges_are_followed(write: Write) -> None:
    text = """\
name: g
sources: [x]
nodes:
  - &a {name: a, inputs: &reads [x], replicas: 4, batch_size: 2}
  - {<<: *a, name: b, replicas: 3}
  - {name: c, inputs: *reads}
"""
    expected = Graph(
        "g",
        ["x"],
        [
            Node("a", ["x"], replicas=4, batch_size=2),
            Node("b", ["x"], replicas=3, batch_size=2),
            Node("c", ["x"]),
        ],
    )
    assert load_graph(write(text)) == expected


def test_all_problems_come_at_once_in_the_order_of_the_file(write: Write) -> None:
    text = """\
name: ppo
sources: [prompts]
nodes:
  - name: policy
    inputs: [prompt]
    replcas: 2
  - {name: value, inputs: [policy], after: [polcy]}
  - {name: value, inputs: [policy, prompts], batch_size: 2, collapse: 4}
outputs:
  - valu
"""
    assert problems_of(write(text)) == [
        ("unknown-name", "5:14"),
        ("unknown-key", "6:5"),
        ("unknown-name", "7:45"),
        ("duplicate-name", "8:12"),
        ("group", "8:58"),
        ("unknown-name", "10:5"),
    ]


def test_wrong_types_are_found_at_their_values_in_yaml_and_json(write: Write) -> None:
    yaml = write("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: x, replicas: true, batch_size: 1.5}\n")
    json = write(
        '{"name": "g", "sources": ["x"],\n "nodes": [\n'
        '\t{"name": "\\u0061", "inputs": "x", "replicas": true, "batch_size": 1.5}]}',
        "g.json",
    )
    assert problems_of(yaml) == [("wrong-type", "4:21"), ("wrong-type", "4:34"), ("wrong-type", "4:52")]
    assert problems_of(json) == [("wrong-type", "3:31"), ("wrong-type", "3:48"), ("wrong-type", "3:68")]


def test_sizes_below_one_are_refused_with_the_number(write: Write) -> None:
    path = write("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [x], replicas: 0, batch_size: -3}\n")
    assert problems_of(path) == [("too-small", "4:36"), ("too-small", "4:51")]
    assert "batch_size is -3" in message_of(path)


def test_an_unknown_key_gets_the_closest_and_all_known_keys(write: Write) -> None:
    path = write("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [x], replcas: 2}\n")
    assert problems_of(path) == [("unknown-key", "4:26")]
    assert "node 'a' has no key 'replcas'. Did you mean 'replicas'? Known keys: name, inputs" in message_of(
        path
    )


def test_a_misspelt_key_is_reported_once_and_not_as_missing_too(write: Write) -> None:
    path = write("name: g\nsource: [x]\nnodes:\n- {nam: a, inputs: [x]}\n- {name: b, input: [x]}\n")
    assert problems_of(path) == [("unknown-key", "2:1"), ("unknown-key", "4:4"), ("unknown-key", "5:13")]


def test_missing_keys_are_found_at_what_lacks_them(write: Write) -> None:
    assert problems_of(write("nodes:\n- {inputs: [x]}\n")) == [
        ("missing-key", "1:1"),
        ("missing-key", "1:1"),
        ("missing-key", "2:3"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("g.yaml", "name: g\nname: h\nsources: [x]\nnodes: [{name: a, inputs: [x]}]\n", "2:1"),
        ("g.yaml", "name: g\nsources: [x]\nnodes: [{name: a, inputs: [x], inputs: [x]}]\n", "3:32"),
        (
            "g.json",
            '{"name": "g", "nodes": [{"name": "a", "inputs": ["x"]}],\n"sources": ["x"],"name": "g"}',
            "2:18",
        ),
        (
            "g.json",
            '{"name": "g", "sources": ["x"], "nodes":[{"name":"a", "na\\u006de": "a", "inputs": ["x"]}]}',
            "1:55",
        ),
    ],
)
def test_a_key_that_is_written_twice_is_refused(write: Write, name: str, text: str, place: str) -> None:
    assert problems_of(write(text, name)) == [("duplicate-key", place)]


def test_a_cycle_is_found_at_one_of_its_nodes(write: Write) -> None:
    path = write("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [b]}\n- {name: b, inputs: [a]}\n")
    assert problems_of(path) == [("cycle", "4:3")]
    assert "a -> b -> a" in message_of(path)


@pytest.mark.parametrize("word", ["no", "on", "yes", "null", "true"])
def test_a_name_that_yaml_reads_as_something_else_must_be_quoted(write: Write, word: str) -> None:
    text = f"name: g\nsources: [x]\nnodes:\n- {{name: {word}, inputs: [x]}}\n"
    assert f"ppo.yaml:4:10: nodes[0], name: YAML reads {word} as" in message_of(write(text))
    assert f'Put it in quotes, "{word}"' in message_of(write(text))
    assert load_graph(write(text.replace(f" {word},", f' "{word}",'))).nodes[0].name == word


@pytest.mark.parametrize("number", ["010", "1_0", "0x10", "1:30"])
def test_numbers_that_yaml_readers_disagree_about_are_refused(write: Write, number: str) -> None:
    path = write(f"name: g\nsources: [x]\nnodes:\n- {{name: a, inputs: [x], replicas: {number}}}\n")
    assert problems_of(path) == [("ambiguous-number", "4:36")]


@pytest.mark.parametrize(
    "value", ["!!python/name:os.system", "!own 3", "!!binary aGk=", "!!int ten", "2024-99-99"]
)
def test_tags_and_unreadable_values_are_refused(write: Write, value: str) -> None:
    path = write(f"name: g\nsources: [x]\nnodes:\n- {{name: a, inputs: [x], replicas: {value} }}\n")
    assert [place for _, place in problems_of(path)] == ["4:36"]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("g.yaml", "", "1:1"),
        ("g.yaml", "# nothing\n", "1:1"),
        ("g.yaml", "name: g\nnodes: [a, b\n", "2:8"),
        ("g.yaml", "name: g\n\tsources: [x]\n", "2:1"),
        ("g.yaml", "name: g\nsources: [x, *y]\n", "2:14"),
        ("g.yaml", "name: g\n---\nname: h\n", "2:1"),
        ("g.yaml", "name: \u0007\n", "1:7"),
        ("g.json", "", "1:1"),
        ("g.json", " \n", "1:1"),
        ("g.json", '{"name": "g",\n "nodes": }', "2:11"),
        ("g.json", '{"name": "g"} {}', "1:15"),
        ("g.json", '{"name":\n NaN}', "2:2"),
        ("g.json", '{"name": [' + "1" * 5000 + "]}", "1:11"),
        ("g.json", "name: g", "1:1"),
        ("g.yaml", b"name: g\nsources: [caf\xe9]\n", "2:14"),
        ("g.json", b'{"name": "\xff"}', "1:11"),
    ],
)
def test_text_that_cannot_be_read_is_refused_at_its_place(
    write: Write, name: str, text: str | bytes, place: str
) -> None:
    assert problems_of(write(text, name)) == [("syntax", place)]


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("name: g\n\tsources: [x]\n", "2:1", "a tab stands where YAML takes only spaces. Write spaces"),
        ("name: é\nnodes:\n\t- {name: a}\n", "3:1", "a tab stands where YAML takes only spaces"),
        ("nodes:\n- name: a\n\tinputs: [x]\n", "3:1", "a tab stands where YAML takes only spaces"),
        (
            "nodes:\n  - {name: a, inputs: [x]\n  - {name: b, inputs: [a]}\n",
            "2:5",
            "the { that stands here is not closed: its } or a comma is missing before 3:3. Close it with }",
        ),
        ("sources: [x\nnodes:\n- {name: a}\n", "1:10", "the [ that stands here is not closed"),
        ("nodes: [a,\n", "1:8", "the [ that stands here is not closed. Close it with ]"),
        ("nodes: [{a: [b], c:\n", "1:9", "the { that stands here is not closed"),
        ("nodes: [", "1:8", "the [ that stands here is not closed"),
        ("nodes:\n  - {name: a, inputs: [x}\n", "2:25", "} closes the [ at 2:23. Close it with ]"),
        ("nodes:\n  - {name: a inputs: [x]}\n", "2:20", "a comma or the } of the { at 2:5 is missing"),
        ("name: 'g\nsources: [x]\n", "1:7", "the ' that stands here is not closed. Close it with '"),
    ],
)
def test_mistakes_in_yaml_are_named_where_they_are_to_be_mended(
    write: Write, monkeypatch: pytest.MonkeyPatch, loader: str, text: str, place: str, said: str
) -> None:
    monkeypatch.setattr("flowsched.graph.yaml_document._LOADER", getattr(yaml, loader))
    assert f"ppo.yaml:{place}: {said}" in message_of(write(text))


@pytest.mark.parametrize("text", ["[a, b]", "just words", "3", "null"])
def test_a_file_that_holds_no_mapping_is_refused(write: Write, text: str) -> None:
    assert problems_of(write(text, "g.yaml")) == [("wrong-type", "1:1")]


@pytest.mark.parametrize("name", ["g.yaml", "g.json"])
@pytest.mark.parametrize("levels", [100, 100_000])
def test_deep_nesting_is_an_error_and_not_a_crash(write: Write, name: str, levels: int) -> None:
    with pytest.raises(GraphError):
        load_graph(write('{"name": ' + "[" * levels, name))


@pytest.mark.parametrize("text", ["&a [*a]", "&a {name: *a}", "&a {<<: *a}", "&a {name: g, nodes: *a}"])
def test_an_alias_inside_of_what_it_stands_for_is_an_error(write: Write, text: str) -> None:
    with pytest.raises(GraphError):
        load_graph(write(text))


def test_aliases_that_expand_without_end_are_refused(write: Write) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    assert [code for code, _ in problems_of(write("\n".join(lines)))] == ["too-large"]


def test_merges_that_expand_without_end_are_read_in_passing(write: Write) -> None:
    lines = ["name: g", "sources: [x]", "nodes:", "- &n0 {name: a, inputs: [x]}"]
    lines += [f"- &n{i} {{<<: [{', '.join([f'*n{i - 1}'] * 10)}], name: b{i}}}" for i in range(1, 20)]
    assert len(load_graph(write("\n".join(lines)))) == 20


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(write: Write) -> None:
    text = "\ufeffname: g\r\nsources: [x]\r\nnodes:\r\n- {name: a, inputs: [y]}\r\n"
    assert problems_of(write(text)) == [("unknown-name", "4:22")]


@pytest.mark.parametrize("name", ["missing.yaml", "folder.yaml", "graph.toml", "graph"])
def test_a_path_that_is_no_graph_file_is_refused_with_its_name(write: Write, name: str) -> None:
    Path("folder.yaml").mkdir()
    write("name: g\n", "graph.toml")
    with pytest.raises(GraphError, match=f"graph file '{name}'"):
        load_graph(name)


def test_saving_where_no_file_can_be_is_a_graph_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="cannot-write"):
        save_graph(PPO, tmp_path / "missing" / "g.yaml")
    with pytest.raises(GraphError, match="unknown-suffix"):
        save_graph(PPO, tmp_path / "g.toml")


def test_plain_data_is_refused_under_the_names_that_its_values_were_given() -> None:
    data = PPO.to_dict()
    data["nodes"][0]["replicas"] = 0
    with pytest.raises(GraphError) as caught:
        graph_from_dict(data, "ppo.py", {("nodes", 0, "replicas"): "--set nodes.policy.replicas=0"})
    (problem,) = caught.value.problems
    assert problem.place == "--set nodes.policy.replicas=0: node 'policy', replicas"


_WORDS = r"""name nodes sources : - [ ] { } , " ' &a *a <<: !!int !!map !!bool !x ? | > --- ... # no ~ 1e9 0o7
1:30 2020-01-01 .nan .inf \ud83d \x"""
_FRAGMENTS = st.sampled_from(["  ", "\n", "\t", "\r", "\u2028", "\x85", "%YAML 1.2\n", *_WORDS.split()])


@given(
    parts=st.lists(_FRAGMENTS | st.text(max_size=2), max_size=25), suffix=st.sampled_from([".yaml", ".json"])
)
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_graph_or_a_graph_error(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], suffix: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes("".join(parts).encode(errors="surrogatepass"))
    places = [str(path)]
    try:
        load_graph(path)
    except GraphError as error:
        places = [problem.place for problem in error.problems]
    assert places
    assert all(place.startswith(str(path)) for place in places)


@pytest.mark.parametrize(
    "text", ["a: [1", "a: \x07", "name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [y]}\n"]
)
def test_files_read_the_same_where_libyaml_is_missing(
    write: Write, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = write(text)
    fast = problems_of(path)
    monkeypatch.setattr("flowsched.graph.yaml_document._LOADER", yaml.SafeLoader)
    assert [code for code, _ in problems_of(path)] == [code for code, _ in fast]
