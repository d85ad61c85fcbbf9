"""Hosts on one machine: network namespaces, each with its own loopback and an address on a bridge of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

INTERFACE = "eth0"


@dataclass(frozen=True)
class Host:
    """One host.

    Attributes:
        name: of its namespace.
        address: on the network that the hosts share.
    """

    name: str
    address: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command on this host begins with."""
        return ("ip", "netns", "exec", self.name)


def why_not() -> str | None:
    """Return why hosts cannot be made here, or None."""
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (Debian package iproute2)"
    name = f"fs-{uuid.uuid4().hex[:8]}"
    made = _run("ip", "netns", "add", name)
    if made.returncode:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    _run("ip", "netns", "delete", name)
    return None


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Make so many hosts, which reach each other and nothing else; end them and all that runs there."""
    mark = uuid.uuid4().hex[:6]
    switch = f"fs-{mark}-s"
    made = [Host(f"fs-{mark}-{at}", f"10.213.7.{at + 1}") for at in range(count)]
    try:
        _must("ip", "netns", "add", switch)
        _must(*_in(switch, "ip", "link", "add", "bridge", "type", "bridge"))
        _must(*_in(switch, "ip", "link", "set", "bridge", "up"))
        for at, host in enumerate(made):
            _must("ip", "netns", "add", host.name)
            port = f"port{at}"
            peer = ("peer", "name", INTERFACE, "netns", host.name)
            _must(*_in(switch, "ip", "link", "add", port, "type", "veth", *peer))
            _must(*_in(switch, "ip", "link", "set", port, "master", "bridge", "up"))
            _must(*host.prefix, "ip", "address", "add", f"{host.address}/24", "dev", INTERFACE)
            _must(*host.prefix, "ip", "link", "set", INTERFACE, "up")
            _must(*host.prefix, "ip", "link", "set", "lo", "up")
        yield made
    finally:
        for name in (*(host.name for host in made), switch):
            for pid in _run("ip", "netns", "pids", name).stdout.split():
                _kill(int(pid))
            _run("ip", "netns", "delete", name)


def unplug(host: Host) -> None:
    """Cut a host from the network, without a word to the others."""
    _must(*host.prefix, "ip", "link", "set", INTERFACE, "down")


def _in(name: str, *command: str) -> Sequence[str]:
    return ("ip", "netns", "exec", name, *command)


def _must(*command: str) -> None:
    done = _run(*command)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return
