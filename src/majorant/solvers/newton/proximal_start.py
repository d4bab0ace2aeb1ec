r"""Accelerated proximal gradient steps: a start for a kink and dense rows that are too few for a sample.

From zero, where all rows are active, the Gram matrix would be built of all rows, and many of them subtracted
again; and the features in use are not known. A product with X costs at most a hundredth of that matrix. If
features are not strongly correlated, some steps find most active rows and most of the support: for 2,600 ×
500 normal numbers with λ_max/100, eight steps lead to 466 features in use (464 at the minimum), and only 16
rows are still to change sides. Such a fit takes 0.6 of the time from zero (measured with Gram matrices on
one core).

    θ⁺ = prox(z - D⁻¹∇loss(z)),    z⁺ = θ⁺ + (t - 1)/t⁺ (θ⁺ - θ),    D = 2 ‖Λ^-½ LᵀSL Λ^-½‖ Λ,

with Λ the diagonal of LᵀSL, so that the units of the features do not matter. The norm is estimated by power
iterations, so there is no guarantee; Φ of the result is compared with Φ at zero. The momentum is reset when
it points uphill.
"""

from __future__ import annotations

import math

import numpy as np

from majorant.objective import Objective
from majorant.solvers.newton import tuning
from majorant.status import Evaluated


def proximal_start(objective: Objective) -> Evaluated:
    """θ after some accelerated proximal gradient steps from zero, for one class."""
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
