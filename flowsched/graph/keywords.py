"""Misspelt keywords of a constructor, with the ones that are meant; the typed signature stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec

from flowsched.errors import say_known

_P = ParamSpec("_P")


def say_keywords(init: Callable[_P, None]) -> Callable[_P, None]:
    """Return ``init`` so that it refuses an unknown keyword with a ``TypeError`` that names the closest.

    >>> class Node:
    ...     @say_keywords
    ...     def __init__(self, name: str, *, replicas: int = 1) -> None: ...
    >>> Node("policy", replcas=2)
    Traceback (most recent call last):
    TypeError: Node() has no field 'replcas'. Did you mean 'replicas'? Known fields: name, replicas
    """
    _, *known = signature(init).parameters  # without self
    owner = init.__qualname__.split(".")[-2]

    @wraps(init)
    def checked(*args: _P.args, **given: _P.kwargs) -> None:
        for name in given:
            if name not in known:
                raise TypeError(f"{owner}() has no field {name!r}. {say_known(name, known, 'fields')}")
        init(*args, **given)

    return checked
