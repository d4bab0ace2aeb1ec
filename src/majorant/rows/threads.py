"""Work on several blocks at the same time: compiled loops release the GIL, so plain threads are enough.

How the rows are cut into blocks depends only on the data (`blocks_for`), and the answers of the blocks are
added in block order: the number of threads changes no bit of a result.

Written by hand because the tasks are short: a task in a `ThreadPoolExecutor` has an overhead of 0.07 ms on
two cores, here 0.04 ms, and a pass over the rows of a small problem takes 0.1 ms.
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

# The largest number of blocks of rows in memory, and the entries per block if there are more than two blocks.
# (With 200,000 entries, 8 blocks instead of 2, fits on rcv1_subset took 1.2 times as long on two cores.)
MAX_BLOCKS = 64
ENTRIES_PER_BLOCK = 600_000

Inbox: TypeAlias = SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]]]
"""Tasks, each with the queue for its outcome: (answer, None) or (None, error)."""

_this_thread = threading.local()


def blocks_for(entries: int, least: float) -> int:
    """The number of blocks for a number of entries: a power of two, so that the cores have equal work.

    Two blocks from `least` entries on; more if each block has at least `ENTRIES_PER_BLOCK` and `least`.
    """
    if entries < least:
        return 1
    count = int(entries / max(ENTRIES_PER_BLOCK, least))
    return min(MAX_BLOCKS, 1 << max(1, count.bit_length() - 1))


def n_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_map(tasks: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """The answers in the order of the tasks, which run on all cores; the calling thread runs some of them.

    Each thread gets all of its tasks at once, since passing a task takes longer than many tasks do.
    """
    check()
    threads = min(len(tasks), _threads())
    if threads <= 1:
        return _run(tasks)
    first, *others = (tasks[part] for part in even_parts(len(tasks), threads))
    replies: list[SimpleQueue[Any]] = []
    for group in others:
        replies.append(SimpleQueue())
        _worker_inbox().put((in_context(partial(_run, group)), replies[-1]))
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
    """`count` slices of equal size that cover a list of that length."""
    bounds = [length * k // count for k in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def map_parts(question: Callable[[slice], Answer], length: int, count: int) -> list[Answer]:
    """The answers for `count` equal slices of a list of that length, computed on all cores."""
    return parallel_map([partial(question, part) for part in even_parts(length, count)])


def _threads() -> int:
    if getattr(_this_thread, "serial", False):  # a worker thread must not wait for the worker threads
        return 1
    if not hasattr(_this_thread, "cores"):
        _this_thread.cores = n_cores()
    return int(_this_thread.cores)


def _run(tasks: Sequence[Callable[[], Answer]]) -> list[Answer]:
    return [task() for task in tasks]


def use_one_thread() -> None:
    """From now on, this thread runs all its tasks itself: other threads use the other cores."""
    _this_thread.serial = True


@contextmanager
def one_core() -> Iterator[None]:
    """Inside, this thread runs all its tasks itself, on one core."""
    before = getattr(_this_thread, "serial", False)
    _this_thread.serial = True
    try:
        yield
    finally:
        _this_thread.serial = before


def in_context(task: Callable[[], Answer]) -> Callable[[], Answer]:
    """The task with the caller's context, which holds numpy's setting for overflow."""
    context = copy_context()
    return lambda: context.run(task)


@cache
def _worker_inbox() -> Inbox:
    """The inbox of the worker threads, which are started at the first call."""
    # If two threads make the first call at the same time, the workers of one of two inboxes stay idle.
    inbox: Inbox = SimpleQueue()
    for _ in range(max(1, n_cores() - 1)):
        threading.Thread(target=_work, args=(inbox,), name="majorant worker", daemon=True).start()
    return inbox


def _work(inbox: Inbox) -> None:
    use_one_thread()
    while True:
        task, reply = inbox.get()
        try:
            reply.put((task(), None))
        except BaseException as error:
            reply.put((None, error))
        del task, reply  # or the rows would stay in memory until the next task


if hasattr(os, "register_at_fork"):  # a forked process does not have the threads of its parent
    os.register_at_fork(after_in_child=_worker_inbox.cache_clear)
