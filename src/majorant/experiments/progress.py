"""How far a study has come: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

__all__ = ["Progress"]


class Progress:
    """Counts cells, and says how long the rest will take.

    Parameters
    ----------
    stream : text stream, optional
        Where to; by default stderr.
    every : float
        Seconds between two lines where there is no terminal.
    """

    def __init__(self, stream: TextIO | None = None, every: float = 10.0) -> None:
        self.stream = stream or sys.stderr
        self.every = every
        self._bar: Any = None

    def begin(self, what: str, count: int, weight: float) -> None:
        """A phase of `count` cells begins, whose weights add up to `weight`."""
        self.what, self.count, self.weight = what, count, weight
        self.done, self.weight_done = 0, 0.0
        self._start = self._last = time.monotonic()
        if count and self.stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn(what), BarColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Console(file=self.stream), transient=True)
            self._bar.start()
            self._bar.add_task("", total=max(weight, 1e-9))
        elif count:
            self._say(f"{what}: {count} cells")

    def advance(self, label: str, weight: float) -> None:
        """A cell is done."""
        self.done += 1
        self.weight_done += weight
        if self._bar is not None:
            self._bar.update(0, completed=self.weight_done, description=f"{self._state()}  {label}")
        elif time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self._say(f"{self.what}: {self._state()}  {label}")

    def end(self) -> None:
        """The phase is over, or was interrupted."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @property
    def left(self) -> float:
        """About how many seconds are left."""
        passed = time.monotonic() - self._start
        return passed * (self.weight - self.weight_done) / self.weight_done if self.weight_done else 0.0

    def _state(self) -> str:
        return f"{self.done} of {self.count} cells, {duration(self.left)} left"

    def _say(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


class Silent(Progress):
    """Says nothing."""

    def begin(self, what: str, count: int, weight: float) -> None:
        pass

    def advance(self, label: str, weight: float) -> None:
        pass

    def end(self) -> None:
        pass


def duration(seconds: float) -> str:
    """About how long, for people: 40 s, 3 min 20 s."""
    whole = round(seconds)
    return f"about {whole} s" if whole < 100 else f"about {whole // 60} min {whole % 60} s"
