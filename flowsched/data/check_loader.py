"""Whether a loader that exists gives each sample once: read on all ranks, and compared."""

from __future__ import annotations

import textwrap
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch.distributed as dist

from flowsched.data.board import Board, open_board
from flowsched.data.checking import Findings, RankRows, compare
from flowsched.data.reading import Reading, Way, probe, read_loader
from flowsched.errors import FlowschedError

_GRACE = 30.0  # seconds that ranks have left to answer once one has failed
_PROBES = 8
_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, eq=False)
class Checked:
    """What a loader gives to all ranks. Printing it says what is wrong, and what to do.

    Attributes:
        findings: repeated, missing and uneven samples.
        way: how samples were told apart.
        kinds: for each rank, what the loader is.
        endless: ranks on which reading was given up, since the loader went on and on.
    """

    findings: Findings
    way: Way
    kinds: tuple[str, ...]
    endless: tuple[int, ...]

    def __str__(self) -> str:
        from flowsched.data.report import render_check

        return render_check(self)


@dataclass(frozen=True)
class Failure:
    """How a rank failed.

    Attributes:
        rank: its number.
        said: what it says.
        trace: the traceback of the user's own code; empty if there is none.
        silent: whether it has said nothing at all.
    """

    rank: int
    said: str
    trace: str = ""
    silent: bool = False


class LoaderError(FlowschedError):
    """A loader that could not be read on all ranks.

    Args:
        ranks: how many ranks there are.
        failures: those that failed, at least one, and how.
    """

    code = "loader"

    def __init__(self, ranks: int, failures: Sequence[Failure]) -> None:
        self.ranks, self.failures = ranks, tuple(failures)
        spoken = [one for one in failures if not one.silent] or list(failures)
        whose = f"ranks {', '.join(str(one.rank) for one in spoken)} of {ranks}"
        if len(spoken) == 1:
            whose = f"rank {spoken[0].rank} of {ranks}"
        elif len(spoken) == ranks:
            whose = "every rank"
        super().__init__(f"{whose}: {spoken[0].said}")
        if spoken[0].trace:
            self.add_note(textwrap.indent(spoken[0].trace, "  ").lstrip())

    @property
    def speaker(self) -> int:
        """The lowest rank that can still say it."""
        silent = {one.rank for one in self.failures if one.silent}
        return min(set(range(self.ranks)) - silent, default=0)

    def __reduce__(self) -> tuple[type[LoaderError], tuple[int, tuple[Failure, ...]]]:
        return type(self), (self.ranks, self.failures)


def check_loader(loader: Any, samples: int | None = None, *, patience: float = 600.0) -> Checked:
    """Read a loader on all ranks and return what is repeated, missing and uneven, the same on each rank.

    All ranks call it, at the same time, where there is more than one. A loader over a data set with numbered
    samples is read by their numbers and loads nothing; others are read, and samples told apart by what they hold.

    Args:
        loader: any loader, sampler or iterable of batches; it is read once, or a few times if it must be.
        samples: how many samples there are, where the loader does not say.
        patience: seconds to wait for ranks that still read, and to read a loader of unknown length.

    Raises:
        LoaderError: it fails on a rank; all ranks raise it.

    Examples:
        >>> from torch.utils.data import DataLoader
        >>> found = check_loader(DataLoader(range(10), batch_size=4, drop_last=True)).findings
        >>> found.exact, found.missing.tolist()
        (False, [8, 9])
    """
    board = open_board()
    if board is None:
        dist.init_process_group("gloo")
        board = open_board()
    if board is None:  # a process group has a store
        raise LoaderError(1, [Failure(0, "this process is one of several, and cannot reach the others")])
    return check_on(board, lambda: loader, samples, patience=patience)


def check_on(
    board: Board,
    load: Callable[[], Any],
    samples: int | None = None,
    *,
    patience: float = 600.0,
    join: Callable[[], None] | None = None,
) -> Checked:
    """Load a loader on all ranks of a board, and check it; see :func:`check_loader`.

    Args:
        board: where ranks tell each other what became of it.
        load: makes the loader of this rank.
        samples: how many samples there are, where the loader does not say.
        patience: seconds to wait for ranks that still read, and to read a loader of unknown length.
        join: makes the process group that loaders may ask who they are; called by all ranks, after all have
            loaded, unless some loader has made one.
    """
    meeting = _Meeting(board, patience)
    loader: list[Any] = []

    def load_one() -> bool:
        loader.append(load())
        return dist.is_initialized()

    joined = meeting.agree("load", load_one)
    if join is not None and board.ranks > 1 and not any(joined):
        meeting.agree("join", join)
    failed: list[Failure] = []
    for way in Way:
        answers = meeting.ask(way, lambda way=way: read_loader(loader[0], way, samples, patience))  # type: ignore[misc]
        failed = [one for one in answers if isinstance(one, Failure)]
        if any(one.silent for one in failed):
            break
        if not failed and not (way == Way.IDS and _differ(meeting, loader[0], answers)):
            return _compare(answers, samples)
    raise LoaderError(board.ranks, failed)


class _Meeting:
    """Ranks that do the same at the same time, and hear of each other what became of it."""

    def __init__(self, board: Board, patience: float) -> None:
        self.board = board
        self.patience = patience + min(patience, _GRACE)  # a rank that reads so long can still say so

    def ask(self, name: str, work: Callable[[], Any]) -> list[Any]:
        """Return for each rank what its work returned, or how it failed."""
        own = self._try(work)
        self.board.put(name, own)
        patience = _GRACE if isinstance(own, Failure) else self.patience
        answers = []
        for rank in range(self.board.ranks):
            try:
                answer = (
                    own
                    if rank == self.board.rank
                    else self.board.take(name, rank, min(patience, self.patience))
                )
            except TimeoutError as error:
                answer = Failure(
                    rank, f"{error}. Is it waiting for a rank that has fewer batches?", silent=True
                )
            if isinstance(answer, Failure):
                patience = _GRACE
            answers.append(answer)
        return answers

    def agree(self, name: str, work: Callable[[], Any]) -> list[Any]:
        """Return for each rank what its work returned.

        Raises:
            LoaderError: it failed on some rank.
        """
        answers = self.ask(name, work)
        failed = [one for one in answers if isinstance(one, Failure)]
        if failed:
            raise LoaderError(self.board.ranks, failed)
        return answers

    def _try(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a loader may raise anything, and all ranks are to know)
            return Failure(self.board.rank, _say(error), _trace(error))


def _differ(meeting: _Meeting, loader: Any, readings: Sequence[Reading]) -> bool:
    """Return whether ranks mean different samples by the same ids, as each has a data set of its own."""
    if len(readings) == 1 or any(one.own for one in readings):
        return False
    if len({one.samples for one in readings}) > 1:
        return True
    keys = [np.unique(one.keys) for one in readings]
    shared, ranks = np.unique(np.concatenate(keys), return_counts=True)
    shared = shared[ranks > 1]
    if not len(shared):
        return False
    picked = shared[np.linspace(0, len(shared) - 1, _PROBES).astype(int)].tolist()
    seen = meeting.ask("probe", lambda: probe(loader, list(dict.fromkeys(picked))))
    held = [one for one in seen if not isinstance(one, Failure)]
    return any(len(set(values) - {None}) > 1 for values in zip(*held, strict=True))


def _compare(readings: Sequence[Reading], samples: int | None) -> Checked:
    way, sizes = readings[0].way, [one.samples for one in readings]
    own = all(one.own for one in readings)
    if way != Way.IDS:
        keys = _number(readings)
    elif own:
        starts = np.cumsum([0, *(size or 0 for size in sizes)])
        keys = [one.keys + start for one, start in zip(readings, starts.tolist(), strict=False)]
    else:
        keys = [one.keys for one in readings]
    ranks = [RankRows(key, one.sizes, one.real) for key, one in zip(keys, readings, strict=True)]
    if samples is None and None not in sizes:
        whole = sum(size or 0 for size in sizes)
        apart = len(set(sizes)) > 1 or own
        samples = whole if apart else sizes[0]
        if way != Way.IDS and not own and _are_apart(ranks, sizes):
            samples = whole
    endless = tuple(rank for rank, one in enumerate(readings) if not one.ends)
    found = compare(ranks, samples, named=way == Way.IDS and not own)
    return Checked(found, way, tuple(one.kind for one in readings), endless)


def _are_apart(ranks: Sequence[RankRows], sizes: Sequence[int | None]) -> bool:
    """Return whether each rank has read all of a data set of its own, and no sample of another's."""
    together = len(np.unique(np.concatenate([rank.keys for rank in ranks])))
    return len(ranks) > 1 and together > max(size or 0 for size in sizes)


def _number(readings: Sequence[Reading]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Return (rows,) numbers for each rank, the same for the same digest."""
    every = np.concatenate([one.keys for one in readings])
    pairs = np.ascontiguousarray(every).view([("high", np.int64), ("low", np.int64)]).reshape(-1)
    numbers = np.unique(pairs, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.split(numbers, np.cumsum([len(one.keys) for one in readings])[:-1])


def _say(error: BaseException) -> str:
    if isinstance(error, FlowschedError):
        return str(error)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"reading the loader failed with {said}. Mend the loader, or what it reads"


def _trace(error: BaseException) -> str:
    """Return the traceback of the user's own code, without the frames of flowsched's that lead to it."""
    cause = error.__cause__ if isinstance(error, FlowschedError) else error
    if cause is None:
        return ""
    frames = cause.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(
        (_PACKAGE, "<frozen importlib")
    ):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(cause), cause, frames or cause.__traceback__)).rstrip()
