"""Callbacks: what happens between two iterations, outside the solver's clock.

A callback is told when a run begins, of every iterate with its record, and when the run ends. Answering an
iterate with a `Status` stops the run for that reason. A fit is one run, or one for every class against the
rest: `for_problem` is then asked for a callback for each, since classes may be trained at the same time.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant.errors import MajorantError
from majorant.files import replacing
from majorant.status import Evaluated, Record, Result, Status, Vector

if TYPE_CHECKING:
    from majorant.objective import Objective

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "LiveProgress",
    "Progress",
    "TimeLimit",
    "progress_fraction",
]

# Seconds before the first bar is drawn (most fits are over by then), and between two drawings.
BEFORE_DRAWING = 0.5
BETWEEN_DRAWINGS = 0.1


class Callback:
    """The base of all callbacks; each method does nothing until overridden.

    >>> class StopAtTen(Callback):
    ...     def on_iterate(self, iterate, record):
    ...         return Status.STOPPED if record.iteration == 10 else None
    """

    best_theta: Vector | None = None
    """The θ to keep instead of the last one: the driver looks here when a run has ended."""

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        """The callback for one problem of a fit: itself, unless overridden.

        Parameters
        ----------
        classes : sequence
            All labels, in order.
        positive : label or None
            The class that is trained against the rest (of two classes, the second); None: all at once.
        """
        return self

    def on_begin(self, objective: Objective, tol: float) -> None:
        """Before the first iterate."""

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        """After every iterate; return a `Status` to stop there."""
        return None

    def on_end(self, result: Result) -> None:
        """After the last iterate, whatever the reason."""


class TimeLimit(Callback):
    """Stop after so many seconds of solver time (callbacks and measuring not counted).

    With a problem for every class, each of them has that time.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise MajorantError(f"seconds must be positive, got {seconds!r}")
        self.seconds = seconds

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return Status.TIME_LIMIT if record.time >= self.seconds else None


class Checkpoint(Callback):
    """Write the iterate to a file every so many seconds, and at the end.

    The file is a .npy array of θ = (w, β), replaced whole: a reader finds the last one or the one before,
    never a torn one. `numpy.load` reads it back. With a problem for every class, each has a file of its own:
    of "theta.npy", the first class has "theta-0.npy".
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self._last = -math.inf

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        if not _one_of_many(classes, positive):
            return self
        twin = copy(self)
        twin.path = self.path.with_stem(f"{self.path.stem}-{list(classes).index(positive)}")
        return twin

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._last = time.monotonic()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if time.monotonic() - self._last >= self.every:
            self._write(iterate)
        return None

    def on_end(self, result: Result) -> None:
        self._write(result.iterate)

    def _write(self, iterate: Evaluated) -> None:
        with replacing(self.path) as file:
            np.save(file, iterate.theta)
        self._last = time.monotonic()


class EarlyStopping(Callback):
    """Stop when the model gets no better on other rows, and keep the one that was best there.

    What is best is the accuracy on the validation rows; of a class against the rest, the mean of the accuracy
    on that class and of that on the rest, since "never this class" is right for most rows. Of equally good
    models, the last is kept. Where the best is not the last one, a run that has converged or stalled has the
    status `Status.STOPPED`, unless the best one is within the tolerance as well.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
        Validation rows, prepared (scaled, …) like those that are trained on.
    y : array (n_samples,)
        Their labels; without an estimator, 1 and anything else.
    patience : int, default=5
        Stop after so many iterations without improvement. Iterations that leave θ as it was do not count.
    tol : float, default=0.0
        Only scores higher by more than this count as an improvement.
    sample_weight : array (n_samples,), optional
        Weights of the validation rows.

    Attributes
    ----------
    best_theta : array
        The best θ = (w, β) of the last run; None before the first run, and with a problem for every class.
    best_score : float
        Its score.
    by_class : dict
        With a problem for every class, the callback of each, with its `best_theta` and `best_score`.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        patience: int = 5,
        tol: float = 0.0,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        from sklearn.utils import check_X_y
        from sklearn.utils.validation import _check_sample_weight

        if patience < 1 or not tol >= 0.0:
            raise MajorantError(f"patience={patience!r} must be at least 1, and tol={tol!r} not negative")
        self.X, self.y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.patience, self.tol = patience, tol
        self.sample_weight: Vector = _check_sample_weight(sample_weight, self.X, dtype=np.float64)
        if np.any(self.sample_weight < 0.0) or not self.sample_weight.any():
            raise MajorantError("sample_weight must be non-negative, and positive for some row")
        self.by_class: dict[Any, EarlyStopping] = {}
        self._codes: NDArray[np.intp] = (self.y == 1).astype(np.intp)
        self._balanced = False
        self._asked: EarlyStopping | None = None
        self._reset()

    def _reset(self) -> None:
        self.best_theta, self.best_score = None, -math.inf
        self._last: Vector | None = None
        self._to_beat, self._waited = -math.inf, 0

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        codes = {label: code for code, label in enumerate(classes)}
        unknown = sorted(set(self.y.tolist()) - codes.keys(), key=str)
        if unknown:
            raise MajorantError(
                f"EarlyStopping has validation rows with labels that are not trained on: {unknown}"
            )
        # Clones of an estimator share their callbacks and may be fitted at the same time.
        watcher = copy(self)
        watcher._balanced = _one_of_many(classes, positive)
        if positive is None:
            watcher._codes = np.array([codes[label] for label in self.y.tolist()], dtype=np.intp)
        else:
            watcher._codes = (self.y == positive).astype(np.intp)
        if watcher._balanced:
            if positive == classes[0]:
                self._reset()
                self.by_class = {}
            self.by_class[positive] = watcher
        else:
            watcher._asked = self
        return watcher

    def on_begin(self, objective: Objective, tol: float) -> None:
        expected, given = len(objective.factor), self.X.shape[1]
        if given != expected:
            raise MajorantError(
                f"EarlyStopping has validation rows with {given} features, and the model is trained on "
                f"{expected}"
            )
        self._reset()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if self._last is not None and np.array_equal(self._last, iterate.theta):
            return None
        self._last = iterate.theta.copy()
        score = self.score(self._last)
        if score >= self.best_score:
            self.best_theta, self.best_score = self._last, score
        if score > self._to_beat + self.tol:
            self._to_beat, self._waited = score, 0
        else:
            self._waited += 1
        return Status.STOPPED if self._waited >= self.patience else None

    def on_end(self, result: Result) -> None:
        if self._asked is not None:
            self._asked.best_theta, self._asked.best_score = self.best_theta, self.best_score

    def score(self, theta: Vector) -> float:
        """What is compared: the accuracy of θ on the validation rows (see above for one class of many)."""
        rows = theta.reshape(-1, self.X.shape[1] + 1)
        decisions = self.X @ rows[:, :-1].T + rows[:, -1]
        predicted = decisions.argmax(axis=1) if len(rows) > 1 else (decisions[:, 0] > 0.0).astype(np.intp)
        right = predicted == self._codes
        parts = [self._codes == code for code in (0, 1)] if self._balanced else [np.full(len(right), True)]
        shares = [
            float(self.sample_weight[part] @ right[part] / self.sample_weight[part].sum())
            for part in parts
            if self.sample_weight[part].any()
        ]
        return sum(shares) / len(shares)


class Progress(Callback):
    """A line per iteration, or per so many seconds, on a stream: how far, on a log10 scale."""

    def __init__(self, every: float = 0.0, stream: TextIO | None = None) -> None:
        self.every = every
        self.stream = stream
        self._label = ""
        self._tol = 0.0
        self._last = -math.inf

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        twin = copy(self)
        twin._label = _name_of(classes, positive)
        return twin

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


class LiveProgress(Callback):
    """A bar on a log10 scale from a certificate of 1 to `tol`, and a line when all is done.

    On a terminal the bar is drawn in place (one for each class that is being trained) once half a second has
    passed, and goes away. Elsewhere there is a line every few seconds.

    Parameters
    ----------
    every : float, default=3.0
        Seconds between two lines where there is no terminal.
    stream : text stream, optional
        Where to; by default stderr.
    """

    def __init__(self, every: float = 3.0, stream: TextIO | None = None) -> None:
        self._display = _Display(every, stream)
        self._label = ""
        self._tol = 0.0
        self._reached = 0.0

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        twin = copy(self)
        twin._label = _name_of(classes, positive)
        return twin

    def open(self) -> Self:
        """Keep the display for several runs, up to `close`."""
        self._display.begin()
        return self

    def close(self, line: str = "") -> None:
        """End what `open` began, with this line, also if a run has failed."""
        self._display.end(line, all_runs=True)

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._tol, self._reached = tol, 0.0
        self._display.begin()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        # A certificate may rise for a while; a bar that shrinks would say that work was lost.
        fraction = progress_fraction(record.certificate.error, self._tol)
        self._reached = max(self._reached, fraction)
        self._display.show(id(self), self._label, self._reached, record)
        return None

    def on_end(self, result: Result) -> None:
        self._display.remove(id(self))
        self._display.end(self._label + last_line(result.status, str(result.certificate), result.n_iter))


class _Display:
    """Where the bars of all runs under way are drawn; it closes when the last of them has ended."""

    def __init__(self, every: float, stream: TextIO | None) -> None:
        self.every, self.stream = every, stream
        self._lock = threading.Lock()
        self._runs = 0
        self._shown = 0.0
        self._bars: Any = None
        self._tasks: dict[int, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Display, (self.every, self.stream)  # a lock and a terminal stay in their process

    @property
    def _file(self) -> TextIO:
        return self.stream or sys.stderr

    @property
    def _drawn(self) -> bool:
        """Whether bars can be redrawn in place."""
        return self._file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")

    def begin(self) -> None:
        with self._lock:
            if self._runs == 0:
                first = BEFORE_DRAWING - BETWEEN_DRAWINGS if self._drawn else 0.0
                self._shown = time.monotonic() + first
            self._runs += 1

    def show(self, run: int, label: str, fraction: float, record: Record) -> None:
        with self._lock:
            drawn, now = self._drawn, time.monotonic()
            due = now - self._shown >= (BETWEEN_DRAWINGS if drawn else self.every)
            if due:
                self._shown = now
            state = f"iteration {record.iteration}  {record.certificate}  non-zeros {record.nonzeros}"
            if drawn and (due or self._bars is not None):
                self._update(run, label, fraction, state)
                if due:
                    self._bars.refresh()
            elif due:
                print(f"{label}{fraction:4.0%}  {record.time:.1f} s  {state}", file=self._file, flush=True)

    def _update(self, run: int, label: str, fraction: float, state: str) -> None:
        if self._bars is None:
            self._bars = _make_bars(self._file)
            self._bars.start()
        if run not in self._tasks:
            self._tasks[run] = self._bars.add_task(label, total=1.0, state=state)
        self._bars.update(self._tasks[run], completed=fraction, state=state)

    def remove(self, run: int) -> None:
        """Forget the bar of a run."""
        with self._lock:
            if run in self._tasks:
                self._bars.remove_task(self._tasks.pop(run))

    def end(self, line: str, *, all_runs: bool = False) -> None:
        """One run less; after the last, the line is printed, if there is one."""
        with self._lock:
            self._runs = 0 if all_runs else self._runs - 1
            if self._runs > 0:
                return
            if self._bars is not None:
                self._bars.stop()
                self._bars, self._tasks = None, {}
            if line:
                print(line, file=self._file, flush=True)


def _make_bars(file: TextIO) -> Any:
    """Bars that are drawn when told to: a thread that redraws them would take time from the solver."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[state]}", markup=False),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(file=file), transient=True, auto_refresh=False)


def last_line(status: Status, certificate: str, n_iter: int) -> str:
    """What is printed when all is done."""
    return f"{status.value} ({certificate}, {n_iter} iteration{'' if n_iter == 1 else 's'})"


def _one_of_many(classes: Sequence[Any], positive: Any) -> bool:
    """Whether the problem is one class of more than two against the rest."""
    return positive is not None and len(classes) > 2


def _name_of(classes: Sequence[Any], positive: Any) -> str:
    """What to put before the lines of a problem, if there are several."""
    if not _one_of_many(classes, positive):
        return ""
    return f"class {positive!r} ({list(classes).index(positive) + 1} of {len(classes)})  "


def progress_fraction(error: float, tol: float) -> float:
    """How much of the way from a certificate of 1 to `tol` is done, on a log10 scale."""
    if error <= tol:
        return 1.0
    if not 0.0 < tol < 1.0 or not math.isfinite(error):
        return 0.0
    return min(max(math.log10(error) / math.log10(tol), 0.0), 1.0)
