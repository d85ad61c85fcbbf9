"""Plans that several tests of programs look at."""

from __future__ import annotations

import flowsched as fs
from tests.inspect.plans import seed_graph

SEED = seed_graph()
PAIR = fs.Graph(
    "pair",
    sources=["x"],
    nodes=[fs.Node("a", inputs=["x"], replicas=2), fs.Node("b", inputs=["a"], replicas=2, batch_size=2)],
)
AFTER = fs.Graph(
    "after",
    sources=["x"],
    nodes=[
        fs.Node("train", inputs=["x"], replicas=2, batch_size=1),
        fs.Node("sync", inputs=["x"], after=["train"], replicas=2, batch_size=1),
    ],
)


def seed_plan() -> fs.Plan:
    """Return the plan of 16 samples: 4 calls of policy, 8 of each of the others."""
    return fs.compile(SEED, 16)
