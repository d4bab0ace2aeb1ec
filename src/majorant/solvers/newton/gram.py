"""Few features: the Gram matrix of the active rows, kept up to date, and dense linear algebra on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.newton.models import minimise_kinked, minimise_smooth
from majorant.solvers.newton.search import step_towards
from majorant.status import Evaluated, Vector


def gram_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    """Newton's method with the exact curvature of the active rows."""
    quadratic = rows.kept.pop(ActiveQuadratic, None)
    here = quadratic is not None and quadratic.theta is not None and np.array_equal(quadratic.theta, theta)
    # Where the answer depends on the way to it, the rounding of what was carried shall not decide.
    if not here or not objective.potential.convex:
        quadratic = ActiveQuadratic(rows, theta)
    try:
        yield from _steps(objective, quadratic, theta)
    finally:
        rows.kept[ActiveQuadratic] = quadratic


def _steps(objective: Objective, quadratic: ActiveQuadratic, theta: Vector) -> Iterator[Evaluated]:
    value = quadratic.loss_at(0.0) + objective.penalty(theta)
    while True:
        at = Evaluated(theta, value, quadratic.gradient(theta), carried=True)
        yield at
        moved, value = _step(objective, quadratic, at)
        if np.array_equal(moved, theta) and not quadratic.fresh:
            # No way down in what was carried; is there one in the truth?
            quadratic.refresh(theta)
            value = quadratic.loss_at(0.0) + objective.penalty(theta)
            fresh = Evaluated(theta, value, quadratic.gradient(theta), carried=True)
            moved, value = _step(objective, quadratic, fresh)
        theta = moved


def _step(objective: Objective, quadratic: ActiveQuadratic, at: Evaluated) -> tuple[Vector, float]:
    if objective.potential.smooth:
        target, predicted = minimise_smooth(objective, quadratic.H, quadratic.c, at.theta)
    else:
        slopes = tangent_slopes(objective, at.theta)
        target, predicted = minimise_kinked(objective, quadratic.H, quadratic.c, at, slopes)
    return step_towards(objective, quadratic, at.theta, at.value, target, predicted)


def tangent_slopes(objective: Objective, theta: Vector) -> Vector:
    """c_i φ'(|w_i|): the tangent in |w| that majorises a concave φ; λ for ℓ1. Zero for the intercept."""
    if objective.potential.convex:  # and concave on [0, ∞[, hence linear there
        return objective.kink_slopes
    w = np.abs(theta[:-1])
    slopes = np.where(w == 0.0, objective.potential.slope_at_zero, objective.potential.derivative(w))
    return np.append(objective.factor * slopes, 0.0)
