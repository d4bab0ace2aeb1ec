r"""All classes at once: one Φ in which a feature is in for every class or out for every class.

    Φ(W, β) = Σ_c Σ_k s_k ρ²(y_kc (W_c·x_k + β_c)) + Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²

y_kc is 1 if row k is of class c and -1 if not. The potential sees the length of a feature's coefficients over
all classes. By the same concavity of φ(√·) as for one coefficient, the half-quadratic weight ψ(‖W_·i‖) times
‖W_·i‖²/2 majorises it; the gradient is ψ(‖W_·i‖) W_·i, and the Hessian of a feature's block is

    ψ (I - ŵŵᵀ) + φ'' ŵŵᵀ,    ŵ = W_·i/‖W_·i‖,

at most ψ I. For ℓ1 this is the group lasso, with whole features exactly zero.

θ is the C × p matrix (W, β), row by row as one vector: what solvers, callbacks and the driver carry around.
The duality gap is that of `duality.py`, summed over the classes, with the length of a feature's pull in place
of its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from majorant.duality import TINY, balanced, relative_gap
from majorant.objective import NEAR_BALANCE, RESIDUE, Objective, certify_by_majorant
from majorant.potentials import Potential
from majorant.rows import MemoryRows, Rows
from majorant.rows.block import Block
from majorant.rows.protocol import Audit, LossSum, losses, totals
from majorant.status import Certificate, Evaluated, Matrix, Vector


@dataclass(frozen=True, eq=False)
class JointObjective:
    """Φ for the rows of every class, which share X, a potential φ of lengths, η and penalty factors c."""

    classes: Sequence[Rows]
    potential: Potential
    eta: float = 0.0
    penalty_factor: Vector | None = None

    @cached_property
    def single(self) -> Objective:
        """The first class by itself: what does not depend on the labels is the same for all."""
        return Objective(self.classes[0], self.potential, self.eta, self.penalty_factor)

    @cached_property
    def in_memory(self) -> Sequence[MemoryRows] | None:
        """The rows of every class, if they are in memory."""
        rows = [part for part in self.classes if isinstance(part, MemoryRows)]
        return rows if len(rows) == len(self.classes) else None

    @property
    def factor(self) -> Vector:
        """The penalty factors c, one per feature."""
        return self.single.factor

    @property
    def bounded(self) -> bool:
        """Whether the dual bounds the minimum."""
        return self.single.bounded

    @property
    def constant(self) -> float:
        """Σ_i c_i φ(0), which `penalty` and all values leave out."""
        return self.single.constant

    @property
    def size(self) -> int:
        """The length of θ."""
        return len(self.classes) * self.single.size

    def start(self) -> Vector:
        """θ = 0."""
        return np.zeros(self.size)

    def matrix(self, theta: Vector) -> Matrix:
        """θ as a matrix, a row per class, the intercepts last."""
        return theta.reshape(len(self.classes), -1)

    def lengths(self, theta: Vector) -> Vector:
        """‖W_·i‖ for every feature."""
        return lengths(self.matrix(theta)[:, :-1])

    def nonzeros(self, theta: Vector) -> int:
        """How many features are not zero."""
        return int(np.count_nonzero(self.lengths(theta) > self.potential.zero_width))

    @cached_property
    def pulls_at_zero(self) -> Vector:
        """The length of every feature's gradient of the loss at θ = 0."""
        return lengths(np.stack([rows.loss_at_zero.gradient for rows in self.classes]))[:-1]

    @property
    def column_lengths(self) -> Vector:
        """√(LᵀSL)_ii for every feature, the same for all classes."""
        return self.single.column_lengths

    @property
    def mean_curvature(self) -> float:
        """The mean of the diagonal of LᵀSL."""
        return self.single.mean_curvature

    def blurred(self, at: Evaluated) -> Vector:
        """θ with its zeros moved to where a smooth potential balances the pull that the loss has at θ."""
        theta = self.matrix(at.theta.copy())
        zero = (self.lengths(at.theta) == 0.0) & (self.factor > 0.0)
        pull = -self.matrix(at.loss_gradient)[:, :-1][:, zero]
        size = lengths(pull)
        slope = np.minimum(size / self.factor[zero], 0.999 * self.potential.steepest)
        theta[:, :-1][:, zero] = pull * (self.potential.at_slope(slope) / np.maximum(size, TINY))
        return theta.ravel()

    # The value and its parts -------------------------------------------------------------------

    def evaluate(self, theta: Vector) -> Evaluated:
        """Φ(θ), without its constant, and the gradient of the loss: a pass, in memory one for each class."""
        parts = losses(self.classes, self.matrix(theta))
        gradient = np.concatenate([loss.gradient for loss in parts])
        return Evaluated(theta, sum(loss.value for loss in parts) + self.penalty(theta), gradient)

    def penalty(self, theta: Vector) -> float:
        """Σ_i c_i (φ(‖W_·i‖) - φ(0)) + η/2 ‖W‖²."""
        t = self.lengths(theta)
        return float(self.factor @ self.potential.excess(t)) + 0.5 * self.eta * float(t @ t)

    def weights(self, theta: Vector) -> Vector:
        """c_i ψ(‖W_·i‖) + η; where a kink makes ψ infinite, at zero, η alone."""
        t = self.lengths(theta)
        if self.potential.smooth:
            return self.factor * self.potential.weight(t) + self.eta
        psi = np.where(t > 0.0, self.potential.weight(np.where(t > 0.0, t, 1.0)), 0.0)
        return np.asarray(self.factor * psi + self.eta)

    def gradient(self, at: Evaluated) -> Vector:
        """∇Φ(θ), of a kink's subgradients the one without the penalty at zero."""
        gradient = self.matrix(at.loss_gradient.copy())
        gradient[:, :-1] += self.weights(at.theta) * self.matrix(at.theta)[:, :-1]
        return gradient.ravel()

    def subgradient(self, at: Evaluated) -> Vector:
        """The element of smallest norm of ∂Φ(θ)."""
        gradient = self.gradient(at)
        if not self.potential.smooth:
            G = self.matrix(gradient)[:, :-1]
            size = lengths(G)
            held = self.single.kink_slopes[:-1] / np.maximum(size, TINY)
            G *= np.where(self.lengths(at.theta) == 0.0, np.maximum(1.0 - held, 0.0), 1.0)
        return gradient

    # The certificate ---------------------------------------------------------------------------

    @cached_property
    def violation_scale(self) -> Vector:
        """What makes a feature's subgradient, or that of the intercepts, its share of the certificate."""
        inverse = self.single._inverse_lengths
        at_zero = np.stack([rows.loss_at_zero.gradient for rows in self.classes])
        bound = 2.0 * math.sqrt(sum(rows.loss_at_zero.value for rows in self.classes))
        return inverse / (max(float(np.max(lengths(at_zero) * inverse)), 1e-8 * bound) or 1.0)

    def violations(self, at: Evaluated) -> Vector:
        """Each feature's share in the stationarity, and that of the intercepts."""
        return lengths(self.matrix(self.subgradient(at))) * self.violation_scale

    def certify(self, theta: Vector) -> tuple[Evaluated, Certificate]:
        """θ evaluated afresh, and what is certain of it."""
        if not self.bounded:
            return certify_by_majorant(self, theta)
        audits = self._audits(theta)
        gradient = np.concatenate([audit.loss.gradient for audit in audits])
        value = sum(audit.loss.value for audit in audits) + self.penalty(theta)
        best, clear = theta, True
        if len(self.single.free):
            singles = [replace(self.single, rows=rows) for rows in self.classes]
            found = [
                single.with_best_free_features(row)
                for single, row in zip(singles, self.matrix(theta), strict=True)
            ]
            best = np.concatenate([row for row, _ in found])
            pairs = zip(singles, found, strict=True)
            clear = all(single.free_features_are_clear(H) for single, (_, H) in pairs)
            audits = self._audits(best)
        parts = [
            balanced(row, (audit.negative, audit.positive))
            for row, audit in zip(self.matrix(best), audits, strict=True)
        ]
        linear, square, pulls = zip(*parts, strict=True)
        bound = self._dual_value(best, sum(linear), sum(square), np.stack(pulls))
        if not (clear and all(self.single.free_features_balance(audit.loss, RESIDUE) for audit in audits)):
            bound = 0.0
        at = Evaluated(theta, value, gradient, lower_bound=bound)
        return at, Certificate(self.stationarity(at), self.relative_gap(value, bound))

    def _audits(self, theta: Vector) -> list[Audit]:
        return totals(self.classes, [partial(_audit, row) for row in self.matrix(theta)])

    def relative_gap(self, value: float, bound: float) -> float:
        """How far Φ can be above its minimum, relative to Φ, by a lower bound of the minimum."""
        return relative_gap(value, bound, sum(rows.loss_at_zero.value for rows in self.classes))

    def majorant(self, theta: Vector) -> JointObjective:
        """The convex Φ whose penalty is the tangent majorant of this one's at θ, but for a constant."""
        single = self.single.majorant(np.append(self.lengths(theta), 0.0))
        return replace(self, potential=single.potential, eta=single.eta, penalty_factor=single.penalty_factor)

    def stationarity(self, at: Evaluated) -> float:
        """The largest fall of Φ, relative to Φ, that a step along one feature's coefficients promises."""
        if not at.value > 0.0:
            return 0.0
        curvature = 2.0 * self.single.rows.gram_diagonal
        if self.potential.smooth:
            curvature[:-1] += self.weights(at.theta)
        g = lengths(self.matrix(self.subgradient(at)))
        units = np.sqrt(curvature) * math.sqrt(at.value)
        return 0.5 * float(np.max(np.divide(g, units, out=np.zeros_like(g), where=units > 0.0) ** 2))

    def estimate(self, at: Evaluated) -> Certificate:
        """The part of the certificate that decides, as far as it is known without a pass over the rows."""
        if not self.bounded:
            return Certificate(self.stationarity(at))
        loss = at.value - self.penalty(at.theta)
        linear = 2.0 * loss - float(at.theta @ at.loss_gradient)
        bound = self._dual_value(at.theta, linear, loss, -self.matrix(at.loss_gradient))
        # What balancing the classes will cost, to first order.
        intercepts = self.matrix(at.theta)[:, -1] * self.matrix(at.loss_gradient)[:, -1]
        bound -= 2.0 * float(np.abs(intercepts).sum())
        balanced = self.single.free_features_balance
        if not all(balanced(LossSum(loss, row), NEAR_BALANCE) for row in self.matrix(at.loss_gradient)):
            bound = 0.0
        bound = max(bound, at.lower_bound)
        return Certificate(math.nan, self.relative_gap(at.value, bound))

    def _dual_value(self, theta: Vector, linear: float, square: float, pulls: Matrix) -> float:
        """D ≥ 0 for the dual variables of θ with these sums, made feasible (`duality.py`)."""
        if square <= 0.0:
            return 0.0
        W, pull = self.matrix(theta)[:, :-1], pulls[:, :-1]
        size, longest, free = lengths(pull), math.inf, self.single.free
        if self.eta == 0.0:
            limit = self.factor * self.potential.steepest
            limit[free] = math.inf
            longest = 1.0 / max(float(np.max(size / limit, initial=0.0)), TINY)
        linear -= 2.0 * float(size[free] @ lengths(W)[free])
        candidates = {min(1.0, longest), min(longest, 0.5 * linear / square)}
        return max(0.0, *(t * linear - t * t * square - self._conjugate(t * pull, W) for t in candidates))

    def _conjugate(self, U: Matrix, W: Matrix) -> float:
        """Σ_i f_i*(U_·i), or a little more: all that is held points where the pull does."""
        held = U - self.eta * W if self.eta > 0.0 else U
        size = lengths(held)
        steepest = self.potential.steepest
        slopes = np.minimum(size / np.where(self.factor > 0.0, self.factor, 1.0), steepest)
        value = float(self.factor @ self.potential.excess_conjugate(slopes))
        if self.eta > 0.0:
            rest = U - held * (self.factor * slopes / np.maximum(size, TINY))
            value += 0.5 * float(np.sum(rest * rest)) / self.eta
        return value

    def check_scale(self) -> None:
        """Refuse numbers whose squares leave the range of floating point."""
        self.single.check_scale()


def _audit(theta: Vector, block: Block) -> Audit:
    return block.audit(theta, lengths=False)


AnyObjective: TypeAlias = Objective | JointObjective


def lengths(W: Matrix) -> Vector:
    """The length of every column, whose squares may be beyond the range of numbers."""
    top = float(np.max(np.abs(W), initial=0.0))
    if 1e-100 < top < 1e100 or top == 0.0 or not math.isfinite(top):
        return np.asarray(np.sqrt(np.einsum("ci,ci->i", W, W)))
    return np.asarray(top * lengths(W / top))
