"""One data set, ready to be trained on: for one strength of the penalty, or for one after the other.

One-versus-rest is as many problems as there are classes (one, if there are two), which differ in their labels
alone: they share X. "joint" is one problem for all of them. Every run starts where the last one ended, and
what the solvers left with the rows serves the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from copy import copy
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.errors import MajorantError
from majorant.estimators.advice import severity_of
from majorant.estimators.delivery import deliver
from majorant.estimators.fitted import coefficient_state
from majorant.estimators.shared_passes import run_sharing_passes
from majorant.estimators.sizes import check_sizes, shrinkage
from majorant.estimators.sources import FoldSpec, is_on_dask, stream_by_problem
from majorant.estimators.validation import (
    check_features,
    check_penalty_factor,
    effective_weights,
    encode_labels,
)
from majorant.interrupts import CtrlC, ending_on, undisturbed
from majorant.objective import Objective
from majorant.potentials import L2, Potential, Zero, make_potential
from majorant.rows import MemoryRows, Rows, Source
from majorant.rows.partitioned import BlockStore, PartitionedRows
from majorant.rows.scaled import scaled_rows, standard_deviations
from majorant.rows.threads import in_context
from majorant.solvers import Hybrid, Newton, Solver, choose_solver, make_solver, solve
from majorant.solvers.narrowing import Narrowing
from majorant.solvers.newton import NewtonFromStart
from majorant.solvers.newton.tuning import PASS_FEATURES
from majorant.solvers.reweighted import spread
from majorant.solvers.subset import SubsetSearch
from majorant.solvers.subset_run import find_subset, on_support
from majorant.status import Certificate, Evaluated, History, Matrix, Record, Result, Status, Vector

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC

# How much lower, relatively, Φ must be at a point of another strength for a run from there.
CLEARLY_LOWER = 1e-9
# The ridge of a refit, relative to the curvature of the loss along each feature with all rows. (On random
# problems of 500 to 2,000 rows, with the true features or twice as many, the test error is within .001 of the
# best of 1e-6 to 1e-1 for all from 3e-3 to 1e-6; 1e-1 costs up to .02.)
REFIT_RIDGE = 1e-3
# Entries of the matrices that problems on rows elsewhere may ask for in one pass, all together.
MATRICES = PASS_FEATURES**2


class FitProblem:
    """Validated rows, and the last solution on them.

    Parameters
    ----------
    estimator : SparseSVC
        Whose parameters say what to train and how.
    X, y, sample_weight
        As users pass them; X may be a `Source`, which has labels and weights of its own.
    cut : FoldSpec, optional
        Into which folds rows that are not in memory are to be cut.
    """

    def __init__(
        self,
        estimator: SparseSVC,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        cut: FoldSpec | None = None,
    ) -> None:
        self.estimator = estimator
        self._last: tuple[Potential, Sequence[Objective]] | None = None
        self._searches: dict[Objective, SubsetSearch] = {}
        # The number of features to search for; None if the penalty selects them.
        self.size: int | None = estimator.n_features
        # What the features are divided by, if they are standardised.
        self.deviations: Vector | None = None
        self.potential, self._solver = resolve_names(estimator)
        if self.size is not None and (isinstance(X, Source) or is_on_dask(X)):
            raise TypeError(
                f"n_features={self.size} needs rows that are in memory, since the search reads them hundreds "
                "of times. For a source or on Dask, take max_features."
            )
        self.rows: Sequence[Rows]
        if is_on_dask(X):
            from majorant.estimators.clusters import cluster_by_problem

            there, self.classes, self.rows = cluster_by_problem(estimator, X, y, sample_weight, cut)
            self.dtype, self.n_features = there.dtype, there.n_features
        elif isinstance(X, Source):
            self.dtype, self.n_features = X.dtype, X.n_features
            self.classes, self.rows = stream_by_problem(estimator, X, y, sample_weight, cut)
        else:
            self._take_arrays(X, y, sample_weight)
        self.factor = check_penalty_factor(estimator.penalty_factor, self.n_features)
        self.joint = estimator.multi_class == "joint" and len(self.rows) > 1
        self._prepare(self.rows)
        self.seed = check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)
        self.start(None)

    def _take_arrays(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        estimator = self.estimator
        X, y = check_features(estimator, X, y)
        self.dtype, self.n_features = X.dtype, int(X.shape[1])
        self.classes, codes = encode_labels(y)
        self.labels = self.classes[codes]
        weights = effective_weights(sample_weight, estimator.class_weight, X, self.classes, codes)
        self.rows = rows_by_problem(
            X, codes, weights, n_classes=len(self.classes), intercept=estimator.fit_intercept
        )

    def _prepare(self, rows: Sequence[Rows]) -> None:
        """Check the scale of the rows, and standardise them if the estimator does."""
        self.rows = self.unscaled_rows = rows
        with one_thread():
            self.objectives(self.potential)[0].check_scale()
            if self.estimator.standardize or self.size is not None:
                self.deviations = standard_deviations(rows[0])
                self.rows, self._last = scaled_rows(rows, 1.0 / self.deviations), None
            if self.size is not None:
                self.potential = shrinkage(self.estimator, self.potential, rows[0])

    def on(self, rows: Sequence[Rows]) -> FitProblem:
        """The same problem on other rows of the same classes, which are not standardised yet."""
        twin = copy(self)
        twin._last = None
        twin._prepare(rows)
        twin.start(None)
        return twin

    def in_user_units(self, theta: Vector) -> Vector:
        """θ of one class or several, one after the other, for X as the user gave it."""
        return theta if self.deviations is None else theta / self._theta_units(theta)

    def in_own_units(self, theta: Vector) -> Vector:
        """The inverse of `in_user_units`."""
        return theta if self.deviations is None else theta * self._theta_units(theta)

    def _theta_units(self, theta: Vector) -> Vector:
        assert self.deviations is not None
        return np.tile(np.append(self.deviations, 1.0), theta.size // (self.n_features + 1))

    @property
    def positive(self) -> list[Any]:
        """The class that each problem sets against the rest; None for all classes at once."""
        if self.joint:
            return [None]
        labels: list[Any] = self.classes.tolist()
        return labels if len(labels) > 2 else labels[1:]

    def start(self, theta: Matrix | None) -> None:
        """Let the next run begin at θ, a row per class (intercepts last), or at zero."""
        self._starts: Sequence[Vector | None]
        if theta is None or theta.shape != (len(self.rows), self.n_features + 1):
            self._starts = [None] * (1 if self.joint else len(self.rows))
        else:
            rows = [self.in_own_units(row) for row in theta]
            self._starts = [np.concatenate(rows)] if self.joint else rows

    @property
    def starting_point(self) -> Matrix:
        """Where the next run begins, a row per class, in the user's units."""
        starts = [self.in_user_units(start) for start in self._starts if start is not None]
        shape = (len(self.rows), self.n_features + 1)
        return np.concatenate(starts).reshape(shape) if starts else np.zeros(shape)

    def coefficients(self, theta: Matrix) -> dict[str, Any]:
        """What a model predicts with: the fitted attributes for θ, a row per class."""
        return coefficient_state(self.classes, theta, self.dtype)

    def objectives(self, potential: Potential) -> Sequence[Objective]:
        """What is minimised: one Φ per problem; the last ones are kept, with what they have computed."""
        if self._last is None or self._last[0] is not potential:
            eta, factor = self.estimator.eta, self.factor
            objectives: Sequence[Objective]
            given = potential
            if getattr(potential, "lam", None) == 0.0:
                potential = Zero()  # whatever its shape
            if self.joint:
                objectives = [Objective.joint(self.rows, potential, eta, factor)]
            else:
                objectives = [Objective(rows, potential, eta, factor) for rows in self.rows]
            self._last = given, objectives
        return self._last[1]

    def solver_for(self, objective: Objective) -> Solver:
        """The solver that the estimator asks for, with its warm-up."""
        if objective.other_classes:
            if (self._solver is not None and self._solver.name != "newton") or self.estimator.warmup:
                raise InvalidParameterError(
                    "multi_class='joint' is solved by solver='auto' (or 'newton') without warm-up; the other "
                    "solvers take multi_class='ovr'."
                )
            return Newton()
        solver = choose_solver(objective) if self._solver is None else self._solver
        return _with_warmup(self.estimator, solver)

    def run(
        self, potential: Potential, callbacks: Sequence[Callback] = (), *, continuation: bool = True
    ) -> list[Result]:
        """Minimise, from where the last run ended; what is delivered of every problem, interrupted or not.

        Without `continuation`, a start at zero is one like any other, also for a non-convex potential.
        """
        objectives = self.objectives(potential)
        solver = self.solver_for(objectives[0])
        if isinstance(solver, Newton) and not continuation:
            solver = NewtonFromStart(solver.gram_features)
        classes = self.classes.tolist()
        watchers = [
            tuple(self._watcher(callback.for_problem(classes, label)) for callback in callbacks)
            for label in self.positive
        ]

        first = self.rows[0]
        store = first.store if isinstance(first, PartitionedRows) else None

        def task(objective: Objective, start: Vector | None, watchers: tuple[Callback, ...]) -> Ended:
            try:
                result = self._minimised(solver, objective, start, watchers)
            except KeyboardInterrupt:
                if ctrl_c.pressed_again:
                    raise
                return _left_out(objective, start)  # it had no first iterate yet; others may have
            try:
                if result.status is not Status.INTERRUPTED:
                    return result, self.delivered(objective, result)
            except KeyboardInterrupt:
                if ctrl_c.pressed_again:
                    raise
                result = replace(result, status=Status.INTERRUPTED)
            with undisturbed():
                return result, self.delivered(objective, result)

        with one_thread(), CtrlC() as ctrl_c, ending_on(lambda: ctrl_c.pressed):
            jobs = min(effective_n_jobs(self.estimator.n_jobs), len(objectives))
            each = _at_the_same_time(jobs) if jobs > 1 else _one_by_one
            if store is not None:
                # Batches are drawn class by class; all other questions, of all classes, share their passes.
                alone = solver.stochastic or len(objectives) == 1
                each = _one_by_one if alone else _sharing_passes(store, self.n_features)
            ended = each(task, list(zip(objectives, self._starts, watchers, strict=True)))
        if not any(result.history for result, _ in ended):
            raise KeyboardInterrupt  # there is nothing to keep
        # From where a non-convex run ended, the next would not leave; it finds its own way, from zero.
        self.start(None)
        if potential.convex:
            self._starts = [result.iterate.theta for result, _ in ended]
        return [delivered for _, delivered in ended]

    def _minimised(
        self, solver: Solver, objective: Objective, start: Vector | None, watchers: Sequence[Callback]
    ) -> Result:
        """What a run reaches: the minimum, or, of a number of features, the best that a search finds."""
        tol, max_iter = self.estimator.tol, self.estimator.max_iter
        if self.size is None:
            return solve(
                solver, objective, start, tol=tol, max_iter=max_iter, seed=self.seed, callbacks=watchers
            )
        if objective not in self._searches:
            self._searches[objective] = SubsetSearch(objective)
        search = self._searches[objective]
        return find_subset(search, self.size, start, tol=tol, max_iter=max_iter, callbacks=watchers)

    def run_from_best(
        self, potential: Potential, known: Sequence[Sequence[Result]], *, anew: bool = False
    ) -> list[Result]:
        """Minimise from the lowest of known points, problem by problem.

        Parameters
        ----------
        potential
            What is to be minimised, with the loss.
        known : sequence of sequences of Result
            Results for other strengths, each of all problems.
        anew : bool, default=False
            Whether a run from zero is made as well, and kept where it ends lower.
        """
        objectives = self.objectives(potential)
        fresh = self.run(potential) if anew or not known else None
        starts: list[Vector | None] = []
        for k, objective in enumerate(objectives):
            points = [objective.evaluate(results[k].iterate.theta) for results in known]
            best = min(points, key=lambda at: at.value, default=None)
            least = math.inf if fresh is None else (1.0 - CLEARLY_LOWER) * fresh[k].iterate.value
            starts.append(best.theta if best is not None and best.value < least else None)
        if fresh is not None and all(start is None for start in starts):
            return fresh
        self._starts = starts
        again = self.run(potential, continuation=False)
        if fresh is None:
            return again
        pairs = zip(fresh, again, starts, strict=True)
        return [old if start is None else new for old, new, start in pairs]

    def refitted(self, potential: Potential, results: Sequence[Result]) -> Sequence[Result]:
        """The results with the coefficients of a light ridge on the features, if the estimator refits.

        Φ, its lower bound and the certificate are those of the ridge on these features. A selection that did
        not converge stays unconverged.
        """
        if self.estimator.refit is None:
            return results
        with one_thread():
            pairs = zip(self.objectives(potential), results, strict=True)
            return [self._refitted(objective, result) for objective, result in pairs]

    def _refitted(self, objective: Objective, result: Result) -> Result:
        theta = result.iterate.theta
        kept = np.flatnonzero((objective.lengths(theta) > 0.0) | (objective.factor == 0.0))
        curvature = spread(objective.classes[0])[kept]
        ridge = REFIT_RIDGE * np.where(curvature > 0.0, curvature, 1.0)
        part = replace(objective.columns(kept), potential=L2(1.0), eta=0.0, penalty_factor=ridge)
        narrowing = Narrowing(part, objective.width, np.append(kept, objective.width - 1))
        fit = solve(
            choose_solver(part), part, narrowing.narrow(theta), tol=self.estimator.tol,
            max_iter=self.estimator.max_iter, seed=self.seed,
        )  # fmt: skip
        fit = self.delivered(part, fit)
        # The worse of the two reasons to stop is what a user is told.
        status = max(result.status, fit.status, key=severity_of)
        return replace(
            fit, iterate=narrowing.widen_point(fit.iterate), status=status,
            n_iter=result.n_iter + fit.n_iter, history=result.history,
        )  # fmt: skip

    def _watcher(self, callback: Callback) -> Callback:
        """The callback, which is shown θ in the user's units."""
        return callback if self.deviations is None else _UserUnits(callback, self)

    def delivered(self, objective: Objective, result: Result) -> Result:
        """The result with the coefficients that the user gets."""
        estimator = self.estimator
        # Coefficients in other units are not those that are stored, so rounding them would prove nothing.
        dtype = self.dtype if self.deviations is None else np.dtype(np.float64)
        part = None if self.size is None else on_support(objective, result.iterate.theta)
        with np.errstate(over="ignore", invalid="ignore"):
            if part is None:
                return deliver(objective, result, estimator.zero_tol, estimator.tol, dtype)
            narrow = replace(result, iterate=part.narrow_point(result.iterate))
            found = deliver(part.objective, narrow, estimator.zero_tol, estimator.tol, dtype)
        return replace(found, iterate=part.widen_point(found.iterate))


class _UserUnits(Callback):
    """A callback of a problem on standardised rows, which sees θ, and sets θ, in the user's units."""

    def __init__(self, callback: Callback, fit_problem: FitProblem) -> None:
        self._callback, self._problem = callback, fit_problem

    @property
    def start_theta(self) -> Vector | None:  # type: ignore[override]
        return self._own(self._callback.start_theta)

    @property
    def best_theta(self) -> Vector | None:  # type: ignore[override]
        return self._own(self._callback.best_theta)

    def _own(self, theta: Vector | None) -> Vector | None:
        return None if theta is None else self._problem.in_own_units(theta)

    def _shown(self, at: Evaluated) -> Evaluated:
        theta = self._problem.in_user_units(at.theta)
        return replace(at, theta=theta, loss_gradient=self._problem.in_own_units(at.loss_gradient))

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._callback.on_begin(objective, tol)

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return self._callback.on_iterate(self._shown(iterate), record)

    def on_end(self, result: Result) -> None:
        self._callback.on_end(replace(result, iterate=self._shown(result.iterate)))


Problem = tuple[Objective, "Vector | None", tuple[Callback, ...]]
Ended = tuple[Result, Result]
"""What a solver has reached, and what of it is delivered."""
Task = Callable[[Objective, "Vector | None", tuple[Callback, ...]], Ended]


def _one_by_one(task: Task, problems: Sequence[Problem]) -> list[Ended]:
    """After Ctrl-C in one of them, the others stay where they start."""
    results: list[Ended] = []
    for objective, start, watchers in problems:
        if results and results[-1][0].status is Status.INTERRUPTED:
            results.append(_left_out(objective, start))
        else:
            results.append(task(objective, start, watchers))
    return results


def _left_out(objective: Objective, start: Vector | None) -> Ended:
    with undisturbed():
        at = objective.evaluate(objective.start() if start is None else start)
    result = Result(at, Status.INTERRUPTED, 0, Certificate(math.nan), History())
    return result, result


def _at_the_same_time(jobs: int) -> Callable[[Task, Sequence[Problem]], list[Ended]]:
    def run(task: Task, problems: Sequence[Problem]) -> list[Ended]:
        failed = Event()
        with ThreadPoolExecutor(jobs) as pool:
            with ending_on(failed.is_set):
                futures = [pool.submit(in_context(partial(task, *problem))) for problem in problems]
            try:
                finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
                if any(future.exception() for future in finished):
                    failed.set()  # the others need not go on
            except KeyboardInterrupt:  # the second one: the first has told them all
                failed.set()
                raise
            return [future.result() for future in futures]

    return run


def _sharing_passes(store: BlockStore, n_features: int) -> Callable[[Task, Sequence[Problem]], list[Ended]]:
    """As many at the same time as have room for their matrices; the same after Ctrl-C as one by one."""
    at_once = max(1, MATRICES // min(n_features + 1, PASS_FEATURES) ** 2)

    def run(task: Task, problems: Sequence[Problem]) -> list[Ended]:
        results: list[Ended] = []
        for first in range(0, len(problems), at_once):
            group = problems[first : first + at_once]
            if any(result.status is Status.INTERRUPTED for result, _ in results):
                results += [_left_out(objective, start) for objective, start, _ in group]
            else:
                results += run_sharing_passes(store, [partial(task, *problem) for problem in group])
        return results

    return run


def rows_by_problem(
    X: Any, codes: NDArray[np.intp], weights: Vector, *, n_classes: int, intercept: bool
) -> list[MemoryRows]:
    """The rows as every problem labels them: the second class against the first, or each against the rest."""
    positive = range(1, 2) if n_classes == 2 else range(n_classes)
    labels = [np.where(codes == code, 1.0, -1.0) for code in positive]
    rows = MemoryRows(X, labels[0], weights, intercept=intercept)
    return [rows, *(rows.relabelled(others, weights) for others in labels[1:])]


def resolve_names(estimator: SparseSVC) -> tuple[Potential, Solver | None]:
    """The objects behind the names; None for "auto", which needs to see the data."""
    try:
        potential = make_potential(estimator.penalty, lam=estimator.lam, delta=estimator.delta)
        solver = None if estimator.solver == "auto" else make_solver(estimator.solver)
        make_solver(estimator.warmup_solver)
    except MajorantError as error:
        raise InvalidParameterError(str(error)) from error
    if estimator.n_features is not None:
        check_sizes(estimator, potential)
    return potential, solver


def _with_warmup(estimator: SparseSVC, solver: Solver) -> Solver:
    if not estimator.warmup:
        return solver
    if solver.stochastic:
        raise InvalidParameterError(
            f"warmup={estimator.warmup} goes before a deterministic solver, and {solver.name!r} is "
            "stochastic itself: set warmup=0."
        )
    if estimator.warmup >= estimator.max_iter:
        raise InvalidParameterError(
            f"warmup={estimator.warmup} leaves no iteration for {solver.name!r}: max_iter is "
            f"{estimator.max_iter} and counts both."
        )
    return Hybrid(make_solver(estimator.warmup_solver), solver, estimator.warmup)
