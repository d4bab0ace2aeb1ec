r"""Newton's equations: the Hessian of the loss plus that of the penalty, and solutions of A d = g.

    A = Diag(H_1, ..., H_C) + ∇²(Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²)

The loss does not couple the classes. The penalty of several classes couples them, feature by feature, unless
φ is quadratic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.duality import column_norms
from majorant.interrupts import check
from majorant.linsolve import FORCING, MAX_STEPS, conjugate_gradients, rounding_level, solve_positive
from majorant.objective import Objective
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.newton import tuning
from majorant.status import Matrix, Vector

Hessians = NDArray[np.float64]
"""(C, p, p): one for each class."""

# The smallest curvature, relative to the diagonal, that counts as positive: a line search follows anyway.
FLOOR = 1e-15


class PenaltyCurvature:
    """The Hessian of Σ c_i φ(‖W_·i‖) + η/2 ‖W‖².

    For a feature with the direction ŵ = W_·i/‖W_·i‖ it is c_i (ψ (I - ŵŵᵀ) + φ'' ŵŵᵀ) + η I, with φ'' ≤ ψ.
    For one class it is c_i φ'' + η.
    """

    def __init__(self, objective: Objective, theta: Vector) -> None:
        W, potential = objective.matrix(theta)[:, :-1], objective.potential
        t = column_norms(W)
        # With a kink, all features here differ from zero, and φ is its tangent, without curvature along ŵ.
        along = np.full_like(t, objective.eta)
        if potential.smooth:
            # For a potential that is not convex, `curvature` is ψ: the same in all directions.
            along += objective.factor * potential.curvature(t)
        self.classes, self.across, self.tied = len(W), along, False
        if self.classes > 1:
            zero = (t == 0.0) & (not potential.smooth)  # ψ is infinite at a kink, where only η is used
            psi = np.where(zero, 0.0, potential.weight(np.where(zero, 1.0, t)))
            self.across = objective.factor * psi + objective.eta
            self.less = np.maximum(self.across - along, 0.0)
            self.direction = W / np.where(t > 0.0, t, 1.0)
            self.tied = bool(self.less.any())

    def add_product(self, d: Vector, to: Vector) -> Vector:
        """Add the Hessian times d to the vector `to`, in place; returns `to`."""
        D, total = (x.reshape(self.classes, -1)[:, :-1] for x in (d, to))
        total += self.across * D
        if self.tied:
            total -= self.direction * (self.less * np.einsum("ci,ci->i", self.direction, D))
        return to

    def preconditioner(self, diagonal: Matrix) -> Vector:
        """A diagonal preconditioner for the Hessian of Φ; `diagonal` is that of the loss.

        If the curvatures of the penalty are similar for all features, it is the diagonal to the power 0.3: on
        text, the diagonal itself is worse than no preconditioner. If these curvatures span orders of
        magnitude, it is the diagonal.
        """
        whole = np.tile(diagonal, (self.classes // len(diagonal), 1))
        whole[:, :-1] += self.across
        similar = np.max(self.across) <= 10.0 * np.min(self.across)
        whole[whole <= 0.0] = 1.0
        # exp and log take a sixth of the time of a power.
        return (np.exp(0.3 * np.log(whole)) if similar else whole).ravel()


def newton_direction(
    objective: Objective,
    loss: Hessians | ActiveQuadratic,
    theta: Vector,
    gradient: Vector,
    accuracy: float = FORCING,
    max_steps: int = MAX_STEPS,
) -> Vector:
    """A⁻¹ times the gradient: by factorisations, or by conjugate gradients if A is large.

    `loss` holds the Hessians of the loss, or computes products with them.
    """
    penalty = PenaltyCurvature(objective, theta)
    H = loss.H if isinstance(loss, ActiveQuadratic) else loss
    if H.size and not penalty.tied:
        return _solve_by_class(objective, H, penalty.across, gradient)
    if H.size and len(theta) <= tuning.DIRECT_UNKNOWNS:
        return solve_positive(tied_matrix(H, penalty), gradient, _noise(objective), FLOOR)
    if isinstance(loss, ActiveQuadratic):
        product, diagonal = loss.product, 2.0 * objective.rows.gram_diagonal[np.newaxis]
    else:
        diagonal = np.einsum("cii->ci", H)

        def product(d: Vector) -> Vector:
            return product_with(H, d)

    return conjugate_gradients(
        lambda d: penalty.add_product(d, product(d)),
        gradient,
        penalty.preconditioner(diagonal),
        accuracy,
        max_steps,
    )


def _noise(objective: Objective) -> float:
    """A bound of the rounding errors of a gradient."""
    return rounding_level(objective.rows.loss_at_zero.value, objective.width)


def _solve_by_class(objective: Objective, H: Hessians, diagonal: Vector, gradient: Vector) -> Vector:
    """Solve class by class, if the penalty adds the same diagonal to the Hessian of each class."""
    noise, solutions = _noise(objective), []
    for own, row in zip(H, gradient.reshape(len(H), -1), strict=True):
        check()
        solutions.append(solve_positive(with_diagonal(own, diagonal), row, noise, FLOOR))
    return solutions[0] if len(solutions) == 1 else np.concatenate(solutions)


def with_diagonal(H: Matrix, diagonal: Vector) -> Matrix:
    """A copy of H with these numbers added to the diagonal entries of the features.

    Without an intercept the last row and column of H are zero; the diagonal entry 1 then makes β's step zero.
    """
    A = H.copy()
    A.flat[: -1 : len(A) + 1] += diagonal
    if A[-1, -1] == 0.0:
        A[-1, -1] = 1.0
    return A


def tied_matrix(H: Hessians, penalty: PenaltyCurvature) -> Matrix:
    """The Hessian of Φ as one matrix, in which the penalty couples the classes feature by feature."""
    C, p, _ = H.shape
    A = np.zeros((C, p, C, p))
    for c, own in enumerate(H):
        A[c, :, c, :] = own
    ties = np.einsum("cidi->cdi", A)[:, :, :-1]  # a view
    ties -= penalty.less * penalty.direction[:, np.newaxis] * penalty.direction
    for c in range(C):
        ties[c, c] += penalty.across
    return A.reshape(C * p, C * p)


def product_with(H: Hessians, d: Vector) -> Vector:
    """H d, class by class."""
    if len(H) == 1:
        return np.asarray(H[0] @ d)
    return np.asarray(np.einsum("cij,cj->ci", H, d.reshape(len(H), -1)).ravel())
