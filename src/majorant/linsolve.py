r"""Solving with curvature matrices that may be singular.

`solve_positive` solves A d = g for a positive semidefinite A after scaling A to a unit diagonal, which makes
the solve indifferent to the units of the features (a column in millimetres next to one in light years) and
makes "flat" mean the same in every direction. By Cholesky where A is well conditioned; where it is not, by
its eigenvectors, leaving out the flat directions: there g is nothing but rounding, and dividing rounding by
next to nothing moved iterates at random (w8a with Welsch: Φ rose). Leaving a direction out means infinite
curvature along it, and a majorant with more curvature is still a majorant: every descent theorem survives.

`SpectralInverse` holds the eigenvectors of LᵀSL and solves with 2LᵀSL + σ Id for any σ > 0 at the price
of two products, Eq. (eq:A_bar_approx_inv).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, lapack, qr, svd

from majorant.status import Matrix, Vector

# Relative curvature below which a direction is flat. Rounding errors in g are some 1e-15·√K, so what is
# kept is moved by errors below 1e-4 of a step; 1e-13 let Φ rise on w8a, and above 1e-8 the small weights of
# a potential begin to be lost.
FLAT = 1e-10


def solve_positive(A: Matrix, g: Vector) -> Vector:
    """Solve A d = g for A positive semidefinite; where A is singular, d has no flat part."""
    diagonal = np.diagonal(A)
    # A zero on the diagonal of such a matrix means a zero row and column: nothing to be solved there.
    empty = diagonal <= 0
    scale = np.where(empty, 0.0, 1.0 / np.sqrt(np.where(empty, 1.0, diagonal)))
    scaled = A * scale[:, np.newaxis]
    scaled *= scale
    np.fill_diagonal(scaled, 1.0)
    factor, failed = lapack.dpotrf(scaled, lower=True)
    if not failed and np.min(np.diagonal(factor)) ** 2 > FLAT:
        return np.asarray(scale * lapack.dpotrs(factor, scale * g, lower=True)[0])
    eigenvalues, V = eigh(scaled, check_finite=False)
    kept = V[:, eigenvalues > FLAT]
    return np.asarray(scale * (kept @ ((kept.T @ (scale * g)) / eigenvalues[eigenvalues > FLAT])))


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
