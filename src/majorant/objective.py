r"""The objective Φ, its gradient, and the certificate of stationarity.

    Φ(θ) = Σ_k s_k ρ²(y_k (w·x_k + β)) + Σ_i c_i φ(w_i) + η/2 ‖w‖²        Eq. (eq:sqHingeRef)

θ = (w, β); β is never penalised. s: sample weights. c: penalty factors of the features.

The gradient is Eq. (eq:gradient) with Eq. (eq:gradientreg). Where φ has a kink at zero, the element of
smallest norm of the subdifferential takes its place: at w_i = 0 the smooth part of the gradient, shrunk
towards zero by c_i φ'(0+).

A constant takes no part: what is evaluated and compared is Φ - Σ_i c_i φ(0), since that sum (c λ δ for every
feature of a hyperbolic potential) may be larger than all the rest and swallow its digits. `constant` is what
is left out.

The certificate has two numbers. `gap`, for convex penalties, bounds how far Φ is above its minimum, relative
to Φ without its constant (`duality.py`). `stationarity` is for all. Where φ is not convex, it bounds how far
Φ can fall, relative to Φ, when the tangent majorant at θ is minimised: by the duality gap of that majorant,
which is convex. Where there is a gap of Φ itself, it is only the largest fall that a step along one
coordinate promises, ½ (∂⁰_iΦ)²/A_ii with the curvature A of all rows, which needs no pass over them. It is
indifferent to the units of the features, to the scale of the weights and to repeated rows.

`violations` is what solvers steer by: |g_i|/√(LᵀSL)_ii, divided by the same measure of the loss's gradient at
θ = 0, always the same point. A divisor below 1e-8 of its Cauchy-Schwarz bound 2√Φ(0) (classes in balance,
features unrelated to them) is rounding, and that much is taken instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.duality import Dual, relative_gap
from majorant.errors import ScaleError
from majorant.linsolve import flat_directions, solve_centred
from majorant.potentials import L1, L2, Potential
from majorant.rows import Rows
from majorant.rows.protocol import LossSum
from majorant.status import Certificate, Evaluated, Matrix, Vector

# The most features without any penalty for which a bound is looked for, by factorisations of their curvature,
# and how many of these at most.
MAX_FREE = 1000
FREE_STEPS = 20
# The pull of the loss on such a feature, relative to the largest possible, that is taken for rounding, and
# the one that an estimate need not mind.
RESIDUE = 1e-9
NEAR_BALANCE = 1e-4
# The gradient along these features, relative to the root of the loss, that is rounding for certain.
ROUNDING = 1e-14
# The squared length, relative, that rounding leaves of a combination of features that is zero.
EXACT = 1e-24
# The weight of a majorant, relative to the curvature of the loss, that is none.
NOTHING = 1e-16
# The largest weight of a majorant, near the end of the range of numbers.
HUGE = 1e290


@dataclass(frozen=True, eq=False)
class Objective:
    """Φ for given rows, potential φ, elastic-net strength η and penalty factors c."""

    rows: Rows
    potential: Potential
    eta: float = 0.0
    penalty_factor: Vector | None = None

    @property
    def single(self) -> Objective:
        """The problem itself: what one of several classes (`joint.py`) has for each of them."""
        return self

    @property
    def classes(self) -> Sequence[Rows]:
        """The rows of every class: of one."""
        return (self.rows,)

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

    @cached_property
    def constant(self) -> float:
        """Σ_i c_i φ(0), which `penalty` and all values leave out."""
        return float(np.sum(self.factor) * self.potential.value(np.zeros(1))[0])

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """The features without any penalty."""
        return np.flatnonzero(self._dual.free)

    @property
    def bounded(self) -> bool:
        """Whether the dual bounds the minimum: the penalty is convex, and not too many features lack it."""
        return self.potential.convex and len(self.free) <= MAX_FREE

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
        """Φ(θ), without its constant, and the gradient of the loss at θ: one pass over the rows."""
        loss = self.rows.loss(theta)
        return Evaluated(theta, loss.value + self.penalty(theta), loss.gradient)

    def penalty(self, theta: Vector) -> float:
        """f(w) - f(0), Eq. (eq:fReg)."""
        w = theta[:-1]
        return float(self.factor @ self.potential.excess(w)) + 0.5 * self.eta * float(w @ w)

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
        """θ evaluated afresh, and what is certain of it: one pass over the rows, or some more.

        Features without any penalty take some passes; where nothing bounds Φ, its curvature takes one.
        """
        if not self.bounded:
            return certify_by_majorant(self, theta)
        audit = self.rows.audit(theta, lengths=False)
        value, gradient = audit.loss.value + self.penalty(theta), audit.loss.gradient
        best, H = self.with_best_free_features(theta)
        if best is not theta:
            audit = self.rows.audit(best, lengths=False)
        bound = self._dual.value(best, (audit.negative, audit.positive))
        if not (self.free_features_balance(audit.loss, RESIDUE) and self.free_features_are_clear(H)):
            bound = 0.0
        at = Evaluated(theta, value, gradient, lower_bound=bound)
        return at, Certificate(self.stationarity(at), self.relative_gap(value, bound))

    def with_best_free_features(self, theta: Vector) -> tuple[Vector, Matrix]:
        """θ with the features that go without penalty, and the intercept, where Φ is least given the others.

        Newton's steps on these alone, near the minimum of Φ one or two; and their curvature there, or nearly.
        """
        if not len(self.free):
            return theta, np.zeros((0, 0))
        where = np.append(self.free, self.size - 1)
        best, least, H = theta, math.inf, np.zeros((0, 0))
        for _ in range(FREE_STEPS):
            loss = self.rows.loss(theta)
            size = float(np.max(np.abs(loss.gradient[where]) * self._inverse_lengths[where]))
            if not size < 0.5 * least:
                break
            best, least = theta, size
            if H.size and size <= ROUNDING * math.sqrt(loss.value):
                break
            H = self.rows.curvature(theta, self.free)
            theta = theta.copy()
            theta[where] -= solve_centred(H, loss.gradient[where])
        return best, H

    def free_features_balance(self, loss: LossSum, share: float) -> bool:
        """Whether the loss pulls features without penalty by no more than a share of what it could."""
        if not len(self.free):
            return True
        pulls = np.abs(loss.gradient[self.free]) * self._inverse_lengths[self.free]
        return bool(np.max(pulls) <= share * 2.0 * math.sqrt(loss.value))

    def free_features_are_clear(self, H: Matrix) -> bool:
        """Whether features without penalty, of the curvature H, depend on each other exactly, or not nearly.

        Along a direction in which they nearly do, a coefficient may go so far that a pull which looks like
        rounding matters, and nothing bounds Φ. H does not tell such a direction from an exact dependence, as
        its rounding is that of squares; the rows do.
        """
        if not len(self.free):
            return True
        directions = flat_directions(H)
        D = np.zeros((self.size, directions.shape[1]))
        D[np.append(self.free, self.size - 1)] = directions
        return not D.size or bool(np.all(np.diagonal(self.rows.gram_along(D)) <= EXACT))

    def relative_gap(self, value: float, bound: float) -> float:
        """How far Φ can be above its minimum, relative to Φ, by a lower bound of the minimum."""
        return relative_gap(value, bound, self.rows.loss_at_zero.value)

    def majorant(self, theta: Vector) -> Objective:
        """The convex Φ whose penalty is the tangent majorant of this one's at θ, but for a constant.

        Of a smooth potential the half-quadratic one, Prop. (prp:sHingeMM): a ridge with weights c ψ; of one
        that is concave in |w|, ℓ1 with the slopes that it has there.
        """
        size = np.abs(theta[:-1])
        if self.potential.smooth:
            ridge = np.minimum(self.factor * self.potential.weight(size) + self.eta, HUGE)
            # Where next to nothing is left of a weight, nothing is: its inverse would be infinite.
            ridge[ridge <= NOTHING * self.rows.gram_diagonal[:-1]] = 0.0
            return replace(self, potential=L2(1.0), eta=0.0, penalty_factor=ridge)
        zero = size == 0.0
        slopes = np.where(zero, self.potential.slope_at_zero, self.potential.derivative(size))
        return replace(self, potential=L1(1.0), penalty_factor=self.factor * slopes)

    def _penalty_curvature(self, theta: Vector) -> Vector:
        """c_i φ''(w_i) + η, or what stands for φ'' where φ is not convex; η alone at a kink."""
        w = theta[:-1]
        if self.potential.smooth:
            return np.asarray(self.factor * self.potential.curvature(w) + self.eta)
        return np.full(len(w), self.eta)

    def stationarity(self, at: Evaluated) -> float:
        """The largest fall of Φ, relative to Φ, that a step along one coordinate promises."""
        if not at.value > 0.0:
            return 0.0
        curvature = 2.0 * self.rows.gram_diagonal
        curvature[:-1] += self._penalty_curvature(at.theta)
        g = self.subgradient(at)
        units = np.sqrt(curvature) * math.sqrt(at.value)
        return 0.5 * float(np.max(np.divide(g, units, out=np.zeros_like(g), where=units > 0.0) ** 2))

    def estimate(self, at: Evaluated) -> Certificate:
        """The part of the certificate that decides, as far as it is known without a pass over the rows.

        The gap is the true one if the intercept is at its best; if not, what balancing the classes will cost
        is known to first order. The stationarity is a lower bound of the true one.
        """
        if not self.bounded:
            return Certificate(self.stationarity(at))
        loss = LossSum(at.value - self.penalty(at.theta), at.loss_gradient)
        unbalanced = 2.0 * abs(float(at.theta[-1] * at.loss_gradient[-1]))
        bound = self._dual.value(at.theta, (loss,)) - unbalanced
        if not self.free_features_balance(loss, NEAR_BALANCE):
            bound = 0.0
        bound = max(bound, at.lower_bound)
        return Certificate(math.nan, self.relative_gap(at.value, bound))

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


def certify_by_majorant(objective: Any, theta: Vector) -> tuple[Evaluated, Certificate]:
    """θ evaluated, and how far a minimiser of the majorant at θ can lower Φ: at most the majorant's gap.

    `objective` is an `Objective` or a `JointObjective`. A convex one comes here if too many features have no
    penalty; the largest fall along one coordinate is then all that is known.
    """
    if objective.potential.convex:
        at = objective.evaluate(theta)
        return at, Certificate(objective.stationarity(at))
    majorant = objective.majorant(theta)
    upper, certificate = majorant.certify(theta)
    value = upper.value - majorant.penalty(theta) + objective.penalty(theta)
    at = replace(upper, value=value, lower_bound=-math.inf)
    if not value > 0.0:
        return at, Certificate(0.0)
    fall = certificate.gap * upper.value / value
    return at, Certificate(objective.stationarity(at) if math.isnan(fall) else fall)
