r"""Minimising the quadratic model of the loss plus the penalty: small, dense, in memory.

    m(θ) = ½ θᵀHθ - c·θ + Σ_i c_i φ(w_i) + η/2 ‖w‖²

Both minimisers return a point where m is no larger than at the start, as accurate as the caller asks for.

`minimise_smooth`: Newton steps with the potential's own curvature, halved until m falls.
`minimise_kinked`: rounds of coordinate sweeps, which find the signs, and a Cholesky solve on the support,
which finds the values (sweeps alone crawl when features are correlated).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from majorant.linsolve import solve_positive
from majorant.objective import Objective
from majorant.status import Matrix, Vector

SWEEPS = 20
ROUNDS = 30
SMOOTH_STEPS = 30


def minimise_smooth(objective: Objective, H: Matrix, c: Vector, theta: Vector, accuracy: float) -> Vector:
    """Damped Newton on m for a differentiable potential, to that fraction of the first violation."""
    factor, potential, eta = objective.factor, objective.potential, objective.eta
    lengths = _lengths(H, eta)
    linear = H @ theta - c

    def value(theta: Vector, linear: Vector) -> float:
        return 0.5 * float(theta @ (linear - c)) + objective.penalty(theta)

    current = value(theta, linear)
    # Below this a difference of two values of m is rounding; the violation then decides.
    rounding = 1e-14 * (abs(current) + abs(float(c @ theta)))
    goal = previous = np.inf
    for n in range(SMOOTH_STEPS):
        gradient = linear + objective.penalty_gradient(theta)
        violation = float(np.max(np.abs(gradient) / lengths))
        if n == 0:
            goal = accuracy * violation
        if violation <= goal:
            break
        A = H.copy()
        A[np.diag_indices(len(factor))] += factor * potential.curvature(theta[:-1]) + eta
        d = -solve_positive(A, gradient)
        image = H @ d
        slope = float(gradient @ d)
        t = 1.0
        while (trial := value(theta + t * d, linear + t * image)) > current + 1e-4 * t * slope + rounding:
            t *= 0.5
            if t < 1e-10:
                return theta
        if trial > current - rounding and violation >= previous:
            break
        previous = violation
        theta, linear, current = theta + t * d, linear + t * image, trial
    return theta


def minimise_kinked(
    H: Matrix, c: Vector, theta: Vector, slopes: Vector, ridge: Vector, accuracy: float
) -> Vector:
    """The minimiser of ½θᵀHθ - c·θ + Σ_j (slopes_j |θ_j| + ridge_j θ_j²/2), to that accuracy."""
    from majorant.solvers.newton.coordinate import descend

    theta = theta.copy()
    r = H @ theta - c
    for _ in range(ROUNDS):
        worst = descend(H, r, theta, slopes, ridge, SWEEPS, accuracy)
        if worst <= accuracy:
            break
        if (better := _solve_on_support(H, c, theta, slopes, ridge, r)) is not None:
            theta = better
            r = H @ theta - c
    return theta


def _solve_on_support(
    H: Matrix, c: Vector, theta: Vector, slopes: Vector, ridge: Vector, r: Vector
) -> Vector | None:
    """The minimiser for the signs of θ, cut where a coordinate would cross zero; None if not lower."""
    support = np.flatnonzero((theta != 0.0) | (slopes == 0.0))
    if not len(support):
        return None
    signs = np.sign(theta[support])
    A = H[np.ix_(support, support)]
    A[np.diag_indices_from(A)] += ridge[support]
    right = c[support] - slopes[support] * signs
    # The rest of θ is zero, so this is the whole of the model on the support.
    _, solution, failed = lapack.dposv(A, right, lower=True)
    if failed or not np.all(np.isfinite(solution)):
        return None
    free = slopes[support] == 0.0
    crossed = ~free & (solution * signs <= 0.0)
    start = _model_value(H, c, theta, slopes, ridge)
    candidate = np.zeros_like(theta)
    candidate[support] = np.where(crossed, 0.0, solution)
    if _model_value(H, c, candidate, slopes, ridge) < start:
        return candidate
    if not crossed.any():
        return None
    # Go towards the solution as far as the first crossing: the model is quadratic up to there.
    here = theta[support]
    t = float(np.min(here[crossed] / (here[crossed] - solution[crossed])))
    candidate = np.zeros_like(theta)
    candidate[support] = here + t * (solution - here)
    return candidate if _model_value(H, c, candidate, slopes, ridge) < start else None


def _model_value(H: Matrix, c: Vector, theta: Vector, slopes: Vector, ridge: Vector) -> float:
    return float(theta @ (0.5 * (H @ theta) - c) + slopes @ np.abs(theta) + 0.5 * (ridge @ theta**2))


def _lengths(H: Matrix, eta: float) -> Vector:
    """√H_jj, the unit of each coordinate's violation; 1 for a feature that no active row has."""
    lengths = np.sqrt(np.maximum(np.diagonal(H), 0.0) + eta)
    return np.where(lengths > 0, lengths, 1.0)
