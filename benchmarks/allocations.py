"""Every byte that numpy allocates for data, counted where it is allocated.

numpy asks a handler for the memory of array data (NEP 49). The handler made here counts what it is asked for and
leaves the work to the C library, so that nothing is missed and nothing is guessed: temporaries, copies, joins and
results alike. A handler belongs to a thread's context, so that each thread that is to be counted must call
:meth:`Allocations.count_here`.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

_SET_HANDLER = 304  # its place in numpy's table of C functions, which never changes

_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_CALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_REALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler`` with its ``PyDataMemAllocator``."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", _MALLOC),
        ("calloc", _CALLOC),
        ("realloc", _REALLOC),
        ("free", _FREE),
    )


class Allocations:
    """Counts numpy's allocations. Must outlive every array that was made while it counted.

    Attributes:
        made: bytes allocated so far, under the name of who was charged for them.
        live: bytes allocated and not yet freed.
        peak: the most that was live since :meth:`reset`.
    """

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.live = self.peak = 0
        self._sizes: dict[int, int] = {}
        self._charged = threading.local()
        self._lock = threading.Lock()
        self._libc = _load_libc()
        functions = _MALLOC(self._malloc), _CALLOC(self._calloc), _REALLOC(self._realloc), _FREE(self._free)
        self._handler = _Handler(b"counting", 1, None, *functions)
        self._name = ctypes.create_string_buffer(b"mem_handler")
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype = ctypes.py_object
        new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self._capsule = new_capsule(ctypes.addressof(self._handler), ctypes.addressof(self._name), None)

    def count_here(self) -> None:
        """Count what this thread allocates from now on."""
        ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_function(_SET_HANDLER))(self._capsule)

    @contextmanager
    def charge(self, who: str) -> Iterator[None]:
        """Charge ``who`` for what this thread allocates inside; everything else is charged to ``"others"``."""
        before = getattr(self._charged, "who", "others")
        self._charged.who = who
        try:
            yield
        finally:
            self._charged.who = before

    def reset(self) -> None:
        """Forget what was made so far; what is live stays so."""
        with self._lock:
            self.made.clear()
            self.peak = self.live

    def _malloc(self, _: int, size: int) -> int:
        return self._note(self._libc.malloc(size), size)

    def _calloc(self, _: int, count: int, size: int) -> int:
        return self._note(self._libc.calloc(count, size), count * size)

    def _realloc(self, _: int, address: int, size: int) -> int:
        self._forget(address)
        return self._note(self._libc.realloc(address, size), size)

    def _free(self, _: int, address: int, __: int) -> None:
        self._forget(address)
        self._libc.free(address)

    def _note(self, address: int, size: int) -> int:
        with self._lock:
            self._sizes[address] = size
            self.made[getattr(self._charged, "who", "others")] += size
            self.live += size
            self.peak = max(self.peak, self.live)
        return address

    def _forget(self, address: int) -> None:
        with self._lock:
            self.live -= self._sizes.pop(address, 0)


def _load_libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    for allocating in (libc.malloc, libc.calloc, libc.realloc):
        allocating.restype = ctypes.c_void_p
    return libc


def _numpy_function(place: int) -> int:
    """Return the address of a function of numpy's C interface."""
    core = "numpy.core" if np.lib.NumpyVersion(np.__version__) < "2.0.0" else "numpy._core"
    module: Any = import_module(f"{core}._multiarray_umath")
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get_pointer(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return int(table[place])
