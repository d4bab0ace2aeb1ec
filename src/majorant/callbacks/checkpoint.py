"""Checkpoints: the iterate in a file, and runs that resume from there."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.callbacks.base import Callback, can_begin_at, one_of_many
from majorant.errors import MajorantError
from majorant.files import atomic_write, check_writable
from majorant.status import Evaluated, Record, Result, Status

if TYPE_CHECKING:
    from majorant.objective import Objective

# The relative tolerance for equal problems: the same rows in other blocks have sums with other last digits.
AGREEMENT = 1e-9


class Checkpoint(Callback):
    """Write the iterate to a file at regular intervals and at the end, also after an error.

    The file is an .npz archive that is replaced as a whole: a reader finds the last checkpoint or the one
    before, never a torn file. ``numpy.load(path)["theta"]`` is θ = (w, β); the other arrays identify the
    problem. With a problem for every class, each has a file of its own: for "fit.npz", the first class has
    "fit-0.npz".

    ``SparseSVC().fit(X, y, checkpoint="fit.npz")`` makes a checkpoint that resumes, and removes the file at
    the end.

    Parameters
    ----------
    path : path
    every : float, default=60.0
        Seconds between two checkpoints.
    resume : bool, default=False
        Start from the θ of the file, if the file exists. It must be of the same problem: rows, labels,
        weights and penalty; solver, `tol` and `max_iter` may differ. Where Φ is convex, the result is the
        same as without interruption, within `tol`; elsewhere the descent continues towards the same local
        minimum. Stochastic solvers restart their schedule of steps.
    """

    def __init__(self, path: str | os.PathLike[str], every: float = 60.0, *, resume: bool = False) -> None:
        self.path = Path(path)
        self.every = every
        self.resume = resume
        self._last = -math.inf
        self._problem: dict[str, NDArray[Any]] = {}
        self._convex = True
        # Shared by the copies for all classes: the files written, and each last θ not yet written.
        self._written: set[Path] = set()
        self._unwritten: dict[Path, tuple[NDArray[np.float64], dict[str, NDArray[Any]]]] = {}

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        other = copy(self)
        if one_of_many(classes, positive):
            other.path = self.path.with_stem(f"{self.path.stem}-{list(classes).index(positive)}")
        return other

    def on_begin(self, objective: Objective, tol: float) -> None:
        check_writable(self.path, overwrite=True)  # an error now, not after the fit
        self._problem, self._convex = _problem(objective), objective.potential.convex
        self.start_theta = self._read() if self.resume and self.path.exists() else None
        self._last = time.monotonic()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if can_begin_at(iterate, convex=self._convex):
            self._unwritten[self.path] = iterate.theta, self._problem
            if time.monotonic() - self._last >= self.every:
                self._write(self.path)
        return None

    def on_end(self, result: Result) -> None:
        self._unwritten[self.path] = result.iterate.theta, self._problem
        self._write(self.path)

    def save(self) -> None:
        """Write the iterates not yet written, after a fit that ended early."""
        for path in list(self._unwritten):
            self._write(path)

    def remove(self) -> None:
        """Remove the files written: the run is complete."""
        for path in self._written:
            with suppress(FileNotFoundError):
                path.unlink()

    @property
    def written(self) -> bool:
        """Whether there is a file to resume from."""
        return any(path.exists() for path in self._written)

    def _write(self, path: Path) -> None:
        theta, problem = self._unwritten[path]
        arrays: dict[str, Any] = {"theta": theta, **problem}
        with atomic_write(path) as file:
            np.savez(file, **arrays)
        del self._unwritten[path]
        self._written.add(path)
        self._last = time.monotonic()

    def _read(self) -> NDArray[np.float64]:
        try:
            with np.load(self.path, allow_pickle=False) as file:
                found = {name: file[name] for name in ("theta", *self._problem)}
        except Exception as error:  # numpy raises many types for other files
            raise MajorantError(
                f"{str(self.path)!r} is no checkpoint to resume from: remove it, or name another file"
            ) from error
        if not _same(found, self._problem):
            raise MajorantError(
                f"{str(self.path)!r} is the checkpoint of another problem (other rows, labels, weights or "
                "penalty): remove it, or name another file"
            )
        theta: NDArray[np.float64] = found["theta"]
        return theta


def _problem(objective: Objective) -> dict[str, NDArray[Any]]:
    """Numbers that identify a problem: sums over its rows, and its penalty at a few points."""
    rows = objective.classes
    points = np.geomspace(1e-6, 1e3, 10)
    return {
        "weight": np.array([part.loss_at_zero.value for part in rows]),
        "gradient": np.stack([part.loss_at_zero.gradient for part in rows]),
        "squares": rows[0].gram_diagonal,
        "penalty": np.append(objective.potential.value(points), [objective.eta, float(len(rows) > 1)]),
        "factor": objective.factor,
    }


def _same(found: Mapping[str, NDArray[Any]], problem: Mapping[str, NDArray[Any]]) -> bool:
    shapes = all(
        found[name].shape == array.shape and found[name].dtype == array.dtype
        for name, array in problem.items()
    )
    size = problem["gradient"].size
    if not shapes or found["theta"].shape != (size,) or not np.isfinite(found["theta"]).all():
        return False
    plain = ("weight", "squares", "penalty", "factor")
    if not all(np.allclose(found[name], problem[name], rtol=AGREEMENT, atol=0.0) for name in plain):
        return False
    # Terms of a gradient may cancel: the tolerance is relative to the largest possible gradient.
    largest = 2.0 * np.sqrt(np.outer(problem["weight"], problem["squares"]))
    return bool(np.all(np.abs(found["gradient"] - problem["gradient"]) <= AGREEMENT * largest))
