"""On several hosts, made of network namespaces: the same outputs and failures."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.torch.hosts import INTERFACE, Host, hosts, unplug, why_not
from tests.backends.torch.launching import PROGRAM, Launched, finish, free_port, start

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
]


@pytest.fixture(scope="module")
def two_hosts() -> Iterator[list[Host]]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with hosts(2) as made:
        yield made


def _launch(
    made: list[Host], folder: Path, settings: dict[str, Any], *, a_host: int, variables: dict[str, str]
) -> Launched:
    """Run the program with torchrun on all hosts, so many ranks on each."""
    port = free_port()
    started = [
        start(
            [
                *host.prefix,
                sys.executable,
                "-m",
                "torch.distributed.run",
                f"--nnodes={len(made)}",
                f"--node-rank={at}",
                f"--nproc-per-node={a_host}",
                f"--master-addr={made[0].address}",
                f"--master-port={port}",
                str(PROGRAM),
                str(folder),
                json.dumps(settings),
            ],
            variables,
        )
        for at, host in enumerate(made)
    ]
    return finish(started, folder, 100, ranks=len(made) * a_host)


def test_ranks_of_two_hosts_make_the_same_outputs(two_hosts: list[Host], tmp_path: Path) -> None:
    settings = {"samples": [12, 12, 5, 40], "options": {"outputs_on": "all"}}
    launched = _launch(two_hosts, tmp_path, settings, a_host=2, variables={})
    assert sorted(launched.said) == [0, 1, 2, 3], launched.output
    for said in launched.said.values():
        assert "error" not in said, said["error"]
        assert [outputs["right"] for outputs in said["outputs"]] == [True] * 4
        assert said["outputs"][0]["ranks"] == [0, 1, 2]


def test_wide_rows_and_a_process_group_beside_go_between_hosts(two_hosts: list[Host], tmp_path: Path) -> None:
    settings = {"samples": [12, 12], "wide": True, "group": True}
    variables = {"GLOO_SOCKET_IFNAME": INTERFACE}  # which the group of the program's own needs
    launched = _launch(two_hosts, tmp_path, settings, a_host=1, variables=variables)
    assert sorted(launched.said) == [0, 1], launched.output
    assert [outputs["right"] for outputs in launched.said[0]["outputs"]] == [True, True]
    assert launched.said[1]["group"] == [2, 2]


def test_a_worker_that_raises_on_one_host_is_told_on_the_other(two_hosts: list[Host], tmp_path: Path) -> None:
    settings = {"samples": [12], "fault": "raise", "at": 1}
    launched = _launch(two_hosts, tmp_path, settings, a_host=1, variables={})
    assert launched.said, launched.output
    for said in launched.said.values():
        assert said["error"][0] == "WorkerError", said["error"]
        assert said["error"][2:] == ["UserError", "a bad sample"]
        assert said["seconds"] < 5


def test_a_host_that_is_cut_off_is_given_up(two_hosts: list[Host], tmp_path: Path) -> None:
    settings = {"samples": [12], "repeat": 1_000_000, "options": {"timeout": 4}}
    variables = {"MASTER_ADDR": two_hosts[0].address, "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    started = [
        start(
            [*host.prefix, sys.executable, str(PROGRAM), str(tmp_path), json.dumps(settings)],
            {**variables, "RANK": str(rank), "LOCAL_RANK": "0"},
        )
        for rank, host in enumerate(two_hosts)
    ]
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.05)
    unplug(two_hosts[1])
    launched = finish(started, tmp_path, 60)
    assert launched.seconds < 30
    assert sorted(launched.said) == [0, 1], launched.output
    for said in launched.said.values():
        assert said["error"][0] == "ReplicaLostError", said["error"]


def test_a_master_that_has_no_address_is_told_with_what_to_do(tmp_path: Path) -> None:
    variables = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "no-such-host.invalid",
        "MASTER_PORT": "29500",
    }
    settings = {"options": {"timeout": 5}}
    started = start([sys.executable, str(PROGRAM), str(tmp_path), json.dumps(settings)], variables)
    said = finish([started], tmp_path, 100).said[0]
    assert said["error"][0] == "BackendError"
    assert "no-such-host.invalid" in said["error"][1]
    assert "MASTER_ADDR" in said["error"][1]
