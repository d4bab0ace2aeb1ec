"""How many threads BLAS may use.

Threads of our own share the rows, and the threads of BLAS disturb them: after every call they spin for
milliseconds, waiting for another call, on the cores that our threads need (on w8a a pass took 0.77 ms instead
of 0.40). numpy and scipy each load a BLAS, whose threads also disturb each other. So BLAS is limited to one
thread while a solver runs, except in factorisations that are large enough to gain from more threads.

The number of threads is a setting of the process, so runs are counted: the first one to start sets it, the
last one to end restores it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_runs = 0
_own: list[int] = []


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries of the process: numpy and scipy each bring one."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        # threadpoolctl 3.8 ignores all threads but the first one that has set OpenBLAS's number, as long as
        # that thread lives. The count of runs makes this protection unnecessary.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS uses one thread."""
    global _runs
    with _lock:
        _runs += 1
        if _runs == 1:
            _own[:] = [library.get_num_threads() for library in _libraries()]
            _set([1] * len(_own))
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                _set(_own)


@contextmanager
def own_threads() -> Iterator[None]:
    """Inside, BLAS uses as many threads as it would if no solver ran."""
    with _lock:
        limited = _runs > 0
        if limited:
            _set(_own)
    try:
        yield
    finally:
        with _lock:
            if limited and _runs > 0:
                _set([1] * len(_own))
