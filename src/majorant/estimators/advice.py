"""What to tell a user of a fit: of several problems together, and what to do if it did not converge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.solvers import Solver
from majorant.status import Certificate, Result, Status


def convergence_advice(result: Result, solver: Solver, tol: float) -> str:
    """The text of the ConvergenceWarning: one sentence on what was reached, one on what to do."""
    plural = "" if result.n_iter == 1 else "s"
    reached = (
        f"{result.status.value} Reached: {result.certificate} after {result.n_iter} "
        f"iteration{plural} of {solver.name!r}, tol is {tol:.1e}: "
    )
    return reached + _what_to_do(result.status, solver)


def _what_to_do(status: Status, solver: Solver) -> str:
    if status is Status.NOT_FINITE:
        return "use a smaller step, or scale the features."
    if status is Status.STALLED:
        return "standardise the features, or take a tol above what was reached."
    if status is Status.ZERO_TOL:
        return "take a smaller zero_tol, or zero_tol='auto'."
    if status is Status.TIME_LIMIT:
        return "give it more time, or accept what was reached."
    if solver.name == "newton":
        return "increase max_iter, or the strength of the penalty."
    return "increase max_iter, or use solver='auto'."


def severity(result: Result) -> int:
    """How bad the reason is for which a run has stopped: the worst of several is what a user is told."""
    order = [Status.CONVERGED, Status.ZERO_TOL, Status.STOPPED, Status.STALLED, Status.MAX_ITER]
    order += [Status.TIME_LIMIT, Status.NOT_FINITE, Status.INTERRUPTED]
    return order.index(result.status)


def overall(results: Sequence[Result]) -> Certificate:
    """What is certain of several problems together: the gap of the sum of their Φ, the worst stationarity."""
    values = np.array([result.iterate.value for result in results])
    gaps = np.array([result.certificate.gap for result in results])
    total = values.sum()
    gap = float(gaps @ values / total) if total > 0.0 else float(gaps.max())
    return Certificate(float(np.max([result.certificate.stationarity for result in results])), gap)
