"""Many features, all of them needed: Newton's equations by conjugate gradients, without the matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from majorant.linsolve import conjugate_gradients
from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.search import step_or_refresh
from majorant.status import Evaluated, Vector


def conjugate_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    """Truncated Newton with the curvature of the active rows and of the potential."""
    at = objective.evaluate(theta)
    quadratic = ActiveQuadratic(rows, theta, gram=False)
    while True:
        yield at
        gradient = objective.gradient(at)
        diagonal, preconditioner = diagonals(objective, at.theta)

        def curved(d: Vector, diagonal: Vector = diagonal) -> Vector:
            return quadratic.product(d) + diagonal * d

        d = -conjugate_gradients(curved, gradient, preconditioner)
        at = objective.evaluate(step_or_refresh(objective, quadratic, at, at.theta + d, -float(gradient @ d)))


def diagonals(objective: Objective, theta: Vector) -> tuple[Vector, Vector]:
    """The curvature of the penalty at θ, and a preconditioner for that of Φ."""
    diagonal = np.zeros(objective.size)
    curvature = objective.potential.curvature(theta[:-1])
    diagonal[:-1] = objective.factor * curvature + objective.eta
    whole = 2.0 * objective.rows.gram_diagonal + diagonal
    # With similar curvatures for all features the loss decides, and on text its full diagonal is a worse
    # preconditioner than none; its power 0.3 is a better one. Where the potential's curvatures span
    # orders of magnitude, they decide.
    similar = np.max(diagonal[:-1]) <= 10.0 * np.min(diagonal[:-1])
    return diagonal, np.where(whole > 0, whole, 1.0) ** (0.3 if similar else 1.0)
