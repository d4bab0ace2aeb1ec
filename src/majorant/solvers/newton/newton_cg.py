"""Many features, all of them needed: Newton's equations by conjugate gradients, without the matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.line_search import step_or_refresh
from majorant.solvers.newton import tuning
from majorant.solvers.newton.newton_equations import newton_direction
from majorant.status import Evaluated, Vector


def newton_cg_iterates(
    objective: Objective, classes: Sequence[MemoryRows], theta: Vector
) -> Iterator[Evaluated]:
    """Truncated Newton with the curvature of the active rows and of the potential."""
    at = objective.evaluate(theta)
    quadratic = ActiveQuadratic(classes, theta, gram=False)
    while True:
        yield at
        gradient = objective.gradient(at)
        d = -newton_direction(objective, quadratic, at.theta, gradient, tuning.CG_FORCING)
        at = objective.evaluate(step_or_refresh(objective, quadratic, at, at.theta + d, -float(gradient @ d)))
