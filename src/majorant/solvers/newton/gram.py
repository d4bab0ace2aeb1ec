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

# How far a model is solved, as a fraction of the violation it starts with: the model changes with the active
# rows, so more is wasted; less takes more passes over the data.
ACCURACY = 0.05


def gram_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    """Newton's method with the exact curvature of the active rows."""
    quadratic = ActiveQuadratic(rows, theta)
    value = quadratic.loss_at(0.0) + objective.penalty(theta)
    while True:
        at = Evaluated(theta, value, quadratic.gradient(theta), carried=True)
        yield at
        if objective.potential.smooth:
            target = minimise_smooth(objective, quadratic.H, quadratic.c, theta, ACCURACY)
        else:
            target = _minimise_kinked(objective, quadratic, at)
        slope = float(objective.subgradient(at) @ (target - theta))
        theta, value = step_towards(objective, quadratic, theta, value, target, min(slope, 0.0))


def _minimise_kinked(objective: Objective, quadratic: ActiveQuadratic, at: Evaluated) -> Vector:
    H = quadratic.H
    ridge = np.append(np.full(len(H) - 1, objective.eta), 0.0)
    lengths = np.sqrt(np.diagonal(H) + ridge)
    violations = np.abs(objective.subgradient(at)) / np.where(lengths > 0, lengths, np.inf)
    accuracy = ACCURACY * float(np.max(violations))
    return minimise_kinked(H, quadratic.c, at.theta, tangent_slopes(objective, at.theta), ridge, accuracy)


def tangent_slopes(objective: Objective, theta: Vector) -> Vector:
    """c_i φ'(|w_i|): the tangent in |w| that majorises a concave φ; λ for ℓ1. Zero for the intercept."""
    w = np.abs(theta[:-1])
    slopes = np.where(w == 0.0, objective.potential.slope_at_zero, objective.potential.derivative(w))
    return np.append(objective.factor * slopes, 0.0)
