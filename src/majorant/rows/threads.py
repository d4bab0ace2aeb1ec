"""Work on several blocks at the same time: compiled loops release the GIL, so plain threads are enough.

How the rows are cut into blocks depends on the data alone (`blocks_for`), and what the blocks answer is added
up in their order: so the number of threads changes no bit of a result.

Written by hand because the tasks are short: handing one to a `ThreadPoolExecutor` and getting its answer back
took 0.07 ms on two cores, this takes 0.04, and a pass over the rows of a small problem 0.1.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from majorant.interrupts import check

Answer = TypeVar("Answer")

# The most blocks that rows in memory are cut into, and the entries of each, if there are more than two. (With
# 200,000 entries, and so 8 blocks instead of 2, fits on rcv1_subset took 1.2 times as long on two cores.)
MAX_BLOCKS = 64
ENTRIES_PER_BLOCK = 600_000

Inbox: TypeAlias = SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]]
"""Tasks, each with the queue for its outcome: (answer, None) or (None, error)."""

_here = threading.local()


def blocks_for(entries: int, least: float) -> int:
    """The number of blocks for a number of entries: a power of two, so that all cores have as much to do.

    From `least` entries on there are two blocks, and more while each has `ENTRIES_PER_BLOCK` and `least`.
    """
    if entries < least:
        return 1
    count = int(entries / max(ENTRIES_PER_BLOCK, least))
    return min(MAX_BLOCKS, 1 << max(1, count.bit_length() - 1))


def n_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(tasks: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """The answers in the order of the tasks, which the cores share; the caller is one of them.

    Each thread is handed its tasks at once, since a hand-over takes longer than many a task.
    """
    check()
    threads = min(len(tasks), _threads())
    if threads <= 1:
        return _run(tasks)
    first, *others = (tasks[part] for part in even_parts(len(tasks), threads))
    replies: list[SimpleQueue[Any]] = []
    for group in others:
        replies.append(SimpleQueue())
        _hired().put((in_context(partial(_run, group)), replies[-1]))
    try:
        answers = _run(first)
    finally:
        outcomes = [reply.get() for reply in replies]
    for found, error in outcomes:
        if error is not None:
            raise error
        answers += found
    return answers


def even_parts(length: int, count: int) -> list[slice]:
    """Slices that cut a list of that length into as many parts."""
    bounds = [length * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def map_parts(question: Callable[[slice], Answer], length: int, count: int) -> list[Answer]:
    """The answers for `count` parts of a list of that length; the cores share the parts."""
    return parallel_map([partial(question, part) for part in even_parts(length, count)])


def _threads() -> int:
    if getattr(_here, "serial", False):  # a worker that waited for others might wait for itself
        return 1
    if not hasattr(_here, "cores"):
        _here.cores = n_cores()
    return int(_here.cores)


def _run(tasks: Sequence[Callable[[], Answer]]) -> list[Answer]:
    return [task() for task in tasks]


def work_alone() -> None:
    """Let this thread do all of its work by itself: there are others beside it that are busy."""
    _here.serial = True


@contextmanager
def alone() -> Iterator[None]:
    """Let this thread do all of its work by itself meanwhile, so that it takes the time of one core."""
    before = getattr(_here, "serial", False)
    _here.serial = True
    try:
        yield
    finally:
        _here.serial = before


def in_context(task: Callable[[], Answer]) -> Callable[[], Answer]:
    """The task, with the caller's context: numpy keeps there what to do about overflow."""
    context = copy_context()
    return lambda: context.run(task)


@cache
def _hired() -> Inbox:
    """The inbox of the workers."""
    # If two threads call this first at the same time, the workers of one of the two inboxes stay idle.
    inbox: Inbox = SimpleQueue()
    for _ in range(max(1, n_cores() - 1)):
        threading.Thread(target=_work, args=(inbox,), name="majorant worker", daemon=True).start()
    return inbox


def _work(inbox: Inbox) -> None:
    work_alone()
    while True:
        task, reply = inbox.get()
        try:
            reply.put((task(), None))
        except BaseException as error:
            reply.put((None, error))
        del task, reply  # not to keep the rows alive until the next task


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_hired.cache_clear)
