"""The only loop: stopping, budget, clock, finiteness, trace, callbacks, Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from majorant.callbacks import Callback
from majorant.objective import Objective
from majorant.solvers.base import Solver, require_suitable
from majorant.status import Evaluated, History, Iterate, Record, Result, Status, Vector


class Stopwatch:
    """Counts the seconds spent inside the solver."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def advance(self, iterates: Iterator[Iterate]) -> Iterate:
        """The next iterate, with the clock running."""
        start = time.perf_counter()
        try:
            return next(iterates)
        finally:
            self.seconds += time.perf_counter() - start


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
    """Run a solver until the stationarity is at most `tol`, or until something else ends it.

    Parameters
    ----------
    solver, objective
        What to run and on what. A solver that cannot says so before anything is computed.
    theta : array (n_features + 1,), optional
        The starting point, 0 by default.
    tol : float
        The stationarity (`Objective.stationarity`) at which to stop.
    max_iter : int
        The most iterations (epochs of a stochastic solver) to take.
    seed : int
        Makes a stochastic solver repeatable, bit for bit.
    callbacks : sequence of Callback
        Called between iterations with the clock stopped.

    Returns
    -------
    Result
        Also after Ctrl-C (`Status.INTERRUPTED`), with the last iterate: whoever called decides what to do.
        An interrupt that comes before there is an iterate is raised.
    """
    require_suitable(solver, objective)
    for callback in callbacks:
        callback.on_begin(objective, tol)
    start = objective.start() if theta is None else theta
    iterates = solver.iterates(objective, start, seed)
    clock, history = Stopwatch(), History()
    last: Evaluated | None = None
    status = Status.MAX_ITER
    # Overflow ends in values that are not finite, which are looked for; a warning would say less.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            for n in range(max_iter + 1):
                at = _evaluated(objective, clock.advance(iterates))
                if not (np.isfinite(at.value) and np.isfinite(at.theta).all()):
                    status = Status.NOT_FINITE
                    break
                stalled = last is not None and np.array_equal(last.theta, at.theta)
                last = at
                record = _record(objective, n, clock.seconds, at)
                if record.stationarity <= tol and at.carried:  # no certificate from carried numbers
                    last = at = objective.evaluate(at.theta)
                    record = _record(objective, n, clock.seconds, at)
                history.append(record)
                answers = [callback.on_iterate(at, record) for callback in callbacks]
                if reason := _reason_to_stop(record, tol, stalled, answers):
                    status = reason
                    break
        except KeyboardInterrupt:
            if last is None:
                raise
            status = Status.INTERRUPTED
        finally:
            iterates.close()  # type: ignore[attr-defined]
    if last is not None and last.carried:
        last = objective.evaluate(last.theta)
    if last is None:  # the starting point itself has no finite value
        last = Evaluated(start, float("nan"), np.zeros_like(start))
        history.append(Record(0, clock.seconds, last.value, float("nan"), 0))
    result = Result(last, status, max(history[-1].iteration, 0), history[-1].stationarity, history)
    for callback in callbacks:
        callback.on_end(result)
    return result


def _evaluated(objective: Objective, iterate: Iterate) -> Evaluated:
    """Φ and the gradient at the iterate: measured here, off the clock, where the solver had no need."""
    return iterate if isinstance(iterate, Evaluated) else objective.evaluate(iterate.theta)


def _record(objective: Objective, n: int, seconds: float, at: Evaluated) -> Record:
    nonzeros = int(np.count_nonzero(np.abs(at.theta[:-1]) > objective.potential.zero_width))
    return Record(n, seconds, at.value, objective.stationarity(at), nonzeros)


def _reason_to_stop(
    record: Record, tol: float, stalled: bool, answers: Sequence[Status | None]
) -> Status | None:
    if record.stationarity <= tol:
        return Status.CONVERGED
    if stalled:
        return Status.STALLED
    return next((answer for answer in answers if answer is not None), None)
