r"""The objective Φ, its gradient, and the certificate of stationarity.

    Φ(θ) = Σ_k s_k ρ²(y_k (w·x_k + β)) + Σ_i c_i φ(w_i) + η/2 ‖w‖²        Eq. (eq:sqHingeRef)

θ = (w, β); β is never penalised. s: sample weights. c: penalty factors of the features.

The gradient is Eq. (eq:gradient) with Eq. (eq:gradientreg). Where φ has a kink at zero, the element of
smallest norm of the subdifferential takes its place: at w_i = 0 the smooth part of the gradient, shrunk
towards zero by c_i φ'(0+).

The certificate has two numbers. `gap`, for convex penalties, bounds how far Φ is above its minimum, relative
to Φ (`duality.py`). `stationarity`, for all, is max_i |∂⁰_iΦ(θ)|/√H_ii, H = LᵀSL over the rows active at θ,
divided by the same measure of the loss's gradient at θ = 0. (A row of huge values that is long past its
margin would hide the violations of all others, were it counted. `violations` counts it all the same, since
that needs no pass over the rows: a lower bound, what solvers steer by, and enough beside a gap.) Dividing by
√H_ii makes it indifferent to the units of the features, to the scale of the weights and to repeated rows;
dividing by the value at θ = 0, always the same point, makes a warm start mean the same as a cold one; leaving
the penalty out of the divisor keeps it away from zero when λ is near the value that makes all coefficients
zero. A divisor below 1e-8 of its Cauchy-Schwarz bound 2√Φ(0) (classes in balance, features unrelated to them)
is rounding, and that much is taken instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from majorant.duality import Dual
from majorant.errors import ScaleError
from majorant.potentials import Potential
from majorant.rows import Rows
from majorant.rows.protocol import LossSum
from majorant.status import Certificate, Evaluated, Vector


@dataclass(frozen=True, eq=False)
class Objective:
    """Φ for given rows, potential φ, elastic-net strength η and penalty factors c."""

    rows: Rows
    potential: Potential
    eta: float = 0.0
    penalty_factor: Vector | None = None

    @cached_property
    def factor(self) -> Vector:
        """The penalty factors c, one per feature."""
        if self.penalty_factor is None:
            return np.ones(self.rows.n_features)
        return self.penalty_factor

    @cached_property
    def kink_slopes(self) -> Vector:
        """c_i φ'(0+), the pull that a zero can hold; zero for the intercept."""
        return np.append(self.factor * self.potential.slope_at_zero, 0.0)

    @cached_property
    def penalised(self) -> bool:
        """Whether no feature goes without any penalty."""
        return self.eta > 0.0 or (self.potential.steepest > 0.0 and bool(np.all(self.factor > 0.0)))

    @property
    def bounded(self) -> bool:
        """Whether the dual bounds the minimum: the penalty is convex, and on every feature."""
        return self.potential.convex and self.penalised

    @property
    def size(self) -> int:
        """The length p of θ."""
        return self.rows.n_features + 1

    def start(self) -> Vector:
        """θ = 0, where all algorithms start by default."""
        return np.zeros(self.size)

    @staticmethod
    def lengths(theta: Vector) -> Vector:
        """|w_i| for every feature."""
        return np.abs(theta[:-1])

    def nonzeros(self, theta: Vector) -> int:
        """How many coefficients are outside the rounded bottom of the potential."""
        return int(np.count_nonzero(self.lengths(theta) > self.potential.zero_width))

    @property
    def pulls_at_zero(self) -> Vector:
        """|∂_i loss| for every feature at θ = 0."""
        return np.abs(self.rows.loss_at_zero.gradient[:-1])

    @property
    def column_lengths(self) -> Vector:
        """√(LᵀSL)_ii for every feature."""
        return np.asarray(np.sqrt(self.rows.gram_diagonal[:-1]))

    @property
    def mean_curvature(self) -> float:
        """The mean of the diagonal of LᵀSL."""
        return float(np.mean(self.rows.gram_diagonal))

    def blurred(self, at: Evaluated) -> Vector:
        """θ with its zeros moved to where a smooth potential balances the pull that the loss has at θ."""
        theta = at.theta.copy()
        zero = (theta[:-1] == 0.0) & (self.factor > 0.0)
        slope = -at.loss_gradient[:-1][zero] / self.factor[zero]
        largest = 0.999 * self.potential.steepest  # at the largest itself the balance is at infinity
        theta[:-1][zero] = self.potential.at_slope(np.clip(slope, -largest, largest))
        return theta

    # The value and its parts -------------------------------------------------------------------

    def evaluate(self, theta: Vector) -> Evaluated:
        """Φ(θ) and the gradient of the loss at θ: one pass over the rows."""
        loss = self.rows.loss(theta)
        return Evaluated(theta, loss.value + self.penalty(theta), loss.gradient)

    def penalty(self, theta: Vector) -> float:
        """f(w), Eq. (eq:fReg)."""
        w = theta[:-1]
        return float(self.factor @ self.potential.value(w)) + 0.5 * self.eta * float(w @ w)

    def penalty_gradient(self, theta: Vector) -> Vector:
        """∇f̃(θ), Eq. (eq:gradientreg); its last entry is zero."""
        gradient = np.zeros(self.size)
        w = theta[:-1]
        gradient[:-1] = self.factor * self.potential.derivative(w) + self.eta * w
        return gradient

    def gradient(self, at: Evaluated) -> Vector:
        """∇Φ(θ), Eq. (eq:gradient), for a smooth potential."""
        return at.loss_gradient + self.penalty_gradient(at.theta)

    def subgradient(self, at: Evaluated) -> Vector:
        """The element of smallest norm of ∂Φ(θ); the gradient where Φ is differentiable."""
        g = self.gradient(at)
        if not self.potential.smooth:
            zero = at.theta[:-1] == 0.0
            slope = self.kink_slopes[:-1]
            # What is left of g when it is cut to [-slope, slope].
            g[:-1] = np.where(zero, g[:-1] - np.clip(g[:-1], -slope, slope), g[:-1])
        return g

    # The certificate ---------------------------------------------------------------------------

    def certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated afresh, and what is certain of it: one pass over the rows."""
        audit = self.rows.audit(theta, lengths=not self.bounded)
        loss = audit.loss
        at = Evaluated(theta, loss.value + self.penalty(theta), loss.gradient)
        violations = self.violations(at)
        if self.bounded:
            gap = self._gap(at, (audit.negative, audit.positive))
            return at, Certificate(float(np.max(violations)), gap)
        return at, Certificate(float(np.max(violations * self.active_share(audit.squares))))

    def active_share(self, squares: Vector) -> Vector:
        """How much longer each feature is over all rows than over the active ones, of these squared lengths.

        A feature that no active row has is measured by all rows, as in `violations`.
        """
        whole = self.rows.gram_diagonal
        squares = np.where(squares > 0, squares, whole)
        return np.where(squares > 0, np.sqrt(whole / np.where(squares > 0, squares, 1.0)), 1.0)

    def estimate(self, at: Evaluated) -> Certificate:
        """The part of the certificate that decides, as far as it is known without a pass over the rows.

        The gap is the true one if the intercept is at its best; if not, what balancing the classes will cost
        is known to first order. The stationarity is a lower bound of the true one.
        """
        if not self.bounded:
            return Certificate(float(np.max(self.violations(at))))
        loss = LossSum(at.value - self.penalty(at.theta), at.loss_gradient)
        gap = self._gap(at, (loss,), unbalanced=2.0 * abs(float(at.theta[-1] * at.loss_gradient[-1])))
        return Certificate(math.nan, gap)

    def _gap(self, at: Evaluated, losses: Sequence[LossSum], unbalanced: float = 0.0) -> float:
        gap = at.value - self._dual.value(at.theta, losses) + unbalanced
        return max(float(gap), 0.0) / at.value if at.value > 0.0 else 0.0

    @cached_property
    def _dual(self) -> Dual:
        return Dual(self.potential, self.factor, self.eta)

    @cached_property
    def violation_scale(self) -> Vector:
        """What turns a component of the subgradient into its share of the stationarity."""
        return self._inverse_lengths / self._stationarity_divisor

    @cached_property
    def _inverse_lengths(self) -> Vector:
        lengths = np.sqrt(self.rows.gram_diagonal)
        # An all-zero column: its coefficient sees the penalty alone, in units of its own.
        return 1.0 / np.where(lengths > 0, lengths, 1.0)

    @cached_property
    def _stationarity_divisor(self) -> float:
        at_zero = self.rows.loss_at_zero
        bound = 2.0 * np.sqrt(at_zero.value)
        measure = float(np.max(np.abs(at_zero.gradient) * self._inverse_lengths))
        return max(measure, 1e-8 * float(bound)) or 1.0

    def violations(self, at: Evaluated) -> Vector:
        """Each component's share in the quick stationarity, which is the largest of them."""
        return np.abs(self.subgradient(at)) * self.violation_scale

    # Limits ------------------------------------------------------------------------------------

    def check_scale(self) -> None:
        """Refuse numbers whose squares leave the range of floating point."""
        with np.errstate(over="ignore", invalid="ignore"):
            weights = self.rows.loss_at_zero.value
            lengths = self.rows.gram_diagonal
        if not np.isfinite(weights):
            raise ScaleError("The sample weights add up to infinity: divide them by their largest.")
        if not np.all(np.isfinite(lengths)):
            worst = int(np.flatnonzero(~np.isfinite(lengths))[0])
            raise ScaleError(
                f"The values of feature {worst} are so large that their squares overflow: rescale the "
                "features, e.g. with sklearn.preprocessing.StandardScaler or MaxAbsScaler."
            )
        # An empty column has no gradient either; one whose squares underflow does.
        vanishing = (lengths[:-1] < 1e-280 * weights) & (self.rows.loss_at_zero.gradient[:-1] != 0.0)
        if np.any(vanishing):
            raise ScaleError(
                f"The values of feature {int(np.flatnonzero(vanishing)[0])} are so small that their squares "
                "vanish: rescale the features, e.g. with sklearn.preprocessing.StandardScaler."
            )
