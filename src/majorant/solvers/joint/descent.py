"""A kink at zero: descent on whole features, among those that may matter, and Newton's method on the support.

The joint counterpart of `newton/columns.py`: look at the gradient of all features, take those that may
matter, descend on them, repeat. The descent finds out which features are zero, and is extrapolated as
Anderson does; but it crawls where features are correlated. On those that are not zero Φ is smooth, and as
much effort as into the sweeps goes into Newton's equations there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.joint import JointObjective, lengths
from majorant.rows.columns import Columns
from majorant.solvers.joint.smooth import JointQuadratic, newton_direction
from majorant.solvers.newton.columns import FIRST_FEATURES, INNER_ACCURACY, ROUNDS, worth_looking_at
from majorant.solvers.search import step_towards
from majorant.status import Evaluated, Iterate, Matrix, Underway, Vector

# Sweeps from one extrapolation to the next.
SWEEPS = 5
# How well Newton's equations on the support are solved, if that does not take too many steps.
ACCURACY = 0.01
STEPS = (10, 250)
NEWTON_STEPS = 2


def group_iterates(objective: JointObjective, theta: Vector) -> Iterator[Iterate]:
    """Φ never rises: each step of the descent is taken only if it falls, and so is each extrapolation."""
    groups = _Groups(objective)
    at = objective.evaluate(theta)
    goal = np.inf
    while True:
        yield at
        violations = objective.violations(at)
        goal = min(0.2 * float(np.max(violations)), 0.3 * goal)
        groups.begin(at, violations[:-1], goal)
        for _ in range(ROUNDS):
            if groups.descend(0.5 * goal) <= goal:
                break
            groups.newton()
            yield Underway(groups.theta, objective.penalty(groups.theta) + groups.loss)
        at = objective.evaluate(groups.theta)


class _Groups:
    """Some features with their coefficients for all classes, and the slacks, a column per class."""

    def __init__(self, objective: JointObjective) -> None:
        from majorant.solvers.joint import sweeps

        self.sweeps = sweeps
        assert objective.in_memory is not None
        self.objective, self.rows = objective, objective.in_memory
        first = self.rows[0]
        labels = np.stack([np.concatenate([block.y for block in rows.blocks]) for rows in self.rows])
        self.codes = labels.argmax(axis=0)
        self.signs = labels.T
        s = np.concatenate([block.s for block in first.blocks])
        self.root = np.sqrt(s) * first.blocks[0].b
        self.chosen = np.zeros(0, dtype=np.intp)
        # The columns of S^½X: every row of the same sign.
        self.plain = first.relabelled(np.ones(len(s)), s)
        self.weights = np.sqrt(s)

    def begin(self, at: Evaluated, violations: Vector, goal: float) -> None:
        """Start at θ, with other features if some that were not taken violate."""
        self.theta = at.theta
        parts = zip(self.rows, self.objective.matrix(at.theta), strict=True)
        margins = [np.concatenate([block.image(row) for block in part.blocks]) for part, row in parts]
        self.u = np.ascontiguousarray((self.weights * (1.0 - np.stack(margins))).T)
        outside = np.ones(len(violations), dtype=np.bool_)
        outside[self.chosen] = False
        if np.any(violations[outside] > goal) or not len(self.chosen):
            self.chosen = self._choose(at, violations)
            self.columns = Columns.of(self.plain, self.chosen)
            self.scale = self.objective.violation_scale[self.chosen]

    def _choose(self, at: Evaluated, violations: Vector) -> NDArray[np.intp]:
        """Those that are not zero or may become so; the worst violators first if there are too many."""
        objective = self.objective
        needed = (objective.lengths(at.theta) > 0.0) | (objective.factor == 0.0)
        pulls = lengths(objective.matrix(at.loss_gradient)[:, :-1])
        limits = objective.single.kink_slopes[:-1]
        return worth_looking_at(needed, pulls, limits, violations, FIRST_FEATURES)

    @property
    def loss(self) -> float:
        """Σ max(u, 0)²."""
        active = np.maximum(self.u, 0.0).ravel()
        return float(active @ active)

    def descend(self, goal: float) -> float:
        """A sweep over all, and some over those that are near to moving; the violation that the first met.

        A potential that is concave in the length is replaced by its tangent, as ℓ1 with slopes of its own.
        """
        theta = self.objective.matrix(self.theta)
        W, beta = np.ascontiguousarray(theta[:, self.chosen].T), theta[:, -1].copy()
        self.slopes = self._tangent_slopes()
        near = np.zeros(len(self.chosen), dtype=np.bool_)
        first = self._sweep(W, beta, np.arange(len(self.chosen)), near)
        order = np.flatnonzero(near)
        enough = max(INNER_ACCURACY * first, goal)
        spent, once = 0, int(self.columns.counts[order].sum()) + len(self.root)
        while spent <= len(self.columns.data):
            trail = [self._point(W, beta, order)]
            for _ in range(SWEEPS):
                worst = self._sweep(W, beta, order, near)
                trail.append(self._point(W, beta, order))
                spent += once
                if worst <= enough:
                    break
            if worst <= enough:
                break
            self._extrapolate(trail, W, beta, order)
        moved = np.zeros_like(theta)
        moved[:, self.chosen], moved[:, -1] = W.T, beta
        self.theta = moved.ravel()
        self.spent = len(self.columns.data) + spent
        return first

    def newton(self) -> None:
        """Some steps with the exact curvature of the active rows, on the support as it is."""
        whole = self.objective
        support = np.flatnonzero((whole.lengths(self.theta) > 0.0) | (whole.factor == 0.0))
        if not len(support):
            return
        first = self.rows[0].columns(support)
        rows = [first, *(first.relabelled(y, self.weights**2) for y in self.signs.T[1:])]
        objective = JointObjective(rows, whole.potential, whole.eta, whole.factor[support])
        where = np.append(support, whole.single.size - 1)
        at = objective.evaluate(whole.matrix(self.theta)[:, where].ravel())
        quadratic = JointQuadratic(objective, at.theta)
        entries = sum(int(block.column_counts.sum()) for block in first.blocks)
        steps = int(np.clip(self.spent / (2 * entries + len(self.root)), *STEPS))
        if quadratic.gram:
            steps = STEPS[1]  # which cost next to nothing
        for _ in range(NEWTON_STEPS):
            gradient = objective.gradient(at)
            d = -newton_direction(objective, quadratic, at.theta, gradient, ACCURACY, steps)
            target, predicted = at.theta + d, -float(gradient @ d)
            moved, value = step_towards(objective, quadratic, at.theta, at.value, target, predicted)
            if at.value - value <= 1e-8 * value:
                break
            at = objective.evaluate(moved)
        theta = whole.matrix(self.theta.copy())
        theta[:, where] = objective.matrix(quadratic.theta)
        self.theta = theta.ravel()
        margins = [np.concatenate([piece.v for piece in part.parts]) for part in quadratic.parts]
        self.u = np.ascontiguousarray((self.weights * (1.0 - np.stack(margins))).T)

    def _tangent_slopes(self) -> Vector:
        single, potential = self.objective.single, self.objective.potential
        if potential.convex:
            return single.kink_slopes[:-1][self.chosen]
        t = self.objective.lengths(self.theta)[self.chosen]
        slopes = np.where(t == 0.0, potential.slope_at_zero, potential.derivative(t))
        return np.asarray(single.factor[self.chosen] * slopes)

    def _sweep(self, W: Matrix, beta: Vector, order: NDArray[np.intp], near: NDArray[np.bool_]) -> float:
        check()
        room = (np.empty(len(beta)) for _ in range(3))
        worst = self.sweeps.sweep(
            self.columns.data, self.columns.indices, self.columns.starts, self.codes, self.u, W, self.slopes,
            self.objective.eta, self.scale, order, near, *room,
        )  # fmt: skip
        self.sweeps.centre(self.root, self.codes, self.u, beta)
        return float(worst)

    def _point(self, W: Matrix, beta: Vector, order: NDArray[np.intp]) -> tuple[Vector, Matrix]:
        return np.append(W[order].ravel(), beta), self.u.copy()

    def _extrapolate(
        self, trail: list[tuple[Vector, Matrix]], W: Matrix, beta: Vector, order: NDArray[np.intp]
    ) -> None:
        """The combination of the iterates that a sweep would move least, if Φ falls there."""
        points = np.stack([point for point, _ in trail])
        moves = np.diff(points, axis=0)
        products = moves @ moves.T
        products.flat[:: len(moves) + 1] += 1e-12 * np.trace(products) + np.finfo(float).tiny
        try:
            shares = np.linalg.solve(products, np.ones(len(moves)))
        except np.linalg.LinAlgError:
            return
        shares /= shares.sum()
        ahead = shares @ points[1:]
        u = np.tensordot(shares, np.stack([slacks for _, slacks in trail[1:]]), axes=1)
        if self._value(ahead, u, order) < self._value(*trail[-1], order):
            W[order] = ahead[: -len(beta)].reshape(-1, len(beta))
            beta[:] = ahead[-len(beta) :]
            self.u = u

    def _value(self, point: Vector, u: Matrix, order: NDArray[np.intp]) -> float:
        W = point[: -u.shape[1]].reshape(-1, u.shape[1])
        active = np.maximum(u, 0.0).ravel()
        penalty = self.slopes[order] @ np.sqrt(np.einsum("jc,jc->j", W, W))
        return float(active @ active + penalty + 0.5 * self.objective.eta * np.sum(W * W))
