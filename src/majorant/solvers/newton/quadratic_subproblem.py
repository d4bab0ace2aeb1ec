r"""Minimising the quadratic model of the loss plus the penalty: small, dense, in memory.

    m(θ) = Σ_c (g_c·d_c + ½ d_cᵀH_cd_c) + Σ_i c_i φ(‖W_·i‖) + η/2 ‖W‖²,    d = θ - θ₀,

with the gradients g and the Hessians H of the loss at θ₀, one for each class. All minimisers return a point
where m is no larger than at θ₀, and by how much m falls. They stop when the violation has shrunk to a
twentieth, or to what is asked for: the model changes with the active rows, so more would be wasted; less
would take more passes over the data.

`minimise_smooth`: Newton steps with the potential's own curvature, halved until m falls. One class with a
singular model would take eigenvectors (0.2 s a step for 865 features). If the interior-point method suits the
problem, `minimise_smooth` stops there instead; θ then stands still, and `or_interior_point` takes over.
`minimise_kinked`: rounds of coordinate sweeps, which find the signs, and a Cholesky solve on the support,
which finds the values (sweeps alone crawl when features are correlated). φ is replaced by its tangent in |w|.
`minimise_groups`: the same for several classes, whose features are not zero together: their norms are smooth
on the support, where `minimise_smooth` takes the place of the solve.
`minimise_from_kink`: `minimise_smooth` from where `minimise_kinked` leads for a surrogate with a kink
(`continuation.py`), if that is lower.
`minimise_on_support`: the solve of `minimise_kinked` alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from majorant.duality import column_norms
from majorant.interrupts import check
from majorant.linsolve import (
    FORCING,
    MAX_STEPS,
    cholesky_solve,
    conjugate_gradients,
    rounding_level,
    solve_positive,
)
from majorant.objective import Objective
from majorant.potentials import L1
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers import interior
from majorant.solvers.newton import tuning
from majorant.status import Evaluated, Matrix, Vector

Hessians = NDArray[np.float64]
"""(C, p, p): one for each class."""

# Curvature, relative to the diagonal, that is still taken for real: a line search guards what comes of it.
FLOOR = 1e-15
# Curvature, relative to the diagonal, added on the support, which may be singular.
JITTERS = (1e-10, 1e-6)


def minimise_model(
    objective: Objective, H: Hessians, at: Evaluated, accuracy: float = tuning.MODEL_ACCURACY
) -> tuple[Vector, float]:
    """A point where the model at θ is nearly least, and by how much it is lower there."""
    if objective.potential.smooth:
        return minimise_smooth(objective, H, at, accuracy=accuracy)
    if len(H) == 1:
        return minimise_kinked(objective, H[0], at, accuracy)
    return minimise_groups(objective, H, at, accuracy)


# Newton's equations ---------------------------------------------------------------------------------------


class PenaltyCurvature:
    """The Hessian of Σ c_i φ(‖W_·i‖) + η/2 ‖W‖²: one number across a feature's direction ŵ, one along it.

    It is ψ (I - ŵŵᵀ) + φ'' ŵŵᵀ, at most ψ I. Of one class only φ'' is left.
    """

    def __init__(self, objective: Objective, theta: Vector) -> None:
        W, potential = objective.matrix(theta)[:, :-1], objective.potential
        t = column_norms(W)
        # A kink at zero is far away, or there would be no Hessian; a tangent has no curvature along W_·i.
        along = np.full_like(t, objective.eta)
        if potential.smooth:
            # Of a potential that is not convex, `curvature` is ψ: the same in all directions.
            along += objective.factor * potential.curvature(t)
        self.classes, self.across, self.tied = len(W), along, False
        if self.classes > 1:
            zero = (t == 0.0) & (not potential.smooth)  # where a kink makes ψ infinite, η alone
            psi = np.where(zero, 0.0, potential.weight(np.where(zero, 1.0, t)))
            self.across = objective.factor * psi + objective.eta
            self.less = np.maximum(self.across - along, 0.0)
            self.direction = W / np.where(t > 0.0, t, 1.0)
            self.tied = bool(self.less.any())

    def add_product(self, d: Vector, to: Vector) -> Vector:
        """Add the Hessian times d to a vector, in place; return that."""
        D, total = (x.reshape(self.classes, -1)[:, :-1] for x in (d, to))
        total += self.across * D
        if self.tied:
            total -= self.direction * (self.less * np.einsum("ci,ci->i", self.direction, D))
        return to

    def preconditioner(self, diagonal: Matrix) -> Vector:
        """For the Hessian of Φ, whose loss has this diagonal: a row per class or one for all.

        With similar curvatures for all features the loss decides, and on text its full diagonal is a worse
        preconditioner than none; its power 0.3 is a better one. Where the potential's curvatures span orders
        of magnitude, they decide.
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
    """The gradient over the Hessian of Φ: by factorisations, or by conjugate gradients where they are large.

    The loss is given by its Hessians, or by what multiplies with them.
    """
    penalty = PenaltyCurvature(objective, theta)
    H = loss.H if isinstance(loss, ActiveQuadratic) else loss
    if H.size and not penalty.tied:
        return _solve_by_class(objective, H, penalty.across, gradient)
    if H.size and len(theta) <= tuning.DIRECT_UNKNOWNS:
        return solve_positive(_tied_matrix(H, penalty), gradient, _noise(objective), FLOOR)
    if isinstance(loss, ActiveQuadratic):
        product, diagonal = loss.product, 2.0 * objective.rows.gram_diagonal[np.newaxis]
    else:
        diagonal = np.einsum("cii->ci", H)

        def product(d: Vector) -> Vector:
            return _product(H, d)

    return conjugate_gradients(
        lambda d: penalty.add_product(d, product(d)),
        gradient,
        penalty.preconditioner(diagonal),
        accuracy,
        max_steps,
    )


def _noise(objective: Objective) -> float:
    """The rounding of a gradient."""
    return rounding_level(objective.rows.loss_at_zero.value, objective.width)


def _solve_by_class(objective: Objective, H: Hessians, diagonal: Vector, gradient: Vector) -> Vector:
    """Where the same diagonal is all that the penalty adds, the classes do not see each other."""
    noise, solutions = _noise(objective), []
    for own, row in zip(H, gradient.reshape(len(H), -1), strict=True):
        check()
        solutions.append(solve_positive(_with_diagonal(own, diagonal), row, noise, FLOOR))
    return solutions[0] if len(solutions) == 1 else np.concatenate(solutions)


def _with_diagonal(H: Matrix, diagonal: Vector) -> Matrix:
    A = H.copy()
    A.flat[: -1 : len(A) + 1] += diagonal
    return A


def _tied_matrix(H: Hessians, penalty: PenaltyCurvature) -> Matrix:
    """The Hessian of Φ: a block for each class, and the penalty's, which ties them feature by feature."""
    C, p, _ = H.shape
    A = np.zeros((C, p, C, p))
    for c, own in enumerate(H):
        A[c, :, c, :] = own
    ties = np.einsum("cidi->cdi", A)[:, :, :-1]  # a view
    ties -= penalty.less * penalty.direction[:, np.newaxis] * penalty.direction
    for c in range(C):
        ties[c, c] += penalty.across
    return A.reshape(C * p, C * p)


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
        A = _with_diagonal(H[0], PenaltyCurvature(objective, at.theta).across)
        d = cholesky_solve(A, -gradient, FLOOR, overwrite=True)
        if d is not None:
            return at.theta + d, max(-0.5 * float(gradient @ d), 0.0)
    units = _units(H, objective.eta)
    # A quadratic model takes a second step, which mends the rounding of the first.
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
            A = _with_diagonal(H[0], PenaltyCurvature(objective, here.theta).across)
            d = cholesky_solve(A, -gradient, FLOOR, overwrite=True)
            if d is None:
                break
        else:
            d = -newton_direction(objective, H, here.theta, gradient, tuning.MODEL_CG_ACCURACY)
        image, slope, t = _product(H, d), float(gradient @ d), 1.0
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


def _product(H: Hessians, d: Vector) -> Vector:
    if len(H) == 1:
        return np.asarray(H[0] @ d)
    return np.asarray(np.einsum("cij,cj->ci", H, d.reshape(len(H), -1)).ravel())


def _fall(objective: Objective, start: Evaluated, end: Evaluated) -> float:
    """By how much m is lower at the end, from the gradients of its quadratic part at both."""
    rise = 0.5 * float((end.theta - start.theta) @ (start.loss_gradient + end.loss_gradient))
    return objective.penalty(start.theta) - objective.penalty(end.theta) - rise


def _units(H: Hessians, eta: float) -> Vector:
    """√(H_jj + η), the unit of each coordinate's violation; 1 for a feature that no active row has."""
    squares = np.diagonal(H, axis1=1, axis2=2).mean(axis=0)
    squares[:-1] += eta
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))


def minimise_from_kink(objective: Objective, H: Hessians, at: Evaluated) -> tuple[Vector, float]:
    """`minimise_smooth`, from θ or from where a surrogate with a kink leads: from what is lower.

    A rounded kink that is sharp takes Newton's method dozens of steps from the wrong side of it.
    """
    start, fallen = at, 0.0
    for surrogate in objective.potential.surrogates(1.0):
        if not surrogate.smooth and surrogate.concave:
            easier = replace(objective, potential=surrogate)
            theta, _ = minimise_kinked(easier, H[0], at)
            there = Evaluated(theta, np.nan, at.loss_gradient + _product(H, theta - at.theta))
            theta = objective.smoothed_start(there)
            there = Evaluated(theta, np.nan, at.loss_gradient + _product(H, theta - at.theta))
            fall = _fall(objective, at, there)
            start, fallen = (there, fall) if fall > fallen else (start, fallen)
    theta, fall = minimise_smooth(objective, H, start)
    return theta, fallen + fall


# A kink, one class ----------------------------------------------------------------------------------------


def minimise_kinked(
    objective: Objective, H: Matrix, at: Evaluated, accuracy: float = tuning.MODEL_ACCURACY
) -> tuple[Vector, float]:
    """Coordinate descent, and Cholesky on the support."""
    from majorant.solvers.newton.cd_kernels import descend_on_model, minimise_on_model

    slopes, ridge = objective.tangent_slopes(at.theta), objective.ridge
    theta, r = np.empty((2, len(H)))
    # Sweeps over few features cost next to nothing beside a call of LAPACK.
    sweeps = _sweeps(len(H) ** 2)
    worst, goal, fall = minimise_on_model(
        H, at.theta, at.loss_gradient, slopes, ridge, sweeps, accuracy, theta, r
    )
    if worst <= goal:
        return theta, max(fall, 0.0)
    model = _KinkedModel(H, at, slopes, ridge)
    for _ in range(tuning.MODEL_ROUNDS - 1):
        check()
        theta, r = model.solve_on_support(theta, r)
        if descend_on_model(H, r, theta, slopes, ridge, sweeps, goal) <= goal:
            break
    return theta, max(model.fall(theta, r), 0.0)


def minimise_on_support(objective: Objective, H: Matrix, at: Evaluated) -> tuple[Vector, float]:
    """The same model, its coordinates that are zero kept there: a solve, without a sweep."""
    model = _KinkedModel(H, at, objective.tangent_slopes(at.theta), objective.ridge)
    # A support that is larger than the rank sheds features one by one, and each takes a factorisation.
    cuts = tuning.SUPPORT_CUTS if len(H) < tuning.SMALL_SUPPORT else tuning.LARGE_SUPPORT_CUTS
    theta, r = model.solve_on_support(at.theta, at.loss_gradient, cuts)
    return theta, max(model.fall(theta, r), 0.0)


def _sweeps(entries: int) -> int:
    """Sweeps between two solves on the support, for Hessians with so many entries."""
    return int(min(max(tuning.SWEEP_FLOPS / entries, tuning.LEAST_SWEEPS), tuning.MOST_SWEEPS))


class _KinkedModel:
    """m with φ replaced by its tangent in |w|, and its minimiser for given signs.

    r stands for the gradient of the quadratic part throughout.
    """

    def __init__(self, H: Matrix, start: Evaluated, slopes: Vector, ridge: Vector) -> None:
        self.H, self.start, self.slopes, self.ridge = H, start, slopes, ridge
        self._size = np.abs(start.theta)
        # A fall of m that is less than this is rounding.
        self._rounding = 1e-16 * float(self._size @ (self.slopes + np.abs(start.loss_gradient)))

    def fall(self, theta: Vector, r: Vector) -> float:
        """By how much m is lower than at the start."""
        before, size = self.start, np.abs(theta)
        rise = 0.5 * float((theta - before.theta) @ (before.loss_gradient + r))
        rise += float((size - self._size) @ (self.slopes + 0.5 * self.ridge * (size + self._size)))
        return -rise

    def solve_on_support(
        self, theta: Vector, r: Vector, cuts: int = tuning.SUPPORT_CUTS
    ) -> tuple[Vector, Vector]:
        """The minimiser for the signs of θ, without those that would change; θ itself if that is no lower.

        On the way to the minimiser, coordinates that would cross zero stop there. Where all the way is too
        far for the model to fall, go a part of it, at least to the first crossing, and solve again on what is
        left.
        """
        fallen = self.fall(theta, r)
        for _ in range(cuts):
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
        """All the way, shorter parts of it, and what leads exactly to the first crossing."""
        first = float(np.min(-part[crossing] / step[crossing])) if crossing.any() else 0.0
        ratio = max(first, 0.25**tuning.SHORTER_STEPS) ** (1.0 / tuning.SHORTER_STEPS)
        shorter = [ratio**k for k in range(1, tuning.SHORTER_STEPS) if first < ratio**k < 1.0]
        # One rounding further, so that the coordinate that crosses first is at zero or beyond, and stops.
        return [1.0, *shorter, first * (1.0 + 1e-15)]

    def _at(self, support: NDArray[np.intp], values: Vector) -> tuple[Vector, Vector]:
        theta = np.zeros(len(self.H))
        theta[support] = values
        moves = theta - self.start.theta
        moved = np.flatnonzero(moves)
        # With few, reading their rows is cheaper than reading all of H.
        few = 3 * len(moved) < len(moves)
        return theta, self.start.loss_gradient + (moves[moved] @ self.H[moved] if few else self.H @ moves)

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


# A kink, several classes ----------------------------------------------------------------------------------


def minimise_groups(
    objective: Objective, H: Hessians, at: Evaluated, accuracy: float = tuning.MODEL_ACCURACY
) -> tuple[Vector, float]:
    """Sweeps over whole features, which find those that are zero; Newton's method on the others.

    A potential that is concave in the norm is replaced by its tangent, as ℓ1 with slopes of its own.
    """
    from majorant.solvers.newton.cd_kernels import descend_on_group_model

    C, p, _ = H.shape
    slopes = objective.tangent_slopes(at.theta)
    tangent = replace(objective, potential=L1(1.0), penalty_factor=slopes[:-1])
    units = 1.0 / _units(H, objective.eta)
    violations = column_norms(tangent.matrix(tangent.subgradient(at))) * units
    goal = accuracy * float(np.max(violations))
    sweeps = _sweeps(C * p**2)
    room = [np.empty(C) for _ in range(3)]
    here = at
    for _ in range(tuning.MODEL_ROUNDS):
        check()
        R, W = here.loss_gradient.reshape(C, p).copy(), here.theta.reshape(C, p).T.copy()
        worst = descend_on_group_model(H, R, W, slopes, objective.ridge, units, sweeps, goal, *room)
        here = Evaluated(np.ascontiguousarray(W.T).ravel(), np.nan, R.ravel())
        if worst <= goal:
            break
        here = _on_group_support(tangent, H, here)
    fall = _fall(tangent, at, here)
    return (here.theta, fall) if fall > 0.0 else (at.theta, 0.0)


def _on_group_support(tangent: Objective, H: Hessians, at: Evaluated) -> Evaluated:
    """Newton's steps on the features that are not zero, if m falls."""
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
    gradient = at.loss_gradient + _product(H, moved.ravel() - at.theta)
    return Evaluated(moved.ravel(), np.nan, gradient)
