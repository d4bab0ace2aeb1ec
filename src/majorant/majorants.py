r"""Tangent majorants of Φ, Def. (def:majorant).

A quadratic majorant at θ' touches Φ there and lies above it everywhere:

    h(θ; θ') = Φ(θ') + ∇Φ(θ')ᵀ(θ - θ') + ½ (θ - θ')ᵀ A(θ') (θ - θ')  ≥  Φ(θ),        Eq. (eq:majorant)

so the minimiser of h cannot have a larger Φ than θ'. The majorants differ in the curvature A:

    DescentLemma   μ Id,  μ = 2‖S^½L‖² + a max c + η                            Prop. (prp:sHingeLip)
    HalfQuadratic  2LᵀSL + Diag(c ψ(w) + η, ε)                  Prop. (prp:sHingeMM), Eq. (eq:CurvMat)
    Spectral       2LᵀSL + σ Id,  σ = max(c ψ(w) + η, ε)        Eq. (eq:A_bar), Eq. (eq:eq:lambdaMax)

The paper needs ε > 0 to make A invertible. `solve_positive` can solve with a singular A, and h is a majorant
with ε = 0 as well, so `HalfQuadratic` has no ε. `Spectral` divides by σ and uses ε = 1e-12 ‖S^½L‖²; a smaller
σ would be lost in the rounding of 2LᵀSL. `Spectral` holds the eigenvectors of LᵀSL, and solves with
2LᵀSL + σ Id for any σ > 0 with two products, Eq. (eq:A_bar_approx_inv).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, eigvalsh, svd
from scipy.sparse.linalg import LinearOperator, eigsh

from majorant.linsolve import rounding_level, solve_positive
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows import Rows
from majorant.status import Evaluated, Matrix, Vector

# The most numbers (0.5 GiB) that a curvature matrix or its factor may have: p ≤ 8,192.
MAX_DENSE_ENTRIES = 2**26

# Up to this size LᵀSL is formed instead of products with L: it is faster after a few products.
GRAM_SIZE = 1024


class Majorant(ABC):
    """A quadratic majorant of an objective, at any point of tangency."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    @abstractmethod
    def minimiser(self, at: Evaluated) -> Vector:
        """The minimiser of h(·; θ)."""


def penalty_weights(objective: Objective, theta: Vector) -> Vector:
    """The diagonal part of Eq. (eq:CurvMat): c ψ(w) + η for the features, 0 for the intercept."""
    return np.append(objective.half_quadratic_weights(theta), 0.0)


class DescentLemma(Majorant):
    """The same curvature in all directions and everywhere, Prop. (prp:sHingeLip).

    A potential with a kink has no Lipschitz constant. The majorant then contains the potential itself, and
    its proximal operator minimises the sum. `minimiser` multiplies the step by `relative_step`; Φ decreases
    for all factors below 2.
    """

    def __init__(self, objective: Objective, relative_step: float = 1.0) -> None:
        super().__init__(objective)
        self.relative_step = relative_step
        self.mu = SquaredHinge.curvature_bound * squared_norm_bound(objective.rows) + objective.eta
        if objective.potential.smooth:
            self.mu += objective.potential.lipschitz * float(np.max(objective.factor))
        self.mu = self.mu or 1.0  # no data and no penalty: any curvature

    def minimiser(self, at: Evaluated) -> Vector:
        """θ - α∇Φ(θ), Eq. (eq:gradientDescent), proximally where φ has a kink."""
        objective, alpha = self.objective, self.relative_step / self.mu
        if objective.potential.smooth:
            return at.theta - alpha * objective.gradient(at)
        theta = at.theta - alpha * at.loss_gradient
        theta[:-1] -= alpha * objective.eta * at.theta[:-1]
        theta[:-1] = objective.potential.prox(theta[:-1], alpha * objective.factor)
        return theta


class HalfQuadratic(Majorant):
    """The curvature of all rows, 2LᵀSL, plus the half-quadratic weight of each feature."""

    @cached_property
    def loss_curvature(self) -> Matrix:
        """2LᵀSL, built once."""
        return SquaredHinge.curvature_bound * self.objective.rows.gram()

    def matrix(self, theta: Vector) -> Matrix:
        """A(θ), Eq. (eq:CurvMat)."""
        A = self.loss_curvature.copy()
        A[np.diag_indices_from(A)] += penalty_weights(self.objective, theta)
        return A

    def along(self, theta: Vector, D: Matrix) -> Matrix:
        """DᵀA(θ)D for a few directions: from the matrix if A is small, else by a pass over the rows."""
        objective = self.objective
        if objective.size <= min(GRAM_SIZE, objective.rows.n_samples):
            loss = D.T @ (self.loss_curvature @ D)
        else:
            loss = SquaredHinge.curvature_bound * objective.rows.gram_along(D)
        return np.asarray(loss + D.T @ (penalty_weights(objective, theta)[:, np.newaxis] * D))

    def minimiser(self, at: Evaluated) -> Vector:
        """θ - A(θ)⁻¹∇Φ(θ), Eq. (eq:fullMM)."""
        objective = self.objective
        noise = rounding_level(objective.rows.loss_at_zero.value, objective.size)
        return at.theta - solve_positive(self.matrix(at.theta), objective.gradient(at), noise)


class Spectral(Majorant):
    """2LᵀSL + σ(θ) Id: one factorisation serves all iterations, Eq. (eq:A_bar_approx).

    LᵀSL = P Diag(Λ) Pᵀ. With fewer rows than columns, P is thin: by S^½L = VΛ^½Pᵀ, since the squares in LᵀSL
    would lose half the digits of the small eigenvalues.
    """

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        rows = objective.rows
        thin = rows.n_samples < objective.size
        factor = rows.design().T if thin else rows.gram()
        if thin:
            self.P, singular, _ = svd(factor, full_matrices=False, check_finite=False)
            self.eigenvalues = singular**2
        else:
            eigenvalues, self.P = eigh(factor, check_finite=False)
            # Eigenvalues below zero are rounding errors, which made the authors' own runs on w8a unstable.
            self.eigenvalues = np.maximum(eigenvalues, 0.0)
        self._epsilon = max(1e-12 * float(np.max(self.eigenvalues)), np.finfo(float).tiny)

    def sigma(self, theta: Vector) -> float:
        """The largest weight, Eq. (eq:eq:lambdaMax)."""
        return max(float(np.max(penalty_weights(self.objective, theta))), self._epsilon)

    def solve(self, sigma: float, g: Vector) -> Vector:
        """Solve (2LᵀSL + σ Id) d = g, Eq. (eq:A_bar_approx_inv).

        With a thin P, g has a component outside the range of P, where the matrix is σ Id. The remark after
        the equation leaves that component out; but the gradient has one, since the gradient of the penalty
        is not in the range of Lᵀ.
        """
        inside = self.P.T @ g
        d = self.P @ (inside / (SquaredHinge.curvature_bound * self.eigenvalues + sigma))
        if self.P.shape[0] > self.P.shape[1]:
            d += (g - self.P @ inside) / sigma
        return np.asarray(d)

    def minimiser(self, at: Evaluated) -> Vector:
        """θ - Ā(θ)⁻¹∇Φ(θ)."""
        return at.theta - self.solve(self.sigma(at.theta), self.objective.gradient(at))


def squared_norm_bound(rows: Rows) -> float:
    """An upper bound of ‖S^½L‖², the largest eigenvalue of LᵀSL, that is tight to 1e-6."""
    p = rows.n_features + 1
    if p <= GRAM_SIZE:
        largest = float(eigvalsh(rows.gram(), subset_by_index=(p - 1, p - 1))[0])
        return largest * (1.0 + 1e-10)
    # Lanczos converges from below; a margin of twice its tolerance gives an upper bound.
    tolerance = 2e-7
    operator = LinearOperator((p, p), matvec=rows.gram_product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(p)
    if not np.any(rows.gram_diagonal):
        return 0.0  # L = 0, for which Lanczos has no first step
    largest = float(eigsh(operator, k=1, which="LA", tol=tolerance, v0=start, return_eigenvectors=False)[0])
    return largest * (1.0 + 2.0 * tolerance)
