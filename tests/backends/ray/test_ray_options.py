"""Options are checked before anything starts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from flowsched_ray import RayBackend
from flowsched_ray.options import Options

import flowsched as fs
from flowsched.errors import BackendError

GRAPH = fs.Graph("two", ["x"], [fs.Node("policy", ["x"], replicas=2), fs.Node("reward", ["policy"])])
MODELS = {"policy": np.copy, "reward": np.copy}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_cpus": -1}, "num_cpus is -1 (int). Give a number, 0 or more"),
        ({"num_cpus": {"policy": "all"}}, "num_cpus['policy'] is 'all' (str)"),
        ({"num_gpus": 1.5}, "num_gpus is 1.5. Ray takes a fraction of one GPU, or whole ones"),
        ({"num_gpus": 0.00001}, "Ray counts in steps of 0.0001"),
        ({"num_gpus": float("nan")}, "num_gpus is nan"),
        ({"resources": {"GPU": 1}}, "resources names 'GPU'. Give it as num_gpus="),
        ({"resources": {"policy": {"disk": -1}}}, "resources['policy']['disk'] is -1"),
        ({"resources": 3}, "resources is 3. Give amounts by name"),
        ({"placement": "SPRAED"}, "placement is 'SPRAED'. Did you mean 'SPREAD'?"),
        ({"placement": {"policy": "PAKC"}}, "placement['policy'] is 'PAKC'. Did you mean 'PACK'?"),
        ({"colocate": ["policy", "reward"]}, "colocate holds 'policy'. Give lists of nodes"),
        ({"colocate": [["policy"]]}, "Give at least two nodes to be placed together"),
        ({"colocate": [["policy", "reward"], ["policy", "x"]]}, "colocate names 'policy' twice"),
        ({"max_restarts": -2}, "max_restarts is -2. Give a whole number, -1 for without end"),
        ({"max_task_retries": {"policy": 0.5}}, "max_task_retries['policy'] is 0.5"),
        ({"runtime_env": "env"}, "runtime_env is 'env'. Give a dict"),
        ({"max_bytes": 0}, "max_bytes is 0 (int). Give bytes, 1 or more"),
        ({"start_timeout": "soon"}, "start_timeout is 'soon' (str). Give seconds, 0 or more"),
        ({"grace": -1.0}, "grace is -1.0 (float). Give seconds, 0 or more"),
        ({"compiled": "yes"}, "compiled is 'yes' (str). Give True or False"),
        ({"task_events": 1}, "task_events is 1 (int). Give True or False"),
        ({"address": 6379}, "address is 6379. Give that of a Ray cluster"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_would_do(options: Any, said: str) -> None:
    with pytest.raises(BackendError) as caught:
        RayBackend(**options)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"num_cpus": {"polcy": 1}},
        {"num_gpus": {"polcy": 0.5}},
        {"resources": {"polcy": {"disk": 1}}},
        {"max_restarts": {"polcy": 1}},
        {"placement": {"polcy": "SPREAD"}},
        {"colocate": [["polcy", "reward"]]},
    ],
)
def test_a_node_that_is_not_there_is_refused_before_ray_starts(options: Any) -> None:
    with pytest.raises(BackendError) as caught:
        fs.start(GRAPH, MODELS, backend="ray", **options)
    assert "names 'polcy', which has no replicas of its own. Did you mean 'policy'?" in str(caught.value)


def test_one_value_is_for_all_nodes_and_a_mapping_for_those_that_it_names() -> None:
    options = Options(
        num_cpus=0.5,
        num_gpus={"policy": 0.25},
        resources={"reward": {"disk": 1}},
        max_restarts={"policy": -1},
        runtime_env={"env_vars": {"A": "1"}},
    )
    policy, reward = (options.of(node, ["policy", "reward"]) for node in ("policy", "reward"))
    assert policy.demand == {"CPU": 0.5, "GPU": 0.25}
    assert reward.demand == {"CPU": 0.5, "disk": 1}
    assert (policy.max_restarts, reward.max_restarts) == (-1, 0)
    assert policy.runtime_env == reward.runtime_env == {"env_vars": {"A": "1"}}


def test_nothing_is_asked_for_by_default() -> None:
    assert Options().of("policy", ["policy"]).demand == {}


def test_colocated_nodes_have_one_strategy() -> None:
    options = Options(placement={"policy": "SPREAD", "reward": "PACK"}, colocate=[["policy", "reward"]])
    with pytest.raises(
        BackendError, match="placement of colocated nodes differs: policy SPREAD, reward PACK"
    ):
        list(options.groups(["policy", "reward"]))


def test_the_backend_is_imported_without_ray() -> None:
    code = "import sys, flowsched_ray; flowsched_ray.RayBackend(num_gpus=0.5); print('ray' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"


def test_a_machine_without_ray_is_told_the_command_that_mends_it() -> None:
    code = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == "ray":
            raise ModuleNotFoundError(name)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "ray" else found(name, *rest)
import flowsched_ray
print(flowsched_ray.RayBackend.problem())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == 'Ray is not installed. Install it: pip install "flowsched[ray]"\n'


def test_describe_says_which_ray_there_is() -> None:
    assert RayBackend.problem() is None
    assert set(RayBackend.describe()) >= {"ray"}
