"""Functions that are called after each block of a pass, to show its progress or to end it.

A pass over rows on a disk or on a cluster may take minutes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from majorant.interrupts import check


@dataclass(frozen=True)
class Pass:
    """The progress of one pass over all blocks."""

    number: int
    """The number of the pass, counted from 1 for every store."""
    done: int
    """The number of blocks that are done."""
    blocks: int
    """The number of all blocks."""
    seconds: float
    """The time since the pass began."""

    @property
    def expected(self) -> float:
        """The expected seconds of the whole pass, if the other blocks take as long as those done."""
        return self.seconds * self.blocks / self.done if self.done else math.inf


Watcher: TypeAlias = Callable[[Pass], None]

_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("_WATCHERS", default=())


@contextmanager
def between_blocks(watcher: Watcher) -> Iterator[None]:
    """Inside, call a function after every block of this thread's passes; an error in it ends the pass."""
    token = _WATCHERS.set((*_WATCHERS.get(), watcher))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


def call_watchers(state: Pass) -> None:
    """Call all watchers; raise `KeyboardInterrupt` if the pass is to end."""
    check()
    for watcher in _WATCHERS.get():
        watcher(state)
