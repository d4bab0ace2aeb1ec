"""The only loop: stopping, budget, clock, finiteness, trace, callbacks, Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.errors import ClusterLostError
from majorant.interrupts import CtrlC, check, ending_on, undisturbed
from majorant.objective import Objective
from majorant.solvers.base import Solver, require_suitable
from majorant.solvers.interior_certificate import certify_with_interior_point
from majorant.solvers.narrowing import Narrowing
from majorant.status import (
    Certificate,
    Evaluated,
    History,
    Iterate,
    Provisional,
    Record,
    Result,
    Status,
    Vector,
)

# Iterates of a deterministic solver without a lower Φ or a better certificate after which it has stalled.
IDLE = 50


def solve(
    solver: Solver,
    objective: Objective,
    theta: Vector | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Run a solver until the certificate is within `tol`, or until something else ends it.

    Parameters
    ----------
    solver, objective
        What to run and on what. A solver that cannot says so before anything is computed.
    theta : array (objective.size,), optional
        The starting point, 0 by default.
    tol : float
        The error of the certificate (`Certificate.error`) at which to stop.
    max_iter : int
        The most iterations (epochs of a stochastic solver) to take.
    seed : int
        Makes a stochastic solver repeatable, bit for bit.
    callbacks : sequence of Callback
        Called between iterations with the clock stopped.

    Returns
    -------
    Result
        Also after Ctrl-C (`Status.INTERRUPTED`), with the last iterate: the caller decides what to do.
    """
    problem: Any = objective  # each solver takes one kind, and the estimators see to that
    require_suitable(solver, problem)
    for callback in callbacks:
        callback.on_begin(problem, tol)
    resumed = next((c.start_theta for c in callbacks if c.start_theta is not None), theta)
    start = objective.start() if resumed is None else resumed
    narrowing, prepared = None, 0.0
    if solver.exact:
        began = time.perf_counter()
        narrowing = Narrowing.of(objective, start)
        prepared = time.perf_counter() - began
    if narrowing is not None:
        problem, start = narrowing.objective, narrowing.narrow(start)
    patience = math.inf if solver.stochastic else IDLE
    run = _Run(problem, tol, callbacks, narrowing, patience, solver.exact, prepared)
    try:
        # Overflow ends in values that are not finite, which are looked for; a warning would say less.
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            status = run.follow(_iterates(solver, problem, start, seed), max_iter)
            with undisturbed():
                result = run.result(status, start)
        if narrowing is not None:
            result = replace(result, iterate=narrowing.widen_point(result.iterate))
    except ClusterLostError as error:
        error.theta = None if run.last is None else run.last.theta
        raise
    for callback in callbacks:
        callback.on_end(result)
    return result


def _iterates(solver: Solver, problem: Any, start: Vector, seed: int) -> Iterator[Iterate]:
    """What the solver yields; what it prepares before is on the clock as well, wherever it does so."""
    yield from solver.iterates(problem, start, seed)


@dataclass
class _Run:
    """The state of one run: its clock, its trace and the last point that can be kept."""

    objective: Objective
    tol: float
    callbacks: Sequence[Callback]
    narrowing: Narrowing | None
    patience: float
    thorough: bool
    seconds: float
    """Spent in the solver, beginning with what its preparation took."""
    history: History = field(default_factory=History)
    last: Evaluated | None = None
    certificate: Certificate = field(default_factory=lambda: Certificate(math.nan))
    lower_bound: float = -math.inf
    _worth_certifying: float = math.inf
    # Of the iterates that were not underway: the last θ, the best Φ and certificate, and since when.
    _settled: Vector | None = None
    _best: tuple[float, float] = (math.inf, math.inf)
    _idle: int = 0

    def follow(self, iterates: Iterator[Iterate], max_iter: int) -> Status:
        status = Status.MAX_ITER
        with CtrlC() as ctrl_c, ending_on(lambda: ctrl_c.pressed):
            try:
                for n in range(max_iter + 1):
                    reason = self._take(n, self._next(iterates))
                    if reason:
                        status = reason
                        break
                    check()
            except KeyboardInterrupt:
                if not self.history:
                    raise
                status = Status.INTERRUPTED
        # Also if it was pressed in the last iteration: there may be other runs to come.
        return Status.INTERRUPTED if ctrl_c.pressed else status

    def _next(self, iterates: Iterator[Iterate]) -> Iterate:
        """The next iterate, with the clock running."""
        start = time.perf_counter()
        try:
            return next(iterates)
        finally:
            self.seconds += time.perf_counter() - start

    def _take(self, n: int, iterate: Iterate) -> Status | None:
        """Measure an iterate, off the clock, and say whether to stop there."""
        if isinstance(iterate, Provisional):
            # Only its Φ is known: the gradient is nan, so that no code can use it by mistake.
            unknown = np.full_like(iterate.theta, np.nan)
            at = Evaluated(iterate.theta, iterate.value, unknown, carried=True)
            certificate = self.certificate
        else:
            at = iterate if isinstance(iterate, Evaluated) else self.objective.evaluate(iterate.theta)
            self.lower_bound = max(self.lower_bound, at.lower_bound)
            certificate = self.objective.estimate(at, self.lower_bound)
            if certificate.error <= self.tol:
                at, certificate = self._certified(at, certificate)
        error = certificate.error
        finite = math.isfinite(at.value) and bool(np.isfinite(at.theta).all())
        if not finite or (math.isnan(error) and self.history):
            return Status.NOT_FINITE
        self._record(n, at, certificate)
        answer = self._answer(at) if self.callbacks else None
        if not isinstance(iterate, Provisional) and getattr(iterate, "candidate", True):
            if error <= self.tol:
                return Status.CONVERGED
            if self._stalled(at, error):
                return Status.STALLED
        return answer

    def _answer(self, at: Evaluated) -> Status | None:
        """Show all callbacks the last record; the first of their reasons to stop."""
        shown = at if self.narrowing is None else self.narrowing.widen_point(at)
        answers = [callback.on_iterate(shown, self.history[-1]) for callback in self.callbacks]
        for callback, answer in zip(self.callbacks, answers, strict=True):
            if not isinstance(answer, Status | None):
                raise TypeError(f"{callback!r}.on_iterate must return a Status or None, got {answer!r}")
        return next((answer for answer in answers if answer is not None), None)

    def _certified(self, at: Evaluated, estimate: Certificate) -> tuple[Evaluated, Certificate]:
        """What is certain of a point whose estimate is within the tolerance: only that may end the run.

        Where the estimate leaves much out, the truth takes a pass and more each time: after a failure the
        last certificate stands until the estimate has halved.
        """
        if estimate.error > self._worth_certifying:
            return at, self.certificate
        at, certificate = self._certify(at.theta)
        rough = not self.objective.bounded or len(self.objective.free) > 0
        if certificate.error > self.tol and rough:
            self._worth_certifying = 0.5 * estimate.error
        return at, certificate

    def _certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated afresh, and what is certain of it by the best lower bound that the run has found."""
        if self.thorough:
            at, certificate = certify_with_interior_point(self.objective, theta, self.tol)
        else:
            at, certificate = self.objective.certify(theta)
        self.lower_bound = max(self.lower_bound, at.lower_bound)
        return replace(at, lower_bound=self.lower_bound), self._with_best_bound(at, certificate)

    def _with_best_bound(self, at: Evaluated, certificate: Certificate) -> Certificate:
        if math.isnan(certificate.gap):
            return certificate
        gap = min(certificate.gap, self.objective.relative_gap(at.value, self.lower_bound))
        return Certificate(certificate.stationarity, gap)

    def _stalled(self, at: Evaluated, error: float) -> bool:
        """Whether θ is what it was, or has only been shaken by rounding for some time."""
        same = self._settled is not None and np.array_equal(self._settled, at.theta)
        self._settled = at.theta
        best = (min(at.value, self._best[0]), min(error, self._best[1]))
        self._idle = self._idle + 1 if best == self._best else 0
        self._best = best
        return same or self._idle >= self.patience

    def _record(self, n: int, at: Evaluated, certificate: Certificate) -> None:
        nonzeros = self.objective.nonzeros(at.theta)
        gap, stationarity = certificate.gap, certificate.stationarity
        objective = at.value + self.objective.constant
        record = Record(n, self.seconds, objective, gap, stationarity, nonzeros)
        self.last, self.certificate = at, certificate
        self.history.append(record)

    def result(self, status: Status, start: Vector) -> Result:
        """The last point, evaluated afresh whatever was carried to it, and what is true of it."""
        if self.last is None:  # the starting point itself has no finite value
            at = Evaluated(start, float("nan"), np.zeros_like(start))
            self.history.append(Record(0, self.seconds, at.value, math.nan, math.nan, 0))
            return Result(at, status, 0, self.certificate, self.history)
        at = self.last
        chosen = next((c.best_theta for c in self.callbacks if c.best_theta is not None), None)
        if chosen is not None and self.narrowing is not None:
            chosen = self.narrowing.narrow(chosen)
        best = at.theta if chosen is None else chosen
        certificate = self.certificate
        if not np.array_equal(best, at.theta):
            # The trace stays that of the run; a reason that is about its last point is not one of this point.
            at, certificate = self._certify(best)
            status = Status.STOPPED if status in (Status.CONVERGED, Status.STALLED) else status
        elif status is not Status.CONVERGED:
            at, certificate = self._certify(best)
            gap, stationarity = certificate.gap, certificate.stationarity
            value = at.value + self.objective.constant
            final = replace(self.history[-1], objective=value, gap=gap, stationarity=stationarity)
            self.history = History([*self.history[:-1], final])
        if certificate.error <= self.tol and status is not Status.INTERRUPTED:
            status = Status.CONVERGED
        return Result(at, status, self.history[-1].iteration, certificate, self.history)
