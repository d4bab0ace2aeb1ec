"""The algebra on one block of rows. The only file that asks "is it sparse?".

A `Block` is X (dense or CSR), labels y ∈ {-1, 1}, weights s ≥ 0 and the intercept column b ∈ {0, 1}.
Each answer costs one or two passes over X and never a copy of it; sums are in float64 whatever the
type of X is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.losses import SquaredHinge
from majorant.rows.protocol import Audit, LossSum
from majorant.status import Matrix, Vector

Indices: TypeAlias = NDArray[np.int64]

# Rows gathered or converted at a time: enough for BLAS, little beside X.
CHUNK = 2048


class Block(ABC):
    """Some labelled, weighted rows of the design matrix."""

    X: Any

    def __init__(self, y: Vector, s: Vector, *, intercept: bool) -> None:
        self.y = y
        self.s = s
        self.b = 1.0 if intercept else 0.0

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.y)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of X."""

    @abstractmethod
    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        """The loss and its gradient, over all rows or over those given."""

    def gram(self) -> Matrix:
        """LᵀSL: half of what all rows add up to."""
        p = self.n_features + 1
        H, c = np.zeros((p, p)), np.zeros(p)
        self.add_rows(np.arange(self.n_samples), 1.0, H, c)
        H *= 0.5
        return H

    def gram_product(self, v: Vector) -> Vector:
        """LᵀSL v: half of the product when all rows are active."""
        return 0.5 * self.active_product(np.ones(self.n_samples, dtype=np.bool_), v)

    def gram_along(self, D: Matrix) -> Matrix:
        """DᵀLᵀSLD, a product with X for each column of D."""
        # On cina0 one BLAS product with two columns took three times as long as two with one; on w8a a loop
        # over the columns inside of one pass over CSR was no faster.
        images = np.stack([self.image(np.ascontiguousarray(d)) for d in D.T])
        return np.asarray((images * self.s) @ images.T)

    @abstractmethod
    def audit(self, theta: Vector) -> Audit:
        """The loss at θ by class, and the diagonal of LᵀSL over the rows that are active there."""

    @abstractmethod
    def squared_norms(self) -> Vector:
        """‖x_k‖² for every row."""

    @abstractmethod
    def design(self) -> Matrix:
        """S^½L, dense."""

    @abstractmethod
    def image(self, d: Vector) -> Vector:
        """L d, row by row: the margins of d."""

    @abstractmethod
    def add_rows(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        """Add 2 Σ s_k L_k L_kᵀ over the rows to H and 2 Σ s_k L_k to c; with sign -1, take them away."""

    @abstractmethod
    def active_product(self, active: NDArray[np.bool_], d: Vector) -> Vector:
        """2LᵀSL d over the active rows."""

    def every(self, step: int) -> Block:
        """Every so-manieth row, weighed as many times."""
        X = self.X[::step] if sp.issparse(self.X) else np.ascontiguousarray(self.X[::step])
        return make_block(X, self.y[::step].copy(), step * self.s[::step], intercept=self.b > 0)

    def columns(self, chosen: NDArray[np.intp]) -> Block:
        """The same rows with some of the features only."""
        return make_block(self.X[:, chosen], self.y, self.s, intercept=self.b > 0)

    def largest_row(self) -> float:
        """max_k s_k ‖L_k‖²."""
        return float(np.max(self.s * (self.squared_norms() + self.b**2)))

    def _design_from(self, X: Matrix) -> Matrix:
        design = np.empty((self.n_samples, self.n_features + 1))
        design[:, :-1] = X
        design[:, -1] = self.b
        design *= (self.y * np.sqrt(self.s))[:, np.newaxis]
        return design


class DenseBlock(Block):
    """Rows in an ndarray. Single precision and odd strides are turned over chunk by chunk."""

    def __init__(self, X: NDArray[Any], y: Vector, s: Vector, *, intercept: bool) -> None:
        super().__init__(y, s, intercept=intercept)
        self.X = X
        # numpy multiplies by an array of another type, or with strides that BLAS cannot read, by
        # copying all of it each time; such arrays go through a small buffer instead.
        direct = X.dtype == np.float64 and (X.flags.c_contiguous or X.flags.f_contiguous)
        self._step = max(1, len(X)) if direct else CHUNK

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def _chunks(self, step: int) -> Iterator[tuple[slice, Matrix]]:
        for start in range(0, len(self.X), step):
            part = slice(start, start + step)
            yield part, np.asarray(self.X[part], dtype=np.float64)

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        if indices is not None:
            X = np.asarray(self.X[indices], dtype=np.float64)
            return self._loss_part(theta, X, self.y[indices], self.s[indices])
        parts = (
            self._loss_part(theta, X, self.y[part], self.s[part]) for part, X in self._chunks(self._step)
        )
        return reduce(add, parts)

    def _loss_part(self, theta: Vector, X: Matrix, y: Vector, s: Vector) -> LossSum:
        # In place where it can be: on tall data these vectors are as much work as the products.
        margins = X @ theta[:-1]
        margins += self.b * theta[-1]
        margins *= y
        value, slope = SquaredHinge.weighted_sum(margins, s)
        slope *= y
        gradient = np.empty(len(theta))
        gradient[:-1] = X.T @ slope
        gradient[-1] = self.b * slope.sum()
        return LossSum(value, gradient)

    def audit(self, theta: Vector) -> Audit:
        margins = self.image(theta)
        by_class = np.stack([self.y < 0.0, self.y > 0.0])
        values = by_class @ (self.s * SquaredHinge.value(margins))
        slopes = by_class * (self.s * self.y * SquaredHinge.derivative(margins))
        weights = self.s * (margins < 1.0)
        gradients, squares = np.zeros((2, self.n_features + 1)), np.zeros(self.n_features + 1)
        for part, X in self._chunks(CHUNK):
            gradients[:, :-1] += slopes[:, part] @ X
            squares[:-1] += weights[part] @ (X * X)
        gradients[:, -1] = self.b * slopes.sum(axis=1)
        squares[-1] = self.b**2 * weights.sum()
        negative, positive = map(LossSum, values.tolist(), gradients)
        return Audit(negative, positive, squares)

    def image(self, d: Vector) -> Vector:
        scores = np.empty(self.n_samples)
        for part, X in self._chunks(self._step):
            np.matmul(X, d[:-1], out=scores[part])
        scores += self.b * d[-1]
        scores *= self.y
        return scores

    def add_rows(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            X = np.asarray(self.X[part], dtype=np.float64)
            slope = 2.0 * sign * self.s[part] * self.y[part]
            c[:-1] += slope @ X
            c[-1] += self.b * slope.sum()
            root = np.sqrt(2.0 * self.s[part])
            Z = X * root[:, np.newaxis]
            H[:-1, :-1] += sign * (Z.T @ Z)
            H[-1, :-1] += sign * self.b * (root @ Z)
            H[-1, -1] += sign * self.b**2 * (root @ root)
        H[:-1, -1] = H[-1, :-1]

    def active_product(self, active: NDArray[np.bool_], d: Vector) -> Vector:
        product = np.zeros(len(d))
        for part, X in self._chunks(self._step):
            image = 2.0 * self.s[part] * active[part] * (X @ d[:-1] + self.b * d[-1])
            product[:-1] += X.T @ image
            product[-1] += self.b * image.sum()
        return product

    def squared_norms(self) -> Vector:
        return np.concatenate([np.einsum("ki,ki->k", X, X) for _, X in self._chunks(CHUNK)])

    def design(self) -> Matrix:
        return self._design_from(self.X)


def make_block(X: Any, y: Vector, s: Vector, *, intercept: bool) -> Block:
    """The block that fits the kind of X."""
    if sp.issparse(X):
        # Imported late: numba takes a third of a second, which dense data need not wait for.
        from majorant.rows.csr import CsrBlock

        return CsrBlock(X, y, s, intercept=intercept)
    return DenseBlock(X, y, s, intercept=intercept)
