"""What happens between two blocks of rows that are read one after the other: a pass may take minutes.

Functions that show how far a pass has come, or end it, are called there.
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
    """How far one pass over all blocks has come."""

    number: int
    """Counted from 1, by reader."""
    done: int
    """Blocks that are dealt with."""
    blocks: int
    """Blocks in all."""
    seconds: float
    """Since it began."""

    @property
    def expected(self) -> float:
        """The seconds that it will take in all, if it goes on like this."""
        return self.seconds * self.blocks / self.done if self.done else math.inf


Watcher: TypeAlias = Callable[[Pass], None]

_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("_WATCHERS", default=())


@contextmanager
def between_blocks(watcher: Watcher) -> Iterator[None]:
    """Have a function called after every block, in this thread; what it raises ends the pass."""
    token = _WATCHERS.set((*_WATCHERS.get(), watcher))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


def call_watchers(state: Pass) -> None:
    """Tell all of them; and end the pass if its end is wanted."""
    check()
    for watcher in _WATCHERS.get():
        watcher(state)
