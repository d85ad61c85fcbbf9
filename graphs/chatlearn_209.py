"""ChatLearn issue 209 as it should come out: eight replicas are fed by batches of four, and all of them work.

    queries ─ policy ─┬─ reference ─┐
                      ├─ value      │
                      └─────────────┴─ reward

The models are those of the report. 16 samples a step go through two policy replicas in batches of 4; the eight
replicas of each other model take 2 at a time. The report's program left four of the eight idle, because it did not
divide the batches of 4; its test expects that the last replica of ``reference`` works in both of its two episodes.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import flowsched as fs

if TYPE_CHECKING:
    import torch

Batch: TypeAlias = Mapping[str, Any]

SAMPLES: Final = 16
STEPS: Final = 2
WIDTH: Final = 1024
INSTALL: Final = 'pip install "flowsched[torch]"'

graph = fs.Graph(
    "chatlearn_209",
    sources=["queries"],
    nodes=[
        fs.Node("policy", inputs=["queries"], replicas=2, batch_size=4),
        fs.Node("reference", inputs=["policy"], replicas=8, batch_size=2),
        fs.Node("value", inputs=["policy"], replicas=8, batch_size=2),
        fs.Node("reward", inputs=["policy", "reference"], replicas=8, batch_size=2),
    ],
    outputs=["policy", "reference", "value", "reward"],
)


class Counted:
    """A replica that counts what it consumes. Its rows say so: columns replica and consumed, shape (rows,)."""

    def __init__(self, context: fs.ReplicaContext) -> None:
        self._replica = context.replica
        self._consumed = 0

    def count(self, query: torch.Tensor) -> dict[str, Any]:
        """The columns that every model returns: the queries themselves, and who has consumed how many by now."""
        rows = len(query)
        self._consumed += rows
        return {"query": query, "replica": [self._replica] * rows, "consumed": [self._consumed] * rows}


class Policy(Counted):
    """Answers every query with ones."""

    def __call__(self, queries: Batch) -> Batch:
        """From column query, shape (rows, 1024), to policy_out, the same shape."""
        query = queries["query"]
        return self.count(query) | {"policy_out": query.new_ones(len(query), WIDTH)}


class Reference(Counted):
    """Doubles."""

    def __call__(self, policy: Batch) -> Batch:
        """From column policy_out, shape (rows, 1024), to ref_out, the same shape."""
        return self.count(policy["query"]) | {"ref_out": policy["policy_out"] * 2}


class Value(Counted):
    """Triples."""

    def __call__(self, policy: Batch) -> Batch:
        """From column policy_out, shape (rows, 1024), to value_out, the same shape."""
        return self.count(policy["query"]) | {"value_out": policy["policy_out"] * 3}


class Reward(Counted):
    """Adds."""

    def __call__(self, policy: Batch, reference: Batch) -> Batch:
        """From columns policy_out and ref_out, shape (rows, 1024), to reward_out, the same shape."""
        return self.count(policy["query"]) | {"reward_out": reference["ref_out"] + policy["policy_out"]}


models = {"policy": Policy, "reference": Reference, "value": Value, "reward": Reward}


def queries_of(step: int) -> dict[str, Any]:
    """The source of the graph in ``step``: row i of column query, shape (16, 1024), is full of i + 16 * step.

    Raises:
        ModuleNotFoundError: when torch is not installed; the message is the command that installs it.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError(f"the models of ChatLearn issue 209 need torch: {INSTALL}", name="torch")
    import torch

    first = torch.arange(step * SAMPLES, (step + 1) * SAMPLES, dtype=torch.float32)
    return {"queries": {"query": first[:, None].repeat(1, WIDTH)}}


def __getattr__(name: str) -> Any:
    # Only running needs torch; planning and explaining this file do without.
    if name == "data":
        return queries_of(0)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_steps(backend: str = "threads") -> list[Mapping[str, Any]]:
    """The outputs of two steps on the same replicas.

    Raises:
        ModuleNotFoundError: when torch is not installed.
    """
    sources = [queries_of(step) for step in range(STEPS)]
    with fs.start(graph, models, backend=backend) as session:
        return [session.run(source) for source in sources]


@dataclass(frozen=True)
class Work:
    """What the replicas of one node did.

    Attributes:
        node: the node.
        worked: for each step, the replicas that made some of its rows.
        last: samples that the node's last replica has consumed in all steps.
        total: samples that all its replicas together have consumed.
    """

    node: fs.Node
    worked: tuple[frozenset[int], ...]
    last: int
    total: int

    @property
    def idle(self) -> int:
        """How many times a replica had nothing to do in a step."""
        return sum(self.node.replicas - len(replicas) for replicas in self.worked)


def work_of(node: fs.Node, steps: Sequence[Mapping[str, Any]]) -> Work:
    """What the rows that ``node`` made in ``steps`` say about its replicas."""
    made = [out[node.name] for out in steps]
    consumed: dict[int, int] = {}
    for batch in made:
        for replica, count in zip(batch["replica"], batch["consumed"], strict=True):
            consumed[replica] = max(count, consumed.get(replica, 0))
    worked = tuple(frozenset(batch["replica"]) for batch in made)
    return Work(node, worked, consumed.get(node.replicas - 1, 0), sum(consumed.values()))


def table(works: Sequence[Work]) -> str:
    """One line a node: replicas that worked in each step, samples consumed."""
    heads = "".join(f"  step {step}" for step in range(STEPS))
    lines = [f"  node       replicas{heads}  consumed by the last  by all"]
    for work in works:
        cells = "".join(f"{len(replicas):>8}" for replicas in work.worked)
        lines.append(f"  {work.node.name:9}{work.node.replicas:>10}{cells}{work.last:>22}{work.total:>8}")
    return "\n".join(lines)


def checks(works: Sequence[Work], steps: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """What the report expects, as sentences, and whether it is so."""
    reference = next(work for work in works if work.node.name == "reference")
    last = reference.node.replicas - 1
    in_order = all(
        out[name]["query"][:, 0].tolist() == [i + SAMPLES * step for i in range(SAMPLES)]
        for step, out in enumerate(steps)
        for name in graph.outputs
    )
    threes = all(
        bool((column == 3).all()) and tuple(column.shape) == (SAMPLES, WIDTH)
        for out in steps
        for column in (out["reward"]["reward_out"], out["value"]["value_out"])
    )
    return {
        f"replica {last} of reference, its last, worked in both steps": all(
            last in worked for worked in reference.worked
        ),
        f"reference consumed {SAMPLES * STEPS} samples": reference.total == SAMPLES * STEPS,
        "no replica of any model was idle in any step": not any(work.idle for work in works),
        f"sample i of step e came back in place i: its query begins with i + {SAMPLES} e": in_order,
        "reward is 1 + 2 and value 3 * 1 everywhere": threes,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the routing, run two steps, print who worked; exit with 1 where the report's expectation fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", default="threads", help="what the replicas run on")
    options = parser.parse_args(argv)
    print(fs.compile(graph, samples=SAMPLES), end="\n\n")
    try:
        steps = run_steps(options.backend)
    except ModuleNotFoundError as error:
        parser.exit(1, f"{error}\n")
    works = [work_of(node, steps) for node in graph]
    print(table(works), end="\n\n")
    found = checks(works, steps)
    for sentence, holds in found.items():
        print(f"  {'yes' if holds else 'NO ':3}  {sentence}")
    if not all(found.values()):
        parser.exit(1)


if __name__ == "__main__":
    main()
