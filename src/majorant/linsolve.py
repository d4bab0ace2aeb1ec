r"""Solving with curvature matrices that may be singular.

`solve_positive` solves A d = g for a positive semidefinite A by Cholesky after scaling A to a unit
diagonal. Scaling makes the solve indifferent to the units of the features (a column in millimetres next
to one in light years), and makes "small" mean the same in every direction. A jitter τ on the scaled
diagonal, hence relative to each diagonal entry of A, keeps singular matrices solvable. It only ever
*adds* curvature, and a majorant with more curvature is still a majorant, so every descent theorem
survives it.

`SpectralInverse` holds the eigenvectors of LᵀSL and solves with 2LᵀSL + σ Id for any σ > 0 at the price
of two products, Eq. (eq:A_bar_approx_inv).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, qr, svd

from majorant.status import Matrix, Vector

# Flat directions of A get no information from g but rounding errors of relative size ~1e-15·√K; with
# this jitter they are moved by less than 1e-4 of the others. Seen on w8a with Welsch, where A is singular:
# 1e-14 lets Φ rise by rounding, 1e-11 does not, and slows no convergence that was measured.
JITTER = 1e-11


def solve_positive(A: Matrix, g: Vector) -> Vector:
    """Solve A d = g for A positive semidefinite, also when A is singular."""
    diagonal = np.diagonal(A)
    # A zero on the diagonal of such a matrix means a zero row and column: nothing to be solved there.
    scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    scaled = A * scale[:, np.newaxis]
    scaled *= scale
    jitter = JITTER
    while True:
        np.fill_diagonal(scaled, 1.0 + jitter)
        try:
            factor = cho_factor(scaled, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            jitter *= 100.0
            continue
        return np.asarray(scale * cho_solve(factor, scale * g, check_finite=False))


@dataclass(frozen=True, eq=False)
class SpectralInverse:
    """M = P Diag(Λ) Pᵀ, with as many orthonormal columns in P as M can have rank."""

    P: Matrix
    eigenvalues: Vector

    @classmethod
    def of_gram(cls, gram: Matrix) -> SpectralInverse:
        """From M itself: P is square."""
        eigenvalues, P = eigh(gram, check_finite=False)
        # M is positive semidefinite; what rounding puts below zero is zero. (Left there, it made the
        # authors' own runs on w8a unstable.)
        return cls(P, np.maximum(eigenvalues, 0.0))

    @classmethod
    def of_design(cls, design: Matrix) -> SpectralInverse:
        """From a factor Z with M = ZᵀZ and fewer rows than columns: P is thin.

        Zᵀ = QR, R = UΣVᵀ, P = QU, Λ = Σ². The products ZZᵀ or RRᵀ are not formed: squaring would lose
        half the digits of the small eigenvalues.
        """
        Q, R = qr(design.T, mode="economic", check_finite=False)
        U, singular, _ = svd(R, check_finite=False)
        return cls(Q @ U, singular**2)

    def solve(self, sigma: float, g: Vector) -> Vector:
        """Solve (2M + σ Id) d = g.

        With a thin P, g has a part outside the range of P, where 2M + σ Id is σ Id: that part, over σ, is
        what the remark after Eq. (eq:A_bar_approx_inv) leaves out. (The gradient does have such a part: the
        penalty's is not in the range of Lᵀ.)
        """
        inside = self.P.T @ g
        d = self.P @ (inside / (2.0 * self.eigenvalues + sigma))
        if self.P.shape[0] > self.P.shape[1]:
            d += (g - self.P @ inside) / sigma
        return np.asarray(d)
