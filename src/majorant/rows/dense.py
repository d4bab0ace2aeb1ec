"""A block of dense rows, answered by BLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.losses import SquaredHinge
from majorant.rows.block import Block, Indices
from majorant.rows.protocol import Answer, Audit, LossSum
from majorant.rows.together import together
from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.rows.columns import Columns

# Dense X with so many entries is worked on in two halves at the same time.
HALVES_PAY = 400_000

# Rows converted, gathered and squared at a time, and entries: enough for BLAS, little beside X, in the cache.
CHUNK = 2048
GATHERED = 1024
CACHED = 2**18  # entries
AUDITED = 480  # not a power of two: columns 4096 bytes apart would share one set of the cache


class DenseBlock(Block):
    """Rows in an ndarray. Single precision and odd strides are turned over chunk by chunk.

    Products with large X are made in two halves at the same time, by threads of our own: on cina0 the Gram
    matrix takes 6.5 ms that way, and 10.6 with the threads of BLAS.
    """

    dense = True

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

    def _back(self, u: Vector) -> Vector:
        """The product uX."""

        def product(half: slice) -> Vector:
            return reduce(add, (u[part] @ X for part, X in self._chunks(self._step, half)))

        return reduce(add, self._halves(product))

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        if indices is not None:
            X = self.X.take(indices, axis=0).astype(np.float64, copy=False)
            return self._loss_of(theta, X, self.y[indices], self.s[indices])

        # Chunk by chunk, so that the second product finds X in the cache: on cina0 1.5 times as fast.
        step = min(self._step, max(64, CACHED // max(1, self.n_features)))

        def total(half: slice) -> LossSum:
            chunks = self._chunks(step, half)
            return reduce(add, (self._loss_of(theta, X, self.y[part], self.s[part]) for part, X in chunks))

        return reduce(add, self._halves(total))

    def _loss_of(self, theta: Vector, X: Matrix, y: Vector, s: Vector) -> LossSum:
        margins = X @ theta[:-1]
        margins += self.b * theta[-1]
        margins *= y
        value, slope = SquaredHinge.weighted_sum(margins, s)
        slope *= y
        gradient = np.empty(len(theta))
        np.matmul(slope, X, out=gradient[:-1])
        gradient[-1] = self.b * slope.sum()
        return LossSum(value, gradient)

    def audit(self, theta: Vector, *, lengths: bool) -> Audit:
        # At θ = 0, which is asked for first of all, no product is needed to know the margins.
        margins = self.image(theta) if theta.any() else np.zeros(self.n_samples)
        by_class = np.stack([self.y < 0.0, self.y > 0.0])
        values = by_class @ (self.s * SquaredHinge.value(margins))
        slopes = by_class * (self.s * self.y * SquaredHinge.derivative(margins))
        weights = self.s * (margins < 1.0) if lengths else None
        sums, squares = self._audit_columns(slopes, weights)
        gradients = np.column_stack([sums, self.b * slopes.sum(axis=1)])
        negative, positive = map(LossSum, values.tolist(), gradients)
        if weights is not None:
            squares = np.append(squares, self.b**2 * weights.sum())
        return Audit(negative, positive, squares)

    def _audit_columns(self, slopes: Matrix, weights: Vector | None) -> tuple[Matrix, Vector]:
        """The slopes times X and, with weights, the weighted square of each column's length: one pass."""

        def of(half: slice) -> list[NDArray[Any]]:
            sums = np.zeros((2, self.n_features))
            squares = np.zeros(0 if weights is None else self.n_features)
            # One buffer for all, in the order of X: fresh memory costs more than the squares themselves.
            buffer = np.empty_like(self.X[:AUDITED], dtype=np.float64)
            for part, X in self._chunks(AUDITED, half):
                sums += slopes[:, part] @ X
                if weights is not None:
                    squares += weights[part] @ np.multiply(X, X, out=buffer[: len(X)])
            return [sums, squares]

        sums, squares = (reduce(add, answers) for answers in zip(*self._halves(of), strict=True))
        return sums, squares

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
                check()
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
            return np.asarray(self.X[rows], dtype=np.float64)
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

    @classmethod
    def joined(cls, blocks: Sequence[DenseBlock]) -> DenseBlock:
        X, y, s = (np.concatenate([getattr(block, name) for block in blocks]) for name in "Xys")
        return cls(X, y, s, intercept=blocks[0].b > 0)

    def columns(self, chosen: NDArray[np.intp]) -> DenseBlock:
        return DenseBlock(self.X[:, chosen], self.y, self.s, intercept=self.b > 0)

    @property
    def column_counts(self) -> NDArray[np.intp]:
        return np.full(self.n_features, self.n_samples)

    def copy_columns(self, chosen: NDArray[np.intp], places: Indices, offset: int, target: Columns) -> None:
        # All columns are as long as each other, so the places are a matrix.
        if not len(chosen):
            return
        mine = slice(offset, offset + self.n_samples)
        root = np.sqrt(self.s) * self.y
        shape = (len(chosen), -1)
        np.multiply(root, self.X[:, chosen].T, out=target.data.reshape(shape)[:, mine])
        target.indices.reshape(shape)[:, mine] = np.arange(mine.start, mine.stop)
