"""One step: all the way to the model's minimiser, or as far as Φ falls."""

from __future__ import annotations

from majorant.objective import Objective
from majorant.rows.quadratic import ActiveQuadratic
from majorant.status import Vector

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
    part t of it. The unit step is right nearly always; a search costs no product with X, since the margins
    are known along the line. No fall at all returns θ itself.
    """
    d = target - theta
    loss, t = quadratic.look_along(d), 1.0
    while t > 1e-10:
        # At t = 1 it is the target itself, with its exact zeros.
        trial = target if t == 1.0 else theta + t * d
        reached = loss + objective.penalty(trial)
        if reached <= value - SUFFICIENT * t * predicted + ROUNDING * abs(value):
            quadratic.step(t)
            return trial, reached
        t *= 0.5
        loss = quadratic.loss_at(t)
    return theta, value
