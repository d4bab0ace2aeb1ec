r"""When a small coefficient of a smooth potential is a zero.

A smooth potential leaves the coefficients that mean zero inside its rounded bottom, |w| ≤ `zero_width`. The
rule "auto" sets those to exactly 0.0, all at once, as long as zero can hold them there: the loss, at the
point with the zeros, must not pull any of them harder than the potential can resist,

    |∂_i loss| ≤ c_i max |φ'|,

which is the very condition for a zero of the sharp problem (λ for the hyperbolic potential, as for ℓ1). Those
that are pulled harder keep their value, and the others are looked at again. Potentials with a kink have exact
zeros already, but for those that were still on their way when the solver stopped: what is faint is set to
zero if zero holds it and Φ does not rise. ℓ2 and "none" have no zeros to find: their width is 0.

What it costs: a coefficient w in balance with the loss gives away c_i (φ(0) - φ(w) + φ'(w) w) to first order,
which is at most c_i λ δ for the hyperbolic potential: no more than it differs from ℓ1 by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.joint import AnyObjective
from majorant.status import Evaluated, Vector

# A pull within this factor of what can be held is held: on the border the sharp problem is indifferent.
BORDER = 1.001
# Potentials with a kink: coefficients that move the margins by less than this, relative to the slacks. (Along
# paths of w8a and a9a, 1e-2 found no more of them, and took a pass over the rows at every point to say so.)
FAINT = 1e-4


def round_to_zero(objective: AnyObjective, at: Evaluated, zero_tol: float | str) -> Evaluated:
    """The iterate with its zeros set to 0.0, evaluated; of a joint problem, whole features."""
    potential, sizes = objective.potential, objective.lengths(at.theta)
    if not isinstance(zero_tol, str):
        return _rounded(objective, at, sizes <= zero_tol, np.inf)
    if potential.smooth:
        held = BORDER * objective.factor * potential.steepest
        return _rounded(objective, at, sizes <= potential.zero_width, held)
    # What moves the margins next to nothing, is pulled less than zero can hold, and so was on its way there.
    held = objective.factor * potential.slope_at_zero
    faint = sizes * objective.column_lengths <= FAINT * np.sqrt(max(at.value, 0.0))
    rounded = _rounded(objective, at, faint & (objective.lengths(at.loss_gradient) < held), held)
    return rounded if rounded.value <= at.value else at


def _rounded(
    objective: AnyObjective, at: Evaluated, small: NDArray[np.bool_], held: Vector | float
) -> Evaluated:
    """The small ones set to zero, but for those that the loss would pull harder than can be held."""
    small = small & (objective.lengths(at.theta) != 0.0)
    while small.any():
        rounded = objective.evaluate(_without(at.theta, small))
        pulled = small & (objective.lengths(rounded.loss_gradient) > held)
        if not pulled.any():
            return rounded
        small &= ~pulled
    return at


def _without(theta: Vector, features: NDArray[np.bool_]) -> Vector:
    """θ with these features zero, for every class that it is made of."""
    kept = theta.reshape(-1, len(features) + 1).copy()
    kept[:, :-1][:, features] = 0.0
    return kept.ravel()
