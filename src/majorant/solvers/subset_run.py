"""One run of a search for features: budget, clock, callbacks, Ctrl-C, and what is true of its end.

The driver of the solvers (`driver.py`) stops where the certificate of the whole problem is within the
tolerance. A search stops where it finds no better support, and has a certificate for that support alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.interrupts import CtrlC, check, ending_on, undisturbed
from majorant.objective import Objective
from majorant.solvers.auto import choose_solver
from majorant.solvers.driver import solve
from majorant.solvers.narrowing import Narrowing
from majorant.solvers.subset import SubsetSearch
from majorant.status import Evaluated, History, Record, Result, Status, Vector


def find_subset(
    search: SubsetSearch,
    size: int,
    theta: Vector | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Search for the best support of a size, from that of θ.

    The result is about the problem with the features of its support alone, as `on_support` gives it: so
    are the certificate, the lower bound and the gradient.

    Parameters
    ----------
    search : SubsetSearch
        What it has copied and found serves the next search.
    size : int
        The most features of the support, besides those without penalty.
    theta : array (objective.size,), optional
        By default zero.
    tol : float
        The certificate of the coefficients on the support.
    max_iter : int
        The most steps: features that are added, removed or swapped.
    callbacks : sequence of Callback
        Called after every step, with a certificate of nan.
    """
    objective, history, began = search.objective, History(), time.perf_counter()
    for callback in callbacks:
        callback.on_begin(objective, tol)
    resumed = next((c.start_theta for c in callbacks if c.start_theta is not None), theta)
    last = objective.start() if resumed is None else resumed
    status, paused = Status.NO_SWAP, 0.0
    with CtrlC() as ctrl_c, ending_on(lambda: ctrl_c.pressed), one_thread():
        try:
            for n, at in enumerate(search.steps(size, last)):
                last = search.columns.theta(at).ravel()
                seconds = time.perf_counter() - began - paused
                record = Record(n, seconds, at.value, math.nan, math.nan, len(at.support))
                history.append(record)
                reason = _answer(callbacks, objective, last, record) if callbacks else None
                paused = time.perf_counter() - began - seconds
                if reason is None and n == max_iter:
                    reason = Status.MAX_ITER
                if reason is not None:
                    status = reason
                    break
                check()
        except KeyboardInterrupt:
            if not history:
                raise
            status = Status.INTERRUPTED
        if ctrl_c.pressed:
            status = Status.INTERRUPTED
        with undisturbed():
            chosen = next((c.best_theta for c in callbacks if c.best_theta is not None), last)
            if status is Status.NO_SWAP and not np.array_equal(chosen, last):
                status = Status.STOPPED  # nothing is known of swaps from there
            result = _certified(objective, chosen, status, history, tol)
    for callback in callbacks:
        callback.on_end(result)
    return result


def _certified(objective: Objective, theta: Vector, status: Status, history: History, tol: float) -> Result:
    """What is true of θ among all coefficients with its support."""
    part = on_support(objective, theta)
    at, certificate = part.objective.certify(part.narrow(theta))
    if status is Status.NO_SWAP and not certificate.error <= tol:
        better = solve(choose_solver(part.objective), part.objective, at.theta, tol=tol)
        at, certificate = better.iterate, better.certificate
        status = status if better.status.converged else better.status
    final = replace(
        history[-1], objective=at.value, gap=certificate.gap, stationarity=certificate.stationarity,
        nonzeros=part.objective.nonzeros(at.theta),
    )  # fmt: skip
    history = History([*history[:-1], final])
    return Result(part.widen_point(at), status, final.iteration, certificate, history)


def on_support(objective: Objective, theta: Vector) -> Narrowing:
    """The problem with the features of θ, and those without penalty, alone."""
    support = np.flatnonzero((objective.lengths(theta) > 0.0) | (objective.factor == 0.0))
    return Narrowing(objective.columns(support), objective.width, np.append(support, objective.width - 1))


def _answer(
    callbacks: Sequence[Callback], objective: Objective, theta: Vector, record: Record
) -> Status | None:
    """Show all callbacks a step; the first of their reasons to stop."""
    at: Evaluated = objective.evaluate(theta)
    answers = [callback.on_iterate(at, record) for callback in callbacks]
    return next((answer for answer in answers if answer is not None), None)
