r"""Minimisers of Φ on a few features, by Newton's method on copies of their columns.

Rows enter as slacks u = S^½(1 - v), of which the loss is Σ max(u, 0)². With the columns z_0 = S^½1 of the
intercept and z_j = S^½(x_j - x̄_j)/ℓ_j of the features, of unit length,

    u = S^½1 - y Σ_j a_j z_j,    ∇ = r a - 2 Z (y max(u, 0)),    H = 2 Z_A Z_Aᵀ + Diag(r),         (refit)

for a quadratic penalty ½ Σ r_j a_j²; A are the rows with u > 0, y their signs. (Centred columns change the
intercept alone; without an intercept they stay as they are.) The loss is quadratic until a row changes sides:
a step that changes none ends at the minimiser itself, and H is carried from step to step, and from support to
support, by the few rows that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.reweighted import spread
from majorant.status import Matrix, Vector

# A refit ends where Newton's model promises no larger fall, relative to Φ, or after so many steps.
EXACT = 1e-14
MAX_STEPS = 100
# The share of the promised fall that a step must reach, and the shortest step that is tried.
SUFFICIENT = 1e-4
SHORTEST = 1e-6
# A refit is given up while Φ exceeds its limit by more than this many times the fall that is promised: what is
# left of a fall is at most a few times what Newton's model says near the minimum. (With 10, no swap of the
# cells of benchmarks/selection.py was missed that refits to the end would have made.)
HOPE = 10.0
# Curvature that is added, relative to the largest, where columns depend on each other and nothing is penalised.
JITTER = 1e-13
# The share of the active rows that may change before H is computed anew.
MANY = 0.4

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Refit:
    """The minimiser of Φ on a support. The first axis of arrays runs over the classes of a joint problem."""

    support: Indices
    columns: Matrix
    """Z, a row per coefficient: the intercept first, then the features of the support."""
    ridge: Vector
    coef: Matrix
    """The coefficients a of these columns."""
    value: float
    slack: Matrix
    curvature: NDArray[np.float64]
    """2 Z_A Z_Aᵀ of every class, without the ridge."""

    def without(self, position: int) -> Refit:
        """The same without a feature of the support: no minimiser yet."""
        kept = np.delete(np.arange(len(self.ridge)), position + 1)
        return Refit(
            np.delete(self.support, position), self.columns[kept], self.ridge[kept], self.coef[:, kept],
            self.value, self.slack, self.curvature[:, kept[:, np.newaxis], kept],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Candidate:
    """A feature that may join a support, and what its column adds to the curvature there."""

    feature: int
    column: Vector
    ridge: float
    border: Matrix
    """2 Z_A z_A of every class."""
    diagonal: Vector
    """2 z_A·z_A of every class."""

    def joined_to(self, refit: Refit) -> Refit:
        """The support with the feature, whose coefficient is zero: no minimiser yet."""
        classes, size = refit.coef.shape
        columns, coef = np.empty((size + 1, len(self.column))), np.zeros((classes, size + 1))
        columns[:-1], columns[-1], coef[:, :-1] = refit.columns, self.column, refit.coef
        curvature = np.empty((classes, size + 1, size + 1))
        curvature[:, :-1, :-1] = refit.curvature
        curvature[:, :-1, -1] = curvature[:, -1, :-1] = self.border
        curvature[:, -1, -1] = self.diagonal
        return Refit(
            np.append(refit.support, self.feature), columns, np.append(refit.ridge, self.ridge), coef,
            refit.value, refit.slack, curvature,
        )  # fmt: skip


def solve_curvature(curvature: Matrix, ridge: Vector, right: Matrix) -> Matrix:
    """H⁻¹ times one vector or several."""
    H = curvature.copy()
    diagonal = np.einsum("ii->i", H)
    diagonal += ridge
    largest = float(np.max(diagonal, initial=0.0)) or 1.0
    jitter = JITTER * largest
    while True:
        diagonal += jitter
        _, solution, failed = dposv(H, right, lower=1)
        if not failed:
            return np.asarray(solution)
        jitter *= 100.0


def refit(start: Refit, root: Vector, labels: Sequence[Vector], limit: float = np.inf) -> Refit | None:
    """The minimiser of Φ on a support, from the coefficients and the curvature of the start.

    Parameters
    ----------
    start : Refit
        Not a minimiser; `slack` belongs to `curvature`, not to `coef`.
    root : array (n_rows,)
        S^½1.
    labels : sequence of arrays (n_rows,)
        The signs y of every class.
    limit : float
        A Φ that is known: the answer is None if the minimum is not below it.
    """
    total, parts = 0.0, []
    for y, coef, slack, curvature in zip(labels, start.coef, start.slack, start.curvature, strict=True):
        # What the classes before have is certain; the classes behind add something, too.
        found = _newton(start, root, y, coef, slack > 0.0, curvature, limit - total)
        if found is None:
            return None
        total += found[0]
        parts.append(found[1:])
    if not total < limit:
        return None
    coefs, slacks, curvatures = map(np.stack, zip(*parts, strict=True))
    return Refit(start.support, start.columns, start.ridge, coefs, total, slacks, curvatures)


def _newton(
    start: Refit,
    root: Vector,
    y: Vector,
    a: Vector,
    active: NDArray[np.bool_],
    curvature: Matrix,
    limit: float,
) -> tuple[float, Vector, Vector, Matrix] | None:
    """Φ, the coefficients, the slacks and the curvature of one class at the minimum, Eq. (refit)."""
    Z, ridge = start.columns, start.ridge
    u = root - y * (a @ Z)
    positive = np.maximum(u, 0.0)
    value = float(positive @ positive + 0.5 * (ridge @ (a * a)))
    for _ in range(MAX_STEPS):
        curvature, active = _updated(curvature, Z, active, u > 0.0), u > 0.0
        gradient = ridge * a - 2.0 * (Z @ (y * positive))
        step = solve_curvature(curvature, ridge, gradient)
        fall = 0.5 * float(gradient @ step)
        if fall <= EXACT * value:
            break
        if value - HOPE * fall > limit:
            return None
        along = y * (step @ Z)
        t = 1.0
        while t >= SHORTEST:
            moved = a - t * step
            slack = u + t * along
            positive = np.maximum(slack, 0.0)
            reached = float(positive @ positive + 0.5 * (ridge @ (moved * moved)))
            if reached <= value - SUFFICIENT * t * fall:
                break
            t *= 0.5
        else:
            break
        a, u, value = moved, slack, reached
        if t == 1.0 and np.array_equal(u > 0.0, active):
            break
    return value, a, u, _updated(curvature, Z, active, u > 0.0)


def _updated(curvature: Matrix, Z: Matrix, before: NDArray[np.bool_], now: NDArray[np.bool_]) -> Matrix:
    """2 Z_A Z_Aᵀ for other active rows A."""
    changed = np.flatnonzero(before != now)
    if not len(changed):
        return curvature
    if len(changed) > MANY * np.count_nonzero(now):
        E = Z[:, now]
        return 2.0 * (E @ E.T)
    E = Z[:, changed]
    return curvature + (E * np.where(now[changed], 2.0, -2.0)) @ E.T


class ColumnCache:
    """Columns z_j of the rows, centred and of unit length, copied out of X when they are first asked for.

    Parameters
    ----------
    objective : Objective
        With rows in memory and a quadratic penalty.
    """

    def __init__(self, objective: Objective) -> None:
        classes = objective.in_memory
        assert classes is not None
        self.rows: MemoryRows = classes[0]
        self._labels, weights = self.rows.labels_and_weights
        self.root: Vector = np.sqrt(weights)
        self.labels = [rows.labels_and_weights[0] for rows in classes]
        self._intercept = self.rows.blocks[0].b > 0.0
        lengths = np.sqrt(0.5 * spread(self.rows))
        self.usable = lengths > 0.0
        """Which features are not constant."""
        self.lengths: Vector = np.where(self.usable, lengths, 1.0)
        weights_of_penalty = objective.half_quadratic_weights(objective.start())
        self.ridge: Vector = weights_of_penalty / self.lengths**2
        self.capacity = max(64, self.rows.copy_budget // (8 * len(self.root)))
        """How many columns are kept beside those in use."""
        stats = self.rows.stats_at_zero
        sums = 0.5 * (stats.negative.gradient - stats.positive.gradient)[:-1]
        self.means = sums / float(weights.sum()) if self._intercept else np.zeros_like(sums)
        self._place = np.full(self.rows.n_features, -1, dtype=np.intp)
        self._buffer = np.empty((64, len(self.root)))
        self._count = 0

    def of(self, features: Indices) -> Matrix:
        """The columns of these features, a row each."""
        missing = features[self._place[features] < 0]
        if len(missing):
            if self._count + len(missing) > self.capacity:
                self._place.fill(-1)
                self._count, missing = 0, features
            self._add(missing)
        return self._buffer[self._place[features]]

    def _add(self, features: Indices) -> None:
        part = self.rows.columns(features)
        columns = np.concatenate([block.design()[:, :-1].T for block in part.blocks], axis=1) * self._labels
        if self._intercept:
            # From the entries themselves, which leave more digits where a feature is far from zero.
            self.means[features] = columns @ self.root / float(self.root @ self.root)
            columns -= self.means[features, np.newaxis] * self.root
        columns /= self.lengths[features, np.newaxis]
        end = self._count + len(features)
        if end > len(self._buffer):
            grown = np.empty((max(end, 2 * len(self._buffer)), len(self.root)))
            grown[: self._count] = self._buffer[: self._count]
            self._buffer = grown
        self._buffer[self._count : end] = columns
        self._place[features] = np.arange(self._count, end)
        self._count = end

    def at(self, support: Indices, theta: Matrix | None = None) -> Refit:
        """The minimiser on a support, from the coefficients of θ, a row per class, or from zero."""
        Z = np.empty((len(support) + 1, len(self.root)))
        Z[0] = self.root if self._intercept else 0.0
        Z[1:] = self.of(support)
        coef = np.zeros((len(self.labels), len(Z)))
        if theta is not None:
            w = theta[:, support]
            coef[:, 1:] = w * self.lengths[support]
            coef[:, 0] = theta[:, -1] + w @ self.means[support]
        curvature = 2.0 * (Z @ Z.T)
        slack = np.ones((len(coef), len(self.root)))
        every = np.stack([curvature] * len(coef))
        ridge = np.append(0.0, self.ridge[support])
        start = Refit(support, Z, ridge, coef, np.inf, slack, every)
        found = refit(start, self.root, self.labels)
        assert found is not None
        return found

    def theta(self, point: Refit) -> Matrix:
        """θ of a point, a row per class, in the units of the rows."""
        theta = np.zeros((len(point.coef), self.rows.n_features + 1))
        w = point.coef[:, 1:] / self.lengths[point.support]
        theta[:, point.support] = w
        if self._intercept:
            theta[:, -1] = point.coef[:, 0] - w @ self.means[point.support]
        return theta
