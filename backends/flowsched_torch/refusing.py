"""A session that one rank does not start is told to the others, which would wait for it.

Rank 0 posts what it refuses with where the others look for its address. Any other leaves it in the store, where
rank 0 finds it while it waits for the others, and posts it for all of them.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flowsched.backend import pack_error, unpack_error

if TYPE_CHECKING:
    from flowsched_torch.meeting import Meeting

PATIENCE = (
    5.0  # seconds that others have to hear of it; what is refused is raised here whether they do or not
)
_HOME, _REFUSED, _TOLD = "home", "refused", "told"


def tell_refused(meeting: Meeting, error: BaseException, heard: int = 0) -> None:
    """Have all other ranks raise ``error`` where they start the session.

    Rank 0 waits until they have heard, since the store may end with its process; ``heard`` of them hear of it
    otherwise.
    """
    store, packed = meeting.store, pack_error(error)
    with suppress(Exception):  # a store that is gone; ``error`` is what counts here
        if meeting.rank:
            store.set(_REFUSED, packed)
            store.add(_TOLD, 1)
            return
        store.set(_HOME, json.dumps({_REFUSED: packed.hex()}))
        until = time.monotonic() + PATIENCE
        while store.add(_TOLD, 0) < meeting.size - 1 - heard and time.monotonic() < until:
            time.sleep(0.01)


def raise_if_refused(meeting: Meeting, heard: int = 0) -> None:
    """At home: raise what another rank has left, once all others are told but ``heard``, who hear otherwise.

    Raises:
        BaseException: that.
    """
    if meeting.store.check([_REFUSED]):
        error = unpack_error(meeting.store.get(_REFUSED))
        tell_refused(meeting, error, heard)
        raise error


def look_for_home(meeting: Meeting) -> dict[str, Any]:
    """Elsewhere: wait for what home has posted, and return it.

    Raises:
        RuntimeError: home is not there.
        BaseException: what home, or another rank, has refused the session with.
    """
    place: dict[str, Any] = json.loads(meeting.store.get(_HOME))
    if _REFUSED in place:
        meeting.store.add(_TOLD, 1)
        raise unpack_error(bytes.fromhex(place[_REFUSED]))
    return place


def post_home(meeting: Meeting, place: dict[str, Any]) -> None:
    """At home: post where it is, for the others to look at."""
    meeting.store.set(_HOME, json.dumps(place))
