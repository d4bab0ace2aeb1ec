r"""When a small coefficient of a smooth potential is a zero.

A smooth potential leaves the coefficients that mean zero inside its rounded bottom, |w| ≤ `zero_width`. The
rule "auto" sets those to exactly 0.0. At a stationary point the loss pulls w_i with the force c_i φ'(w_i), so
setting it to zero raises Φ by

    c_i (φ(0) - φ(w_i) + φ'(w_i) w_i)  +  the curvature of the loss along w_i.

The first term is the blur of the potential, at most λδ for the hyperbolic one, which is also how far its
minimum can be from ℓ1's; it is accepted. The second is what the data say, and must stay below tol · Φ: as
long as it does not, the width is halved. Potentials with a kink have exact zeros already, ℓ2 and "none" have
none to find: their width is 0 and nothing is touched.
"""

from __future__ import annotations

import numpy as np

from majorant.objective import Objective
from majorant.status import Evaluated


def round_to_zero(objective: Objective, at: Evaluated, zero_tol: float | str, tol: float) -> Evaluated:
    """The iterate with its zeros set to 0.0, evaluated."""
    automatic = isinstance(zero_tol, str)
    width = objective.potential.zero_width if automatic else float(zero_tol)
    w, potential = at.theta[:-1], objective.potential
    while True:
        small = (np.abs(w) <= width) & (w != 0.0)
        if not small.any():
            return at
        theta = at.theta.copy()
        theta[:-1][small] = 0.0
        rounded = objective.evaluate(theta)
        v = w[small]
        blur = potential.value(np.zeros_like(v)) - potential.value(v) + potential.derivative(v) * v
        allowed = at.value + float(objective.factor[small] @ blur) + tol * abs(at.value)
        if not automatic or rounded.value <= allowed:
            return rounded
        width /= 2.0
