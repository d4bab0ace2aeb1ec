"""The progress of runs: lines, or bars on a terminal."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TextIO

from majorant.callbacks.base import Callback, name_of, one_of_many
from majorant.rows.pass_hooks import Pass, between_blocks
from majorant.status import Evaluated, Record, Result, Status

if TYPE_CHECKING:
    from majorant.objective import Objective

# Seconds before the first bar is drawn (most fits have ended by then), and between two updates.
BEFORE_DRAWING = 0.5
BETWEEN_DRAWINGS = 0.1
# Seconds between two lines where bars cannot be drawn.
EVERY = 3.0


class _LabelledCallback(Callback):
    """A callback whose lines begin with the class of the problem, if a fit has several problems."""

    _label = ""

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        other = copy(self)
        other._label = name_of(classes, positive)
        return other


class Progress(_LabelledCallback):
    """A line per iteration, or every `every` seconds, on a stream; the fraction is on a log10 scale."""

    def __init__(self, every: float = 0.0, stream: TextIO | None = None) -> None:
        self.every = every
        self.stream = stream
        self._tol = 0.0
        self._last = -math.inf

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._tol = tol
        self._last = -math.inf

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self._print(
                f"iteration {record.iteration:5d}  {record.time:8.3f} s  "
                f"objective {record.objective:.8e}  {record.certificate} "
                f"({progress_fraction(record.certificate.error, self._tol):4.0%})  "
                f"non-zeros {record.nonzeros}"
            )
        return None

    def on_end(self, result: Result) -> None:
        self._print(f"{result.status.value} ({result.certificate})")

    def _print(self, line: str) -> None:
        print(self._label + line, file=self.stream or sys.stderr, flush=True)


class LiveProgress(_LabelledCallback):
    """A bar on a log10 scale from a certificate of 1 to `tol`, over all classes, and a line at the end.

    On a terminal the bar appears after half a second, with the time that is likely left, and disappears at
    the end. Elsewhere there is a line every few seconds.

    Parameters
    ----------
    every : float, default=3.0
        Seconds between two lines where there is no terminal.
    stream : text stream, optional
        By default stderr.
    """

    def __init__(self, every: float = 3.0, stream: TextIO | None = None) -> None:
        self._display = ProgressDisplay(every, stream)
        self._tol = 0.0
        self._n_problems = 1
        # How far each problem has come; shared by the copies for all classes.
        self._reached: dict[str, float] = {}

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        other = super().for_problem(classes, positive)
        assert isinstance(other, LiveProgress)
        other._n_problems = len(classes) if one_of_many(classes, positive) else 1
        return other

    def open(self) -> Self:
        """Keep the display for several runs, until `close`."""
        self._display.begin()
        return self

    def close(self, line: str = "") -> None:
        """Close the display with this line, also if a run has failed."""
        self._display.end(line, all_runs=True)

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._tol, self._reached[self._label] = tol, 0.0
        self._display.begin()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        # A certificate may increase for a while; the bar never shrinks.
        fraction = progress_fraction(record.certificate.error, self._tol)
        self._reached[self._label] = max(self._reached[self._label], fraction)
        state = f"iteration {record.iteration}  {record.certificate}  non-zeros {record.nonzeros}"
        self._display.show(sum(self._reached.values()) / self._n_problems, self._label + state)
        return None

    def on_pass(self, state: Pass) -> None:
        """Show the progress of a pass, between two blocks of rows that are read from a disk."""
        self._display.show_pass(state)

    def on_end(self, result: Result) -> None:
        self._reached[self._label] = 1.0
        self._display.end(self._label + last_line(result.status, str(result.certificate), result.n_iter))


class ModelsProgress:
    """A bar that counts the models of a path, or of all folds; lines without a terminal.

    For rows that are read block by block, it shows the progress of each pass as well.

    >>> with ModelsProgress(100, shown=False) as progress:
    ...     progress.advance("3 features")

    Parameters
    ----------
    total : int
        The largest number of models. May be set later, before the first model: a pass over the rows may
        come first.
    shown : bool, default=True
        False: no output.
    stream : text stream, optional
        By default stderr.
    """

    def __init__(self, total: int = 0, *, shown: bool = True, stream: TextIO | None = None) -> None:
        self.total, self.shown = total, shown
        self._display = ProgressDisplay(EVERY, stream)
        self._lock = threading.Lock()
        self._done = 0
        self._watching = between_blocks(self._display.show_pass) if shown else nullcontext()

    def __enter__(self) -> Self:
        self._display.begin()
        self._watching.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._watching.__exit__(None, None, None)
        self._display.end("", all_runs=True)

    def advance(self, state: str = "") -> None:
        """Count a finished model, with a description of it."""
        if not self.shown:
            return
        with self._lock:
            self._done += 1
            done = self._done
        self._display.show(done / self.total, f"model {done} of {self.total}  {state}")


class ProgressDisplay:
    """One bar over all current runs; the display closes when the last run has ended."""

    def __init__(self, every: float, stream: TextIO | None) -> None:
        self.every, self.stream = every, stream
        self._lock = threading.Lock()
        self._runs = 0
        self._shown = 0.0
        self._bar: Any = None
        self._since = 0.0
        self._latest: tuple[float, str] = (0.0, "")

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgressDisplay, (self.every, self.stream)  # a lock and a terminal cannot be pickled

    @property
    def _file(self) -> TextIO:
        return self.stream or sys.stderr

    @property
    def _drawn(self) -> bool:
        """Whether a bar can be redrawn in place."""
        return self._file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")

    def begin(self, line: str = "") -> None:
        """Start a run; without a terminal, the first run prints the line, if there is one."""
        with self._lock:
            if self._runs == 0:
                if line and not self._drawn:
                    print(line, file=self._file, flush=True)
                first = BEFORE_DRAWING - BETWEEN_DRAWINGS if self._drawn else 0.0
                self._since, self._latest = time.monotonic(), (0.0, "")
                self._shown = self._since + first
            self._runs += 1

    def show_pass(self, state: Pass) -> None:
        """Show the progress of a pass after the latest state."""
        fraction, text = self._latest
        reading = f"pass {state.number}: {state.done / state.blocks:.0%} of {state.expected:.2g} s"
        self.show(fraction, f"{text}  {reading}".lstrip(), latest=False)

    def show(self, fraction: float, state: str, label: str = "", *, latest: bool = True) -> None:
        """Show how far the runs have come, if enough time has passed since the last update."""
        with self._lock:
            if latest:
                self._latest = fraction, state
            drawn, now = self._drawn, time.monotonic()
            due = now - self._shown >= (BETWEEN_DRAWINGS if drawn else self.every)
            if due:
                self._shown = now
            spent = now - self._since
            if drawn and (due or self._bar is not None):
                self._draw(fraction, state, label, f"{duration(spent)}{time_left(fraction, spent)}")
                if due:
                    self._bar.refresh()
            elif due:
                left = time_left(fraction, spent)
                print(f"{label}{fraction:4.0%}  {spent:.1f} s{left}  {state}", file=self._file, flush=True)

    def _draw(self, fraction: float, state: str, label: str, times: str) -> None:
        if self._bar is None:
            self._bar = _make_bar(self._file)
            self._bar.add_task(label, total=1.0, state=state, times=times)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=fraction, state=state, times=times)

    def end(self, line: str, *, all_runs: bool = False) -> None:
        """End a run; after the last one, close the display and print the line, if there is one."""
        with self._lock:
            self._runs = 0 if all_runs else self._runs - 1
            if self._runs > 0:
                return
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
            if line:
                print(line, file=self._file, flush=True)


def _make_bar(file: TextIO) -> Any:
    """A bar without automatic refresh: a refreshing thread would take time from the solver."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[times]}", markup=False),
        TextColumn("{task.fields[state]}", markup=False),
    )
    return Progress(*columns, console=Console(file=file), transient=True, auto_refresh=False)


def duration(seconds: float) -> str:
    """A time in the unit that suits its length.

    >>> duration(8.2), duration(75.0), duration(9000.0)
    ('8 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60.0:
        return f"{seconds:.0f} s"
    large, small, units = (60, 1, ("min", "s")) if seconds < 3600.0 else (3600, 60, ("h", "min"))
    return f"{int(seconds // large)} {units[0]} {int(seconds % large // small)} {units[1]}"


def time_left(fraction: float, spent: float) -> str:
    """The expected time left, once a twentieth is done and a second has passed."""
    if fraction < 0.05 or spent < 1.0:
        return ""
    return f", {duration(spent * (1.0 - fraction) / fraction)} left"


def last_line(status: Status, certificate: str, n_iter: int) -> str:
    """The line that is printed at the end."""
    return f"{status.value} ({certificate}, {n_iter} iteration{'' if n_iter == 1 else 's'})"


def progress_fraction(error: float, tol: float) -> float:
    """The progress from a certificate of 1 to `tol`, as a fraction on a log10 scale."""
    if error <= tol:
        return 1.0
    if not 0.0 < tol < 1.0 or not math.isfinite(error):
        return 0.0
    return min(max(math.log10(error) / math.log10(tol), 0.0), 1.0)
