"""Exceptions as bytes for other processes: their types, what caused them, and where they were raised."""

from __future__ import annotations

import pickle
import traceback
from typing import Any, NamedTuple

from flowsched.errors import FlowschedError, say_exception
from flowsched.runtime.shipping import pack_object

_LONGEST = 100_000  # characters of a traceback
_MOST_CAUSES = 32


class RemoteTraceback(Exception):  # noqa: N818 - it is no error of its own
    """Stands at the root of what caused an exception of another process, and prints as its traceback there."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f"\n{self.text.rstrip()}"


class RemoteError(FlowschedError):
    """Stands for an exception of another process that could not be brought here as it was.

    Attributes:
        kind: full name of the exception's type.
    """

    code = "remote"

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(kind, text)

    def __str__(self) -> str:
        return str(self.args[1])


class _Carried(NamedTuple):
    """One exception of a chain: pickled, its parts for where that cannot be read, and in words."""

    whole: bytes | None
    parts: bytes | None
    kind: str
    text: str


def pack_error(error: BaseException) -> bytes:
    """Return an exception and its causes as bytes that :func:`unpack_error` understands in any process.

    It never raises: what cannot be pickled is told in words.
    """
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and len(chain) < _MOST_CAUSES and following not in chain:
        chain.append(following)
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    own = next((link for link in chain if not isinstance(link, FlowschedError)), chain[-1])
    return pickle.dumps(([_carry(link) for link in chain], _say_traceback(own)))


def unpack_error(packed: bytes) -> BaseException:
    """Return the exception that :func:`pack_error` was given, with its causes.

    The last of the causes is a :class:`RemoteTraceback`, so that the user's own traceback is printed first.
    """
    carried, text = pickle.loads(packed)
    cause: BaseException = RemoteTraceback(text)
    for link in reversed(carried):
        error = _restore(link)
        error.__cause__ = cause
        cause = error
    return cause


def _carry(error: BaseException) -> _Carried:
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    parts = _pickled((type(error), error.args, dict(vars(error))))
    return _Carried(_pickled(error), parts, kind, say_exception(error))


def _pickled(value: Any) -> bytes | None:
    try:
        return pack_object(value)
    except BaseException:  # noqa: BLE001 - an exception may refuse to be pickled in any way
        return None


def _restore(link: _Carried) -> BaseException:
    for packed in (link.whole, link.parts):
        try:
            found = pickle.loads(packed) if packed is not None else None
            if isinstance(found, tuple):
                kind, args, state = found
                found = kind.__new__(kind)
                found.args = args
                vars(found).update(state)
        except BaseException:  # noqa: BLE001 - nor is it known what its constructor does here
            continue
        if isinstance(found, BaseException):
            return found
    return RemoteError(link.kind, link.text)


def _say_traceback(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - it is told without its text
        text = "".join([*traceback.format_tb(error.__traceback__), say_exception(error)])
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n...\n{text[-_LONGEST // 2 :]}"
