r"""Small problems in well-conditioned coordinates: a dense copy of the rows, centred and scaled.

With an intercept, subtracting a number from a column changes only β, so columns are centred. Every column is
divided by its weighted length, which changes the unit of its coefficient. Every row is multiplied by
e = √(s / Σ s).

`ScaledRows` is the copy. `equations` solves with its curvature, with as many unknowns as features or rows,
whichever are fewer. `DenseRidge` minimises the loss plus a ridge, exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from majorant.interrupts import check
from majorant.linsolve import unit_diagonal
from majorant.objective import Objective
from majorant.rows.block import Block
from majorant.status import Matrix, Vector

# The most entries of the dense copy, and the most unknowns of the equations of a step: a step then takes at
# most a tenth of a second.
MAX_ENTRIES = 1_000_000
MAX_UNKNOWNS = 1500
# How often a solution of the equations is refined by its residual.
REFINEMENTS = 2
# Added to the curvature of the penalty, which may be zero, if the unknowns belong to the rows. (The curvature
# of the loss is at most 2 along any feature.)
FLOOR = 1e-14
# Multiples of the unit matrix that are added to a singular matrix, until Cholesky succeeds.
JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)
# The most Newton steps of `DenseRidge`, and the relative fall of Φ that ends them.
RIDGE_STEPS = 100
RIDGE_FALL = 1e-15
# A ridge from which on a coefficient is zero, where the loss has a curvature of at most 2: without the
# ridge's feature, Φ is larger by at most the square of the pull over twice the ridge.
INFINITE = 1e8
TINY = float(np.finfo(float).tiny)


def small_enough(objective: Objective) -> bool:
    """Whether a dense copy of the rows and the equations of a step are small enough."""
    n, p = objective.rows.n_samples, objective.width
    return n * p <= MAX_ENTRIES and len(objective.classes) * min(n, p) <= MAX_UNKNOWNS


def norms(W: Matrix) -> Vector:
    """The norm of every row of W: of a feature's coefficients over the classes."""
    return np.asarray(np.sqrt(np.einsum("ic,ic->i", W, W)))


def dense_rows(block: Block) -> tuple[Matrix, Vector, Vector]:
    """S^½L of a block as a dense array, its labels and its weights."""
    return block.design(), block.y, block.s


class ScaledRows:
    """The rows, centred and scaled, and the conversion of θ to and from these coordinates.

    Attributes
    ----------
    Z : array (n, p)
        S^½[X̃ 1], without labels; without an intercept the last column is zero.
    y : array (n, n_classes)
        The labels.
    e : array (n,)
        The roots of the weights, whose squares add up to 1.
    centre, unit, inverse : array (n_features,)
        The mean that was subtracted from each column, the length of the centred column, and the inverse of
        the length (0 for a constant column).
    scale : float
        The sum of the weights: Φ is `scale` times Φ in these coordinates.
    """

    def __init__(self, objective: Objective) -> None:
        classes = objective.classes
        design, first, s = map(np.concatenate, zip(*classes[0].map_blocks(dense_rows), strict=True))
        others = [np.concatenate(list(rows.map_blocks(attrgetter("y")))) for rows in classes[1:]]
        used = s > 0.0
        self.y = np.column_stack([first, *others])[used]
        root = np.sqrt(s[used])
        X = design[used, :-1] * (first[used] / root)[:, np.newaxis]
        self.intercept = bool(np.any(design[:, -1]))
        self.scale = float(root @ root)
        self.e = root / math.sqrt(self.scale)
        self.centre = np.zeros(X.shape[1])
        for _ in range(2 if self.intercept else 0):  # the second time removes the rounding of the first
            mean = self.e**2 @ X
            X -= mean
            self.centre += mean
        X *= self.e[:, np.newaxis]
        self.unit = norms(X.T)
        # A centred constant column is rounding.
        self.unit[self.unit <= 1e-14 * np.abs(self.centre)] = 0.0
        self.inverse = np.divide(1.0, self.unit, out=np.zeros_like(self.unit), where=self.unit > 0.0)
        X *= self.inverse
        self.Z = np.column_stack([X, self.e if self.intercept else np.zeros_like(self.e)])

    def raw(self, theta: Matrix) -> Vector:
        """The point θ in the user's coordinates, with a row per class; the argument is (p, n_classes)."""
        W = theta[:-1] * self.inverse[:, np.newaxis]
        beta = theta[-1] - self.centre @ W if self.intercept else 0.0 * theta[-1]
        return np.asarray(np.vstack([W, beta]).T.ravel())

    def scaled(self, theta: Vector) -> Matrix:
        """The user's θ in these coordinates; coefficients of constant columns are dropped."""
        raw = theta.reshape(self.y.shape[1], -1).T
        W = raw[:-1] * np.where(self.unit > 0.0, 1.0, 0.0)[:, np.newaxis]
        beta = raw[-1] + self.centre @ W if self.intercept else 0.0 * raw[-1]
        return np.vstack([W * self.unit[:, np.newaxis], beta])


class DenseRidge(ScaledRows):
    """Newton's method for the loss plus a ridge with a weight for each feature, class by class.

    The loss is quadratic until a row changes sides, so that Newton's method with an exact line search finds
    the minimum in a finite number of steps.
    """

    def minimise(self, problem: Any, theta: Vector, proximal: float, fall: float = 0.0) -> Vector:
        """The minimiser of a problem on these rows whose penalty is Σ_i c_i w_i²/2, starting at θ.

        A proximal weight adds the weighted squared distance from θ to Φ, in units of the curvature of the
        loss along each feature with all rows active. A step that lowers Φ by no more than the share `fall` is
        the last one.
        """
        with np.errstate(over="ignore"):
            ridge = np.append(problem.factor * self.inverse**2 / self.scale, 0.0)
        kept = np.flatnonzero(ridge < INFINITE)
        ridge, Z = ridge[kept], self.Z if len(kept) == len(ridge) else self.Z[:, kept]
        anchor = np.append(np.full(len(ridge) - 1, 2.0 * proximal), 0.0)
        starts = self.scaled(theta)[kept]
        found = np.zeros((self.Z.shape[1], self.y.shape[1]))
        for c, y in enumerate(self.y.T):
            found[kept, c] = self._minimise(
                Z * y[:, np.newaxis], ridge, anchor, starts[:, c], max(fall, RIDGE_FALL)
            )
        return self.raw(found)

    def _minimise(self, Z: Matrix, penalty: Vector, anchor: Vector, start: Vector, fall: float) -> Vector:
        # penalty/2 θ² + anchor/2 (θ - start)² is ridge/2 (θ - centre)² plus a constant.
        ridge = penalty + anchor
        centre = start * np.divide(anchor, ridge, out=np.zeros_like(ridge), where=ridge > 0.0)
        e = self.e - Z @ centre
        theta = start - centre
        slack = e - Z @ theta
        for _ in range(RIDGE_STEPS):
            check()
            active = slack > 0.0
            gradient = ridge * theta - 2.0 * (np.maximum(slack, 0.0) @ Z)
            if not gradient.any():
                break
            if not active.any():
                d = -theta * (ridge > 0.0)  # no row is active: only the ridge is left
            else:
                weight, curvature = np.full((int(active.sum()), 1), 2.0), ridge[:-1, np.newaxis, np.newaxis]
                try:
                    d = equations(Z[active], weight, curvature)(-gradient[:, np.newaxis])[:, 0]
                except np.linalg.LinAlgError:
                    break
            image = Z @ d
            t = _line_search(slack, image, float(ridge @ (theta * d)), float(ridge @ (d * d)))
            moved = theta + t * d
            before = self._value(slack, ridge, theta)
            slack = e - Z @ moved
            after = self._value(slack, ridge, moved)
            if not after < before:
                break
            theta = moved
            if before - after <= fall * before:
                break
        return centre + theta

    @staticmethod
    def _value(slack: Vector, ridge: Vector, theta: Vector) -> float:
        active = np.maximum(slack, 0.0)
        return float(active @ active + 0.5 * (ridge @ (theta * theta)))


def _line_search(slack: Vector, image: Vector, linear: float, square: float) -> float:
    """The minimiser t ≥ 0 of Σ max(slack - t image, 0)² + linear t + square t²/2.

    The derivative is increasing and piecewise linear, with a break where a row changes sides.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = slack / image
    ends = np.sort(crossing[(image != 0.0) & (crossing > 0.0)])

    def derivative(t: float) -> float:
        return linear + square * t - 2.0 * float(np.maximum(slack - t * image, 0.0) @ image)

    # The interval between two breaks that contains the zero of the derivative.
    k = bisect_left(ends, 0.0, key=derivative)
    low = ends[k - 1] if k > 0 else 0.0
    high = ends[k] if k < len(ends) else 2.0 * low + 1.0
    active = slack > 0.5 * (low + high) * image
    slope = square + 2.0 * float(image[active] @ image[active])
    return max(0.0, (2.0 * float(slack[active] @ image[active]) - linear) / slope) if slope > 0.0 else 0.0


Solve = Callable[[Matrix], Matrix]


def equations(Z: Matrix, weight: Matrix, curvature: NDArray[np.float64]) -> Solve:
    """A function right ↦ d that solves Zᵀ(weight ∘ Zd) + curvature d = right.

    d and right are (p, C) for C classes, which the curvature, (p - 1, C, C), couples feature by feature. Each
    solution is refined by its residual. Equations that are singular to rounding raise a LinAlgError.
    """

    def product(d: Matrix) -> Matrix:
        image = Z.T @ (weight * (Z @ d))
        image[:-1] += np.einsum("icd,id->ic", curvature, d[:-1])
        return np.asarray(image)

    make = _by_features if Z.shape[1] <= Z.shape[0] else _by_rows
    solve = make(Z, weight, curvature)

    def refined(right: Matrix) -> Matrix:
        d = solve(right)
        for _ in range(REFINEMENTS):
            d = d + solve(right - product(d))
        return d

    return refined


def _by_features(Z: Matrix, weight: Matrix, curvature: NDArray[np.float64]) -> Solve:
    p, C = Z.shape[1], weight.shape[1]
    A = np.zeros((C, p, C, p))
    for c in range(C):
        A[c, :, c, :] = Z.T @ (weight[:, c, np.newaxis] * Z)
    ties = np.einsum("cidi->cdi", A)  # a view
    ties[:, :, :-1] += np.moveaxis(curvature, 0, 2)
    solve = _positive(A.reshape(C * p, C * p))
    return lambda right: solve(right.T.ravel()).reshape(C, p).T


def _by_rows(Z: Matrix, weight: Matrix, curvature: NDArray[np.float64]) -> Solve:
    n, C = weight.shape
    X, e = Z[:, :-1], Z[:, -1]
    eye = np.eye(C)
    G = np.linalg.inv(curvature + FLOOR * eye)
    M = np.empty((C, n, C, n))
    for c in range(C):
        for d in range(c + 1):
            M[c, :, d, :] = M[d, :, c, :] = (X * G[:, c, d]) @ X.T
    square = M.reshape(C * n, C * n)
    square.flat[:: C * n + 1] += 1.0 / weight.T.ravel()
    solve = _positive(square)
    intercepts = np.kron(eye, e)
    borders = np.column_stack([solve(row) for row in intercepts])
    border = intercepts @ borders

    def solution(right: Matrix) -> Matrix:
        held = np.einsum("icd,id->ic", G, right[:-1])
        z = solve((X @ held).T.ravel())
        beta = np.zeros(C)
        if e.any():
            beta = np.linalg.solve(border, right[-1] - intercepts @ z)
            z = z + borders @ beta
        rest = right[:-1] - X.T @ z.reshape(C, n).T
        return np.vstack([np.einsum("icd,id->ic", G, rest), beta])

    return solution


def _positive(A: Matrix) -> Callable[[Vector], Vector]:
    """A function that solves with A, scaled to a unit diagonal; if A is singular, a jitter is added."""
    A, scale = unit_diagonal(A)
    for jitter in JITTERS:
        np.fill_diagonal(A, 1.0 + jitter)
        factor, info = lapack.dpotrf(A.T, lower=0, clean=0)
        if not info:
            return lambda right: np.asarray(scale * lapack.dpotrs(factor, scale * right, lower=0)[0])
    raise np.linalg.LinAlgError("the equations are singular to rounding")
