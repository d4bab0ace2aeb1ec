"""One run of the study: load the rows, fit a method, record the numbers that tables and figures need."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.experiments.study import DataSet, Method, Regulariser, Run
from majorant.objective import Objective
from majorant.potentials import make_potential
from majorant.rows import MemoryRows
from majorant.rows.threads import one_core
from majorant.solvers import Hybrid, Solver, make_solver, solve
from majorant.status import Certificate, Evaluated, Record, Status, Vector

# Seconds after which a run is not repeated to measure its time again.
LONG_RUN = 1.0
LIBLINEAR_TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(11))
# LIBLINEAR penalises the intercept as the weight of a constant feature; a large constant makes the penalty
# small.
INTERCEPT_SCALING = 10.0


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to test on; labels are -1 and +1."""

    X: Any
    y: Vector
    X_test: Any
    y_test: Vector


@lru_cache(maxsize=4)
def load_split(data: DataSet, split: int) -> Split:
    """The training and test rows of one split.

    Parameters
    ----------
    data : DataSet
    split : int
        From 0; the seed of a random split.
    """
    X, y = _load(data.source)
    X = X[:, : data.features]
    first = math.ceil(data.train_share * len(y))
    if data.shuffled:
        from sklearn.model_selection import train_test_split

        train, test = train_test_split(
            np.arange(len(y)), train_size=first, test_size=len(y) - first, random_state=split, stratify=y
        )
    else:
        train, test = np.arange(first), np.arange(first, len(y))
    X_train, X_test = X[train], X[test]
    if data.standardised:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Split(X_train, y[train], X_test, y[test])


@lru_cache(maxsize=2)
def _load(source: str) -> tuple[Any, Vector]:
    if source == "stand-in":
        return _generate()
    from majorant.datasets import load

    read = load(source, download=False)
    assert read.y is not None
    return read.X, np.where(read.y == np.max(read.y), 1.0, -1.0)


def _generate(n_samples: int = 400, n_features: int = 30, seed: int = 0) -> tuple[Any, Vector]:
    """Binary features as those of a1a: a quarter of them matter, labels are noisy, the last one is zero."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, n_features)) < rng.uniform(0.05, 0.5, n_features)).astype(np.float64)
    X[:, -1] = 0.0
    w = np.where(np.arange(n_features) % 4 == 0, rng.normal(0.0, 2.0, n_features), 0.0)
    score = X @ w + rng.normal(0.0, 1.0, n_samples)
    return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0)


def execute(run: Run) -> dict[str, Any]:
    """The record of a run, as it is written to the results.

    Parameters
    ----------
    run : Run

    Returns
    -------
    dict
        `phi`, `time`, `zeros` and `positives` (true and false positives among the test rows) have an entry
        for each iteration, from θ(0) on; `confusion` counts the test rows at the end: true positives, false
        positives, false negatives, true negatives.
    """
    split = load_split(run.data, run.split)
    fit = (_fit_liblinear if run.method.solver == "liblinear" else _fit)(run, split)
    return {
        "key": run.key,
        "task": run.to_dict(),
        "status": fit.status.name,
        "seconds": fit.times[-1],
        "objective": _finite_or_none(fit.phi[-1]),
        "gap": _finite_or_none(fit.certificate.gap),
        "stationarity": _finite_or_none(fit.certificate.stationarity),
        "phi": [_finite_or_none(value) for value in fit.phi],
        "time": fit.times,
        "zeros": fit.zeros,
        "positives": fit.positives,
        "confusion": count_confusion(fit.theta, split.X_test, split.y_test),
        "n_train": len(split.y),
        "n_test": len(split.y_test),
        "n_features": len(fit.theta) - 1,
        "test_positives": int(np.sum(split.y_test > 0)),
        **({"theta": fit.theta.tolist()} if run.keep_theta else {}),
    }


class Fit(NamedTuple):
    """What was recorded of a fit: θ at the end, and lists with an entry for each iterate."""

    status: Status
    theta: Vector
    certificate: Certificate
    phi: list[float]
    times: list[float]
    zeros: list[int]
    positives: list[list[int]]


def _fit(run: Run, split: Split) -> Fit:
    _warm_up(run.data, run.method.solver, run.method.warmup > 0)
    counts = RunCounts(run, split)
    result = solve(
        make_method(run.method), make_objective(split, run.regulariser), tol=0.0, max_iter=run.iterations,
        seed=run.seed, callbacks=[counts],
    )  # fmt: skip
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    times = [record.time for record in result.history]
    if run.repeats:
        times = _cpu_times(run, split, len(times))
    phi = [record.objective for record in result.history]
    theta, certificate = result.iterate.theta, result.certificate
    return Fit(result.status, theta, certificate, phi, times, counts.zeros, counts.positives)


def _cpu_times(run: Run, split: Split, count: int) -> list[float]:
    """The processor time at which each of `count` iterates is reached.

    Processor time, since wall-clock time includes other processes on the same core. Processes on other cores
    slow this one through shared caches and memory, so every iteration counts with its fastest repeat; all
    repeats compute the same iterates.
    """
    runs: list[list[float]] = []
    while len(runs) < run.repeats and (not runs or runs[-1][-1] < LONG_RUN):
        # Rows cache what was computed from them, so every repeat has rows of its own.
        objective = make_objective(split, run.regulariser)
        with np.errstate(over="ignore", invalid="ignore"), one_thread(), one_core():
            start = time.process_time()
            iterates = make_method(run.method).iterates(objective, objective.start(), run.seed)
            runs.append([time.process_time() - start for _ in islice(iterates, count)])
    times: list[float] = np.cumsum(np.diff(runs, axis=1, prepend=0.0).min(axis=0)).tolist()
    return times


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


class RunCounts(Callback):
    """The zeros of every iterate, and its true and false positives on the test rows."""

    def __init__(self, run: Run, split: Split) -> None:
        self.run, self.split = run, split
        self.zeros: list[int] = []
        self.positives: list[list[int]] = []

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        self.zeros.append(count_zeros(iterate.theta, self.run.zero_below))
        if self.run.keep_theta:
            self.positives.append(count_confusion(iterate.theta, self.split.X_test, self.split.y_test)[:2])
        return None


def _fit_liblinear(run: Run, split: Split) -> Fit:
    """Φ and time of a fit from scratch at each of some decreasing tolerances: LIBLINEAR shows no iterates."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    objective = make_objective(split, run.regulariser)
    phi, times, zeros = [], [], []
    for tol in LIBLINEAR_TOLERANCES:
        model = LinearSVC(
            C=1.0 / run.regulariser.eta,
            dual=False,
            tol=tol,
            intercept_scaling=INTERCEPT_SCALING,
            max_iter=2000,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.process_time()
            model.fit(split.X, split.y)
            times.append(time.process_time() - start)
        theta = np.append(model.coef_.ravel(), model.intercept_)
        phi.append(objective.evaluate(theta).value + objective.constant)
        zeros.append(count_zeros(theta, run.zero_below))
    return Fit(Status.MAX_ITER, theta, objective.certify(theta)[1], phi, times, zeros, [])


def count_zeros(theta: Vector, width: float) -> int:
    """The coefficients of at most `width` in size, without the intercept."""
    return int(np.count_nonzero(np.abs(theta[:-1]) <= width))


def count_confusion(theta: Vector, X: Any, y: Vector) -> list[int]:
    """True positives, false positives, false negatives, true negatives."""
    predicted, true = np.asarray(X @ theta[:-1] + theta[-1]) > 0, y > 0
    groups = (predicted & true, predicted & ~true, ~predicted & true, ~predicted & ~true)
    return [int(np.count_nonzero(group)) for group in groups]


def make_objective(split: Split, regulariser: Regulariser) -> Objective:
    """Φ on the training rows."""
    potential = make_potential(regulariser.potential, lam=regulariser.lam, delta=regulariser.delta)
    return Objective(MemoryRows(split.X, split.y), potential, regulariser.eta)


def make_method(method: Method) -> Solver:
    """The solver of a method; stochastic steps are constant, as in the paper."""
    solver = make_solver(method.solver)
    if method.stochastic is None:
        return solver
    first: Any = make_solver(method.stochastic)
    first = replace(
        first, step=method.rate, batch_size=method.batch_size, schedule="constant", weighting=method.weighting
    )
    return Hybrid(first, solver, method.warmup) if method.warmup else first


@lru_cache
def _warm_up(data: DataSet, solver: str, warmup: bool) -> None:
    """Compile and import, once for each kind of rows, so that no run's time includes these."""
    split = load_split(data, 0)
    few = Split(split.X[:200], split.y[:200], split.X_test, split.y_test)
    method = Method("", solver, warmup=int(warmup), rate=1e-6)
    for rows in (few, split):
        objective = make_objective(rows, Regulariser("", "hyperbolic", 1e-4, 1e-4))
        solve(make_method(method), objective, tol=0.0, max_iter=2)
