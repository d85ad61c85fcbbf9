"""Which text do the n-gram rollouts learn from, and how do sentences become tokens and back."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

TURN_BY_TURN: Final = frozenset({"conversations", "health", "sports"})
"""Topics where each line answers the line before; elsewhere every line answers the first one."""

NO_CONVERSATION: Final = frozenset({"coding", "trivia"})
"""Topics of source code and of quiz questions, whose answers an n-gram model can only mangle."""

END: Final = 0
"""The token that ends an answer."""

ANSWER: Final = 1
"""The token between a prompt and its answer; it is only read, never generated."""

_TOKEN: Final = re.compile(r"\w+(?:[.,:/'-]\w+)*|\.\.\.|[.,;:!?$+]")
_GLUED_LEFT: Final = frozenset({"...", ".", ",", ";", ":", "!", "?", "+"})
_ENDS_SENTENCE: Final = frozenset({"...", ".", "!", "?"})


@dataclass(frozen=True)
class Dialogue:
    """A prompt, one answer that the corpus gives to it, and whether the prompt opens a conversation."""

    prompt: str
    answer: str
    opens: bool


def demo_module(name: str) -> Any:
    """Import ``name``, a module of the optional extra ``demo``.

    Raises:
        ModuleNotFoundError: when it is not installed; the message is the command that installs it.
    """
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        mend = 'pip install "flowsched[demo]"'
        raise ModuleNotFoundError(f"the n-gram rollouts need the package {package}: {mend}", name=package)
    return importlib.import_module(name)


def read_dialogues() -> list[Dialogue]:
    """The distinct English dialogues of ``chatterbot-corpus``, in the order of its files.

    Raises:
        ModuleNotFoundError: when ``chatterbot-corpus`` is not installed.
    """
    (package,) = demo_module("chatterbot_corpus").__path__
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[tuple[str, str], Dialogue] = {}
    for file in sorted(Path(package, "data", "english").glob("*.yml")):
        if file.stem in NO_CONVERSATION:
            continue
        for lines in yaml.load(file.read_text(encoding="utf-8"), loader)["conversations"]:
            first, *rest = (" ".join(str(line).replace("’", "'").split()) for line in lines)
            prompts = [first, *rest] if file.stem in TURN_BY_TURN else [first] * len(rest)
            for place, (prompt, answer) in enumerate(zip(prompts, rest, strict=False)):
                found.setdefault((prompt, answer), Dialogue(prompt, answer, prompt == first or place == 0))
    return list(found.values())


def opening_lines(dialogues: Iterable[Dialogue]) -> list[str]:
    """The lines that open a conversation, each once whatever its case and final punctuation, in order."""
    distinct: dict[str, str] = {}
    for dialogue in dialogues:
        if dialogue.opens:
            distinct.setdefault(dialogue.prompt.lower().rstrip(" .!?"), dialogue.prompt)
    return list(distinct.values())


@dataclass(frozen=True)
class Vocabulary:
    """The words of some dialogues as tokens: ``forms[token]`` is how a word is written inside a sentence."""

    forms: tuple[str, ...]
    tokens: Mapping[str, int]

    @classmethod
    def of(cls, dialogues: Sequence[Dialogue]) -> Vocabulary:
        """The vocabulary of ``dialogues``: each word once, in the case it mostly has inside sentences."""
        cases: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for text in (text for dialogue in dialogues for text in (dialogue.prompt, dialogue.answer)):
            words = _TOKEN.findall(text)
            for before, word in zip([".", *words], words, strict=False):
                tells_case = before not in _ENDS_SENTENCE and not text.isupper()
                cases[word.lower()][word] += tells_case
        forms = ["<end>", "<answer>"]
        for low, seen in cases.items():
            usual = max(seen, key=lambda form: (seen[form], form))
            forms.append(usual if seen[usual] else low)
        return cls(tuple(forms), {form.lower(): token for token, form in enumerate(forms)})

    def __len__(self) -> int:
        return len(self.forms)

    def encode_prompt(self, text: str) -> list[int]:
        """Tokens of ``text`` as a prompt, then ``ANSWER``; unknown words and final punctuation are left out.

        An n-gram model sees only the last words before an answer: they should be words.
        """
        words = _lower_words(text)
        while len(words) > 1 and words[-1] in _ENDS_SENTENCE:
            words.pop()
        return [*self._known(words), ANSWER]

    def encode_answer(self, text: str) -> list[int]:
        """Tokens of ``text`` as a whole answer, then ``END``; a missing full stop is added."""
        words = _lower_words(text)
        if not words or words[-1] not in _ENDS_SENTENCE:
            words.append(".")
        return [*self._known(words), END]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text that ``tokens`` spell, with capitals and spaces where a reader expects them."""
        text, capital = "", True
        for word in (self.forms[token] for token in tokens if token not in (END, ANSWER)):
            space = "" if not text or word in _GLUED_LEFT or text.endswith("$") else " "
            text += space + (word[0].upper() + word[1:] if capital else word)
            capital = word in _ENDS_SENTENCE
        return text

    def _known(self, words: Iterable[str]) -> list[int]:
        return [self.tokens[word] for word in words if word in self.tokens]


def _lower_words(text: str) -> list[str]:
    return [word.lower() for word in _TOKEN.findall(text)]
