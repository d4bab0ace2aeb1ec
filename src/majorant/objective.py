r"""The objective Φ, its gradient, and the certificate of stationarity.

    Φ(θ) = Σ_c Σ_k s_k ρ²(y_kc (W_c·x_k + β_c)) + Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²        Eq. (eq:sqHingeRef)

θ is the C × p matrix (W, β), row by row as one vector; β is never penalised. s: sample weights. c: penalty
factors of the features. A problem of two classes has C = 1, and ‖W_·i‖ is |w_i|. With ``multi_class="joint"``
C is the number of classes, y_kc is 1 if row k is of class c and -1 if not, and the potential acts on the norm
of a feature's coefficients over all classes: a feature is used by all classes or by none. (For ℓ1 this is the
group lasso.)

The gradient is Eq. (eq:gradient) with Eq. (eq:gradientreg): φ' points along W_·i/‖W_·i‖. Where φ has a kink
at zero, the element of smallest norm of the subdifferential takes its place: at W_·i = 0 the gradient of the
loss, shrunk towards zero by c_i φ'(0+).

A constant takes no part: what is evaluated and compared is Φ - Σ_i c_i φ(0), since that sum (c λ δ for every
feature of a hyperbolic potential) may be larger than all the rest and swallow its digits. `constant` is what
is left out.

The certificate has two numbers. `gap`, for convex penalties, bounds how far Φ is above its minimum, relative
to Φ without its constant (`duality.py`). `stationarity` is for all. Where φ is not convex, it bounds how far
Φ can fall, relative to Φ, when the tangent majorant at θ is minimised: by the duality gap of that majorant,
which is convex. Where there is a gap of Φ itself, it is only the largest fall that a step along one feature
promises, ½ ‖∂⁰_iΦ‖²/A_ii with the curvature A of all rows, which needs no pass over them. It is indifferent
to the units of the features, to the scale of the weights and to repeated rows.

`violations` is what solvers steer by: ‖g_·i‖/√(LᵀSL)_ii, divided by the same measure of the loss's gradient
at θ = 0, always the same point. A divisor below 1e-8 of its Cauchy-Schwarz bound 2√Φ(0) (classes in balance,
features unrelated to them) is rounding, and that much is taken instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant.duality import TINY, Dual, balanced, column_norms, relative_gap
from majorant.errors import ScaleError
from majorant.linsolve import flat_directions, solve_centred
from majorant.potentials import L1, L2, Potential
from majorant.rows import MemoryRows, Rows
from majorant.rows.base import LossByClass, LossSum, losses, losses_by_class
from majorant.rows.block import Block
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
    """Φ for given rows, potential φ, elastic-net strength η and penalty factors c.

    `rows` are those of the first class, or of the only one; `other_classes` the same rows as the other
    classes of a joint problem label them.
    """

    rows: Rows
    potential: Potential
    eta: float = 0.0
    penalty_factor: Vector | None = None
    other_classes: tuple[Rows, ...] = ()

    @classmethod
    def joint(
        cls,
        classes: Sequence[Rows],
        potential: Potential,
        eta: float = 0.0,
        penalty_factor: Vector | None = None,
    ) -> Self:
        """The problem of several classes at once."""
        return cls(classes[0], potential, eta, penalty_factor, tuple(classes[1:]))

    def on(self, classes: Sequence[Rows], factor: Vector | None = None) -> Self:
        """The same problem on other rows, with other penalty factors if their features are others."""
        factor = self.penalty_factor if factor is None else factor
        return replace(self, rows=classes[0], other_classes=tuple(classes[1:]), penalty_factor=factor)

    def columns(self, chosen: NDArray[np.intp]) -> Self:
        """The problem with some of the features only."""
        return self.on([rows.columns(chosen) for rows in self.classes], self.factor[chosen])

    @property
    def classes(self) -> tuple[Rows, ...]:
        """The rows of every class."""
        return (self.rows, *self.other_classes)

    @cached_property
    def in_memory(self) -> Sequence[MemoryRows] | None:
        """The rows of every class, if they are in memory."""
        rows = [part for part in self.classes if isinstance(part, MemoryRows)]
        return rows if len(rows) == len(self.classes) else None

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
    def ridge(self) -> Vector:
        """η for every feature, and zero for the intercept."""
        return np.append(np.full(len(self.factor), self.eta), 0.0)

    @cached_property
    def penalised(self) -> bool:
        """Whether no feature goes without any penalty."""
        return self.eta > 0.0 or (self.potential.max_slope > 0.0 and bool(np.all(self.factor > 0.0)))

    @cached_property
    def constant(self) -> float:
        """Σ_i c_i φ(0), which `penalty` and all values leave out."""
        return float(np.sum(self.factor) * self.potential.value(np.zeros(1))[0])

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """The features without any penalty."""
        return np.flatnonzero(self._dual.free)

    @cached_property
    def bounded(self) -> bool:
        """Whether the dual bounds the minimum: the penalty is convex, and not too many features lack it."""
        return self.potential.convex and len(self.free) <= MAX_FREE

    @property
    def width(self) -> int:
        """The coefficients p of one class, with its intercept."""
        return self.rows.n_features + 1

    @property
    def size(self) -> int:
        """The length of θ."""
        return (1 + len(self.other_classes)) * self.width

    def start(self) -> Vector:
        """θ = 0, where all algorithms start by default."""
        return np.zeros(self.size)

    def matrix(self, theta: Vector) -> Matrix:
        """θ as a matrix, a row per class, the intercepts last."""
        return theta.reshape(1 + len(self.other_classes), -1)

    def lengths(self, theta: Vector) -> Vector:
        """‖W_·i‖ for every feature."""
        if not self.other_classes:
            return np.abs(theta[:-1])
        return column_norms(self.matrix(theta)[:, :-1])

    def nonzeros(self, theta: Vector) -> int:
        """How many features have coefficients outside the rounded bottom of the potential."""
        return int(np.count_nonzero(self.lengths(theta) > self.potential.zero_width))

    @cached_property
    def _gradient_at_zero(self) -> Matrix:
        return np.stack([rows.loss_at_zero.gradient for rows in self.classes])

    @cached_property
    def loss_at_zero(self) -> float:
        """The loss at θ = 0, of all classes."""
        return sum(rows.loss_at_zero.value for rows in self.classes)

    @cached_property
    def pulls_at_zero(self) -> Vector:
        """‖∂_i loss‖ for every feature at θ = 0."""
        return column_norms(self._gradient_at_zero[:, :-1])

    @property
    def column_lengths(self) -> Vector:
        """√(LᵀSL)_ii for every feature, the same for all classes."""
        return np.asarray(np.sqrt(self.rows.gram_diagonal[:-1]))

    @property
    def mean_curvature(self) -> float:
        """The mean of the diagonal of LᵀSL."""
        return float(np.mean(self.rows.gram_diagonal))

    def smoothed_start(self, at: Evaluated) -> Vector:
        """θ with its zeros moved to where a smooth potential balances the pull that the loss has at θ."""
        theta = self.matrix(at.theta.copy())
        zero = (self.lengths(at.theta) == 0.0) & (self.factor > 0.0)
        pull = -self.matrix(at.loss_gradient)[:, :-1][:, zero]
        size = column_norms(pull)
        # At the largest slope itself the balance is at infinity.
        slope = np.minimum(size / self.factor[zero], 0.999 * self.potential.max_slope)
        theta[:, :-1][:, zero] = self.potential.inverse_derivative(slope) * (pull / np.maximum(size, TINY))
        return theta.ravel()

    # The value and its parts -------------------------------------------------------------------

    def evaluate(self, theta: Vector) -> Evaluated:
        """Φ(θ), without its constant, and the gradient of the loss: a pass, in memory one for each class."""
        if not self.other_classes:
            loss = self.rows.loss(theta)
            return Evaluated(theta, loss.value + self.penalty(theta), loss.gradient)
        parts = losses(self.classes, self.matrix(theta))
        gradient = np.concatenate([loss.gradient for loss in parts])
        return Evaluated(theta, sum(loss.value for loss in parts) + self.penalty(theta), gradient)

    @cached_property
    def quadratic_weights(self) -> Vector | float:
        """D of a quadratic penalty Σ_i D_i ‖W_·i‖²/2: a number, if all are the same."""
        weights = self.half_quadratic_weights(self.start())
        return weights if self.penalty_factor is not None else float(weights[0])

    def penalty(self, theta: Vector) -> float:
        """f(w) - f(0), Eq. (eq:fReg)."""
        if self.potential.quadratic:
            W = self.matrix(theta)[:, :-1]
            return 0.5 * float(np.vdot(W * self.quadratic_weights, W))
        t = self.lengths(theta)
        penalty = float(self.factor @ self.potential.excess(t))
        return penalty + 0.5 * self.eta * float(t @ t) if self.eta > 0.0 else penalty

    def penalty_gradient(self, theta: Vector) -> Vector:
        """∇f̃(θ), Eq. (eq:gradientreg), zero for the intercepts; of a kink at zero, zero."""
        gradient = np.zeros_like(theta)
        W = self.matrix(theta)[:, :-1]
        self.matrix(gradient)[:, :-1] = self._penalty_slopes(W, self.factor)
        return gradient

    def _penalty_slopes(self, W: Matrix, factor: Vector) -> Matrix:
        """The gradient of the penalty of some features, with these factors; of a kink at zero, zero."""
        if len(W) == 1:
            slopes = (factor * self.potential.derivative(W[0]))[np.newaxis]
        else:
            t = column_norms(W)
            slopes = factor * self.potential.derivative(t) * (W / np.where(t > 0.0, t, 1.0))
        return slopes + self.eta * W if self.eta > 0.0 else slopes

    def gradient(self, at: Evaluated) -> Vector:
        """∇Φ(θ), Eq. (eq:gradient), for a smooth potential."""
        return at.loss_gradient + self.penalty_gradient(at.theta)

    def subgradient(self, at: Evaluated) -> Vector:
        """The element of smallest norm of ∂Φ(θ); the gradient where Φ is differentiable."""
        if self.potential.smooth:
            return self.gradient(at)
        # Of a zero, what is left of its pull when that is shrunk by what the kink holds. Zeros are many, so
        # all features are taken for zeros first.
        W, gradient = self.matrix(at.theta)[:, :-1], at.loss_gradient.copy()
        G, held = self.matrix(gradient)[:, :-1], self.kink_slopes[:-1]
        used = np.flatnonzero(W[0] if len(W) == 1 else W.any(axis=0))
        pulls = G[:, used]
        if len(G) == 1:
            G[0] -= np.minimum(np.maximum(G[0], -held), held)
        else:
            size = column_norms(G)
            G *= np.maximum(size - held, 0.0) / np.maximum(size, TINY)
        G[:, used] = pulls + self._penalty_slopes(W[:, used], self.factor[used])
        return gradient

    # The certificate ---------------------------------------------------------------------------

    def certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated afresh, and what is certain of it: one pass over the rows, or some more.

        Features without any penalty take some passes; where nothing bounds Φ, its curvature takes one.
        """
        if not self.bounded:
            return self._certify_by_majorant(theta)
        by_class = self._losses_by_class(theta)
        value = sum(part.loss.value for part in by_class) + self.penalty(theta)
        gradient = _joined([part.loss.gradient for part in by_class])
        best, clear = theta, True
        if len(self.free):
            pairs = zip(self.classes, self.matrix(theta), strict=True)
            found = [self._with_best_free_features(rows, row) for rows, row in pairs]
            best = _joined([row for row, _ in found])
            clear = all(
                self._free_features_are_clear(rows, row, H)
                for rows, (row, H) in zip(self.classes, found, strict=True)
            )
            by_class = self._losses_by_class(best)
        parts = zip(self.matrix(best), by_class, strict=True)
        sums = [balanced(row, (part.negative, part.positive)) for row, part in parts]
        linear, square, gradients = zip(*sums, strict=True)
        bound = self._dual.value(self.matrix(best), sum(linear), sum(square), np.stack(gradients))
        if not (clear and all(self._free_features_balance(part.loss, RESIDUE) for part in by_class)):
            bound = 0.0
        at = Evaluated(theta, value, gradient, lower_bound=bound)
        return at, Certificate(self.stationarity(at), self.relative_gap(value, bound))

    def _losses_by_class(self, theta: Vector) -> list[LossByClass]:
        return losses_by_class(self.classes, self.matrix(theta))

    def _with_best_free_features(self, rows: Rows, theta: Vector) -> tuple[Vector, Matrix]:
        """θ of one class with its features without penalty, and its intercept, where Φ is least.

        Newton's steps on these alone, near the minimum of Φ one or two; and their curvature there, or nearly.
        """
        where = np.append(self.free, self.width - 1)
        best, least, H = theta, math.inf, np.zeros((0, 0))
        for _ in range(FREE_STEPS):
            loss = rows.loss(theta)
            size = float(np.max(np.abs(loss.gradient[where]) * self._inverse_lengths[where]))
            if not size < 0.5 * least:
                break
            best, least = theta, size
            if H.size and size <= ROUNDING * math.sqrt(loss.value):
                break
            H = rows.curvature(theta, self.free)
            theta = theta.copy()
            theta[where] -= solve_centred(H, loss.gradient[where])
        return best, H

    def _free_features_balance(self, loss: LossSum, share: float) -> bool:
        """Whether the loss pulls features without penalty by no more than a share of what it could."""
        if not len(self.free):
            return True
        pulls = np.abs(loss.gradient[self.free]) * self._inverse_lengths[self.free]
        return bool(np.max(pulls) <= share * 2.0 * math.sqrt(loss.value))

    def _free_features_are_clear(self, rows: Rows, theta: Vector, H: Matrix) -> bool:
        """Whether features without penalty, of the curvature H, are exactly dependent or clearly independent.

        Along a direction in which they nearly do, a coefficient may go so far that a pull which looks like
        rounding matters, and nothing bounds Φ. H does not tell such a direction from an exact dependence, as
        its rounding is that of squares; the rows do.
        """
        D = flat_directions(H)
        return not D.size or bool(
            np.all(rows.sum_blocks(partial(_active_squares, theta, self.free, D)) <= EXACT)
        )

    def _certify_by_majorant(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated, and how far a minimiser of the majorant at θ can lower Φ: at most the majorant's gap.

        A convex problem comes here if too many features have no penalty; the largest fall along one feature
        is then all that is known.
        """
        if self.potential.convex:
            at = self.evaluate(theta)
            return at, Certificate(self.stationarity(at))
        majorant = self.majorant(theta)
        upper, certificate = majorant.certify(theta)
        value = upper.value - majorant.penalty(theta) + self.penalty(theta)
        at = replace(upper, value=value, lower_bound=-math.inf)
        if not value > 0.0:
            return at, Certificate(0.0)
        fall = certificate.gap * upper.value / value
        return at, Certificate(self.stationarity(at) if math.isnan(fall) else fall)

    def relative_gap(self, value: float, bound: float) -> float:
        """How far Φ can be above its minimum, relative to Φ, by a lower bound of the minimum."""
        return relative_gap(value, bound, self.loss_at_zero)

    def majorant(self, theta: Vector) -> Self:
        """The convex Φ whose penalty is the tangent majorant of this one's at θ, but for a constant.

        Of a smooth potential the half-quadratic one, Prop. (prp:sHingeMM): a ridge with weights c ψ; of one
        that is concave in ‖W_·i‖, ℓ1 with the slopes that it has there.
        """
        if not self.potential.smooth:
            return replace(self, potential=L1(1.0), penalty_factor=self.tangent_slopes(theta)[:-1])
        ridge = self.half_quadratic_weights(theta)
        # Where next to nothing is left of a weight, nothing is: its inverse would be infinite.
        ridge[ridge <= NOTHING * self.rows.gram_diagonal[:-1]] = 0.0
        return replace(self, potential=L2(1.0), eta=0.0, penalty_factor=ridge)

    def half_quadratic_weights(self, theta: Vector) -> Vector:
        """c_i ψ(‖W_·i‖) + η, the ridge of the half-quadratic majorant at θ."""
        weights = self.factor * self.potential.weight(self.lengths(theta)) + self.eta
        return np.asarray(np.minimum(weights, HUGE))

    def tangent_slopes(self, theta: Vector) -> Vector:
        """c_i φ'(‖W_·i‖), of the tangent that majorises a concave φ; λ for ℓ1. Zero for the intercept."""
        if self.potential.convex:  # and concave on [0, ∞[, hence linear there
            return self.kink_slopes
        t = self.lengths(theta)
        slopes = np.where(t == 0.0, self.potential.slope_at_zero, self.potential.derivative(t))
        return np.append(self.factor * slopes, 0.0)

    def stationarity(self, at: Evaluated) -> float:
        """The largest fall of Φ, relative to Φ, that a step along one feature's coefficients promises."""
        if not at.value > 0.0:
            return 0.0
        curvature = 2.0 * self.rows.gram_diagonal
        curvature += self.ridge
        if self.potential.smooth:
            # Across the direction of the coefficients of several classes, φ has the curvature ψ ≥ φ''.
            bend = self.potential.weight if self.other_classes else self.potential.curvature
            curvature[:-1] += self.factor * bend(self.lengths(at.theta))
        g = column_norms(self.matrix(self.subgradient(at)))
        # Divided before it is squared: a square may leave the range of numbers.
        units = np.sqrt(curvature)
        falls = np.divide(g, units, out=np.zeros_like(g), where=units > 0.0)
        return 0.5 * (float(falls.max()) / math.sqrt(at.value)) ** 2

    def estimate(self, at: Evaluated, lower_bound: float = -math.inf) -> Certificate:
        """The part of the certificate that decides, as far as it is known without a pass over the rows.

        The gap is the true one if the intercept is at its best; if not, what balancing the classes will cost
        is known to first order. The stationarity is a lower bound of the true one. `lower_bound` is what is
        known of the minimum from other points.
        """
        if not self.bounded:
            return Certificate(self.stationarity(at))
        loss = at.value - self.penalty(at.theta)
        linear = 2.0 * loss - float(at.theta @ at.loss_gradient)
        theta, gradient = self.matrix(at.theta), self.matrix(at.loss_gradient)
        bound = self._dual.value(theta, linear, loss, gradient)
        bound -= 2.0 * float(np.abs(theta[:, -1] * gradient[:, -1]).sum())
        if len(self.free):
            rows = [LossSum(loss, row) for row in gradient]
            if not all(self._free_features_balance(row, NEAR_BALANCE) for row in rows):
                bound = 0.0
        bound = max(bound, at.lower_bound, lower_bound)
        return Certificate(math.nan, self.relative_gap(at.value, bound))

    @cached_property
    def _dual(self) -> Dual:
        return Dual(self.potential, self.factor, self.eta)

    @cached_property
    def violation_scale(self) -> Vector:
        """What `violations` multiplies the norms of the subgradient by, feature by feature."""
        bound = 2.0 * math.sqrt(self.loss_at_zero)
        measure = float(np.max(column_norms(self._gradient_at_zero) * self._inverse_lengths))
        return self._inverse_lengths / (max(measure, 1e-8 * bound) or 1.0)

    @cached_property
    def _inverse_lengths(self) -> Vector:
        lengths = np.sqrt(self.rows.gram_diagonal)
        # An all-zero column: its coefficient sees the penalty alone, in units of its own.
        return 1.0 / np.where(lengths > 0, lengths, 1.0)

    def violations(self, at: Evaluated) -> Vector:
        """How strongly each feature, and last the intercepts, violates the optimality conditions."""
        return column_norms(self.matrix(self.subgradient(at))) * self.violation_scale

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


def _active_squares(theta: Vector, features: NDArray[np.intp], D: Matrix, block: Block) -> Vector:
    """DᵀLᵀSLD, its diagonal, over the rows that are active at θ; D has some features and the intercept."""
    weights = np.where(block.matvec(theta) < 1.0, block.s, 0.0)
    part = block.columns(features)
    return np.array([weights @ part.matvec(np.ascontiguousarray(d)) ** 2 for d in D.T])


def _joined(rows: Sequence[Vector]) -> Vector:
    """The rows of all classes as one vector."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows)
