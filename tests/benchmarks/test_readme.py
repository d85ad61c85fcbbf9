"""A benchmark rewrites its own part of the README and leaves the rest as it is."""

from __future__ import annotations

from pathlib import Path

from benchmarks import __main__ as command
from benchmarks.figures import Figure, Section, at_least, at_most
from benchmarks.readme import replace_part


def test_only_the_part_of_the_name_is_replaced() -> None:
    text = "head\n<!-- a -->\nold a\n<!-- end of a -->\nmiddle\n<!-- b -->\nold b\n<!-- end of b -->\ntail\n"
    assert replace_part(text, "b", "new") == text.replace("old b", "new")
    assert replace_part(replace_part(text, "a", "x"), "a", "old a") == text


def test_a_part_that_is_not_there_yet_stands_at_the_end() -> None:
    text = replace_part("head\n", "c", "new")
    assert text == "head\n\n<!-- c -->\nnew\n<!-- end of c -->\n"
    assert replace_part(text, "c", "newer") == text.replace("new", "newer")


def test_the_readme_has_a_place_for_every_benchmark() -> None:
    text = Path(command.README).read_text()
    for name in command.BENCHMARKS:
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- end of {name} -->") == 1, name
        assert f"| `{name}` |" in text, name


def test_a_missed_target_is_told_as_missed() -> None:
    figures = [at_most("a", 1.3, 1.2, "x"), at_least("b", 0.99, 0.98), Figure("c", "3 ms")]
    lines = Section("title", "how", figures).to_markdown("a machine").splitlines()
    assert lines[-3:] == [
        "| a | 1.30 x | <= 1.2 x | **missed** |",
        "| b | 0.990 | >= 0.98 | holds |",
        "| c | 3 ms |  |  |",
    ]
