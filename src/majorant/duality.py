r"""A lower bound of the minimum, from the iterate itself: the duality gap.

With the rows' dual variables α_k ≥ 0 and the pull u = Xᵀ(yα) that they exert on the coefficients, Fenchel's
inequality gives, for every α with Σ_k y_k α_k = 0 (which the free intercept asks for),

    min Φ ≥ D(α) = Σ_k (α_k - α_k²/4s_k) - Σ_i f_i*(u_i),    f_i = c_i φ + η/2 (·)²,

with equality at the optimum, where α_k = 2 s_k (1 - v_k)₊: what the loss at the margins v says. From the α of
an iterate, one gets there by

- shrinking the α of the class that weighs more, until both weigh the same: then Σ yα = 0 exactly;
- taking the α of a point at which the features without any penalty are at their best, given the others
  (`Objective._with_best_free_features`): then u_i = 0 for these but for rounding, for which twice |u_i w_i|
  is taken off the bound;
- scaling all of them by one t, since |u_i| may not exceed c_i sup φ' where there is no ridge to take the
  rest. (The scale that is best for the first sum alone is tried as well.)

With a ridge, f_i* is the smallest (c_iφ)*(a) + (u_i - a)²/2η over all a; any a makes a valid bound, and
a = u_i - η w_i, cut to what φ can hold, is the right one at the optimum.

Of a quadratic penalty, f_i*(u) = u²/2D_i with D_i = c_i φ'' + η: then the best t is known, and D(tα) there is
(Σ α)²/4(Σ α²/4s + Σ u²/2D).

With several classes at once, all sums are over the classes as well, and the norm of a feature's pull takes
the place of its size.

φ stands for φ - φ(0) throughout (`Potential.excess`): a constant does not count.

The α themselves are never needed: α_k = 2 s_k (1 - v_k)₊ makes u the negative gradient of the loss,
Σ α²/4s the loss, and Σ α = 2 loss - θ·∇loss, class by class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from majorant.potentials import Potential
from majorant.rows.base import LossSum
from majorant.status import Matrix, Vector

TINY = float(np.finfo(float).tiny)

# A Φ below this multiple of its value at θ = 0 counts as zero: it belongs to slacks 1 - v of 1e-10, and their
# rounding error is 1e-16 and more.
VANISHING = 1e-20

# The largest weight of a quadratic penalty: products with coefficients must not overflow.
LARGEST_WEIGHT = 1e290


def relative_gap(value: float, bound: float, at_zero: float) -> float:
    """How far Φ can be above its minimum at most, relative to Φ; zero if Φ is negligible."""
    return max(value - bound, 0.0) / value if value > VANISHING * at_zero else 0.0


def quadratic_weights(potential: Potential, factor: Vector, eta: float) -> Vector:
    """D of a quadratic penalty Σ_i D_i ‖W_·i‖²/2."""
    return np.minimum(factor * potential.weight(np.zeros(1)) + eta, LARGEST_WEIGHT)


def balanced(theta: Vector, classes: Sequence[LossSum]) -> tuple[float, float, Vector]:
    """Σ α, Σ α²/4s and the gradient of the α of θ, shrunk so that both classes weigh the same."""
    weights = [abs(float(loss.gradient[-1])) for loss in classes]
    lightest = min(weights)
    linear = square = 0.0
    gradient = np.zeros(len(theta))
    for weight, loss in zip(weights, classes, strict=True):
        # Without an intercept all weights are zero, and nothing is to be balanced.
        share = lightest / weight if weight > 0.0 else 1.0
        linear += share * (2.0 * loss.value - float(theta @ loss.gradient))
        square += share**2 * loss.value
        gradient += share * loss.gradient
    return linear, square, gradient


def column_norms(W: Matrix) -> Vector:
    """The norm of every column, whose squares may be beyond the range of numbers."""
    if len(W) == 1:
        return np.asarray(np.abs(W[0]))
    top = float(np.max(np.abs(W), initial=0.0))
    if 1e-100 < top < 1e100 or top == 0.0 or not math.isfinite(top):
        return np.asarray(np.sqrt(np.einsum("ci,ci->i", W, W)))
    return np.asarray(top * column_norms(W / top))


class Dual:
    """The dual function of a convex penalty Σ_i c_i (φ(‖W_·i‖) - φ(0)) + η/2 ‖W‖²."""

    def __init__(self, potential: Potential, factor: Vector, eta: float) -> None:
        self.potential, self.factor, self.eta = potential, factor, eta
        self.max_slope = potential.max_slope
        limit = factor * self.max_slope
        # Where c is zero, so is what φ holds.
        self.divisor = np.where(factor > 0.0, factor, 1.0)
        self.free = (limit == 0.0) & (eta == 0.0)
        self._any_free = bool(self.free.any())
        self._limit = np.where(self.free, np.inf, limit)
        # 1/D of a quadratic penalty; zero for features without any.
        self._inverse: Vector | None = None
        if potential.quadratic:
            D = quadratic_weights(potential, factor, eta)
            self._inverse = np.divide(1.0, D, out=np.zeros_like(D), where=D > TINY)

    def value(self, theta: Matrix, linear: float, square: float, gradient: Matrix) -> float:
        """D(α) ≥ 0 for the α of θ, made feasible, from Σ α, Σ α²/4s and -u, a row per class.

        From sums over α whose classes are not in balance, an estimate: as good as the intercepts are.
        """
        if not square > 0.0:
            return 0.0
        G, W, longest = gradient[:, :-1], theta[:, :-1], math.inf
        if self._any_free:
            linear -= 2.0 * float(column_norms(G[:, self.free]) @ column_norms(W[:, self.free]))
        if not linear > 0.0:  # the best scale would be negative, and negative α prove nothing
            return 0.0
        if self._inverse is not None:
            half = 0.5 * linear / (square + 0.5 * float(np.vdot(G * self._inverse, G)))
            return 0.5 * linear * half if half > 0.0 else 0.0
        if self.eta == 0.0:
            longest = 1.0 / max(float((column_norms(G) / self._limit).max(initial=0.0)), TINY)
        if self.eta == 0.0 and self.potential.homogeneous:  # no conjugate: the best scale is known
            t = min(longest, 0.5 * linear / square)
            return max(0.0, t * linear - t * t * square)
        candidates = {min(1.0, longest), min(longest, 0.5 * linear / square)}
        return max(0.0, *(t * linear - t * t * square - self._conjugate(-t * G, W) for t in candidates))

    def _conjugate(self, U: Matrix, W: Matrix) -> float:
        """Σ f_i*(U_·i), or a little more: all that φ holds points where the pull does."""
        held = U - self.eta * W if self.eta > 0.0 else U
        size = column_norms(held)
        slopes = np.minimum(size / self.divisor, self.max_slope)
        value = float(self.factor @ self.potential.excess_conjugate(slopes))
        if self.eta > 0.0:
            rest = U - held * (self.factor * slopes / np.maximum(size, TINY))
            value += 0.5 * float(np.sum(rest * rest)) / self.eta
        return value
