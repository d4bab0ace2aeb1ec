r"""Minimisers of Φ on a few features, by Newton's method on copies of their columns.

Rows enter as slacks u = S^½(1 - v), of which the loss is Σ max(u, 0)². With the columns z_0 = S^½1 of the
intercept and z_j = S^½(x_j - x̄_j)/ℓ_j of the features, of unit length,

    u = S^½1 - y Σ_j a_j z_j,    ∇ = r a - 2 Z (y max(u, 0)),    H = 2 Z_A Z_Aᵀ + Diag(r),         (refit)

for a quadratic penalty ½ Σ r_j a_j²; A are the rows with u > 0, y their signs. (Centred columns change the
intercept alone; without an intercept they stay as they are.) The loss is quadratic until a row changes sides:
a step that changes none ends at the minimiser itself. H is carried from step to step by the rows that change.

A search for features refits many variants of one support at a time: without one of its features, or with
another one in its place. They share Z and the start of H, so that all products with Z are products of
matrices, and one step of all variants is about as many calls of numpy as one step of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from majorant.status import Matrix, Vector

# A refit ends where Newton's model promises no larger fall, relative to Φ, or after this number of steps.
EXACT = 1e-14
MAX_STEPS = 100
# The share of the promised fall that a step must reach, and the shortest step that is tried.
SUFFICIENT = 1e-4
SHORTEST = 1e-6
# A variant is given up while Φ exceeds its limit by more than this many times the fall that Newton's model
# promises, since that model is nearly right so near the minimum.
HOPE = 10.0
# Curvature that is added, relative to the largest, for columns that depend on each other without a penalty.
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
    """r."""
    coef: Matrix
    """a."""
    value: float
    slack: Matrix
    """u."""
    curvature: NDArray[np.float64]
    """2 Z_A Z_Aᵀ."""


@dataclass(frozen=True, eq=False)
class Added:
    """The features that join the support, one for each variant."""

    columns: Matrix
    ridge: Vector
    border: NDArray[np.float64]
    """2 Z_A z_A of every class and variant, for the rows that are active at the refit."""
    diagonal: NDArray[np.float64]
    """2 z_A·z_A of every class and variant."""


@dataclass(frozen=True, eq=False)
class Variants:
    """The minima of Φ for variants of a support."""

    values: Vector
    """Infinity for variants that were given up."""
    coef: NDArray[np.float64]
    """a of every class and variant: last that of the feature that joins, and 0 for one that left."""
    slack: NDArray[np.float64]
    """u of every class and variant."""


def solve_curvature(curvature: Matrix, ridge: Vector, right: Matrix, removed: int = 0) -> Matrix:
    """H⁻¹ times one vector or several, without the coefficient `removed` (0: with all)."""
    H = curvature.copy(order="C")
    diagonal = H.reshape(-1)[:: len(H) + 1]
    diagonal += ridge
    jitter = JITTER * (float(diagonal.max()) or 1.0)
    if removed:
        H[removed], H[:, removed], right = 0.0, 0.0, right.copy()
        right[removed], diagonal[removed] = 0.0, 1.0
    while True:
        diagonal += jitter
        _, solution, failed = dposv(H.T, right)  # which LAPACK reads as it is: H is symmetric
        if not failed:
            return np.asarray(solution)
        jitter *= 100.0


def refit_variants(
    at: Refit,
    root: Vector,
    labels: Sequence[Vector],
    removed: Indices,
    coef: NDArray[np.float64],
    added: Added | None = None,
    limit: float = math.inf,
) -> Variants:
    """The minimisers of Φ on variants of a support.

    Parameters
    ----------
    at : Refit
        The minimiser on the support itself.
    root : array (n_rows,)
        S^½1.
    labels : sequence of arrays (n_rows,)
        The signs y of every class.
    removed : array of int (n_variants,)
        The coefficient that each variant does without; 0 for none.
    coef : array (n_classes, n_variants, n_coefficients)
        Where to start.
    added : Added, optional
        The features that join.
    limit : float
        Variants whose Φ will not fall below it need not be finished.
    """
    values, coefs, slacks = np.zeros(len(removed)), [], []
    for c, y in enumerate(labels):
        newton = _Newton(at, c, root, y, removed, coef[c], added)
        # What the classes before have come to is certain; those behind can only add to it.
        newton.run(limit - values)
        values = values + newton.values
        coefs.append(newton.found)
        slacks.append(newton.slacks)
    return Variants(values, np.stack(coefs), np.stack(slacks))


class _Newton:
    """Newton's method for one class of all variants. Arrays have a row for each that is not finished."""

    def __init__(
        self, at: Refit, c: int, root: Vector, y: Vector, removed: Indices, coef: Matrix, added: Added | None
    ) -> None:
        self.Z, self.root, self.y, self.removed = at.columns, root, y, removed
        count, self.size = len(removed), len(at.ridge)
        self.live = np.arange(count)
        self.a = coef.copy()
        self.ridge = np.tile(at.ridge, (count, 1))
        self.D = None if added is None else added.columns
        H = np.empty((count, self.a.shape[1], self.a.shape[1]))
        H[:, : self.size, : self.size] = at.curvature[c]
        if added is not None:
            self.ridge = np.column_stack([self.ridge, added.ridge])
            H[:, -1, :-1] = H[:, :-1, -1] = added.border[c]
            H[:, -1, -1] = added.diagonal[c]
        self.H = H
        self.active = np.tile(at.slack[c] > 0.0, (count, 1))
        self.values = np.full(count, math.inf)
        self.found, self.slacks = coef.copy(), np.empty((count, len(root)))

    def run(self, limit: Vector) -> None:
        """Finish or give up all variants, with a limit of Φ for each."""
        self.u = self.root - self._product(self.a)
        self.value = self._value(self.u, self.a)
        if np.all(np.isfinite(limit)):
            # Most swaps are hopeless, which the curvature of the support shows as well as that of the swap.
            _, fall = self._step()
            self._keep(~(self.value - HOPE * fall > limit[self.live]))
        for _ in range(MAX_STEPS if len(self.live) else 0):
            self._update_curvature()
            step, fall = self._step()
            done = fall <= EXACT * self.value
            hopeless = self.value - HOPE * fall > limit[self.live]
            self._finish(done & ~hopeless)
            kept = ~(done | hopeless)
            self._keep(kept)
            if not len(self.live):
                return
            self._search(step[kept], fall[kept])
            if not len(self.live):
                return
        self._finish(np.ones(len(self.live), dtype=np.bool_))

    def _step(self) -> tuple[Matrix, Vector]:
        """Newton's step, and the falls of Φ that it promises."""
        gradient = self._gradient()
        step = np.empty_like(gradient)
        for b, removed in enumerate(self.removed.tolist()):
            step[b] = solve_curvature(self.H[b], self.ridge[b], gradient[b], removed)
        return step, 0.5 * np.einsum("bi,bi->b", gradient, step)

    def _search(self, step: Matrix, fall: Vector) -> None:
        """Take the steps, halved until Φ falls; finish where a whole step leaves every row on its side."""
        along, t = self._product(step), np.ones((len(step), 1))
        while True:
            a, u = self.a - t * step, self.u + t * along
            value = self._value(u, a)
            rising = ~(value <= self.value - SUFFICIENT * t[:, 0] * fall) & (t[:, 0] > 0.0)
            if not rising.any():
                break
            t[rising] *= 0.5
            t[t < SHORTEST] = 0.0  # rounding leaves no way down
        same = np.all((u > 0.0) == self.active, axis=1)
        self.a, self.u, self.value = a, u, value
        finished = (same & (t[:, 0] == 1.0)) | (t[:, 0] == 0.0)
        self._finish(finished)
        self._keep(~finished)

    def _product(self, a: Matrix) -> Matrix:
        """The margins, without the part of the intercept's column that `root` is."""
        product = a[:, : self.size] @ self.Z
        if self.D is not None:
            product += a[:, -1:] * self.D
        product *= self.y
        return product

    def _value(self, u: Matrix, a: Matrix) -> Vector:
        positive = np.maximum(u, 0.0)
        penalties = 0.5 * np.einsum("bi,bi,bi->b", self.ridge, a, a)
        return np.asarray(np.einsum("bk,bk->b", positive, positive) + penalties)

    def _gradient(self) -> Matrix:
        slopes = np.maximum(self.u, 0.0)
        slopes *= -2.0 * self.y
        gradient = self.ridge * self.a
        gradient[:, : self.size] += slopes @ self.Z.T
        if self.D is not None:
            gradient[:, -1] += np.einsum("bk,bk->b", slopes, self.D)
        places = np.flatnonzero(self.removed)
        gradient[places, self.removed[places]] = 0.0
        return gradient

    def _update_curvature(self) -> None:
        """Add the rows that have become active to H, and take away those that no longer are."""
        now = self.u > 0.0
        different = now != self.active
        counts = np.count_nonzero(different, axis=1)
        for b in np.flatnonzero(counts).tolist():
            anew = counts[b] > MANY * np.count_nonzero(now[b])
            rows = np.flatnonzero(now[b] if anew else different[b])
            E = self.Z[:, rows] if self.D is None else np.vstack([self.Z[:, rows], self.D[b, rows]])
            if anew:
                self.H[b] = 2.0 * (E @ E.T)
            else:
                self.H[b] += (E * np.where(now[b, rows], 2.0, -2.0)) @ E.T
        self.active = now

    def _finish(self, which: NDArray[np.bool_]) -> None:
        places = self.live[which]
        self.values[places], self.found[places], self.slacks[places] = (
            self.value[which], self.a[which], self.u[which],
        )  # fmt: skip

    def _keep(self, which: NDArray[np.bool_]) -> None:
        if which.all():
            return
        for name in ("live", "a", "u", "value", "ridge", "removed", "H", "active"):
            setattr(self, name, getattr(self, name)[which])
        if self.D is not None:
            self.D = self.D[which]
