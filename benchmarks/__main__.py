"""``python -m benchmarks NAME``: measure these figures and write them into the README; without a name, all."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.readme import replace_part

BENCHMARKS = {
    "planning": "benchmarks.planning",
    "seed_graph": "benchmarks.seed_graph",
    "memory": "benchmarks.memory",
    "ray": "benchmarks.on_ray",
    "torch": "benchmarks.on_torch",
    "gloo_data": "benchmarks.gloo_data",
    "peers": "benchmarks.peers.compare",
    "growth": "benchmarks.growth",
    "sharding": "benchmarks.sharding",
}
"""Modules whose ``measure`` returns a section, by name; each is imported when it is asked for."""
README = Path(__file__).with_name("README.md")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}; all if left out"
    )
    parser.add_argument("--runs", type=int, default=7, help="measurements of which the median is taken (7)")
    parser.add_argument("--print", action="store_true", help="leave the README as it is")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(BENCHMARKS)}")
    for name in given.names or BENCHMARKS:
        machine = describe_machine()
        section = import_module(BENCHMARKS[name]).measure(given.runs).to_markdown(machine)
        print(section, end="\n\n", flush=True)
        if not given.print:
            README.write_text(replace_part(README.read_text(), name, section))
            print(f"written into {README.name}", end="\n\n")


if __name__ == "__main__":
    main()
