"""`solve`, the loop of all solvers: it stops, measures the time, writes the trace and calls callbacks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

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

# A deterministic solver has stalled after this many iterates without a lower Φ or a better certificate.
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
    """Run a solver until the certificate is within `tol`, or until another reason ends the run.

    Parameters
    ----------
    solver, objective
        The solver and its problem. A solver with an objection raises an error before anything is computed.
    theta : array (objective.size,), optional
        The starting point, 0 by default.
    tol : float
        The error of the certificate (`Certificate.error`) at which to stop.
    max_iter : int
        The largest number of iterations (epochs of a stochastic solver).
    seed : int
        The seed of a stochastic solver; the same seed gives the same bits.
    callbacks : sequence of Callback
        Called between iterations with the clock stopped.

    Returns
    -------
    Result
        Also after Ctrl-C (`Status.INTERRUPTED`), with the last iterate.
    """
    problem = objective
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
        # Overflow leads to values that are not finite, which the run detects; a warning would say less.
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


def _iterates(solver: Solver, problem: Objective, start: Vector, seed: int) -> Iterator[Iterate]:
    """The iterates of the solver; its preparation also runs in the first `next`, which is timed."""
    yield from solver.iterates(problem, start, seed)


@dataclass
class _Run:
    """The state of one run: its clock, its trace and the last point that can be kept."""

    objective: Objective
    tol: float
    callbacks: Sequence[Callback]
    narrowing: Narrowing | None
    patience: float
    with_interior_point: bool
    """Whether `certify_with_interior_point` certifies points."""
    seconds: float
    """The time spent in the solver, including that of its preparation."""
    history: History = field(default_factory=History)
    last: Evaluated | None = None
    certificate: Certificate = field(default_factory=lambda: Certificate(math.nan))
    lower_bound: float = -math.inf
    _worth_certifying: float = math.inf
    # Of the iterates that are not provisional: the last θ, the best Φ and certificate, and the number of
    # iterates since one of these improved.
    _settled: Vector | None = None
    _best: tuple[float, float] = (math.inf, math.inf)
    _idle: int = 0

    def follow(self, iterates: Iterator[Iterate], max_iter: int) -> Status:
        """Take iterates until there is a reason to stop; returns the reason."""
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
        # Ctrl-C in the last iteration counts as well: the caller must not start another run.
        return Status.INTERRUPTED if ctrl_c.pressed else status

    def _next(self, iterates: Iterator[Iterate]) -> Iterate:
        """The next iterate, with the clock running."""
        start = time.perf_counter()
        try:
            return next(iterates)
        finally:
            self.seconds += time.perf_counter() - start

    def _take(self, n: int, iterate: Iterate) -> Status | None:
        """Evaluate and record an iterate, with the clock stopped; returns a reason to stop, or None."""
        if isinstance(iterate, Provisional):
            # Only Φ is known: with nan as gradient, no code can use it by mistake.
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
        answer = self._call_callbacks(at) if self.callbacks else None
        if not isinstance(iterate, Provisional) and getattr(iterate, "candidate", True):
            if error <= self.tol:
                return Status.CONVERGED
            if self._stalled(at, error):
                return Status.STALLED
        return answer

    def _call_callbacks(self, at: Evaluated) -> Status | None:
        """Call all callbacks with the last record; returns the first of their reasons to stop."""
        shown = at if self.narrowing is None else self.narrowing.widen_point(at)
        answers = [callback.on_iterate(shown, self.history[-1]) for callback in self.callbacks]
        for callback, answer in zip(self.callbacks, answers, strict=True):
            if not isinstance(answer, Status | None):
                raise TypeError(f"{callback!r}.on_iterate must return a Status or None, got {answer!r}")
        return next((answer for answer in answers if answer is not None), None)

    def _certified(self, at: Evaluated, estimate: Certificate) -> tuple[Evaluated, Certificate]:
        """The certificate of a point whose estimate is within the tolerance: only a certificate ends a run.

        If the estimate is rough, certificates take several passes: after a certificate above the tolerance,
        the next one is computed when the estimate has halved.
        """
        if estimate.error > self._worth_certifying:
            return at, self.certificate
        at, certificate = self._certify(at.theta)
        rough = not self.objective.bounded or len(self.objective.free) > 0
        if certificate.error > self.tol and rough:
            self._worth_certifying = 0.5 * estimate.error
        return at, certificate

    def _certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated anew, and its certificate by the best lower bound of the run."""
        if self.with_interior_point:
            at, certificate = certify_with_interior_point(self.objective, theta, self.tol)
        else:
            at, certificate = self.objective.certify(theta)
        self.lower_bound = max(self.lower_bound, at.lower_bound)
        if not math.isnan(certificate.gap):
            gap = min(certificate.gap, self.objective.relative_gap(at.value, self.lower_bound))
            certificate = replace(certificate, gap=gap)
        return replace(at, lower_bound=self.lower_bound), certificate

    def _stalled(self, at: Evaluated, error: float) -> bool:
        """Whether θ did not change, or neither Φ nor the certificate has improved for some time."""
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
        """The point that is kept, evaluated anew, with its certificate."""
        if self.last is None:  # Φ is not finite at the starting point
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
            # The trace remains that of the run, but these reasons are about its last point, not this one.
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
