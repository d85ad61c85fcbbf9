"""Which rank serves which replica, and which one holds the step's inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flowsched.errors import Problem, say_known
from flowsched.graph import Graph
from flowsched.programs.errors import PlacementError

MOST_RANKS = 1_000_000  # each has a program, which takes memory even if it is empty


@dataclass(frozen=True)
class Placement:
    """The ranks that serve the replicas of a graph.

    Attributes:
        ranks: how many ranks serve replicas; they are 0 to ``ranks - 1``.
        home: the rank that holds the step's inputs and receives its outputs: one of the ranks, or ``ranks``
            for one more that serves no replica.
        replicas: by the name of each node that has replicas of its own, the rank of each of them.

    Raises:
        PlacementError: the numbers are none, or ranks are out of range.

    >>> Placement(ranks=2, home=0, replicas={"policy": (0, 1), "reward": (0, 1)}).replicas["policy"]
    (0, 1)
    """

    ranks: int
    home: int
    replicas: Mapping[str, tuple[int, ...]]

    def __post_init__(self) -> None:
        problems = list(_find_size_problems(self.ranks, self.home))
        problems += _find_replica_problems(self.replicas, self.ranks) if not problems else []
        if problems:
            raise PlacementError("placement", problems)
        own = {name: tuple(map(int, ranks)) for name, ranks in self.replicas.items()}
        object.__setattr__(self, "replicas", own)

    def __hash__(self) -> int:
        return hash((self.ranks, self.home, frozenset(self.replicas.items())))

    @classmethod
    def spread(cls, graph: Graph, ranks: int | None = None, *, home: int | None = None) -> Placement:
        """Return the default placement: replicas are dealt to the ranks in turn, node by node.

        Each node goes on where the last one stopped, so that ranks serve equally many replicas (to within
        one) and the replicas of a node stand on as many ranks as there are. More ranks than replicas leave
        the last ranks idle.

        Args:
            graph: the graph.
            ranks: how many ranks; None for one a replica.
            home: the rank that holds inputs and outputs; None for one more that serves no replica.

        Raises:
            PlacementError: there is no rank, or home is none of them.

        >>> from flowsched import Graph, Node
        >>> nodes = [Node("a", inputs=["x"], replicas=2), Node("b", inputs=["a"], replicas=3)]
        >>> Placement.spread(Graph("two", sources=["x"], nodes=nodes), ranks=4).replicas
        {'a': (0, 1), 'b': (2, 3, 0)}
        """
        owners = graph.owners()
        ranks = sum(node.replicas for node in owners) if ranks is None else ranks
        home = ranks if home is None else home
        problems = list(_find_size_problems(ranks, home))
        if problems:
            raise PlacementError(f"placement of graph {graph.name!r}", problems)
        replicas, dealt = {}, 0
        for node in owners:
            replicas[node.name] = tuple(at % ranks for at in range(dealt, dealt + node.replicas))
            dealt += node.replicas
        return cls(ranks, home, replicas)

    @property
    def home_is_apart(self) -> bool:
        """Whether home serves no replica: a driver beside the ranks."""
        return self.home == self.ranks

    @property
    def processes(self) -> int:
        """How many programs there are: one a rank, and one for a home apart."""
        return self.ranks + self.home_is_apart

    @property
    def idle(self) -> tuple[int, ...]:
        """The ranks that serve no replica; a home apart is none of them."""
        used = {rank for ranks in self.replicas.values() for rank in ranks}
        return tuple(rank for rank in range(self.ranks) if rank not in used)

    def served_by(self, rank: int) -> dict[str, tuple[int, ...]]:
        """Return the replicas on a rank, by the name of their node."""
        return {
            name: tuple(replica for replica, own in enumerate(ranks) if own == rank)
            for name, ranks in self.replicas.items()
            if rank in ranks
        }

    def check(self, graph: Graph) -> None:
        """Refuse a graph whose replicas are others than those that are placed.

        Raises:
            PlacementError: nodes are missing or surplus, or have another number of replicas.
        """
        problems = list(_find_misfits(self.replicas, graph))
        if problems:
            raise PlacementError(f"placement of graph {graph.name!r}", problems)

    def say_rank(self, rank: int) -> str:
        """Return ``rank 3``, or ``home`` for a home apart."""
        return "home" if self.home_is_apart and rank == self.home else f"rank {rank}"

    def __str__(self) -> str:
        from flowsched.inspect.programs import render_placement

        return render_placement(self)


def choose_placement(
    graph: Graph, ranks: int | None, home: int | None, placement: Placement | None
) -> Placement:
    """Return the placement that is given, or the default one for ``ranks`` and ``home``.

    Raises:
        PlacementError: both are given, or the default one cannot be.
    """
    if placement is None:
        return Placement.spread(graph, ranks, home=home)
    given = [name for name, value in (("ranks", ranks), ("home", home)) if value is not None]
    if not given:
        return placement
    message = "it is given beside a placement, which says so already"
    problem = Problem("given-twice", given[0], message, "Give one of the two")
    raise PlacementError(f"placement of graph {graph.name!r}", [problem])


def _find_size_problems(ranks: object, home: object) -> Iterator[Problem]:
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        yield Problem("bad-ranks", "ranks", f"it is {ranks!r}", "Give a whole number of 1 or more")
    elif ranks > MOST_RANKS:
        yield Problem("bad-ranks", "ranks", f"it is {ranks:,}", f"Give {MOST_RANKS:,} or fewer")
    elif isinstance(home, bool) or not isinstance(home, int) or not 0 <= home <= ranks:
        mend = f"Give one of the ranks, 0 to {ranks - 1}, or {ranks} for a home that serves no replica"
        yield Problem("bad-home", "home", f"it is {home!r}, and there are {ranks} ranks", mend)


def _find_replica_problems(replicas: object, ranks: int) -> Iterator[Problem]:
    if not isinstance(replicas, Mapping):
        message = f"a {type(replicas).__name__} is no mapping"
        yield Problem("wrong-type", "replicas", message, "Give {'node': (rank of replica 0, ...), ...}")
        return
    for name, placed in replicas.items():
        place = f"node {name!r}"
        if isinstance(placed, str) or not hasattr(placed, "__iter__"):
            message = f"its ranks are {placed!r}"
            yield Problem("wrong-type", place, message, "Give the rank of each of its replicas")
            continue
        for replica, rank in enumerate(placed):
            if isinstance(rank, bool) or not hasattr(rank, "__index__") or not 0 <= rank < ranks:
                message = f"its replica {replica} is on rank {rank!r}, and there are {ranks} ranks"
                mend = f"Give a rank from 0 to {ranks - 1}"
                yield Problem("bad-rank", place, message, mend)


def _find_misfits(replicas: Mapping[str, tuple[int, ...]], graph: Graph) -> Iterator[Problem]:
    owners = {node.name: node for node in graph.owners()}
    for name, node in owners.items():
        if name not in replicas:
            mend = f"Give the rank of each of its {node.replicas} replicas"
            yield Problem("missing-node", f"node {name!r}", "its replicas have no ranks", mend)
        elif len(replicas[name]) != node.replicas:
            message = f"ranks are given for {len(replicas[name])} replicas, and it has {node.replicas}"
            yield Problem("wrong-replicas", f"node {name!r}", message, "Give one rank for each replica")
    for name in replicas:
        if name in owners:
            continue
        if name in graph:
            message = f"it is served by the replicas of {graph[name].replicas_of!r}"
            yield Problem("surplus-node", f"node {name!r}", message, "Leave it out")
        else:
            mend = say_known(str(name), list(owners), "nodes with replicas of their own")
            yield Problem("surplus-node", f"node {name!r}", "the graph has no such node", mend)
