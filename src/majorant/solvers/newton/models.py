r"""Minimising the quadratic model of the loss plus the penalty: small, dense, in memory.

    m(θ) = ½ θᵀHθ - c·θ + Σ_i c_i φ(w_i) + η/2 ‖w‖²

All minimisers return a point where m is no larger than at the start, and by how much it fell. The first two
stop when the violation has shrunk to a twentieth, or to what is asked for: the model changes with the active
rows, so more would be wasted; less would take more passes over the data.

`minimise_smooth`: Newton steps with the potential's own curvature, halved until m falls.
A singular model would take eigenvectors (0.2 s a step for 865 features). If the interior-point method suits
the problem, `minimise_smooth` stops there instead; θ then stands still, and `or_interior_point` takes over.
`minimise_kinked`: rounds of coordinate sweeps, which find the signs, and a Cholesky solve on the support,
which finds the values (sweeps alone crawl when features are correlated). φ is replaced by its tangent in |w|.
`minimise_from_stone`: the first, from where the second leads for a stepping stone (`solvers/way.py`), if that
is lower.
`minimise_on_support`: the solve of the second alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.linsolve import cholesky_solve, rounding_level, solve_positive
from majorant.objective import Objective
from majorant.solvers import interior
from majorant.status import Evaluated, Matrix, Vector

ACCURACY = 0.05
# Flops of the sweeps between two solves on the support.
SWEEP_WORK = 3e6
ROUNDS = 10
# The most Newton steps on the model of a smooth penalty.
SMOOTH_STEPS = 30
# How often a step on the support is cut before sweeping again.
DROPS = 20
# Curvature, relative, that is still taken for real: a line search guards what comes of it.
FLOOR = 1e-15
# Relative curvature added on the support, which may be singular.
JITTERS = (1e-10, 1e-6)


def minimise_smooth(objective: Objective, H: Matrix, c: Vector, theta: Vector) -> tuple[Vector, float]:
    """Damped Newton on m for a differentiable potential; one solve where φ is quadratic."""
    if objective.potential.quadratic:
        gradient = H @ theta - c + objective.penalty_gradient(theta)
        d = cholesky_solve(_curvature(objective, H, theta), -gradient, FLOOR, overwrite=True)
        if d is not None:
            return theta + d, max(-0.5 * float(gradient @ d), 0.0)
    lengths = _lengths(H, _ridge(objective))
    linear = H @ theta - c

    def value(theta: Vector, linear: Vector) -> float:
        return 0.5 * float(theta @ (linear - c)) + objective.penalty(theta)

    start = current = value(theta, linear)
    # Below this a difference of two values of m is rounding; the violation then decides.
    rounding = 1e-14 * (abs(current) + abs(float(c @ theta)))
    noise = rounding_level(objective.rows.loss_at_zero.value, len(theta))
    goal = previous = np.inf
    # Where the penalty is quadratic, so is the model, and a second step mends the rounding of the first.
    hands_over = interior.suits(objective) and not objective.potential.quadratic
    for n in range(2 if objective.potential.quadratic else SMOOTH_STEPS):
        check()
        gradient = linear + objective.penalty_gradient(theta)
        violation = float(np.max(np.abs(gradient) / lengths))
        if n == 0:
            goal = ACCURACY * violation
        if violation <= goal:
            break
        A = _curvature(objective, H, theta)
        d = cholesky_solve(A, -gradient, FLOOR) if hands_over else -solve_positive(A, gradient, noise, FLOOR)
        if d is None:
            break
        image = H @ d
        slope = float(gradient @ d)
        t = 1.0
        while (trial := value(theta + t * d, linear + t * image)) > current + 1e-4 * t * slope + rounding:
            t *= 0.5
            if t < 1e-30:
                return theta, start - current
        if trial > current - rounding and violation >= previous:
            break
        previous = violation
        theta, linear, current = theta + t * d, linear + t * image, trial
    return theta, max(start - current, 0.0)


def minimise_kinked(
    objective: Objective,
    H: Matrix,
    c: Vector,
    at: Evaluated,
    slopes: Vector,
    accuracy: float = ACCURACY,
) -> tuple[Vector, float]:
    """Coordinate descent and Cholesky on ½θᵀHθ - c·θ + Σ_j (slopes_j |θ_j| + ridge_j θ_j²/2).

    The gradient of the loss at the start is Hθ - c.
    """
    from majorant.solvers.newton.coordinate import descend

    ridge = _ridge(objective)
    violations = np.abs(objective.subgradient(at)) / _lengths(H, ridge)
    goal = accuracy * float(np.max(violations))
    model = _KinkedModel(H, c, slopes, ridge)
    theta, r = at.theta.copy(), at.loss_gradient.copy()
    start = model.value(theta, r)
    # Sweeps over few features cost next to nothing beside a call of LAPACK.
    sweeps = int(np.clip(SWEEP_WORK / len(theta) ** 2, 20, 400))
    for _ in range(ROUNDS):
        check()
        if descend(H, r, theta, slopes, ridge, sweeps, goal) <= goal:
            break
        theta, r = model.solve_on_support(theta, r)
    return theta, max(start - model.value(theta, r), 0.0)


def minimise_from_stone(objective: Objective, H: Matrix, c: Vector, at: Evaluated) -> tuple[Vector, float]:
    """`minimise_smooth`, from θ or from where a stepping stone with a kink leads: from what is lower.

    A rounded kink that is sharp takes Newton's method dozens of steps from the wrong side of it.
    """

    def value(theta: Vector) -> float:
        return float(0.5 * (theta @ (H @ theta)) - c @ theta) + objective.penalty(theta)

    start, fallen = at.theta, 0.0
    for stone in objective.potential.stepping_stones(1.0):
        if not stone.smooth and stone.concave:
            easier = replace(objective, potential=stone)
            theta, _ = minimise_kinked(easier, H, c, at, tangent_slopes(easier, at.theta))
            theta = objective.blurred(Evaluated(theta, np.nan, H @ theta - c))
            fall = value(at.theta) - value(theta)
            start, fallen = (theta, fall) if fall > fallen else (start, fallen)
    theta, fall = minimise_smooth(objective, H, c, start)
    return theta, fallen + fall


def minimise_on_support(
    objective: Objective, H: Matrix, c: Vector, at: Evaluated, slopes: Vector
) -> tuple[Vector, float]:
    """The same model, its coordinates that are zero kept there: a solve, without a sweep."""
    model = _KinkedModel(H, c, slopes, _ridge(objective))
    r = at.loss_gradient
    start = model.value(at.theta, r)
    # A support that is larger than the rank sheds features one by one; a factorisation for each, while small.
    theta, r = model.solve_on_support(at.theta, r, drops=DROPS if len(c) < 500 else 2)
    return theta, max(start - model.value(theta, r), 0.0)


def tangent_slopes(objective: Objective, theta: Vector) -> Vector:
    """c_i φ'(|w_i|): the tangent in |w| that majorises a concave φ; λ for ℓ1. Zero for the intercept."""
    if objective.potential.convex:  # and concave on [0, ∞[, hence linear there
        return objective.kink_slopes
    w = np.abs(theta[:-1])
    slopes = np.where(w == 0.0, objective.potential.slope_at_zero, objective.potential.derivative(w))
    return np.append(objective.factor * slopes, 0.0)


class _KinkedModel:
    """The model with kinks, and its minimiser for given signs; r stands for Hθ - c throughout."""

    def __init__(self, H: Matrix, c: Vector, slopes: Vector, ridge: Vector) -> None:
        self.H, self.c, self.slopes, self.ridge = H, c, slopes, ridge

    def value(self, theta: Vector, r: Vector) -> float:
        return float(0.5 * (theta @ (r - self.c + self.ridge * theta)) + self.slopes @ np.abs(theta))

    def solve_on_support(self, theta: Vector, r: Vector, drops: int = DROPS) -> tuple[Vector, Vector]:
        """The minimiser for the signs of θ, without those that would change; θ itself if that is no lower.

        On the way to the minimiser, coordinates that would cross zero stop there. Where all the way is too
        far for the model to fall, go a part of it, at least to the first crossing, and solve again on what is
        left.
        """
        value = self.value(theta, r)
        for _ in range(drops):
            check()
            support = np.flatnonzero((theta != 0.0) | (self.slopes == 0.0))
            part, signs = theta[support], np.sign(theta[support])
            step = self._step(support, theta, r)
            if step is None:
                break
            kinked = self.slopes[support] > 0.0
            for t in self._lengths_to_try(part, step, kinked & ((part + step) * signs <= 0.0)):
                check()
                moved = part + t * step
                moved[kinked & (moved * signs <= 0.0)] = 0.0
                candidate = self._at(support, moved)
                if (reached := self.value(*candidate)) < value:
                    break
            else:
                break
            (theta, r), value = candidate, reached
            if t == 1.0:
                break
        return theta, r

    @staticmethod
    def _lengths_to_try(part: Vector, step: Vector, crossing: NDArray[np.bool_]) -> list[float]:
        """All the way, shorter parts of it, and what leads exactly to the first crossing."""
        first = float(np.min(-part[crossing] / step[crossing])) if crossing.any() else 0.0
        shorter = [0.25**k for k in range(1, 14) if 0.25**k > first]
        # One rounding further, so that the coordinate that crosses first is at zero or beyond, and stops.
        return [1.0, *shorter, first * (1.0 + 1e-15)]

    def _at(self, support: NDArray[np.intp], values: Vector) -> tuple[Vector, Vector]:
        theta = np.zeros(len(self.c))
        theta[support] = values
        # With few, reading their rows is cheaper than reading all of H.
        few = 3 * len(support) < len(self.c)
        return theta, (values @ self.H[support] if few else self.H @ theta) - self.c

    def _step(self, support: NDArray[np.intp], theta: Vector, r: Vector) -> Vector | None:
        """The step to the minimiser for the signs that θ has on the support."""
        curved = np.diagonal(self.H)[support] + self.ridge[support] > 0.0
        alive = support[curved]
        if not len(alive):
            return None
        gradient = r + self.ridge * theta + self.slopes * np.sign(theta)
        solution = self._solve(alive, -gradient[alive])
        if solution is None:
            return None
        # A feature that no active row has goes to zero: only its slope pulls.
        step = np.where(self.slopes[support] > 0.0, -theta[support], 0.0)
        step[curved] = solution
        return step

    def _solve(self, alive: NDArray[np.intp], right: Vector) -> Vector | None:
        # Features may depend on each other; and a step with a little too much curvature is still a step down.
        for jitter in JITTERS:
            check()
            A = self.H.copy() if len(alive) == len(self.H) else self.H[np.ix_(alive, alive)]
            A.flat[:: len(alive) + 1] *= 1.0 + jitter
            A.flat[:: len(alive) + 1] += self.ridge[alive]
            step = cholesky_solve(A, right, overwrite=True)
            if step is not None and np.all(np.isfinite(step)):
                return step
        return None


def _curvature(objective: Objective, H: Matrix, theta: Vector) -> Matrix:
    """The Hessian of m at θ."""
    A = H.copy()
    diagonal = objective.factor * objective.potential.curvature(theta[:-1]) + objective.eta
    A.flat[: -1 : len(A) + 1] += diagonal
    return A


def _ridge(objective: Objective) -> Vector:
    return np.append(np.full(len(objective.factor), objective.eta), 0.0)


def _lengths(H: Matrix, ridge: Vector) -> Vector:
    """√(H_jj + η), the unit of each coordinate's violation; 1 for a feature that no active row has."""
    squares = np.diagonal(H) + ridge
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))
