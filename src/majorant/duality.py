r"""The duality gap: a lower bound of the minimum, from dual variables that follow from the iterate.

Let α_k ≥ 0 be the dual variables of the rows, and u = Xᵀ(yα). For every α with Σ_k y_k α_k = 0 (a condition
that the unpenalised intercept implies), Fenchel's inequality gives

    min Φ ≥ D(α) = Σ_k (α_k - α_k²/4s_k) - Σ_i f_i*(u_i),    f_i = c_i φ + η/2 (·)²,

with equality at the optimum, where α_k = 2 s_k (1 - v_k)₊ for the margins v. The α of another iterate are not
feasible. Three changes make them so:

- The α of one class are multiplied by a number below 1, so that Σ yα = 0 exactly (`balanced`).
- For features without any penalty, u_i must be 0. So the α are taken from a point where Φ is minimal over
  these features (`Objective._with_best_free_features`). There u_i is rounding, for which the bound is lowered
  by 2 |u_i w_i|.
- Without a ridge, |u_i| must not exceed c_i sup φ'. So all α are multiplied by one number t. (The t that
  maximises the first sum is tried as well.)

With a ridge, f_i*(u_i) is the minimum over a of (c_iφ)*(a) + (u_i - a)²/2η. Every a gives a valid bound; the
one used here, a = u_i - η w_i clipped to |a| ≤ c_i sup φ', is the minimiser at the optimum.

For a quadratic penalty, f_i*(u) = u²/2D_i with D_i = c_i φ'' + η. Then the best t has a closed form, with the
bound D(tα) = (Σ α)²/4(Σ α²/4s + Σ u²/2D).

For several classes at once, all sums are also over the classes, and the norm of u_i over the classes takes
the place of |u_i|.

φ stands for φ - φ(0) throughout (`Potential.excess`): constants are left out.

The α themselves are never computed: with α_k = 2 s_k (1 - v_k)₊, u is the negative gradient of the loss,
Σ α²/4s is the loss, and Σ α = 2 loss - θ·∇loss, class by class.
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
    """Σ α, Σ α²/4s and -Lᵀα, with the α of one class scaled down so that Σ yα = 0."""
    weights = [abs(float(loss.gradient[-1])) for loss in classes]
    lightest = min(weights)
    linear = square = 0.0
    gradient = np.zeros(len(theta))
    for weight, loss in zip(weights, classes, strict=True):
        # Without an intercept all weights are zero, and Σ yα = 0 is not required.
        share = lightest / weight if weight > 0.0 else 1.0
        linear += share * (2.0 * loss.value - float(theta @ loss.gradient))
        square += share**2 * loss.value
        gradient += share * loss.gradient
    return linear, square, gradient


def column_norms(W: Matrix) -> Vector:
    """The norm of every column, also if squares of its entries overflow or underflow."""
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
        # A divisor for u, whose quotient does not matter where c is zero.
        self.divisor = np.where(factor > 0.0, factor, 1.0)
        self.free = (limit == 0.0) & (eta == 0.0)
        self._any_free = bool(self.free.any())
        self._limit = np.where(self.free, np.inf, limit)
        # 1/D of a quadratic penalty; zero for features without penalty.
        self._inverse: Vector | None = None
        if potential.quadratic:
            D = quadratic_weights(potential, factor, eta)
            self._inverse = np.divide(1.0, D, out=np.zeros_like(D), where=D > TINY)

    def value(self, theta: Matrix, linear: float, square: float, gradient: Matrix) -> float:
        """D(tα) ≥ 0 for the best t found, from Σ α, Σ α²/4s and -u, with a row per class.

        A lower bound if Σ yα = 0, else an estimate, which is the better the nearer Σ yα is to 0.
        """
        if not square > 0.0:
            return 0.0
        G, W, longest = gradient[:, :-1], theta[:, :-1], math.inf
        if self._any_free:
            linear -= 2.0 * float(column_norms(G[:, self.free]) @ column_norms(W[:, self.free]))
        if not linear > 0.0:  # the best t would be negative, and α must not be negative
            return 0.0
        if self._inverse is not None:
            half = 0.5 * linear / (square + 0.5 * float(np.vdot(G * self._inverse, G)))
            return 0.5 * linear * half if half > 0.0 else 0.0
        if self.eta == 0.0:
            longest = 1.0 / max(float((column_norms(G) / self._limit).max(initial=0.0)), TINY)
        if self.eta == 0.0 and self.potential.homogeneous:  # the conjugate is zero: the best t is known
            t = min(longest, 0.5 * linear / square)
            return max(0.0, t * linear - t * t * square)
        candidates = {min(1.0, longest), min(longest, 0.5 * linear / square)}
        return max(0.0, *(t * linear - t * t * square - self._conjugate(-t * G, W) for t in candidates))

    def _conjugate(self, U: Matrix, W: Matrix) -> float:
        """An upper bound of Σ f_i*(U_·i), by the a of the module's docstring."""
        direction = U - self.eta * W if self.eta > 0.0 else U
        size = column_norms(direction)
        slopes = np.minimum(size / self.divisor, self.max_slope)
        value = float(self.factor @ self.potential.excess_conjugate(slopes))
        if self.eta > 0.0:
            rest = U - direction * (self.factor * slopes / np.maximum(size, TINY))
            value += 0.5 * float(np.sum(rest * rest)) / self.eta
        return value
