"""Work on several blocks at the same time: compiled loops release the GIL, so plain threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Answer = TypeVar("Answer")

_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def together(tasks: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """The answers in the order of the tasks; the first is worked on by the caller itself."""
    global _pool
    if len(tasks) == 1:
        return [tasks[0]()]
    if _pool is None:
        # Which blocks there are does not depend on how many work on them, so neither does the answer.
        _pool = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="majorant")
    others = [_pool.submit(copy_context().run, task) for task in tasks[1:]]
    first = tasks[0]()
    return [first, *(other.result() for other in others)]
