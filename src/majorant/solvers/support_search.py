r"""What a change of the support by one feature promises, for potentials that are bounded.

Let c_i m be the penalty of a large coefficient, m = lim φ(w) - φ(0). A feature at zero, which the loss pulls
by g_i, saves at least g_i²/2h_i of the loss when it is let go, with its curvature h_i of all rows, and costs
c_i m. A feature that is used saves c_i (φ(w_i) - φ(0)) when it is taken away and the others are optimised,
and costs at most w_i²/2(H⁻¹)_ii of the loss at a minimum, with the Hessian H of those in use and all rows.
"""

from __future__ import annotations

import math

import numpy as np

from majorant.linsolve import unit_diagonal
from majorant.objective import Objective
from majorant.status import Evaluated, Matrix, Vector

# How much lower Φ must promise to be, relatively.
PROMISE = 1e-3
# The share of the diagonal that makes a Hessian regular.
REGULAR = 1e-10
# More features than this are not examined for one to take away. (Not tuned.)
MOST_FEATURES = 500


def bounded(objective: Objective) -> bool:
    """Whether a large coefficient costs no more than a limit."""
    potential = objective.potential
    return potential.smooth and not potential.convex and math.isfinite(potential.limit)


def gains_of_release(objective: Objective, at: Evaluated, spread: Vector) -> Vector:
    """By how much Φ falls at least when a feature is let go; -∞ for those outside the well already."""
    inside = (objective.lengths(at.theta) <= objective.potential.zero_width) & (spread > 0.0)
    pulls = objective.lengths(at.loss_gradient)
    gains = 0.5 * pulls**2 / np.where(inside, spread, 1.0) - objective.factor * objective.potential.limit
    return np.where(inside, gains, -math.inf)


def gains_of_removal(objective: Objective, at: Evaluated) -> Vector:
    """By how much Φ falls at least when a feature is taken away; -∞ for those inside the well."""
    sizes = objective.lengths(at.theta)
    gains = np.full(len(sizes), -math.inf)
    used = np.flatnonzero((sizes > objective.potential.zero_width) & (objective.factor > 0.0))
    free = np.flatnonzero((sizes > 0.0) | (objective.factor == 0.0))
    if not 0 < len(free) <= MOST_FEATURES or not len(used):
        return gains
    costs = np.zeros(len(sizes))
    for rows, theta in zip(objective.classes, objective.matrix(at.theta), strict=True):
        # All rows are active at θ = 0.
        H, unit = unit_diagonal(rows.curvature(np.zeros_like(theta), free))
        np.fill_diagonal(H, 1.0 + REGULAR)
        variances = np.diag(np.linalg.inv(H)) * unit**2
        costs[free] += 0.5 * theta[free] ** 2 / np.maximum(variances[:-1], np.finfo(float).tiny)
    saved = objective.factor * objective.potential.excess(sizes)
    gains[used] = (saved - costs)[used]
    return gains


def gains_of_change(objective: Objective, at: Evaluated, spread: Vector) -> Matrix:
    """What the release (first row) and the removal of every feature promise."""
    return np.stack([gains_of_release(objective, at, spread), gains_of_removal(objective, at)])


def promising(objective: Objective, at: Evaluated, spread: Vector) -> bool:
    """Whether some change of the support promises a clearly lower Φ."""
    return bounded(objective) and bool(
        gains_of_change(objective, at, spread).max(initial=-math.inf) > PROMISE * at.value
    )
