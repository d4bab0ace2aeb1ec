r"""The objective Φ, its gradient, and the certificate of stationarity.

    Φ(θ) = Σ_c Σ_k s_k ρ²(y_kc (W_c·x_k + β_c)) + Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²        Eq. (eq:sqHingeRef)

θ is the C × p matrix (W, β), stored row by row as one vector; β is never penalised. s: sample weights. c:
penalty factors of the features. A problem of two classes has C = 1, and ‖W_·i‖ is |w_i|. With
``multi_class="joint"`` C is the number of classes, y_kc is 1 if row k is of class c and -1 otherwise, and the
potential acts on the norm of a feature's coefficients over all classes: a feature is used by all classes or
by none. (For ℓ1 this is the group lasso.)

The gradient is Eq. (eq:gradient) with Eq. (eq:gradientreg): φ' points along W_·i/‖W_·i‖. Where φ has a kink
at zero, the element of smallest norm of the subdifferential is used instead: at W_·i = 0 the gradient of the
loss, shrunk towards zero by c_i φ'(0+).

All values leave out the constant Σ_i c_i φ(0), since that sum (c λ δ for every feature of a hyperbolic
potential) may be much larger than the rest, whose digits would be lost. `constant` is that sum.

The certificate has two numbers. `gap`, for convex penalties, bounds how far Φ is above its minimum, relative
to Φ without its constant (`duality.py`). `stationarity` exists for all penalties. If φ is not convex, it
bounds how far Φ can fall, relative to Φ, when the tangent majorant at θ is minimised: the bound is the
duality gap of that majorant, which is convex. If Φ itself has a gap, the stationarity is only the largest
predicted fall of a step along one feature, ½ ‖∂⁰_iΦ‖²/A_ii with the curvature A of all rows, which needs no
pass. It does not depend on the units of the features, the scale of the weights or repeated rows.

Solvers choose features by `violations`: ‖g_·i‖/√(LᵀSL)_ii, divided by the largest such number of the loss's
gradient at θ = 0. A divisor below 1e-8 of its Cauchy-Schwarz bound 2√Φ(0) is rounding (the classes balance,
and no feature depends on them); 1e-8 of the bound is used instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant.duality import HUGE, TINY, Dual, balanced, column_norms, quadratic_weights, relative_gap
from majorant.errors import ScaleError
from majorant.linsolve import flat_directions, solve_centred
from majorant.potentials import L1, L2, Potential
from majorant.rows import MemoryRows, Rows
from majorant.rows.base import LossByClass, LossSum, losses, losses_by_class
from majorant.rows.block import Block
from majorant.status import Certificate, Evaluated, Matrix, Vector

# Features without any penalty. Up to MAX_FREE of them, Newton's method with at most FREE_STEPS factorisations
# minimises Φ over them, so that the duality gap is a bound.
MAX_FREE = 1000
FREE_STEPS = 20
# The largest gradient of the loss along such a feature, relative to its Cauchy-Schwarz bound, that counts as
# rounding in a certificate, and in an estimate.
RESIDUE = 1e-9
NEAR_BALANCE = 1e-4
# The gradient along these features, relative to the root of the loss, that is certainly rounding.
ROUNDING = 1e-14
# The squared relative length that rounding leaves of a combination of features that is exactly zero.
EXACT = 1e-24
# The weight of a majorant's ridge, relative to the curvature of the loss, that is set to zero.
NEGLIGIBLE_WEIGHT = 1e-16


@dataclass(frozen=True, eq=False)
class Objective:
    """Φ for given rows, potential φ, ridge strength η and penalty factors c.

    `rows` are labelled for the first class. In a joint problem, `other_classes` are the same rows, labelled
    for the other classes.
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
        """The same problem on other rows, with their penalty factors if their features are others."""
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
        """The rows of every class if they are in memory, else None."""
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
        """c_i φ'(0+): a coefficient stays zero up to this gradient of the loss. Zero for the intercept."""
        return np.append(self.factor * self.potential.slope_at_zero, 0.0)

    @cached_property
    def ridge(self) -> Vector:
        """η for every feature, and zero for the intercept."""
        return np.append(np.full(len(self.factor), self.eta), 0.0)

    @cached_property
    def penalised(self) -> bool:
        """Whether every feature has a penalty."""
        return self.eta > 0.0 or (self.potential.max_slope > 0.0 and bool(np.all(self.factor > 0.0)))

    @cached_property
    def constant(self) -> float:
        """Σ_i c_i φ(0), which `penalty` and all values leave out."""
        return float(np.sum(self.factor) * self.potential.value(np.zeros(1))[0])

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """The features without any penalty."""
        return np.flatnonzero(self.dual.free)

    @cached_property
    def bounded(self) -> bool:
        """Whether there is a duality gap: φ is convex, and not too many features have no penalty."""
        return self.potential.convex and len(self.free) <= MAX_FREE

    @property
    def width(self) -> int:
        """The number p of coefficients of one class, including its intercept."""
        return self.rows.n_features + 1

    @property
    def size(self) -> int:
        """The length of θ."""
        return (1 + len(self.other_classes)) * self.width

    def start(self) -> Vector:
        """θ = 0, the default starting point of all algorithms."""
        return np.zeros(self.size)

    def matrix(self, theta: Vector) -> Matrix:
        """θ as a matrix with a row per class and the intercepts as last column; a view."""
        return theta.reshape(1 + len(self.other_classes), -1)

    def lengths(self, theta: Vector) -> Vector:
        """‖W_·i‖ for every feature."""
        if not self.other_classes:
            return np.abs(theta[:-1])
        return column_norms(self.matrix(theta)[:, :-1])

    def nonzeros(self, theta: Vector) -> int:
        """The number of features whose coefficients are outside the rounded bottom of the potential."""
        return int(np.count_nonzero(self.lengths(theta) > self.potential.zero_width))

    @cached_property
    def _gradient_at_zero(self) -> Matrix:
        return np.stack([rows.loss_at_zero.gradient for rows in self.classes])

    @cached_property
    def loss_at_zero(self) -> float:
        """The loss at θ = 0, summed over the classes."""
        return sum(rows.loss_at_zero.value for rows in self.classes)

    @cached_property
    def gradient_norms_at_zero(self) -> Vector:
        """‖∂_i loss‖ for every feature at θ = 0."""
        return column_norms(self._gradient_at_zero[:, :-1])

    @property
    def column_lengths(self) -> Vector:
        """√(LᵀSL)_ii for every feature, which is the same for all classes."""
        return np.asarray(np.sqrt(self.rows.gram_diagonal[:-1]))

    def smoothed_start(self, at: Evaluated) -> Vector:
        """θ with each zero moved to where φ' of a smooth potential equals the gradient of the loss at θ."""
        theta = self.matrix(at.theta.copy())
        zero = (self.lengths(at.theta) == 0.0) & (self.factor > 0.0)
        descent = -self.matrix(at.loss_gradient)[:, :-1][:, zero]
        size = column_norms(descent)
        # At `max_slope` the coefficient would be infinite.
        slope = np.minimum(size / self.factor[zero], 0.999 * self.potential.max_slope)
        theta[:, :-1][:, zero] = self.potential.inverse_derivative(slope) * (descent / np.maximum(size, TINY))
        return theta.ravel()

    # The value and its parts -------------------------------------------------------------------

    def evaluate(self, theta: Vector) -> Evaluated:
        """Φ(θ) without its constant, and the gradient of the loss: one pass (in memory, one per class)."""
        if not self.other_classes:
            loss = self.rows.loss(theta)
            return Evaluated(theta, loss.value + self.penalty(theta), loss.gradient)
        parts = losses(self.classes, self.matrix(theta))
        gradient = np.concatenate([loss.gradient for loss in parts])
        return Evaluated(theta, sum(loss.value for loss in parts) + self.penalty(theta), gradient)

    @cached_property
    def quadratic_weights(self) -> Vector:
        """D of a quadratic penalty Σ_i D_i ‖W_·i‖²/2."""
        return quadratic_weights(self.potential, self.factor, self.eta)

    def penalty(self, theta: Vector) -> float:
        """f(w) - f(0), Eq. (eq:fReg)."""
        if self.potential.quadratic:
            W = self.matrix(theta)[:, :-1]
            return 0.5 * float(np.vdot(W * self.quadratic_weights, W))
        t = self.lengths(theta)
        penalty = float(self.factor @ self.potential.excess(t))
        return penalty + 0.5 * self.eta * float(t @ t) if self.eta > 0.0 else penalty

    def penalty_gradient(self, theta: Vector) -> Vector:
        """∇f̃(θ), Eq. (eq:gradientreg); zero for the intercepts, and at a kink."""
        gradient = np.zeros_like(theta)
        W = self.matrix(theta)[:, :-1]
        self.matrix(gradient)[:, :-1] = self._penalty_slopes(W, self.factor)
        return gradient

    def _penalty_slopes(self, W: Matrix, factor: Vector) -> Matrix:
        """The gradient of the penalty of some features, with these factors; zero at a kink."""
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
        # The gradient at a zero is shrunk by the slope of the kink. Most features are zero, so this is done
        # for all features, and then overwritten for those in use.
        W, gradient = self.matrix(at.theta)[:, :-1], at.loss_gradient.copy()
        G, kink = self.matrix(gradient)[:, :-1], self.kink_slopes[:-1]
        used = np.flatnonzero(W[0] if len(W) == 1 else W.any(axis=0))
        loss_gradient = G[:, used]
        if len(G) == 1:
            G[0] -= np.minimum(np.maximum(G[0], -kink), kink)
        else:
            size = column_norms(G)
            G *= np.maximum(size - kink, 0.0) / np.maximum(size, TINY)
        G[:, used] = loss_gradient + self._penalty_slopes(W[:, used], self.factor[used])
        return gradient

    # The certificate ---------------------------------------------------------------------------

    def certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """Φ and the loss's gradient at θ, computed anew, and the certificate of θ: one pass over the rows.

        Features without any penalty need some more passes.
        """
        if not self.bounded:
            return self._certify_by_majorant(theta)
        by_class = self._losses_by_class(theta)
        value = sum(part.loss.value for part in by_class) + self.penalty(theta)
        gradient = _joined([part.loss.gradient for part in by_class])
        best, certain = theta, True
        if len(self.free):
            pairs = zip(self.classes, self.matrix(theta), strict=True)
            found = [self._with_best_free_features(rows, row) for rows, row in pairs]
            best = _joined([row for row, _ in found])
            certain = all(
                self._no_near_dependence(rows, row, H)
                for rows, (row, H) in zip(self.classes, found, strict=True)
            )
            by_class = self._losses_by_class(best)
        parts = zip(self.matrix(best), by_class, strict=True)
        sums = [balanced(row, (part.negative, part.positive)) for row, part in parts]
        linear, square, gradients = zip(*sums, strict=True)
        bound = self.dual.value(self.matrix(best), sum(linear), sum(square), np.stack(gradients))
        if not (certain and all(self._free_gradient_vanishes(part.loss, RESIDUE) for part in by_class)):
            bound = 0.0
        at = Evaluated(theta, value, gradient, lower_bound=bound)
        return at, Certificate(self.stationarity(at), self.relative_gap(value, bound))

    def _losses_by_class(self, theta: Vector) -> list[LossByClass]:
        return losses_by_class(self.classes, self.matrix(theta))

    def _with_best_free_features(self, rows: Rows, theta: Vector) -> tuple[Vector, Matrix]:
        """Minimise Φ over the features without penalty and the intercept of one class, by Newton's method.

        Returns θ and the curvature of these features, at θ or one step before. Near the minimum of Φ, one or
        two steps suffice.
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

    def _free_gradient_vanishes(self, loss: LossSum, share: float) -> bool:
        """Whether the gradient along features without penalty is at most this share of its largest value."""
        if not len(self.free):
            return True
        sizes = np.abs(loss.gradient[self.free]) * self._inverse_lengths[self.free]
        return bool(np.max(sizes) <= share * 2.0 * math.sqrt(loss.value))

    def _no_near_dependence(self, rows: Rows, theta: Vector, H: Matrix) -> bool:
        """Whether the flat directions of H, the curvature of features without penalty, are exactly flat.

        If features depend on each other nearly but not exactly, coefficients may be so large that a gradient
        of the size of rounding errors matters, and Φ has no bound. H cannot distinguish such a direction from
        an exact dependence, since its entries are sums of squares; products with the rows can.
        """
        D = flat_directions(H)
        return not D.size or bool(
            np.all(rows.sum_blocks(partial(_active_squares, theta, self.free, D)) <= EXACT)
        )

    def _certify_by_majorant(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """Φ at θ, with the duality gap of the majorant at θ as certificate: no step to it lowers Φ by more.

        A convex problem whose free features are too many gets the largest fall along one feature instead.
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
        """The convex problem whose penalty majorises that of Φ and touches it at θ, up to a constant.

        For a smooth potential this is the half-quadratic majorant, Prop. (prp:sHingeMM), a ridge with weights
        c ψ; for a potential that is concave in ‖W_·i‖ it is ℓ1 with the slopes of φ at θ.
        """
        if not self.potential.smooth:
            return replace(self, potential=L1(1.0), penalty_factor=self.tangent_slopes(theta)[:-1])
        ridge = self.half_quadratic_weights(theta)
        # Negligible weights are set to zero: their inverses would overflow.
        ridge[ridge <= NEGLIGIBLE_WEIGHT * self.rows.gram_diagonal[:-1]] = 0.0
        return replace(self, potential=L2(1.0), eta=0.0, penalty_factor=ridge)

    def half_quadratic_weights(self, theta: Vector) -> Vector:
        """c_i ψ(‖W_·i‖) + η, the ridge of the half-quadratic majorant at θ."""
        weights = self.factor * self.potential.weight(self.lengths(theta)) + self.eta
        return np.asarray(np.minimum(weights, HUGE))

    def tangent_slopes(self, theta: Vector) -> Vector:
        """c_i φ'(‖W_·i‖), the slopes of the tangent that majorises a concave φ; zero for the intercept."""
        if self.potential.convex:  # and concave on [0, ∞[, hence linear there
            return self.kink_slopes
        t = self.lengths(theta)
        slopes = np.where(t == 0.0, self.potential.slope_at_zero, self.potential.derivative(t))
        return np.append(self.factor * slopes, 0.0)

    def stationarity(self, at: Evaluated) -> float:
        """The largest predicted fall of Φ, relative to Φ, of a step along one feature's coefficients."""
        if not at.value > 0.0:
            return 0.0
        curvature = 2.0 * self.rows.gram_diagonal
        curvature += self.ridge
        if self.potential.smooth:
            # Across the direction of the coefficients of several classes, φ has the curvature ψ ≥ φ''.
            bend = self.potential.weight if self.other_classes else self.potential.curvature
            curvature[:-1] += self.factor * bend(self.lengths(at.theta))
        g = column_norms(self.matrix(self.subgradient(at)))
        # Divided before squaring, so that the square does not overflow.
        units = np.sqrt(curvature)
        falls = np.divide(g, units, out=np.zeros_like(g), where=units > 0.0)
        return 0.5 * (float(falls.max()) / math.sqrt(at.value)) ** 2

    def estimate(self, at: Evaluated, lower_bound: float = -math.inf) -> Certificate:
        """An estimate of the certificate that needs no pass over the rows.

        The gap is exact if Φ is minimal over the intercept; otherwise the effect of balancing the classes is
        estimated to first order. The stationarity is a lower bound of the true one. `lower_bound` is a lower
        bound of the minimum, from other points.
        """
        if not self.bounded:
            return Certificate(self.stationarity(at))
        loss = at.value - self.penalty(at.theta)
        linear = 2.0 * loss - float(at.theta @ at.loss_gradient)
        theta, gradient = self.matrix(at.theta), self.matrix(at.loss_gradient)
        bound = self.dual.value(theta, linear, loss, gradient)
        bound -= 2.0 * float(np.abs(theta[:, -1] * gradient[:, -1]).sum())
        if len(self.free):
            rows = [LossSum(loss, row) for row in gradient]
            if not all(self._free_gradient_vanishes(row, NEAR_BALANCE) for row in rows):
                bound = 0.0
        bound = max(bound, at.lower_bound, lower_bound)
        return Certificate(math.nan, self.relative_gap(at.value, bound))

    @cached_property
    def dual(self) -> Dual:
        """The dual function of the penalty."""
        return Dual(self.potential, self.factor, self.eta)

    @cached_property
    def violation_scale(self) -> Vector:
        """The factors, one per feature, by which `violations` multiplies the norms of the subgradient."""
        bound = 2.0 * math.sqrt(self.loss_at_zero)
        measure = float(np.max(column_norms(self._gradient_at_zero) * self._inverse_lengths))
        return self._inverse_lengths / (max(measure, 1e-8 * bound) or 1.0)

    @cached_property
    def _inverse_lengths(self) -> Vector:
        lengths = np.sqrt(self.rows.gram_diagonal)
        # A column without entries has no length; any unit will do for its coefficient.
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
        # A column without entries has gradient zero; one whose squares underflow has not.
        vanishing = (lengths[:-1] < 1e-280 * weights) & (self.rows.loss_at_zero.gradient[:-1] != 0.0)
        if np.any(vanishing):
            raise ScaleError(
                f"The values of feature {int(np.flatnonzero(vanishing)[0])} are so small that their squares "
                "vanish: rescale the features, e.g. with sklearn.preprocessing.StandardScaler."
            )


def _active_squares(theta: Vector, features: NDArray[np.intp], D: Matrix, block: Block) -> Vector:
    """The diagonal of DᵀLᵀSLD over the rows active at θ, for some features and the intercept."""
    weights = np.where(block.matvec(theta) < 1.0, block.s, 0.0)
    part = block.columns(features)
    return np.array([weights @ part.matvec(np.ascontiguousarray(d)) ** 2 for d in D.T])


def _joined(rows: Sequence[Vector]) -> Vector:
    """The vectors of all classes as one vector."""
    return rows[0] if len(rows) == 1 else np.concatenate(rows)
