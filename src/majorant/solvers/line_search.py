"""One step: all the way to the model's minimiser, or as far as Φ falls."""

from __future__ import annotations

import numpy as np

from majorant.objective import Objective
from majorant.rows.quadratic import ActiveQuadratic
from majorant.status import Evaluated, Vector

# The share of the predicted fall that a step must reach, and a relative rise that is rounding.
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
    """Go from θ, where Φ is `value`, towards the target; return where and the Φ there.

    `predicted` ≥ 0 is a fall of Φ that a model promises for the whole step, and t times it, or more, for a
    part t of it. The unit step is right nearly always, so it is taken at once and taken back if it is wrong;
    a search costs no product with X, since the margins are known along the line. No fall at all returns θ
    itself. If the margins are behind θ, they go straight to the target.
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
    """The same step, from an iterate; if there is no way down by what was carried, by what is true at θ."""
    moved, _ = step_towards(objective, quadratic, at.theta, at.value, target, predicted)
    if np.array_equal(moved, at.theta):
        quadratic.refresh(at.theta)
        moved, _ = step_towards(objective, quadratic, at.theta, at.value, target, predicted)
    return moved
