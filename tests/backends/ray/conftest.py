"""Ray on this machine, of one node or of three, started once for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ray: Any = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and two more nodes, told apart by their resources; this process is connected to it."""
    from ray.cluster_utils import Cluster

    make: Any = Cluster  # which Ray leaves partly untyped
    nodes = make(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "resources": {"left": 4}, "include_dashboard": False},
    )
    nodes.add_node(num_cpus=2, num_gpus=2, resources={"middle": 4})
    nodes.add_node(num_cpus=2, resources={"right": 4})
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def one_machine() -> Iterator[None]:
    """An instance of one node, to which this process is connected."""
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture
def node_ids(cluster: Any) -> dict[str, str]:
    """Ids of the cluster's nodes, by the resource that only they have."""
    assert cluster
    alive = [node for node in ray.nodes() if node["Alive"]]
    return {
        name: node["NodeID"]
        for node in alive
        for name in ("left", "middle", "right")
        if name in node["Resources"]
    }
