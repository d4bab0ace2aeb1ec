r"""A start for a kink and dense rows, too few to take a sample of: accelerated proximal gradient steps.

From zero, where all rows are active, the Gram matrix would be built of all rows, and many of them taken away
again; and the features that matter are not known. A product with X costs a hundredth of that matrix or less.
Some steps tell most active rows and most of the support, where features are not strongly correlated: for
2,600 × 500 normal numbers with λ_max/100, eight steps lead to 466 features in use (464 in the end), and 16
rows are not yet on their side. Such a fit takes 0.6 of the time that it took from zero with Gram matrices on
one core (now two).

    θ⁺ = prox(z - D⁻¹∇loss(z)),    z⁺ = θ⁺ + (t - 1)/t⁺ (θ⁺ - θ),    D = 2 ‖Λ^-½ LᵀSL Λ^-½‖ Λ,

with Λ the diagonal of LᵀSL: indifferent to the units of the features. The norm is estimated by power
iterations, so nothing is claimed of the end but its Φ. The momentum starts anew where it points uphill.
"""

from __future__ import annotations

import math

import numpy as np

from majorant.objective import Objective
from majorant.solvers.newton import tuning
from majorant.status import Evaluated


def proximal_start(objective: Objective) -> Evaluated:
    """Where some accelerated proximal gradient steps lead from zero, for one class."""
    lengths = objective.rows.gram_diagonal
    scale = np.sqrt(np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0))
    step = scale**2 / (2.0 * objective.rows.gram_norm(scale, tuning.POWER_STEPS) or 1.0)
    at = ahead = objective.evaluate(objective.start())
    t = 1.0
    for _ in range(tuning.PROXIMAL_STEPS):
        slopes = objective.tangent_slopes(ahead.theta)
        theta = ahead.theta - step * ahead.loss_gradient
        theta = np.sign(theta) * np.maximum(np.abs(theta) - step * slopes, 0.0)
        theta /= 1.0 + step * objective.ridge
        move = theta - at.theta
        t, last = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0, t
        if (ahead.theta - theta) @ move > 0.0:
            t = last = 1.0
        at = Evaluated(theta, math.nan, ahead.loss_gradient)
        ahead = objective.evaluate(theta + (last - 1.0) / t * move)
    return Evaluated(at.theta, math.nan, ahead.loss_gradient)
