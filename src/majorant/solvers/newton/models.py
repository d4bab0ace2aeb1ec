r"""Minimising the quadratic model of the loss plus the penalty: small, dense, in memory.

    m(θ) = ½ θᵀHθ - c·θ + Σ_i c_i φ(w_i) + η/2 ‖w‖²

Both minimisers return a point where m is no larger than at the start, and by how much it fell. They stop when
the violation has shrunk to a twentieth: the model changes with the active rows, so more would be wasted; less
would take more passes over the data.

`minimise_smooth`: Newton steps with the potential's own curvature, halved until m falls.
`minimise_kinked`: rounds of coordinate sweeps, which find the signs, and a Cholesky solve on the support,
which finds the values (sweeps alone crawl when features are correlated). φ is replaced by its tangent in |w|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.linsolve import cholesky_solve, rounding_level, solve_positive
from majorant.objective import Objective
from majorant.status import Evaluated, Matrix, Vector

ACCURACY = 0.05
SWEEPS = 20
ROUNDS = 30
SMOOTH_STEPS = 30
# How many coordinates are dropped one by one before sweeping again.
DROPS = 20
# Curvature, relative, that is still taken for real: a line search guards what comes of it.
FLOOR = 1e-15


def minimise_smooth(objective: Objective, H: Matrix, c: Vector, theta: Vector) -> tuple[Vector, float]:
    """Damped Newton on m for a differentiable potential."""
    factor, potential, eta = objective.factor, objective.potential, objective.eta
    lengths = _lengths(H, _ridge(objective))
    linear = H @ theta - c

    def value(theta: Vector, linear: Vector) -> float:
        return 0.5 * float(theta @ (linear - c)) + objective.penalty(theta)

    start = current = value(theta, linear)
    # Below this a difference of two values of m is rounding; the violation then decides.
    rounding = 1e-14 * (abs(current) + abs(float(c @ theta)))
    noise = rounding_level(objective.rows.loss_at_zero.value, len(theta))
    goal = previous = np.inf
    for n in range(SMOOTH_STEPS):
        gradient = linear + objective.penalty_gradient(theta)
        violation = float(np.max(np.abs(gradient) / lengths))
        if n == 0:
            goal = ACCURACY * violation
        if violation <= goal:
            break
        A = H.copy()
        A[np.diag_indices(len(factor))] += factor * potential.curvature(theta[:-1]) + eta
        d = -solve_positive(A, gradient, noise, FLOOR)
        image = H @ d
        slope = float(gradient @ d)
        t = 1.0
        while (trial := value(theta + t * d, linear + t * image)) > current + 1e-4 * t * slope + rounding:
            t *= 0.5
            if t < 1e-10:
                return theta, start - current
        if trial > current - rounding and violation >= previous:
            break
        previous = violation
        theta, linear, current = theta + t * d, linear + t * image, trial
    return theta, max(start - current, 0.0)


def minimise_kinked(
    objective: Objective, H: Matrix, c: Vector, at: Evaluated, slopes: Vector
) -> tuple[Vector, float]:
    """Coordinate descent and Cholesky on ½θᵀHθ - c·θ + Σ_j (slopes_j |θ_j| + ridge_j θ_j²/2)."""
    from majorant.solvers.newton.coordinate import descend

    ridge = _ridge(objective)
    violations = np.abs(objective.subgradient(at)) / _lengths(H, ridge)
    accuracy = ACCURACY * float(np.max(violations))
    model = _KinkedModel(H, c, slopes, ridge)
    theta = at.theta.copy()
    r = H @ theta - c
    for _ in range(ROUNDS):
        worst = descend(H, r, theta, slopes, ridge, SWEEPS, accuracy)
        if worst <= accuracy:
            break
        if (better := model.solve_on_support(theta)) is not None:
            theta = better
            r = H @ theta - c
    return theta, max(model.value(at.theta) - model.value(theta), 0.0)


class _KinkedModel:
    """The model with kinks, and its minimiser for given signs."""

    def __init__(self, H: Matrix, c: Vector, slopes: Vector, ridge: Vector) -> None:
        self.H, self.c, self.slopes, self.ridge = H, c, slopes, ridge

    def value(self, theta: Vector) -> float:
        support = np.flatnonzero(theta)
        part = theta[support]
        curved = self.H[np.ix_(support, support)] @ part
        return float(
            part @ (0.5 * curved - self.c[support])
            + self.slopes[support] @ np.abs(part)
            + 0.5 * (self.ridge[support] @ part**2)
        )

    def solve_on_support(self, theta: Vector) -> Vector | None:
        """The minimiser for the signs of θ, without those that would change; None if not lower.

        First all coordinates that cross zero on the way are dropped at once. Where that does not pay, go as
        far as the first crossing, drop it, and solve again: down all the way, but a solve for each.
        """
        start = self.value(theta)
        theta = theta.copy()
        for _ in range(DROPS):
            support = np.flatnonzero((theta != 0.0) | (self.slopes == 0.0))
            here, signs = theta[support], np.sign(theta[support])
            solution = self._solve(support, signs)
            if solution is None:
                break
            crossed = (self.slopes[support] > 0.0) & (solution * signs <= 0.0)
            candidate = np.zeros_like(theta)
            candidate[support] = np.where(crossed, 0.0, solution)
            if self.value(candidate) < start:
                return candidate
            if not crossed.any():
                break
            ways = here[crossed] / (here[crossed] - solution[crossed])
            theta[support] = here + float(np.min(ways)) * (solution - here)
            theta[support[crossed][ways == np.min(ways)]] = 0.0
        return theta if self.value(theta) < start else None

    def _solve(self, support: NDArray[np.intp], signs: Vector) -> Vector | None:
        if not len(support):
            return None
        A = self.H[np.ix_(support, support)]
        A[np.diag_indices_from(A)] += self.ridge[support]
        right = self.c[support] - self.slopes[support] * signs
        solution = cholesky_solve(A, right)
        return None if solution is None or not np.all(np.isfinite(solution)) else solution


def _ridge(objective: Objective) -> Vector:
    return np.append(np.full(len(objective.factor), objective.eta), 0.0)


def _lengths(H: Matrix, ridge: Vector) -> Vector:
    """√(H_jj + η), the unit of each coordinate's violation; 1 for a feature that no active row has."""
    squares = np.diagonal(H) + ridge
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))
