"""How long a run may take, and what is left if it does not end by itself."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.callbacks.base import Callback, one_of_many
from majorant.errors import MajorantError
from majorant.files import replacing
from majorant.status import Evaluated, Record, Result, Status

if TYPE_CHECKING:
    from majorant.objective import Objective


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
        if not one_of_many(classes, positive):
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
