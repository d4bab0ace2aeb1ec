"""Callbacks: what happens between two iterations, outside the solver's clock.

A callback is told when a run begins, of every iterate with its record, and when the run ends. Answering an
iterate with a `Status` stops the run for that reason.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from majorant.errors import MajorantError
from majorant.status import Evaluated, Record, Result, Status

if TYPE_CHECKING:
    from majorant.objective import Objective

__all__ = ["Callback", "Checkpoint", "Progress", "TimeLimit", "progress_fraction"]


class Callback:
    """The base of all callbacks; each method does nothing until overridden.

    >>> class StopAtTen(Callback):
    ...     def on_iterate(self, iterate, record):
    ...         return Status.STOPPED if record.iteration == 10 else None
    """

    def on_begin(self, objective: Objective, tol: float) -> None:
        """Before the first iterate."""

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        """After every iterate; return a `Status` to stop there."""
        return None

    def on_end(self, result: Result) -> None:
        """After the last iterate, whatever the reason."""


class TimeLimit(Callback):
    """Stop after so many seconds of solver time (callbacks and measuring not counted)."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise MajorantError(f"seconds must be positive, got {seconds!r}")
        self.seconds = seconds

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return Status.TIME_LIMIT if record.time >= self.seconds else None


class Checkpoint(Callback):
    """Write the iterate to a file every so many seconds, and at the end.

    The file is a .npy array of θ = (w, β), replaced whole: a reader finds the last one or the one before,
    never a torn one. `numpy.load` reads it back.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self._last = -math.inf

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._last = time.monotonic()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if time.monotonic() - self._last >= self.every:
            self._write(iterate)
        return None

    def on_end(self, result: Result) -> None:
        self._write(result.iterate)

    def _write(self, iterate: Evaluated) -> None:
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"there is no directory {str(self.path.parent)!r} for the checkpoint")
        descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                np.save(file, iterate.theta)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise
        self._last = time.monotonic()


class Progress(Callback):
    """A line per iteration, or per so many seconds, on a stream: how far, on a log10 scale."""

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
        print(line, file=self.stream or sys.stderr, flush=True)


def progress_fraction(error: float, tol: float) -> float:
    """How much of the way from a certificate of 1 to `tol` is done, on a log10 scale."""
    if error <= tol:
        return 1.0
    if not 0.0 < tol < 1.0 or not math.isfinite(error):
        return 0.0
    return min(max(math.log10(error) / math.log10(tol), 0.0), 1.0)
