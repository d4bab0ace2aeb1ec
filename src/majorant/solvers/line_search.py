"""The line search: a step to the minimiser of a model, shortened until Φ falls enough."""

from __future__ import annotations

import numpy as np

from majorant.objective import Objective
from majorant.rows.quadratic import ActiveQuadratic
from majorant.status import Evaluated, Vector

# The share of the predicted fall that a step must achieve, and a relative rise of Φ that counts as rounding.
SUFFICIENT = 1e-4
ROUNDING = 1e-14


def step_towards(
    objective: Objective,
    quadratic: ActiveQuadratic,
    theta: Vector,
    value: float,
    target: Vector,
    predicted: float,
) -> tuple[Vector, float]:
    """Go from θ, where Φ is `value`, towards the target; returns the point reached and its Φ.

    `predicted` ≥ 0 is the fall of Φ that a model predicts for the whole step; for a part t of the step it is
    at least t times that. The whole step is nearly always good enough, so it is taken first, and undone if it
    is not; shorter steps then need no product with X, since the margins along the line are known. If Φ does
    not fall, θ itself is returned. If the point of the margins is not θ, they move directly to the target.
    """
    behind = quadratic.theta is not None and not quadratic.is_at(theta)
    d = target - (theta if quadratic.theta is None else quadratic.theta)

    def enough(t: float, reached: float) -> bool:
        return reached <= value - SUFFICIENT * t * predicted + ROUNDING * abs(value)

    reached = quadratic.advance(d) + objective.penalty(target)
    if enough(1.0, reached):
        quadratic.commit(target)
        return target, reached
    if behind:
        quadratic.refresh(theta)
        return step_towards(objective, quadratic, theta, value, target, predicted)
    quadratic.move(-1.0)
    t = 0.5
    while t > 1e-10:
        reached = quadratic.loss_at(t) + objective.penalty(theta + t * d)
        if enough(t, reached):
            quadratic.move(t)
            moved = theta + t * d
            quadratic.commit(moved)
            return moved, reached
        t *= 0.5
    quadratic.commit(theta)
    return theta, value


def step_or_refresh(
    objective: Objective, quadratic: ActiveQuadratic, at: Evaluated, target: Vector, predicted: float
) -> Vector:
    """`step_towards` from an iterate, repeated with margins computed anew if Φ does not fall.

    Rounding errors of carried margins may hide that Φ falls.
    """
    moved, _ = step_towards(objective, quadratic, at.theta, at.value, target, predicted)
    if np.array_equal(moved, at.theta):
        quadratic.refresh(at.theta)
        moved, _ = step_towards(objective, quadratic, at.theta, at.value, target, predicted)
    return moved
