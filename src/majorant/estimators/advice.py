"""What to tell a user whose fit did not converge: one sentence on what was reached, one on what to do."""

from __future__ import annotations

from majorant.solvers import Solver
from majorant.status import Result, Status


def convergence_advice(result: Result, solver: Solver, tol: float) -> str:
    """The text of the ConvergenceWarning."""
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
    if status is Status.TIME_LIMIT:
        return "give it more time, or accept what was reached."
    if solver.name == "newton":
        return "increase max_iter, or the strength of the penalty."
    return "increase max_iter, or use solver='auto'."
