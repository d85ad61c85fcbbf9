"""The plans that the tests of inspecting look into."""

from __future__ import annotations

import flowsched as fs


def seed_graph() -> fs.Graph:
    """Two policy replicas with batches of 4, and eight replicas of each later node with batches of 2."""
    return fs.Graph(
        "ppo",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
            fs.Node("reference", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("value", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("reward", inputs=["policy", "reference"], replicas=8, batch_size=2),
        ],
    )


def grpo_graph() -> fs.Graph:
    """Four answers a prompt, scored in calls that cut groups, and brought together again in whole groups."""
    return fs.Graph(
        "grpo",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=4, batch_size=2, expand=4),
            fs.Node("logprob", inputs=["policy"], replicas_of="policy", method="logprob", batch_size=6),
            fs.Node("reward", inputs=["policy", "prompts"], replicas=3, batch_size=5),
            fs.Node("advantage", inputs=["reward"], replicas=2, batch_size=10, group=4),
            fs.Node("best", inputs=["reward", "policy"], replicas=9, collapse=4),
            fs.Node("loss", inputs=["logprob", "advantage", "best"], replicas_of="policy", after=["reward"]),
        ],
    )


def wide_graph() -> fs.Graph:
    """Twelve nodes with many inputs, and calls of all sizes."""
    return fs.Graph(
        "wide",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=64, batch_size=64),
            fs.Node("reference", inputs=["policy"], replicas=100, batch_size=128),
            fs.Node("value", inputs=["policy"], replicas=7),
            fs.Node("collect", inputs=["policy", "value"]),
            *(
                fs.Node(
                    f"score_{i}",
                    inputs=["policy", "reference", "value", "collect", "prompts"],
                    replicas=2**i,
                    batch_size=i + 1,
                )
                for i in range(8)
            ),
        ],
    )


def seed_plan() -> fs.Plan:
    """The seed's case: 16 samples, nobody idle."""
    return fs.compile(seed_graph(), samples=16)


def grpo_plan() -> fs.Plan:
    """Five prompts and 20 answers."""
    return fs.compile(grpo_graph(), samples=5)
