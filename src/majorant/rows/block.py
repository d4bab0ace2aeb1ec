"""The algebra on one block of rows. The only file that asks "is it sparse?".

A `Block` is X (dense or CSR), labels y ∈ {-1, 1}, weights s ≥ 0 and the intercept column b ∈ {0, 1}.
Each answer costs one or two passes over X and never a copy of it; sums are in float64 whatever the
type of X is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.losses import SquaredHinge
from majorant.rows.protocol import Answer, Audit, LossSum
from majorant.rows.together import together
from majorant.status import Matrix, Vector

Indices: TypeAlias = NDArray[np.int64]

# Dense X with so many entries is worked on in two halves at the same time.
HALVES_PAY = 400_000

# Rows converted, gathered and squared at a time: enough for BLAS, little beside X, and in the cache.
CHUNK = 2048
GATHERED = 1024
AUDITED = 480  # not a power of two: columns 4096 bytes apart would share one set of the cache


class Block(ABC):
    """Some labelled, weighted rows of the design matrix."""

    sparse_entries = 0
    """How many entries X has, if it is sparse."""

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
        self.mirror(H)
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
    def audit(self, theta: Vector, *, lengths: bool) -> Audit:
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
        """Add 2 Σ s_k L_k L_kᵀ over the rows to the lower triangle of H, and 2 Σ s_k L_k to c.

        With sign -1, take them away. What happens above the diagonal of H is left open until `mirror`.
        """

    @staticmethod
    @abstractmethod
    def mirror(H: Matrix) -> None:
        """Make H symmetric by its lower triangle, after the last of the rows."""

    @abstractmethod
    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        """Write L d to dv and `cross` with t = 1; the loss after it."""

    @abstractmethod
    def cross(self, t: float, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector) -> None:
        """Add t dv to the margins v, and bring along who is active; if H is not empty, H and c too."""

    @abstractmethod
    def active_product(self, active: NDArray[np.bool_], d: Vector) -> Vector:
        """2LᵀSL d over the active rows."""

    @abstractmethod
    def rows(self, chosen: slice) -> Block:
        """Some of the rows."""

    @property
    def exact(self) -> bool:
        """Whether sums of products of the entries have no rounding: small whole numbers, such as 0 and 1."""
        return False

    @abstractmethod
    def columns(self, chosen: NDArray[np.intp]) -> Block:
        """The same rows with some of the features only."""

    @property
    @abstractmethod
    def column_counts(self) -> NDArray[np.intp]:
        """How many entries each column of X has."""

    @abstractmethod
    def copy_columns(
        self,
        chosen: NDArray[np.intp],
        places: NDArray[np.int64],
        offset: int,
        data: Vector,
        indices: NDArray[np.uint32],
    ) -> None:
        """Copy columns of S^½Diag(y)X, each to its place in data, and their row numbers, from the offset."""

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
    """Rows in an ndarray. Single precision and odd strides are turned over chunk by chunk.

    Products with large X are made in two halves at the same time, by threads of our own: on cina0 the Gram
    matrix takes 6.5 ms that way, and 10.6 with the threads of BLAS.
    """

    def __init__(self, X: NDArray[Any], y: Vector, s: Vector, *, intercept: bool) -> None:
        super().__init__(y, s, intercept=intercept)
        self.X = X
        # numpy multiplies by an array of another type, or with strides that BLAS cannot read, by
        # copying all of it each time; such arrays go through a small buffer instead.
        direct = X.dtype == np.float64 and (
            X.strides[1] == 8 <= X.shape[1] * 8 <= X.strides[0]
            or X.strides[0] == 8 <= X.shape[0] * 8 <= X.strides[1]
        )
        self._step = max(1, len(X)) if direct else CHUNK
        self._by_columns = abs(X.strides[0]) < abs(X.strides[1])
        self._threaded = X.size >= HALVES_PAY

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def _chunks(self, step: int, rows: slice | None = None) -> Iterator[tuple[slice, Matrix]]:
        start, stop = (0, len(self.X)) if rows is None else (rows.start, rows.stop)
        for first in range(start, stop, step):
            part = slice(first, min(first + step, stop))
            yield part, np.asarray(self.X[part], dtype=np.float64)

    def _halves(self, question: Callable[[slice], Answer], length: int | None = None) -> list[Answer]:
        """The answers for the two halves of the rows, or of a list of that length."""
        n = self.n_samples if length is None else length
        middle = n // 2 if self._threaded and n >= 2 * CHUNK else n
        halves = [slice(0, middle), slice(middle, n)] if middle < n else [slice(0, n)]
        return together([partial(question, half) for half in halves])

    def _image(self, d: Vector) -> Vector:
        """Xd."""
        scores = np.empty(self.n_samples)

        def fill(half: slice) -> None:
            for part, X in self._chunks(self._step, half):
                np.matmul(X, d, out=scores[part])

        self._halves(fill)
        return scores

    def _back(self, u: Matrix) -> Matrix:
        """uX, for one n-vector u or for several."""

        def product(half: slice) -> Matrix:
            step = AUDITED if u.ndim > 1 else self._step
            return reduce(add, (u[..., part] @ X for part, X in self._chunks(step, half)))

        return reduce(add, self._halves(product))

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        if indices is not None:
            chosen = DenseBlock(self.X[indices], self.y[indices], self.s[indices], intercept=self.b > 0)
            return chosen.loss(theta)
        value, slope = SquaredHinge.weighted_sum(self.image(theta), self.s)
        slope *= self.y
        gradient = np.empty(len(theta))
        gradient[:-1] = self._back(slope)
        gradient[-1] = self.b * slope.sum()
        return LossSum(value, gradient)

    def audit(self, theta: Vector, *, lengths: bool) -> Audit:
        margins = self.image(theta)
        by_class = np.stack([self.y < 0.0, self.y > 0.0])
        values = by_class @ (self.s * SquaredHinge.value(margins))
        slopes = by_class * (self.s * self.y * SquaredHinge.derivative(margins))
        gradients = np.empty((2, len(theta)))
        gradients[:, :-1] = self._back(slopes)
        gradients[:, -1] = self.b * slopes.sum(axis=1)
        squares = self._squares(self.s * (margins < 1.0)) if lengths else np.zeros(0)
        negative, positive = map(LossSum, values.tolist(), gradients)
        return Audit(negative, positive, squares)

    def _squares(self, weights: Vector) -> Vector:
        """The diagonal of LᵀSL with these weights."""
        if self._by_columns:
            alike = bool(np.all(weights == weights[0]))
            pairs = ((x, x if alike else x * weights) for x in self.X.T)
            squares = np.array([np.dot(x, y) for x, y in pairs], dtype=np.float64)
            return np.append(squares * (weights[0] if alike else 1.0), self.b**2 * weights.sum())

        def of(half: slice) -> Vector:
            # One buffer for all, in the order of X: fresh memory costs more than the squares themselves.
            squared = np.empty_like(self.X[:AUDITED], dtype=np.float64)
            squares = np.zeros(self.n_features)
            for part, X in self._chunks(AUDITED, half):
                squares += weights[part] @ np.multiply(X, X, out=squared[: len(X)])
            return squares

        return np.append(reduce(add, self._halves(of)), self.b**2 * weights.sum())

    def image(self, d: Vector) -> Vector:
        # In place where it can be: on tall data these vectors are as much work as the product.
        scores = self._image(d[:-1])
        scores += self.b * d[-1]
        scores *= self.y
        return scores

    def add_rows(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        if not len(rows):
            return
        root = np.sqrt(2.0 * self.s[rows])
        # The labels as one more column: its products with the others are c.
        labelled = root * self.y[rows]

        def products(half: slice) -> Matrix:
            chosen, roots, labels = rows[half], root[half], labelled[half]
            square = np.zeros((len(c) + 1, self.n_features))
            buffer = np.empty(min(GATHERED, len(chosen)) * self.n_features, dtype=self.X.dtype)
            for start in range(0, len(chosen), GATHERED):
                part = slice(start, start + GATHERED)
                X = self._gather(chosen[part], buffer)
                X *= roots[part, np.newaxis]
                square[:-2] += X.T @ X
                square[-2] += roots[part] @ X
                square[-1] += labels[part] @ X
            return square

        total = sign * reduce(add, self._halves(products, len(rows)))
        H[:-1, :-1] += total[:-2]
        H[-1, :-1] += self.b * total[-2]
        H[-1, -1] += sign * self.b**2 * (root @ root)
        c[:-1] += total[-1]
        c[-1] += sign * self.b * (labelled @ root)

    def _gather(self, rows: Indices, buffer: NDArray[Any]) -> Matrix:
        """Some rows, copied, to the buffer if that is the faster way."""
        if self._by_columns:
            return np.array(self.X[rows], dtype=np.float64, copy=None)
        out = buffer[: len(rows) * self.n_features].reshape(len(rows), self.n_features)
        # "clip" writes to the buffer itself, where "raise" would write to a copy of it first.
        return np.take(self.X, rows, axis=0, out=out, mode="clip").astype(np.float64, copy=False)

    @staticmethod
    def mirror(H: Matrix) -> None:
        H[:-1, -1] = H[-1, :-1]  # BLAS has done the rest

    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        dv[:] = self.image(d)
        self.cross(1.0, dv, v, active, H, c)
        slack = np.maximum(1.0 - v, 0.0)
        return float(slack @ (self.s * slack))

    def cross(self, t: float, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector) -> None:
        v += t * dv
        now = v < 1.0
        if H.size:
            self.add_rows(np.flatnonzero(active & ~now), -1.0, H, c)
            self.add_rows(np.flatnonzero(now & ~active), 1.0, H, c)
        active[:] = now

    def active_product(self, active: NDArray[np.bool_], d: Vector) -> Vector:
        image = self._image(d[:-1])
        image += self.b * d[-1]
        image *= 2.0 * self.s * active
        return np.append(self._back(image), self.b * image.sum())

    def squared_norms(self) -> Vector:
        return np.concatenate([np.einsum("ki,ki->k", X, X) for _, X in self._chunks(CHUNK)])

    def design(self) -> Matrix:
        return self._design_from(self.X)

    # Parts of it -------------------------------------------------------------------------------

    def rows(self, chosen: slice) -> DenseBlock:
        # A sample is small enough to be copied, for BLAS; what is a view with all rows stays one.
        X = self.X[chosen] if chosen.step is None else np.ascontiguousarray(self.X[chosen])
        y, s = map(np.ascontiguousarray, (self.y[chosen], self.s[chosen]))
        return DenseBlock(X, y, s, intercept=self.b > 0)

    def columns(self, chosen: NDArray[np.intp]) -> DenseBlock:
        return DenseBlock(self.X[:, chosen], self.y, self.s, intercept=self.b > 0)

    @property
    def column_counts(self) -> NDArray[np.intp]:
        return np.full(self.n_features, self.n_samples)

    def copy_columns(
        self,
        chosen: NDArray[np.intp],
        places: NDArray[np.int64],
        offset: int,
        data: Vector,
        indices: NDArray[np.uint32],
    ) -> None:
        # All columns are as long as each other, so the places are a matrix.
        mine = slice(offset, offset + self.n_samples)
        root = np.sqrt(self.s) * self.y
        np.multiply(root, self.X[:, chosen].T, out=data.reshape(len(chosen), -1)[:, mine])
        indices.reshape(len(chosen), -1)[:, mine] = np.arange(mine.start, mine.stop)


def make_block(X: Any, y: Vector, s: Vector, *, intercept: bool) -> Block:
    """The block that fits the kind of X."""
    if sp.issparse(X):
        # Imported late: numba takes a third of a second, which dense data need not wait for.
        from majorant.rows.csr import CsrBlock

        return CsrBlock.of(X, y, s, intercept=intercept)
    return DenseBlock(X, y, s, intercept=intercept)
