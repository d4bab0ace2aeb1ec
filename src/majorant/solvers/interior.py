r"""A primal-dual interior-point method, for problems that are small and badly conditioned.

Newton's method on Φ is slow if weights, scales or strengths span many orders of magnitude, or if columns are
far from zero. This method takes twenty to sixty steps on most such problems, each with one dense
factorisation, and has dual variables whose lower bound does not suffer from cancellation. `newton` uses it
when its own steps do not converge (`solvers/newton/__init__.py`).

It works on the rows of `dense.py`, centred and scaled. For each class, with Z these rows times their labels
(the last column e = √s belongs to the intercept), the problem is

    min Σ_k max(e_k - (Zθ)_k, 0)² + Σ_i κ_i (√(‖W_i‖² + δ_i²) - δ_i) + q_i/2 ‖W_i‖²,

where W_i are the coefficients of feature i, one for each class. ℓ1 has δ = 0, ℓ2 has κ = 0. Row k has a dual
variable a_k ≥ 0 and the distance r_k ≥ 0 to its constraint. A feature with a kink has a bound τ_i of its norm
and dual variables T_i and ζ_i, in the second-order cones ‖(W_i, δ_i)‖ ≤ τ_i and ‖(T_i, ζ_i)‖ ≤ κ_i:

    r = Zθ - e + a/2,    (Zᵀa)_i = q_i W_i + T_i,    Σ_k e_k y_k a_k = 0,
    a_k r_k = μ,    τ_i T_i = κ_i W_i,    τ_i ζ_i = κ_i δ_i,    κ_i τ_i - T_i·W_i - δ_i ζ_i = μ.

All equations are linearised together, those of a cone in the scaling of Nesterov and Todd, with Mehrotra's
predictor and corrector, and μ decreases to zero. Eliminating a, r, τ, T and ζ leaves as many equations as θ
has entries, or as there are rows, if these are fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.dense import TINY, ScaledRows, equations, norms, small_enough
from majorant.status import Evaluated, Iterate, Matrix, Provisional, Vector

MAX_STEPS = 100
# The number of iterates of another method after which this method takes over; plus one for every
# ENTRIES_OF_A_STEP entries of X, since with many rows a step of this method takes longer than many of the
# other. (On mushrooms, with 0.9 million entries, Newton takes up to 21 steps and 35 ms, this method half a
# second.)
PATIENCE_WITH_OTHERS = 12
ENTRIES_OF_A_STEP = 10_000
# How much a provisional iterate counts if the rows are not in memory: it costs no pass over them.
PROVISIONAL_SHARE = 0.25
# The most iterates of the other method after this one, which make the result more accurate.
FINISHING = 4
# The method ends after this many steps in which neither the gap nor μ has halved: the rest is rounding. If
# the relative gap is below ACCURATE, only the gap counts, and PATIENCE_IF_ACCURATE steps are enough.
PATIENCE = 20
ACCURATE = 1e-8
PATIENCE_IF_ACCURATE = 4
# If Φ is below this share of Φ at zero, Φ may be exactly 0 at a θ that is longer by the factor 1 + BEYOND.
VANISHING = 1e-20
BEYOND = 1e-6
# The relative gap at which the method ends.
GAP = 1e-11
# The share of the largest feasible step that is taken.
TO_BOUNDARY = 0.99
# A coefficient whose penalty is below this multiple of μ is set to zero.
ZERO_WIDTHS = 30.0
# The largest width κδ of a cone, relative to Φ.
WIDE = 1e6
# The gradient along a feature without penalty, relative to its largest possible value, that is rounding.
RESIDUE = 1e-9
# The relative size of a singular value that counts as zero.
RANK = 1e-13
# The rounding of a bound, relative to the sums whose difference it is.
ROUNDING = 1e-13
EPSILON = float(np.finfo(float).eps)


def suits(objective: Objective) -> bool:
    """Whether the problem is small enough, and this method can handle its penalty."""
    potential = objective.potential
    known = potential.convex and (potential.quadratic or potential.kink_width is not None)
    return known and small_enough(objective)


def or_interior_point(
    objective: Objective, theta: Vector, iterates_from: Callable[[Vector], Iterator[Iterate]]
) -> Iterator[Iterate]:
    """The iterates of another method from θ; the interior point takes over if they stall or are too many.

    The lowest point of both methods is kept. At the end the other method makes some more steps from there,
    since its last digits are more accurate.
    """
    if not suits(objective):
        yield from iterates_from(theta)
        return
    best: Evaluated | None = None
    lowest = Provisional(theta, math.inf)
    rows = objective.rows
    in_memory = isinstance(rows, MemoryRows)
    if not in_memory and rows.n_samples <= rows.n_features:
        # The other methods would form matrices of all features: start with the interior point.
        best = objective.evaluate(theta)
        yield best
    patience = float(PATIENCE_WITH_OTHERS) + rows.n_samples * rows.n_features // ENTRIES_OF_A_STEP
    for at in iterates_from(theta) if best is None else ():
        if isinstance(at, Evaluated):
            if best is not None and np.array_equal(at.theta, best.theta):
                break
            if best is None or at.value <= best.value:
                best = at
        elif isinstance(at, Provisional) and at.value < lowest.value:
            lowest = at
        yield at
        patience -= 1.0 if in_memory or isinstance(at, Evaluated) else PROVISIONAL_SHARE
        if patience <= 0 and best is not None:
            break
    assert best is not None
    if lowest.value < best.value:
        best = objective.evaluate(lowest.theta)
    bound = -math.inf
    for point in interior_point(objective):
        if isinstance(point, Evaluated):
            bound = point.lower_bound
            best = point if point.value < best.value else best
        yield Provisional(best.theta, best.value)
    for at in islice(iterates_from(best.theta), FINISHING if in_memory else 0):
        if isinstance(at, Evaluated) and at.value < best.value:
            best = at
        yield Provisional(best.theta, best.value)
    while True:
        yield replace(best, lower_bound=bound)


def interior_point(objective: Objective) -> Iterator[Iterate]:
    """Provisional points, and at the end the best one, with the best lower bound of the minimum.

    Only the last point is evaluated on the rows of the problem.
    """
    best, bound = Provisional(objective.start(), math.inf), -math.inf
    for theta, value, bound in InteriorPoint(objective).iterates():  # noqa: B007 - the last bound is the best
        best = Provisional(theta, value) if value < best.value else best
        yield best
    yield replace(objective.evaluate(best.theta), lower_bound=bound)


class InteriorPoint(ScaledRows):
    """The method, in centred and scaled coordinates."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.objective = objective
        potential, factor = objective.potential, objective.factor
        max_slope = 0.0 if potential.quadratic else potential.max_slope
        ridge = objective.quadratic_weights if potential.quadratic else objective.eta
        self.slope = max_slope * factor * self.inverse / self.scale
        self.width = (potential.kink_width or 0.0) * self.unit
        self.ridge = ridge * self.inverse**2 / self.scale
        # The features without penalty.
        self.free = (self.ridge == 0.0) & (self.slope == 0.0) & (self.unit > 0.0)
        # The features that have a cone, and the ridges, which include those of wide cones.
        self.kinked = np.flatnonzero(self.slope > 0.0)
        self.curved = self.ridge.copy()

    # The value and the bound -------------------------------------------------------------------

    def _slack(self, theta: Matrix) -> Matrix:
        return np.asarray(np.maximum(self.e[:, np.newaxis] - self.y * (self.Z @ theta), 0.0))

    def value(self, theta: Matrix) -> float:
        """Φ(θ) / scale."""
        return float(np.sum(self._slack(theta) ** 2)) + self.objective.penalty(self.raw(theta)) / self.scale

    def _projected(self, a: Matrix) -> Matrix:
        """The nearest dual variables whose Zᵀa is zero for features without penalty and the intercept.

        Distances are in units of the dual variables, so that these stay positive. Singular vectors are used,
        since in the normal equations nearly dependent features would lose their difference.
        """
        columns = self.Z[:, np.append(self.free, self.intercept)]
        projected = np.zeros_like(a)
        for c in range(a.shape[1]):
            root = np.sqrt(a[:, c])
            weighted = (root * self.y[:, c])[:, np.newaxis] * columns
            sizes = norms(weighted.T)
            U, singular, _ = np.linalg.svd(weighted / np.where(sizes > 0.0, sizes, 1.0), full_matrices=False)
            U = U[:, singular > RANK * singular[0]]
            projected[:, c] = root * np.maximum(root - U @ (U.T @ root), 0.0)
        return projected

    def bound(self, a: Matrix, theta: Matrix, *, projected: bool = False) -> float:
        """A lower bound of the minimum from the dual variables of the rows, made feasible (`duality.py`)."""
        if self.intercept and not projected:
            weights = self.e[:, np.newaxis] * a
            positive, negative = (np.sum(weights * (self.y * sign > 0.0), axis=0) for sign in (1.0, -1.0))
            own = np.where(self.y > 0.0, positive, negative)
            a = a * (np.minimum(positive, negative) / np.maximum(own, TINY))
        U = self.Z[:, :-1].T @ (self.y * a)
        linear, square = float(self.e @ a.sum(axis=1)), float(np.sum(a * a)) / 4.0
        size = norms(U)
        if np.any(size[self.free] > RESIDUE * math.sqrt(square)):
            return 0.0
        if self.free.any() and not projected:
            return self.bound(self._projected(a), theta, projected=True)
        # Where |u_i| exceeds the slope of the kink by rounding, u_i is cut, which costs at most 2 |excess
        # w_i|.
        beyond = np.where((self.ridge == 0.0) & (self.slope > 0.0), np.maximum(size - self.slope, 0.0), 0.0)
        beyond[beyond > ROUNDING * math.sqrt(square)] = 0.0
        linear -= 2.0 * float(beyond @ norms(theta[:-1]))
        U *= (self.unit * (1.0 - beyond / np.maximum(size, TINY)))[:, np.newaxis]
        gradient = -self.scale * np.vstack([U, np.zeros(U.shape[1])]).T
        W = self.objective.matrix(self.raw(theta))
        # The bound is Σ α minus other sums. At the minimum, Σ α is at most twice the bound, since
        # w φ'(w) ≤ 2 φ(w) for all potentials here: the sums together are at most three times as large.
        value = self.objective.dual.value(W, self.scale * linear, self.scale * square, gradient)
        return (1.0 - 3.0 * ROUNDING) * value / self.scale

    # The method --------------------------------------------------------------------------------

    def iterates(self) -> Iterator[tuple[Vector, float, float]]:
        """Points in the user's coordinates, with Φ and a lower bound, until rounding allows no progress."""
        state = self._start()
        value, bound, halved, least = math.inf, 0.0, 0, (math.inf, math.inf)
        for step in range(MAX_STEPS):
            state = self._without_wide_cones(state, min(value, 1.0))
            mu = state.complementarity()
            theta = self._with_zeros(state.theta, mu)
            here = self.value(theta)
            # The dual variables of the method, and those that follow from θ: either may be more accurate.
            bounds = self.bound(state.a, state.theta), self.bound(2.0 * self._slack(theta), theta)
            value, bound = min(value, here), max(bound, *bounds)
            yield self.raw(theta), self.scale * here, self.scale * bound
            gap = value - bound
            accurate = gap <= ACCURATE * value
            if gap <= 0.5 * least[0] or (mu <= 0.5 * least[1] and not accurate):
                least, halved = (min(gap, least[0]), min(mu, least[1])), step
            patience = PATIENCE_IF_ACCURATE if accurate else PATIENCE
            if gap <= GAP * value or mu <= TINY or step - halved >= patience:
                return
            if value < VANISHING:
                beyond = (1.0 + BEYOND) * theta
                beyond[:-1][self.slope + self.ridge > 0.0] = 0.0
                if self.value(beyond) == 0.0:
                    yield self.raw(beyond), 0.0, 0.0
                    return
            try:
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                    state = self._step(state, mu)
            except np.linalg.LinAlgError:
                return
            if not all(np.all(np.isfinite(part)) for part in state):
                return

    def _start(self) -> _State:
        (n, p), C = self.Z.shape, self.y.shape[1]
        a, r = np.full((n, C), 2.0), np.ones((n, C))
        slope, width = self.slope[self.kinked], self.width[self.kinked]
        primal, dual = np.zeros((2, len(self.kinked), C + 2))
        dual[:, 0], primal[:, -1] = slope, width
        # A point on the central path, with μ = 2 for cones and rows.
        primal[:, 0] = 1.0 / slope + np.hypot(1.0 / slope, width)
        dual[:, -1] = -slope * width / primal[:, 0]
        return _State(np.zeros((p, C)), a, r, primal, dual)

    def _without_wide_cones(self, state: _State, value: float) -> _State:
        """Replace cones by ridges where ‖W_i‖ is so small beside δ that the penalty is quadratic.

        If Φ ≤ value, the penalty is at most `value` as well, and ‖W_i‖² ≤ 2 δ value/κ is small beside δ². In
        such a cone rounding errors would dominate.
        """
        wide = self.slope[self.kinked] * self.width[self.kinked] > WIDE * value
        if not wide.any():
            return state
        ridges = self.kinked[wide]
        self.curved[ridges] += self.slope[ridges] / self.width[ridges]
        self.kinked = self.kinked[~wide]
        return state._replace(primal=state.primal[~wide], dual=state.dual[~wide])

    def _with_zeros(self, theta: Matrix, mu: float) -> Matrix:
        """θ with zeros for coefficients of the size of μ, if the kink is not rounded and Φ does not rise."""
        zero = (self.width == 0.0) & (self.slope * norms(theta[:-1]) <= ZERO_WIDTHS * mu)
        rounded = theta.copy()
        rounded[:-1][zero & (self.slope > 0.0)] = 0.0
        return rounded if self.value(rounded) <= (1.0 + GAP) * self.value(theta) else theta

    def _step(self, state: _State, mu: float) -> _State:
        """One step of all variables."""
        theta, a, r, primal, dual = state
        Z, y, W = self.Z, self.y, theta[:-1]
        C, kinked = y.shape[1], self.kinked
        cones = _Cones(primal, dual)
        weight = 1.0 / (0.5 + r / a)
        curvature = self.curved[:, np.newaxis, np.newaxis] * np.eye(C)
        curvature[kinked] += cones.curvature
        solve = equations(Z, weight, curvature)
        residual = y * (Z @ theta) - self.e[:, np.newaxis] + 0.5 * a - r
        right = Z.T @ (y * a)
        right[:-1] -= self.curved[:, np.newaxis] * W
        right[kinked] += dual[:, 1:-1]  # which is -T

        def direction(row_target: Matrix | float, cone_target: Matrix) -> _State:
            g = (row_target - a * r) / a - residual
            wanted = right + Z.T @ (y * weight * g)
            wanted[kinked] += cones.moves(np.zeros((len(kinked), C)), cone_target)[1][:, 1:-1]
            d = solve(wanted)
            da = weight * (g - y * (Z @ d))
            dr = (row_target - a * r - r * da) / a
            return _State(d, da, dr, *cones.moves(d[kinked], cone_target))

        predicted = direction(0.0, -dual)
        t = predicted.longest_from(state)
        # Mehrotra's rule: the longer the step without centring, the less centring.
        target = (1.0 - t) ** 3 * mu
        moved = direction(
            target - predicted.a * predicted.r,
            target * cones.inverse - dual - cones.second_order(predicted.primal, predicted.dual),
        )
        t = min(1.0, TO_BOUNDARY * moved.longest_from(state))
        return _State(*(part + t * step for part, step in zip(state, moved, strict=True)))


class _State(NamedTuple):
    """All variables, or a step of them."""

    theta: Matrix
    a: Matrix
    r: Matrix
    primal: Matrix
    """(τ_i, W_i, δ_i) for every feature with a kink."""
    dual: Matrix
    """(κ_i, -T_i, -ζ_i)."""

    def complementarity(self) -> float:
        """μ, the mean over rows and cones."""
        products = np.sum(self.a * self.r) + np.sum(self.primal * self.dual)
        return float(products) / (self.a.size + len(self.primal))

    def longest_from(self, state: _State) -> float:
        """The largest multiple of this step, at most 1, that keeps all variables in their cones."""
        return min(
            1.0,
            _to_boundary(state.a, self.a),
            _to_boundary(state.r, self.r),
            _to_cone(state.primal, self.primal),
            _to_cone(state.dual, self.dual),
        )


def _to_boundary(x: Matrix, d: Matrix) -> float:
    """The largest t for which x + t d is non-negative."""
    falling = d < 0.0
    return float(np.min(-x[falling] / d[falling], initial=math.inf))


def _to_cone(x: Matrix, d: Matrix) -> float:
    """The largest t for which every x + t d is in its second-order cone."""
    a, b, c = _minkowski(d, d), _minkowski(x, d), np.maximum(_minkowski(x, x), 0.0)
    # The first root of a t² + 2 b t + c, and where the first component changes sign.
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(b < 0.0, c / (root - b), np.where(a < 0.0, (-b - root) / a, math.inf))
    first = np.where((b * b < a * c) & (a > 0.0), math.inf, first)
    return min(float(np.min(first, initial=math.inf)), _to_boundary(x[:, :1], d[:, :1]))


def _minkowski(x: Matrix, y: Matrix) -> Vector:
    """x_0 y_0 - x_1·y_1 for every row; if x is y, as a product, which does not cancel."""
    if x is y:
        size = np.sqrt(np.einsum("im,im->i", x[:, 1:], x[:, 1:]))
        return np.asarray((x[:, 0] - size) * (x[:, 0] + size))
    return np.asarray(x[:, 0] * y[:, 0] - np.einsum("im,im->i", x[:, 1:], y[:, 1:]))


class _Cones:
    """The second-order cones of the features with a kink, in the scaling of Nesterov and Todd.

    For s = (τ, W, δ) and z = (κ, -T, -ζ), both inside their cones, there is a symmetric B with B⁻¹s = Bz = λ.
    The steps satisfy dz + B⁻²ds = target, with dκ = dδ = 0. Eliminating dτ leaves dT = E dW + dT₀, where dT₀
    is the step for dW = 0.
    """

    def __init__(self, s: Matrix, z: Matrix) -> None:
        # Without the lower limit, rounding could put a point on the boundary of its cone.
        s_size, z_size = (np.sqrt(np.maximum(_minkowski(x, x), EPSILON * x[:, 0] ** 2)) for x in (s, z))
        s_unit, z_unit = s / s_size[:, np.newaxis], z / z_size[:, np.newaxis]
        gamma = np.sqrt(0.5 * (1.0 + np.einsum("im,im->i", s_unit, z_unit)))
        flip = np.where(np.arange(s.shape[1]) > 0, -1.0, 1.0)
        b = (s_unit + flip * z_unit) / (2.0 * gamma)[:, np.newaxis]
        eta = np.sqrt(s_size / z_size)[:, np.newaxis, np.newaxis]
        # s⁻¹, for which s ∘ s⁻¹ is the unit.
        self.inverse = flip * s / (s_size**2)[:, np.newaxis]
        # B = η (b_0 b_1ᵀ; b_1 I + b_1b_1ᵀ/(1 + b_0)) with the scaling point b; B⁻¹ has -b_1 and η⁻¹ instead.
        B = np.eye(s.shape[1]) + b[:, :, np.newaxis] * b[:, np.newaxis, :] / (1.0 + b[:, :1, np.newaxis])
        B[:, 0, :] = B[:, :, 0] = b
        self._B, self._B_inverse = eta * B, flip[:, np.newaxis] * B * flip / eta
        flipped = flip * b
        self._M = (2.0 * flipped[:, :, np.newaxis] * flipped[:, np.newaxis, :] - np.diag(flip)) / eta**2
        self._lam = _times(self._B_inverse, s)
        # E = M_WW - M_W0 M_0W / M_00, written without differences: b_0² - ‖b_W‖² - b_δ² = 1.
        along = b[:, 1:-1] / np.maximum(norms(b[:, 1:-1]), TINY)[:, np.newaxis]
        outer = along[:, :, np.newaxis] * along[:, np.newaxis, :]
        share = (1.0 + 2.0 * b[:, -1] ** 2) / (2.0 * b[:, 0] ** 2 - 1.0)
        E = np.eye(along.shape[1]) - outer + share[:, np.newaxis, np.newaxis] * outer
        self.curvature = E / eta**2

    def moves(self, dW: Matrix, target: Matrix) -> tuple[Matrix, Matrix]:
        """The steps ds and dz for the step dW."""
        ds = np.zeros_like(target)
        ds[:, 1:-1] = dW
        ds[:, 0] = (target[:, 0] - np.einsum("ic,ic->i", self._M[:, 0, 1:-1], dW)) / self._M[:, 0, 0]
        dz = target - _times(self._M, ds)
        dz[:, 0] = 0.0
        return ds, dz

    def second_order(self, ds: Matrix, dz: Matrix) -> Matrix:
        """The second-order term B⁻¹x of the target, where λ ∘ x = B⁻¹ds ∘ B dz."""
        u, v, lam = _times(self._B_inverse, ds), _times(self._B, dz), self._lam
        product = u[:, :1] * v + v[:, :1] * u
        product[:, 0] = np.einsum("im,im->i", u, v)
        x = np.empty_like(product)
        x[:, 0] = _minkowski(lam, product) / np.maximum(_minkowski(lam, lam), TINY)
        x[:, 1:] = (product[:, 1:] - lam[:, 1:] * x[:, :1]) / lam[:, :1]
        return _times(self._B_inverse, x)


def _times(A: NDArray[np.float64], x: Matrix) -> Matrix:
    """The product of every cone's matrix with its vector."""
    return np.asarray(np.einsum("imn,in->im", A, x))
