"""What a user may ask of Ray for each node, checked as soon as it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowsched.errors import BackendError, say_known

STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_GRAIN = 0.0001  # what Ray counts resources in
_RESERVED = {"CPU": "num_cpus", "GPU": "num_gpus"}


@dataclass(frozen=True)
class NodeOptions:
    """What each replica of one node asks for.

    Attributes:
        num_cpus, num_gpus: CPUs and GPUs, fractions too.
        resources: custom resources, by name.
        max_restarts: how often Ray restarts a replica that was lost; -1 for always.
        max_task_retries: how often a call whose replica was lost is run again; -1 for always.
        runtime_env: Ray's runtime environment for the replicas; None for that of the driver.
        strategy: how the replicas are spread over machines; None for as Ray likes.
    """

    num_cpus: float = 0
    num_gpus: float = 0
    resources: Mapping[str, float] | None = None
    max_restarts: int = 0
    max_task_retries: int = 0
    runtime_env: Mapping[str, Any] | None = None
    strategy: str | None = None

    @property
    def demand(self) -> dict[str, float]:
        """Resources by Ray's name for them, without those of which none is asked for."""
        asked = {"CPU": self.num_cpus, "GPU": self.num_gpus, **(self.resources or {})}
        return {name: float(amount) for name, amount in asked.items() if amount}


@dataclass(frozen=True)
class Options:
    """Options by node, as the user gave them: one value for all nodes, or a mapping of node to value."""

    num_cpus: float | Mapping[str, float] | None = None
    num_gpus: float | Mapping[str, float] | None = None
    resources: Mapping[str, float] | Mapping[str, Mapping[str, float]] | None = None
    max_restarts: int | Mapping[str, int] = 0
    max_task_retries: int | Mapping[str, int] = 0
    runtime_env: Mapping[str, Any] | None = None
    placement: str | Mapping[str, str] | None = None
    colocate: Sequence[Sequence[str]] = ()

    def __post_init__(self) -> None:
        for name in ("num_cpus", "num_gpus"):
            for place, value in _values(name, getattr(self, name)):
                _refuse_bad_amount(place, value)
        for place, value in _values("resources", self.resources, nested=True):
            _refuse_bad_resources(place, value)
        for name in ("max_restarts", "max_task_retries"):
            for place, value in _values(name, getattr(self, name)):
                if not isinstance(value, int) or isinstance(value, bool) or value < -1:
                    raise BackendError(f"{place} is {value!r}. Give a whole number, -1 for without end")
        if self.runtime_env is not None and not isinstance(self.runtime_env, Mapping):
            raise BackendError(
                f"runtime_env is {self.runtime_env!r}. Give a dict, e.g. {{'env_vars': {{...}}}}"
            )
        for place, value in _values("placement", self.placement):
            if value not in STRATEGIES:
                mend = say_known(str(value).upper(), STRATEGIES, "strategies")
                raise BackendError(f"{place} is {value!r}. {mend}")
        _refuse_bad_groups(self.colocate)

    def of(self, node: str, owners: Sequence[str]) -> NodeOptions:
        """Return the options of one node."""
        given: dict[str, Any] = {
            "num_cpus": self.num_cpus,
            "num_gpus": self.num_gpus,
            "max_restarts": self.max_restarts,
            "max_task_retries": self.max_task_retries,
            "strategy": self.placement,
        }
        own = {
            name: value.get(node) if isinstance(value, Mapping) else value for name, value in given.items()
        }
        own["resources"] = _nested(self.resources, owners, node)
        own["runtime_env"] = _nested(self.runtime_env, owners, node)
        known: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        return NodeOptions(**known)

    def refuse_unknown(self, owners: Sequence[str]) -> None:
        """Refuse names that are no node with replicas of its own.

        Raises:
            BackendError: it names the option, the name and the nodes that there are.
        """
        for option in ("num_cpus", "num_gpus", "max_restarts", "max_task_retries", "placement"):
            value = getattr(self, option)
            for node in value if isinstance(value, Mapping) else ():
                _refuse_unknown(option, node, owners)
        if self.resources and _is_nested(self.resources):
            for node in self.resources:
                _refuse_unknown("resources", node, owners)
        for group in self.colocate:
            for node in group:
                _refuse_unknown("colocate", node, owners)

    def groups(self, owners: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the nodes whose replicas are placed together, and the strategy of each group.

        Replica ``i`` of each node of a group shares one bundle of a placement group.

        Raises:
            BackendError: nodes of one group ask for different strategies.
        """
        together = {node for group in self.colocate for node in group}
        single = [(node,) for node in owners if node not in together and self.of(node, owners).strategy]
        for group in [*map(tuple, self.colocate), *single]:
            asked = {node: self.of(node, owners).strategy for node in group}
            strategies = sorted({strategy for strategy in asked.values() if strategy})
            if len(strategies) > 1:
                raise BackendError(
                    f"placement of colocated nodes differs: "
                    f"{', '.join(f'{node} {strategy}' for node, strategy in asked.items())}. Give them one strategy"
                )
            yield group, strategies[0] if strategies else "PACK"


def _values(name: str, given: Any, *, nested: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield what was given, with how an error names it."""
    if given is None:
        return
    if not isinstance(given, Mapping) or (nested and not _is_nested(given)):
        yield name, given
    else:
        for node, value in given.items():
            yield f"{name}[{node!r}]", value


def _is_nested(given: Mapping[str, Any]) -> bool:
    return bool(given) and all(isinstance(value, Mapping) for value in given.values())


def _nested(given: Mapping[str, Any] | None, owners: Sequence[str], node: str) -> Any:
    """Return the mapping of one node, out of a mapping for all nodes or one of node to mapping."""
    if given is None:
        return None
    if _is_nested(given) and all(name in owners for name in given):
        return given.get(node)
    return given


def _refuse_bad_amount(place: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise BackendError(f"{place} is {value!r} ({type(value).__name__}). Give a number, 0 or more")
    if value and value < _GRAIN:
        raise BackendError(f"{place} is {value!r}, and Ray counts in steps of {_GRAIN}. Give more, or 0")
    if value > 1 and value != int(value) and "num_gpus" in place:
        raise BackendError(f"{place} is {value!r}. Ray takes a fraction of one GPU, or whole ones")


def _refuse_bad_resources(place: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise BackendError(f"{place} is {value!r}. Give amounts by name, e.g. {{'fast_disk': 1}}")
    for name, amount in value.items():
        if not isinstance(name, str) or not name:
            raise BackendError(f"{place} names a resource {name!r}. Give its name as text")
        if name in _RESERVED:
            raise BackendError(f"{place} names {name!r}. Give it as {_RESERVED[name]}=")
        _refuse_bad_amount(f"{place}[{name!r}]", amount)


def _refuse_bad_groups(groups: object) -> None:
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise BackendError(f"colocate is {groups!r}. Give lists of nodes, e.g. [['policy', 'reference']]")
    seen: set[str] = set()
    for group in groups:
        if (
            isinstance(group, str)
            or not isinstance(group, Sequence)
            or not all(isinstance(n, str) for n in group)
        ):
            raise BackendError(
                f"colocate holds {group!r}. Give lists of nodes, e.g. [['policy', 'reference']]"
            )
        if len(set(group)) < 2:
            raise BackendError(
                f"colocate holds {list(group)!r}. Give at least two nodes to be placed together"
            )
        for node in group:
            if node in seen:
                raise BackendError(f"colocate names {node!r} twice. A replica is in one place only")
            seen.add(node)


def _refuse_unknown(option: str, node: object, owners: Sequence[str]) -> None:
    if node not in owners:
        mend = say_known(str(node), owners, "nodes with replicas of their own")
        raise BackendError(f"{option} names {node!r}, which has no replicas of its own. {mend}")
