"""Many features, all of them needed: Newton's equations by conjugate gradients, without the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.search import step_or_refresh
from majorant.status import Evaluated, Vector

FORCING = 0.1
MAX_STEPS = 250


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


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    right: Vector,
    preconditioner: Vector,
    accuracy: float = FORCING,
    max_steps: int = MAX_STEPS,
) -> Vector:
    """Solve A x = right for a positive semidefinite A, to a relative accuracy, or as far as the steps go."""
    x = np.zeros_like(right)
    residual = right.copy()
    z = residual / preconditioner
    direction = z.copy()
    rz = float(residual @ z)
    goal = accuracy**2 * rz
    for _ in range(max_steps):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0:
            break
        alpha = rz / curvature
        x += alpha * direction
        residual -= alpha * image
        z = residual / preconditioner
        rz, previous = float(residual @ z), rz
        if rz <= goal:
            break
        direction = z + (rz / previous) * direction
    # Nothing done (the first direction is flat): the preconditioned gradient is a direction of descent.
    return x if x.any() else right / preconditioner
