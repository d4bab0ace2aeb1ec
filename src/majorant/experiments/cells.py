"""One cell of the study: run a method on a problem, and write down all that tables and figures need."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.experiments.protocol import DataSet, Method, Regulariser, Task, as_plain
from majorant.experiments.splits import Split, load_split
from majorant.objective import Objective
from majorant.potentials import Hyperbolic, Potential, Welsch, Zero
from majorant.rows import MemoryRows
from majorant.rows.threads import alone
from majorant.solvers import Hybrid, Solver, make_solver, solve
from majorant.status import Evaluated, Record, Status, Vector

__all__ = ["make_objective", "run"]

# A cell that takes this long is not repeated for a better time.
LONG = 1.0


def run(task: Task) -> dict[str, Any]:
    """The record of a task, as it is written to the results.

    Parameters
    ----------
    task : Task

    Returns
    -------
    dict
        `phi`, `time`, `zeros` and `positives` (true and false ones among the test rows) have an entry for
        each iteration, from θ(0) on; `confusion` counts the test rows at the end: true positives, false
        positives, false negatives, true negatives.
    """
    split = load_split(task.data, task.split)
    if task.method.solver == "liblinear":
        from majorant.experiments.peers import liblinear_trace

        found = liblinear_trace(task, split)
    else:
        found = _solved(task, split)
    theta = found.pop("theta")
    shape = {
        "n_train": len(split.y),
        "n_test": len(split.y_test),
        "n_features": len(theta) - 1,
        "test_positives": int(np.sum(split.y_test > 0)),
    }
    kept = {"theta": theta.tolist()} if task.keep_theta else {}
    confusion = count_outcomes(theta, split.X_test, split.y_test)
    return {"key": task.key, "task": as_plain(task), **found, "confusion": confusion, **shape, **kept}


def _solved(task: Task, split: Split) -> dict[str, Any]:
    _prepare(task.data, task.method.solver, task.method.warmup > 0)
    watcher = Watcher(task, split)
    result = solve(
        make_method(task.method), make_objective(split, task.regulariser), tol=0.0, max_iter=task.iterations,
        seed=task.seed, callbacks=[watcher],
    )  # fmt: skip
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    times = [record.time for record in result.history]
    if task.repeats:
        times = _cpu_times(task, split, len(times))
    return {
        "status": result.status.name,
        "seconds": times[-1],
        "objective": _plain(result.history[-1].objective),
        "gap": _plain(result.certificate.gap),
        "stationarity": _plain(result.certificate.stationarity),
        "phi": [_plain(record.objective) for record in result.history],
        "time": times,
        "zeros": watcher.zeros,
        "positives": watcher.positives,
        "theta": result.iterate.theta,
    }


def _cpu_times(task: Task, split: Split, count: int) -> list[float]:
    """When each of `count` iterates is reached, in seconds of one core that nothing else disturbs.

    Not by the clock on the wall, which also runs while others use the core. And others slow down a core that
    they do not use, by the caches and the memory that they share with it: so every iteration counts as
    it was in the fastest of some repeats, which all take the same way.
    """
    runs: list[list[float]] = []
    while len(runs) < task.repeats and (not runs or runs[-1][-1] < LONG):
        # Rows remember what was computed of them: every repeat has rows of its own.
        objective = make_objective(split, task.regulariser)
        with np.errstate(over="ignore", invalid="ignore"), one_thread(), alone():
            start = time.process_time()
            iterates = make_method(task.method).iterates(objective, objective.start(), task.seed)
            runs.append([time.process_time() - start for _ in islice(iterates, count)])
    times: list[float] = np.cumsum(np.diff(runs, axis=1, prepend=0.0).min(axis=0)).tolist()
    return times


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


class Watcher(Callback):
    """What an iterate is worth, at every one of them: zeros, and positives called on the test rows."""

    def __init__(self, task: Task, split: Split) -> None:
        self.task, self.split = task, split
        self.zeros: list[int] = []
        self.positives: list[list[int]] = []

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        self.zeros.append(count_zeros(iterate.theta, self.task.zero_below))
        if self.task.keep_theta:
            outcomes = count_outcomes(iterate.theta, self.split.X_test, self.split.y_test)
            self.positives.append(outcomes[:2])
        return None


def count_zeros(theta: Vector, width: float) -> int:
    """Coefficients within the width of zero; the intercept is none."""
    return int(np.count_nonzero(np.abs(theta[:-1]) <= width))


def count_outcomes(theta: Vector, X: Any, y: Vector) -> list[int]:
    """True positives, false positives, false negatives, true negatives."""
    called, true = np.asarray(X @ theta[:-1] + theta[-1]) > 0, y > 0
    outcomes = (called & true, called & ~true, ~called & true, ~called & ~true)
    return [int(np.count_nonzero(outcome)) for outcome in outcomes]


def make_objective(split: Split, regulariser: Regulariser) -> Objective:
    """Φ on the training rows."""
    return Objective(MemoryRows(split.X, split.y), make_potential(regulariser), regulariser.eta)


def make_potential(regulariser: Regulariser) -> Potential:
    """The potential φ: none at all where the paper says λ = δ = 0."""
    if regulariser.potential == "hyperbolic":
        return Hyperbolic(regulariser.lam, regulariser.delta)
    if regulariser.potential == "welsch":
        return Welsch(regulariser.lam, regulariser.delta)
    return Zero()


def make_method(method: Method) -> Solver:
    """The solver; stochastic steps are constant, as the paper's."""
    solver = make_solver(method.solver)
    if method.stochastic is None:
        return solver
    first: Any = make_solver(method.stochastic)
    first = replace(
        first, step=method.rate, batch_size=method.batch_size, schedule="constant", weighting=method.weighting
    )
    return Hybrid(first, solver, method.warmup) if method.warmup else first


@lru_cache
def _prepare(data: DataSet, solver: str, warmup: bool) -> None:
    """Load what is compiled or imported late, once for each kind of rows, so that no cell's time has it."""
    split = load_split(data, 0)
    few = Split(split.X[:200], split.y[:200], split.X_test, split.y_test)
    method = Method("", solver, warmup=int(warmup), rate=1e-6)
    for rows in (few, split):
        objective = make_objective(rows, Regulariser("", "hyperbolic", 1e-4, 1e-4))
        solve(make_method(method), objective, tol=0.0, max_iter=2)
