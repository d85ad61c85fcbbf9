"""How the ranks of one program find each other: by the store of their group, or of what launched them."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch.distributed

from flowsched.backend import pack_error
from flowsched.errors import BackendError
from flowsched_torch.control import Connection, Kind
from flowsched_torch.launched import read_launch
from flowsched_torch.refusing import look_for_home, post_home, raise_if_refused

_HELLO = struct.Struct("<64sI?")  # the key, the rank, whether it is the connection for alarms
_PREFIX = "flowsched"
_LOOK = 0.25  # seconds after which home looks anew whether another rank has refused
dist: Any = torch.distributed  # some of whose names it does not export to type checkers


@dataclass(frozen=True)
class Meeting:
    """Where this process stands among those that run the same program.

    Attributes:
        store: what all of them can read and write, for one session.
        rank: this one; rank 0 is home.
        size: how many there are.
        is_shared: whether the store belongs to somebody else and outlives the session.
    """

    store: Any
    rank: int
    size: int
    is_shared: bool

    def without_store(self) -> Meeting:
        """Return the same without what would keep the store."""
        return replace(self, store=None)


def rank_in_group() -> int:
    """Return the rank of this process in the process group that is initialised.

    Raises:
        BackendError: there is none.
    """
    if not dist.is_initialized():
        raise BackendError(
            "start='group', and no process group is initialised. Call torch.distributed.init_process_group "
            "first, or leave start= out"
        )
    return int(dist.get_rank())


def meet_in_group() -> Meeting:
    """Return the meeting of the ranks of the process group that is initialised; the group is left alone.

    Raises:
        BackendError: there is none.
    """
    rank, size = rank_in_group(), dist.get_world_size()
    return Meeting(_own_part(dist.distributed_c10d._get_default_store(), rank), rank, size, True)


def meet_as_launched(timeout: float) -> Meeting:
    """Return the meeting of the ranks that ``torchrun``, or another launcher, has started.

    Raises:
        BackendError: the variables that it sets are missing or wrong, or the ranks did not find each other.
    """
    place = read_launch().place
    try:
        store, rank, size = next(dist.rendezvous("env://", timeout=_delta(timeout)))
    except (RuntimeError, ValueError) as error:
        raise BackendError(
            f"the ranks cannot meet at MASTER_ADDR:MASTER_PORT, {place}: {error}. Start the program with "
            "torchrun, and give --rdzv-endpoint (or --master-addr) as an address that all hosts can reach"
        ) from error
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return Meeting(_own_part(store, rank), rank, size, shared)


def connect_all(
    meeting: Meeting, host: str, described: Mapping[str, str], timeout: float
) -> tuple[dict[int, Connection], dict[int, Connection]]:
    """At home: return the connections to all others, for orders and for alarms.

    Args:
        meeting: of all ranks.
        host: the address of this machine that the others reach.
        described: what must be the same on all ranks, by what it is called.
        timeout: seconds that they have.

    Raises:
        BackendError: not all have come in time.
        Exception: what one of them has refused the session with.
    """
    key = secrets.token_hex(32)
    found: dict[tuple[int, bool], Connection] = {}
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, backlog=max(2 * meeting.size, 1)) as server:
        raise_if_refused(meeting)
        port = server.getsockname()[1]
        post_home(meeting, {"host": host, "port": port, "key": key, "job": dict(described)})
        try:
            _welcome_all(server, meeting, key, found, timeout)
        except BaseException as error:
            for (_, is_alarm), connection in found.items():
                if is_alarm:
                    connection.send(Kind.OVER, 0, pack_error(error))
            raise
    ranks = range(1, meeting.size)
    return {rank: found[rank, False] for rank in ranks}, {rank: found[rank, True] for rank in ranks}


def _welcome_all(
    server: socket.socket,
    meeting: Meeting,
    key: str,
    found: dict[tuple[int, bool], Connection],
    timeout: float,
) -> None:
    """Wait until all others have come, and note the connections of each."""
    until = time.monotonic() + timeout
    while len(found) < 2 * (meeting.size - 1):
        server.settimeout(min(max(until - time.monotonic(), 0.001), _LOOK))
        try:
            end, _ = server.accept()
        except TimeoutError:
            come = {rank for rank, _ in found}
            raise_if_refused(meeting, len(come))
            if time.monotonic() < until:
                continue
            host, port = server.getsockname()[:2]
            missing = sorted(set(range(1, meeting.size)) - come)
            raise BackendError(
                f"ranks {', '.join(map(str, missing))} have not come within {timeout:g} seconds. Every rank "
                f"must start the same sessions in the same order, and reach rank 0 at {host}:{port}"
            ) from None
        if (hello := _welcome(end, key)) is None:
            end.close()
        else:
            found[hello] = Connection(end)


def connect_home(meeting: Meeting, timeout: float) -> tuple[Connection, Connection, str, dict[str, str]]:
    """Elsewhere: return the connections to home, for orders and for alarms, this machine's address, and what home
    says must be the same on all ranks.

    Raises:
        BackendError: home is not there or cannot be reached.
        Exception: what home has refused the session with.
    """
    try:
        place = look_for_home(meeting)
    except RuntimeError as error:
        raise BackendError(
            f"rank 0 has not started this session: {error}. Every rank must start the same sessions in the same "
            "order"
        ) from error
    ends = []
    for is_alarm in (False, True):
        try:
            end = socket.create_connection((place["host"], place["port"]), timeout)
        except OSError as error:
            look_for_home(meeting)  # it may be gone for a reason that it has posted
            raise BackendError(
                f"rank {meeting.rank} cannot reach rank 0 at {place['host']}:{place['port']} ({error}). Give the "
                "network interface that connects the hosts by interface= or GLOO_SOCKET_IFNAME, on every host"
            ) from error
        end.settimeout(None)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.sendall(_HELLO.pack(place["key"].encode(), meeting.rank, is_alarm))
        ends.append(end)
    return Connection(ends[0]), Connection(ends[1]), ends[0].getsockname()[0], place["job"]


def own_address(interface: str | None) -> str:
    """Return the address of this machine that other ranks reach.

    Args:
        interface: name of the network interface; None for ``GLOO_SOCKET_IFNAME``, or for the one that leads
            to ``MASTER_ADDR``.

    Raises:
        BackendError: the interface has none, or the name of the master or of this machine leads nowhere.
    """
    interface = interface or os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0] or None
    if interface is not None:
        return _address_of(interface)
    master = os.environ.get("MASTER_ADDR") or socket.gethostname()
    try:
        found = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise BackendError(
            f"the name {master!r} leads to no address ({error}). Set MASTER_ADDR to an address that all hosts can "
            "reach, or give the network interface by interface= or GLOO_SOCKET_IFNAME"
        ) from error
    for family, kind, protocol, _, place in found:
        with suppress(OSError), socket.socket(family, kind, protocol) as probe:
            probe.connect(place)  # sends nothing: the system only chooses the way
            return str(probe.getsockname()[0])
    raise BackendError(
        f"no network of this machine leads to {master!r}. Give the network interface by interface= or "
        "GLOO_SOCKET_IFNAME"
    )


def _own_part(store: Any, rank: int) -> Any:
    """Return the part of a store that belongs to the next session: the n-th of every rank is the same one."""
    number = store.add(f"{_PREFIX}/sessions-of-{rank}", 1)
    return dist.PrefixStore(f"{_PREFIX}/{number}", store)


def _welcome(end: socket.socket, key: str) -> tuple[int, bool] | None:
    """Return who has come; None for a stranger."""
    end.settimeout(5.0)
    said = b""
    with suppress(OSError):
        while len(said) < _HELLO.size and (more := end.recv(_HELLO.size - len(said))):
            said += more
    if len(said) < _HELLO.size:
        return None
    given, rank, is_alarm = _HELLO.unpack(said)
    if not hmac.compare_digest(given, key.encode()):
        return None
    end.settimeout(None)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return rank, is_alarm


def _address_of(interface: str) -> str:
    """Return the IPv4 address of a network interface."""
    import fcntl

    named = [name for _, name in socket.if_nameindex()]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asked = struct.pack("256s", interface[:15].encode())
            return socket.inet_ntoa(fcntl.ioctl(asking.fileno(), 0x8915, asked)[20:24])  # SIOCGIFADDR
    except OSError as error:
        raise BackendError(
            f"the network interface {interface!r} has no address ({error}). This machine has {', '.join(named)}"
        ) from error


def _delta(seconds: float) -> Any:
    from datetime import timedelta

    return timedelta(seconds=seconds)
