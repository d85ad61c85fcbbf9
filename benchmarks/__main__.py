"""``python -m benchmarks``: measure all figures and write them into the README; with names, only print those."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import memory, planning, seed_graph
from benchmarks.machine import describe_machine

BENCHMARKS = {"planning": planning.measure, "seed_graph": seed_graph.measure, "memory": memory.measure}
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all if left out"
    )
    parser.add_argument("--runs", type=int, default=7, help="measurements of which the median is taken (7)")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(BENCHMARKS)}")
    parts = [describe_machine() + "."]
    for name in given.names or BENCHMARKS:
        parts.append(BENCHMARKS[name](given.runs).to_markdown())
        print(parts[-1], end="\n\n", flush=True)
    if not given.names:
        rewrite_figures("\n\n".join(parts))
        print(f"written into {README.name}")


def rewrite_figures(text: str) -> None:
    """Put ``text`` between the two marks in the README."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
