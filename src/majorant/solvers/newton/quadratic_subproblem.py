r"""Minimising the quadratic model of the loss plus the penalty: small, dense, in memory.

    m(θ) = Σ_c (g_c·d_c + ½ d_cᵀH_cd_c) + Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²,    d = θ - θ₀,

with the gradients g and the Hessians H of the loss at θ₀, one for each class. All minimisers return a point
where m is at most m(θ₀), and the fall of m. They stop when the violation has shrunk to a twentieth, or to a
given share: a more accurate minimiser is wasted, since the model changes with the active rows; a less
accurate one takes more passes over the data.

`minimise_smooth`: Newton steps with the potential's own curvature, halved until m falls. For one class, a
singular model would need eigenvectors (0.2 s per step for 865 features). If the interior-point method suits
the problem, `minimise_smooth` stops there instead; θ then does not move, and `or_interior_point` takes over.
`minimise_kinked`: rounds of coordinate sweeps, which find the signs, and a Cholesky solve on the support,
which finds the values (with sweeps only, convergence is slow if features are correlated); along a path of
strengths, the solve comes first. φ is replaced by its tangent in |w|.
`minimise_groups`: the same for several classes. A feature is zero for all classes or for none, so on the
support the norms are smooth, and `minimise_smooth` replaces the solve.
`minimise_from_kink`: `minimise_smooth` from the result of `minimise_kinked` for a surrogate with a kink
(`continuation.py`), if m is lower there.
`minimise_on_support`: only the solve of `minimise_kinked`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant.duality import column_norms
from majorant.interrupts import check
from majorant.linsolve import cholesky_solve
from majorant.objective import Objective
from majorant.potentials import L1
from majorant.solvers import interior
from majorant.solvers.newton import tuning
from majorant.solvers.newton.newton_equations import (
    FLOOR,
    Hessians,
    PenaltyCurvature,
    newton_direction,
    product_with,
    with_diagonal,
)
from majorant.status import Evaluated, Matrix, Vector

# Curvature, relative to the diagonal, added on the support, which may be singular.
JITTERS = (1e-10, 1e-6)


def minimise_model(
    objective: Objective,
    H: Hessians,
    at: Evaluated,
    accuracy: float = tuning.MODEL_ACCURACY,
    *,
    signs_known: bool = False,
) -> tuple[Vector, float]:
    """An approximate minimiser of the model at θ, and the fall of the model.

    `signs_known`: most coefficients are likely to keep their signs (for one class).
    """
    if objective.potential.smooth:
        return minimise_smooth(objective, H, at, accuracy=accuracy)
    if len(H) == 1:
        return minimise_kinked(objective, H[0], at, accuracy, signs_known=signs_known)
    return minimise_groups(objective, H, at, accuracy)


# Smooth ---------------------------------------------------------------------------------------------------


def minimise_smooth(
    objective: Objective,
    H: Hessians,
    at: Evaluated,
    steps: int = tuning.SMOOTH_STEPS,
    accuracy: float = tuning.MODEL_ACCURACY,
) -> tuple[Vector, float]:
    """Damped Newton on m where φ is differentiable; one solve where φ is quadratic."""
    one = len(H) == 1
    quadratic = one and objective.potential.quadratic
    if quadratic:
        gradient = objective.gradient(at)
        A = with_diagonal(H[0], PenaltyCurvature(objective, at.theta).across)
        d = cholesky_solve(A, -gradient, FLOOR, overwrite=True)
        if d is not None:
            return at.theta + d, max(-0.5 * float(gradient @ d), 0.0)
    units = _units(H, objective.eta)
    # A quadratic model gets a second step, which corrects the rounding errors of the first.
    hands_over = one and not quadratic and interior.suits(objective)
    here, fallen, previous, goal = at, 0.0, np.inf, np.inf
    rounding = 1e-14 * (objective.penalty(at.theta) + abs(float(at.loss_gradient @ at.theta)))
    for n in range(2 if quadratic else steps):
        check()
        gradient = objective.gradient(here)
        violation = float(np.max(column_norms(objective.matrix(gradient)) / units))
        goal = accuracy * violation if n == 0 else goal
        if violation <= goal:
            break
        if hands_over:
            A = with_diagonal(H[0], PenaltyCurvature(objective, here.theta).across)
            d = cholesky_solve(A, -gradient, FLOOR, overwrite=True)
            if d is None:
                break
        else:
            d = -newton_direction(objective, H, here.theta, gradient, tuning.MODEL_CG_ACCURACY)
        image, slope, t = product_with(H, d), float(gradient @ d), 1.0
        while True:
            trial = Evaluated(here.theta + t * d, np.nan, here.loss_gradient + t * image)
            fall = _fall(objective, at, trial)
            if fall >= fallen - 1e-4 * t * slope - rounding:
                break
            t *= 0.5
            if t < 1e-30:
                return here.theta, max(fallen, 0.0)
        if fall < fallen + rounding and violation >= previous:
            break
        previous, here, fallen = violation, trial, fall
    return here.theta, max(fallen, 0.0)


def _fall(objective: Objective, start: Evaluated, end: Evaluated) -> float:
    """m(start) - m(end), from the gradients of the quadratic part at both points."""
    rise = 0.5 * float((end.theta - start.theta) @ (start.loss_gradient + end.loss_gradient))
    return objective.penalty(start.theta) - objective.penalty(end.theta) - rise


def _units(H: Hessians, eta: float) -> Vector:
    """√(H_jj + η), the unit of each coordinate's violation; 1 if that is zero."""
    squares = np.diagonal(H, axis1=1, axis2=2).mean(axis=0)
    squares[:-1] += eta
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def minimise_from_kink(objective: Objective, H: Hessians, at: Evaluated) -> tuple[Vector, float]:
    """`minimise_smooth` from θ, or from the result for a surrogate with a kink if m is lower there.

    If the rounding of a kink is narrow, Newton's method takes dozens of steps from its wrong side.
    """
    start, fallen = at, 0.0
    for surrogate in objective.potential.surrogates(1.0):
        if not surrogate.smooth and surrogate.concave:
            easier = replace(objective, potential=surrogate)
            theta, _ = minimise_kinked(easier, H[0], at)
            moved = Evaluated(theta, np.nan, at.loss_gradient + product_with(H, theta - at.theta))
            theta = objective.smoothed_start(moved)
            moved = Evaluated(theta, np.nan, at.loss_gradient + product_with(H, theta - at.theta))
            fall = _fall(objective, at, moved)
            start, fallen = (moved, fall) if fall > fallen else (start, fallen)
    theta, fall = minimise_smooth(objective, H, start)
    return theta, fallen + fall


# A kink, one class ----------------------------------------------------------------------------------------


def minimise_kinked(
    objective: Objective,
    H: Matrix,
    at: Evaluated,
    accuracy: float = tuning.MODEL_ACCURACY,
    *,
    signs_known: bool = False,
) -> tuple[Vector, float]:
    """Coordinate descent, and Cholesky on the support, which comes first if the signs are known."""
    from majorant.solvers.newton.model_kernels import descend_on_model, minimise_on_model

    slopes, ridge = objective.tangent_slopes(at.theta), objective.ridge
    first = at.theta, at.loss_gradient
    if signs_known and len(H) > tuning.SIGNS_KNOWN_FEATURES:
        first = _KinkedModel(H, at, slopes, ridge).solve_on_support(*first)
    theta, r = np.empty((2, len(H)))
    # Sweeps over few features are much cheaper than a call of LAPACK.
    sweeps = _sweeps(len(H) ** 2)
    worst, goal, fall = minimise_on_model(
        H, at.theta, at.loss_gradient, *first, slopes, ridge, sweeps, accuracy, theta, r
    )
    if worst <= goal:
        return theta, max(fall, 0.0)
    model = _KinkedModel(H, at, slopes, ridge)
    large = np.count_nonzero(theta) >= tuning.LARGE_SUPPORT
    for _ in range((tuning.LARGE_MODEL_ROUNDS if large else tuning.MODEL_ROUNDS) - 1):
        check()
        theta, r = model.solve_on_support(theta, r)
        if descend_on_model(H, r, theta, slopes, ridge, sweeps, goal) <= goal:
            break
    return theta, max(model.fall(theta, r), 0.0)


def minimise_on_support(objective: Objective, H: Matrix, at: Evaluated) -> tuple[Vector, float]:
    """Minimise the same model over the coordinates that are not zero: a solve, without sweeps."""
    model = _KinkedModel(H, at, objective.tangent_slopes(at.theta), objective.ridge)
    theta, r = model.solve_on_support(at.theta, at.loss_gradient)
    return theta, max(model.fall(theta, r), 0.0)


def _sweeps(entries: int) -> int:
    """The number of sweeps between two solves on the support, by the number of entries of the Hessians."""
    return int(min(max(tuning.SWEEP_FLOPS / entries, tuning.LEAST_SWEEPS), tuning.MOST_SWEEPS))


class _KinkedModel:
    """m with φ replaced by its tangent in |w|, and its minimiser for given signs.

    r is always the gradient of the quadratic part.
    """

    def __init__(self, H: Matrix, start: Evaluated, slopes: Vector, ridge: Vector) -> None:
        self.H, self.start, self.slopes, self.ridge = H, start, slopes, ridge
        self._size = np.abs(start.theta)
        # A smaller fall of m is rounding.
        self._rounding = 1e-16 * float(self._size @ (self.slopes + np.abs(start.loss_gradient)))

    def fall(self, theta: Vector, r: Vector) -> float:
        """The fall of m since the start."""
        before, size = self.start, np.abs(theta)
        rise = 0.5 * float((theta - before.theta) @ (before.loss_gradient + r))
        rise += float((size - self._size) @ (self.slopes + 0.5 * self.ridge * (size + self._size)))
        return -rise

    def solve_on_support(self, theta: Vector, r: Vector) -> tuple[Vector, Vector]:
        """Minimise m for the signs of θ; returns θ itself if m does not fall.

        Coordinates that would cross zero stop at zero. If m does not fall for the whole step, a part of the
        step is taken, at least to the first crossing, and the solve is repeated on the remaining support.
        """
        fallen = self.fall(theta, r)
        # If the support is larger than the rank, features leave it one by one, each with a factorisation.
        large = np.count_nonzero(theta) >= tuning.LARGE_SUPPORT
        for _ in range(tuning.LARGE_SUPPORT_CUTS if large else tuning.SUPPORT_CUTS):
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
                if (fall := self.fall(*candidate)) > fallen + self._rounding:
                    break
            else:
                break
            (theta, r), fallen = candidate, fall
            if t == 1.0:
                break
        return theta, r

    @staticmethod
    def _lengths_to_try(part: Vector, step: Vector, crossing: NDArray[np.bool_]) -> list[float]:
        """The whole step, shorter parts of it, and the part that ends at the first crossing of zero."""
        first = float(np.min(-part[crossing] / step[crossing])) if crossing.any() else 0.0
        ratio = max(first, 0.25**tuning.SHORTER_STEPS) ** (1.0 / tuning.SHORTER_STEPS)
        shorter = [ratio**k for k in range(1, tuning.SHORTER_STEPS) if first < ratio**k < 1.0]
        # Slightly longer, so that the coordinate that crosses first is certainly set to zero.
        return [1.0, *shorter, first * (1.0 + 1e-15)]

    def _at(self, support: NDArray[np.intp], values: Vector) -> tuple[Vector, Vector]:
        theta = np.zeros(len(self.H))
        theta[support] = values
        moves = theta - self.start.theta
        moved = np.flatnonzero(moves)
        # For few moves, reading their rows of H is cheaper than reading all of H.
        few = 3 * len(moved) < len(moves)
        return theta, self.start.loss_gradient + (moves[moved] @ self.H[moved] if few else self.H @ moves)

    def _step(self, support: NDArray[np.intp], theta: Vector, r: Vector) -> Vector | None:
        """The step to the minimiser for the signs that θ has on the support."""
        has_curvature = np.diagonal(self.H)[support] + self.ridge[support] > 0.0
        curved = support[has_curvature]
        if not len(curved):
            return None
        gradient = r + self.ridge * theta + self.slopes * np.sign(theta)
        solution = self._solve(curved, -gradient[curved])
        if solution is None:
            return None
        # Features without curvature go to zero, since only the slope is left.
        step = np.where(self.slopes[support] > 0.0, -theta[support], 0.0)
        step[has_curvature] = solution
        return step

    def _solve(self, features: NDArray[np.intp], right: Vector) -> Vector | None:
        # Features may be linearly dependent. With some more curvature, the step still lowers the model.
        for jitter in JITTERS:
            check()
            A = self.H.copy() if len(features) == len(self.H) else self.H[np.ix_(features, features)]
            A.flat[:: len(features) + 1] *= 1.0 + jitter
            A.flat[:: len(features) + 1] += self.ridge[features]
            step = cholesky_solve(A, right, overwrite=True)
            if step is not None and np.all(np.isfinite(step)):
                return step
        return None


# A kink, several classes ----------------------------------------------------------------------------------


def minimise_groups(
    objective: Objective, H: Hessians, at: Evaluated, accuracy: float = tuning.MODEL_ACCURACY
) -> tuple[Vector, float]:
    """Sweeps over whole features, which find those that are zero, and Newton's method on the others.

    A potential that is concave in the norm is replaced by its tangent: ℓ1 with a slope per feature.
    """
    from majorant.solvers.newton.model_kernels import descend_on_group_model

    C, p, _ = H.shape
    slopes = objective.tangent_slopes(at.theta)
    tangent = replace(objective, potential=L1(1.0), penalty_factor=slopes[:-1])
    units = 1.0 / _units(H, objective.eta)
    violations = column_norms(tangent.matrix(tangent.subgradient(at))) * units
    goal = accuracy * float(np.max(violations))
    sweeps = _sweeps(C * p**2)
    scratch = [np.empty(C) for _ in range(3)]
    here = at
    for _ in range(tuning.MODEL_ROUNDS):
        check()
        R, W = here.loss_gradient.reshape(C, p).copy(), here.theta.reshape(C, p).T.copy()
        worst = descend_on_group_model(H, R, W, slopes, objective.ridge, units, sweeps, goal, *scratch)
        here = Evaluated(np.ascontiguousarray(W.T).ravel(), np.nan, R.ravel())
        if worst <= goal:
            break
        here = _on_group_support(tangent, H, here)
    fall = _fall(tangent, at, here)
    return (here.theta, fall) if fall > 0.0 else (at.theta, 0.0)


def _on_group_support(tangent: Objective, H: Hessians, at: Evaluated) -> Evaluated:
    """Newton steps on the features that are not zero; the point itself if m does not fall."""
    C, p, _ = H.shape
    kept = np.flatnonzero((tangent.lengths(at.theta) > 0.0) | (tangent.factor == 0.0))
    where = np.append(kept, p - 1)
    part = replace(tangent, penalty_factor=tangent.factor[kept])
    theta, gradient = (x.reshape(C, p)[:, where].ravel() for x in (at.theta, at.loss_gradient))
    inner = np.ascontiguousarray(H[:, where[:, np.newaxis], where])
    found, fall = minimise_smooth(part, inner, Evaluated(theta, np.nan, gradient), tuning.SUPPORT_STEPS)
    if fall <= 0.0:
        return at
    moved = at.theta.reshape(C, p).copy()
    moved[:, where] = found.reshape(C, -1)
    gradient = at.loss_gradient + product_with(H, moved.ravel() - at.theta)
    return Evaluated(moved.ravel(), np.nan, gradient)
