"""How many threads BLAS may use.

The rows are worked on by threads of our own (`rows/threads.py`), and those of BLAS are in the way: after
every call they spin for milliseconds in case another call comes, and take the core that another block of rows
needs (on w8a a pass took 0.77 ms instead of 0.40). Two libraries that each bring a BLAS, numpy and scipy, are
in each other's way as well. On a machine that is busy with other work, spinning threads wait for each other
most of the time. So BLAS has one thread while a solver runs.

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
