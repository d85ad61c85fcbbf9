"""Whether ranks that run the same program begin the next step: each gives its word, or why not, before any does."""

from __future__ import annotations

import pickle
import struct
from queue import Empty
from typing import NamedTuple

from flowsched.backend import pack_error, unpack_error
from flowsched.errors import SessionError
from flowsched_torch.control import Connection, Kind
from flowsched_torch.hub import Hub
from flowsched_torch.steps import CancelledError
from flowsched_torch.watching import Heard, HomeWatch, RankWatch

_COUNT = struct.Struct("<Q")
_LAST_WORD = 5.0  # seconds in which home says why the session is over


class Decision(NamedTuple):
    """What all ranks have come to.

    Attributes:
        samples: of the step that begins.
        refusal: why none does.
    """

    samples: int
    refusal: BaseException | None


class HomeAgreement:
    """At home: hears the words of all others and tells them what follows.

    Words are numbered as the steps that were tried, so that those of a step that home has refused, which may come
    later, are not taken for those of the next.

    Args:
        hub: the connections to all others.
        watch: what hears them.
        others: how many they are.
    """

    def __init__(self, hub: Hub, watch: HomeWatch, others: int) -> None:
        self._hub, self._watch, self._others = hub, watch, others
        self._tried = 0

    def refuse(self, error: BaseException) -> None:
        """Let no rank begin the next step. Waits for none of them: they hear of it when they come to that step."""
        self._tried += 1
        self._hub.order(Kind.REFUSED, self._tried, pack_error(error))

    def decide(self, samples: int) -> Decision:
        """Wait until all others begin a step of so many samples, or one does not.

        Raises:
            CancelledError: the session is over.
        """
        self._tried += 1
        given = 0
        while given < self._others:
            heard = self._next()
            if heard is None:
                raise CancelledError
            rank, frame = heard
            if frame.kind is not Kind.WORD or frame.number != self._tried:
                continue
            refusal = _refusal_in(frame.payload, rank, samples)
            if refusal is not None:
                self._hub.order(Kind.REFUSED, self._tried, pack_error(refusal))
                return Decision(samples, refusal)
            given += 1
        self._hub.order(Kind.AGREED, self._tried, _COUNT.pack(samples))
        return Decision(samples, None)

    def _next(self) -> Heard:
        """Return what is heard next; None when the session is over, and all that was said before is heard."""
        try:
            return self._watch.heard.get(block=not self._watch.is_over())
        except Empty:
            return None


class RankAgreement:
    """Elsewhere: gives this rank's word and hears what follows.

    Args:
        orders: what home says.
        watch: what knows of the session's end.
    """

    def __init__(self, orders: Connection, watch: RankWatch) -> None:
        self._orders, self._watch = orders, watch
        self._tried = 0

    def decide(self, samples: int | None, error: BaseException | None = None) -> Decision:
        """Begin a step of so many samples, any number where that is None, unless there is an ``error``.

        Raises:
            CancelledError: the session is over.
        """
        self._tried += 1
        refused = None if error is None else pack_error(error)
        self._orders.send(Kind.WORD, self._tried, pickle.dumps((samples, refused)))
        # Also where the session is over meanwhile: what home said before is still there to be read.
        while (frame := self._orders.receive()) is not None:
            if frame.kind is Kind.REFUSED:
                return Decision(0, unpack_error(frame.payload))
            if frame.kind is Kind.AGREED and not self._watch.is_over():
                return Decision(_COUNT.unpack(frame.payload)[0], None)
            if not self._watch.is_over():
                raise SessionError(
                    f"rank 0 says {frame.kind.name} where a step is to begin. All ranks must run the same steps in "
                    "the same order"
                )
        self._watch.wait(_LAST_WORD)
        raise CancelledError


def _refusal_in(word: bytes, rank: int, samples: int) -> BaseException | None:
    """Return why a rank does not begin a step of so many samples."""
    theirs, refused = pickle.loads(word)
    if refused is not None:
        refusal = unpack_error(refused)
        refusal.add_note(f"rank {rank} has refused the step with this")
        return refusal
    if theirs not in (None, samples):
        return SessionError(
            f"rank {rank} would run a step of {theirs} samples, and rank 0 one of {samples}. All ranks must "
            "run the same steps in the same order, and with inputs_on='all' give the same inputs"
        )
    return None
