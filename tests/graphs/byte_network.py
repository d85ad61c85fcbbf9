"""A small random network that reads bytes, saved as SmolLM2 is: it writes gibberish by the same code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CHAT = "{% for turn in messages %}{{ turn.content }}\n{% endfor %}"


def save_byte_network(folder: Path, **shape: int) -> None:
    """Save the network and its tokenizer, or skip the test where packages are missing.

    Args:
        folder: where to.
        **shape: of transformers' ``LlamaConfig``, beside what is the same for all.
    """
    torch: Any = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")
    torch.manual_seed(0)
    tokenizer = byte_tokenizer(transformers)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_attention_heads=4,
        initializer_range=0.2,
        eos_token_id=tokenizer.eos_token_id,
        **shape,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def byte_tokenizer(transformers: Any) -> Any:
    tokenizers: Any = pytest.importorskip("tokenizers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.BPE({letter: token for token, letter in enumerate(letters)}, merges=[])
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    end = "<|im_end|>"
    tokenizer.add_special_tokens([end])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"$A {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    names = ["input_ids", "attention_mask"]
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, model_input_names=names
    )
    wrapped.chat_template = CHAT
    return wrapped
