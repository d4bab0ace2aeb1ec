"""A block of dense rows, whose sums are products of BLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.losses import SquaredHinge
from majorant.rows.base import Answer, LossByClass, LossSum
from majorant.rows.block import Block, Indices
from majorant.rows.threads import blocks_for, map_parts
from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.rows.columns import Columns

# The number of entries from which products with X run on all cores, each with a range of the rows.
LEAST_ENTRIES = 400_000

# The fewest rows of such a range.
LEAST_ROWS = 2048

# The same for the Gram matrix of some rows, in products of two entries. (A thread computes 3e7 in a ms.)
LEAST_PRODUCTS = 100_000_000

# How many rows are converted at a time, how many are copied for a Gram matrix at a time, and how many entries
# are read twice in a row. (Enough for BLAS, little memory beside X, and in the cache.)
CHUNK = 1024
GATHERED = 1024
CACHED = 2**18
# If fewer than 1/WIDE of the entries of w differ from zero, only their columns are multiplied.
WIDE = 64


class DenseBlock(Block):
    """Rows in an ndarray. Single precision and strides that BLAS cannot read are converted chunk by chunk.

    Products with a large X run on threads of our own, each with a range of the rows: on cina0 and two cores
    the Gram matrix takes 6.5 ms, and 10.6 ms with the threads of BLAS.
    """

    dense = True
    # The last θ whose loss was computed, the loss, and the slopes of the rows at θ.
    _last: tuple[Vector, LossSum, Vector] | None = None

    def __init__(self, X: NDArray[Any], y: Vector, s: Vector, *, intercept: bool) -> None:
        super().__init__(y, s, intercept=intercept)
        self.X = X
        # For a product with an array of another type, or with strides that BLAS cannot read, numpy copies the
        # whole array each time; such arrays are copied in chunks instead.
        direct = X.dtype == np.float64 and (
            X.strides[1] == 8 <= X.shape[1] * 8 <= X.strides[0]
            or X.strides[0] == 8 <= X.shape[0] * 8 <= X.strides[1]
        )
        self._step = max(1, len(X)) if direct else CHUNK
        self._by_columns = abs(X.strides[0]) < abs(X.strides[1])
        self._in_one_part = self._parts(len(X)) == 1
        # Whether one call of numpy multiplies by all of X.
        self._in_one_call = direct and self._in_one_part

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def _chunks(self, step: int, rows: slice | None = None) -> Iterator[tuple[slice, Matrix]]:
        start, stop = (0, len(self.X)) if rows is None else (rows.start, rows.stop)
        for first in range(start, stop, step):
            part = slice(first, min(first + step, stop))
            yield part, np.asarray(self.X[part], dtype=np.float64)

    def _parts(self, length: int) -> int:
        """The number of ranges that this many rows are cut into, for the cores."""
        return blocks_for(length * self.n_features, max(LEAST_ENTRIES, 2 * LEAST_ROWS * self.n_features))

    def _by_parts(self, question: Callable[[slice], Answer]) -> list[Answer]:
        """The answers for ranges of the rows, computed on all cores."""
        return map_parts(question, self.n_samples, 1 if self._in_one_part else self._parts(self.n_samples))

    def _matvec(self, d: Vector, out: Vector | None = None) -> Vector:
        """Xd, written to `out` if `out` is given."""
        if self._in_one_call:
            return np.matmul(self.X, d, out=out)
        scores = np.empty(self.n_samples) if out is None else out

        def fill(rows: slice) -> None:
            for part, X in self._chunks(self._step, rows):
                np.matmul(X, d, out=scores[part])

        self._by_parts(fill)
        return scores

    def _left_product(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """The product uX, for a vector or the rows of a matrix."""
        if self._in_one_call:
            return np.asarray(u @ self.X)

        def product(rows: slice) -> NDArray[np.float64]:
            return reduce(add, (u[..., part] @ X for part, X in self._chunks(self._step, rows)))

        return reduce(add, self._by_parts(product))

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        if indices is not None:
            X = self.X.take(indices, axis=0).astype(np.float64, copy=False)
            return self._loss_of(theta, X, self.y[indices], self.s[indices])[0]

        return self._loss_and_slopes(theta)[1]

    def _loss_and_slopes(self, theta: Vector) -> tuple[Vector, LossSum, Vector]:
        """θ, the loss and the slopes of the rows at θ; cached for `loss_by_class`, which often comes next."""
        last = self._last  # read once, since another thread may replace it
        if last is not None and np.array_equal(last[0], theta):
            return last
        # Chunk by chunk, so that X is in the cache for the second product: on cina0 1.5 times as fast.
        step = min(self._step, max(64, CACHED // max(1, self.n_features)))
        if step >= self.n_samples and self._in_one_call:
            found = theta.copy(), *self._loss_of(theta, self.X, self.y, self.s)
        else:
            slopes = np.empty(self.n_samples)

            def total(rows: slice) -> LossSum:
                sums = []
                for part, X in self._chunks(step, rows):
                    loss, slopes[part] = self._loss_of(theta, X, self.y[part], self.s[part])
                    sums.append(loss)
                return reduce(add, sums)

            found = theta.copy(), reduce(add, self._by_parts(total)), slopes
        self._last = found
        return found

    def _loss_of(self, theta: Vector, X: Matrix, y: Vector, s: Vector) -> tuple[LossSum, Vector]:
        """The loss over some rows, and their slopes s y ρ²'(v)."""
        margins = self._scores(X, theta[:-1])
        margins += self.b * theta[-1]
        margins *= y
        value, slope = SquaredHinge.weighted_sum(margins, s)
        slope *= y
        gradient = np.empty(len(theta))
        np.matmul(slope, X, out=gradient[:-1])
        gradient[-1] = self.b * slope.sum()
        return LossSum(value, gradient), slope

    @staticmethod
    def _scores(X: Matrix, w: Vector) -> Vector:
        """Xw; if few entries of w differ from zero, by their columns only."""
        used = np.flatnonzero(w) if len(w) >= WIDE else w
        if len(used) * WIDE >= len(w):
            return np.asarray(X @ w)
        return np.asarray(X[:, used] @ w[used])

    def loss_by_class(self, theta: Vector, *, lengths: bool) -> LossByClass:
        if not lengths:
            return self._split_loss(theta)
        # At θ = 0, where every fit begins, the margins are zero.
        margins = self.matvec(theta) if theta.any() else np.zeros(self.n_samples)
        by_class = np.stack([self.y < 0.0, self.y > 0.0])
        values = by_class @ (self.s * SquaredHinge.value(margins))
        slopes = by_class * (self.s * self.y * SquaredHinge.derivative(margins))
        weights = self.s * (margins < 1.0)
        sums, squares = self._column_sums(slopes, weights)
        gradients = np.column_stack([sums, self.b * slopes.sum(axis=1)])
        negative, positive = map(LossSum, values.tolist(), gradients)
        squares = np.append(squares, self.b**2 * weights.sum())
        return LossByClass(negative, positive, negative + positive, squares)

    def _split_loss(self, theta: Vector) -> LossByClass:
        """The loss by class: one product with X more than the loss over all rows, which may be cached.

        The product is for the class whose slopes have the smaller sum; the other class is the difference to
        the loss over all rows. (The smaller one as a difference would have lost its digits.)
        """
        _, loss, slopes = self._loss_and_slopes(theta)
        # The slope s y ρ²'(v) of a row has the sign of -y.
        slopes_by_class = np.maximum(slopes, 0.0), np.minimum(slopes, 0.0)
        lighter, heavier = sorted(slopes_by_class, key=lambda slopes: abs(float(slopes.sum())))
        sums = [LossSum(0.0, np.zeros(len(theta))), loss]
        if lighter.any():
            gradient = np.append(self._left_product(lighter), self.b * lighter.sum())
            rest = loss.gradient - gradient
            rest[-1] = self.b * heavier.sum()
            # s ρ²(v) = slope²/4s
            value = float(lighter @ (lighter * self._quarter_weights))
            sums = [LossSum(value, gradient), LossSum(max(loss.value - value, 0.0), rest)]
        negative, positive = sums if lighter is slopes_by_class[0] else sums[::-1]
        return LossByClass(negative, positive, loss, np.zeros(0))

    @cached_property
    def _quarter_weights(self) -> Vector:
        """1/4s; 0 for rows of weight 0."""
        return np.divide(0.25, self.s, out=np.zeros_like(self.s), where=self.s > 0.0)

    def _column_sums(self, slopes: Matrix, weights: Vector) -> tuple[Matrix, Vector]:
        """The slopes times X, and the weighted squared length of each column: one pass."""
        unweighted = bool(np.all(weights == 1.0))

        def of(rows: slice) -> list[NDArray[Any]]:
            sums, squares = np.zeros((2, self.n_features)), np.zeros(self.n_features)
            # Odd: columns of the buffer a power of two apart would share one set of the cache.
            step = min(CHUNK, max(64, CACHED // max(1, self.n_features))) | 1
            # One buffer for all chunks, in the order of X: allocating it takes longer than the squares.
            buffer = np.empty_like(self.X[: 0 if unweighted else step], dtype=np.float64)
            for part, X in self._chunks(step, rows):
                # On cina0 one product with two vectors takes 1.9 times as long as two products with one.
                sums[0] += slopes[0, part] @ X
                sums[1] += slopes[1, part] @ X
                if unweighted:
                    squares += np.einsum("ki,ki->i", X, X)
                else:
                    squares += weights[part] @ np.multiply(X, X, out=buffer[: len(X)])
            return [sums, squares]

        sums, squares = (reduce(add, answers) for answers in zip(*self._by_parts(of), strict=True))
        return sums, squares

    def matvec(self, d: Vector, out: Vector | None = None) -> Vector:
        # In place: on data with few columns these vectors take as long as the product.
        scores = self._matvec(d[:-1], out)
        scores += self.b * d[-1]
        scores *= self.y
        return scores

    def rank_update(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        if not len(rows):
            return
        root = np.sqrt(2.0 * self.s[rows])
        labelled = root * self.y[rows]
        count = blocks_for(len(rows) * self.n_features**2, LEAST_PRODUCTS)
        for total in map_parts(partial(self._products, rows, root, labelled), len(rows), count):
            if sign < 0.0:
                H -= total[:-1, :-1]
                c -= total[-1, :-1]
            else:
                H += total[:-1, :-1]
                c += total[-1, :-1]

    def _products(self, rows: Indices, root: Vector, labelled: Vector, share: slice) -> Matrix:
        """ZᵀZ over a range of the rows, Z = (root X, root b, labelled), which contains H and c."""
        total = np.zeros((0, 0))
        count = min(GATHERED, share.stop - share.start)
        buffer = np.empty((count, self.n_features), dtype=self.X.dtype)
        design = np.empty((count, self.n_features + 2))
        for start in range(share.start, share.stop, GATHERED):
            check()
            part = slice(start, min(start + GATHERED, share.stop))
            Z = design[: part.stop - start]
            np.multiply(self._gather(rows[part], buffer), root[part, np.newaxis], out=Z[:, :-2])
            np.multiply(root[part], self.b, out=Z[:, -2])
            Z[:, -1] = labelled[part]
            product = Z.T @ Z
            total = np.add(total, product, out=total) if total.size else product
        return total

    def _gather(self, rows: Indices, buffer: NDArray[Any]) -> NDArray[Any]:
        """A copy of some rows of X, in the buffer if that is faster."""
        if self._by_columns:
            return self.X[rows]
        # With mode "raise" numpy would write to a copy of the buffer first.
        return self.X.take(rows, 0, buffer[: len(rows)], "clip")

    @staticmethod
    def symmetrize(H: Matrix) -> None:
        """Nothing to do: BLAS writes both triangles."""

    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        self.matvec(d, out=dv)
        self.update_active(1.0, dv, v, active, H, c)
        loss, slopes = SquaredHinge.weighted_sum(v.copy(), self.s)
        if not H.size:
            slopes *= self.y
            c[:-1] = self._left_product(slopes)
            c[-1] = self.b * slopes.sum()
        return loss

    def active_product(self, active: NDArray[np.bool_], d: Vector, out: Vector | None = None) -> Vector:
        image = self._matvec(d[:-1])
        image += self.b * d[-1]
        image *= 2.0 * self.s * active
        product = np.empty(len(d)) if out is None else out
        product[:-1] = self._left_product(image)
        product[-1] = self.b * image.sum()
        return product

    def transposed_products(self, u: Matrix) -> Matrix:
        # One product with a matrix of 8 rows takes a third of the time of 8 products with vectors, or less.
        return self._left_product(u)

    def squared_norms(self, units: Vector | None = None) -> Vector:
        parts = (X if units is None else X * units for _, X in self._chunks(CHUNK))
        return np.concatenate([np.einsum("ki,ki->k", X, X) for X in parts])

    def design(self) -> Matrix:
        return self._design_from(self.X)

    # Some of its rows or columns ---------------------------------------------------------------

    def rows(self, chosen: slice) -> DenseBlock:
        # Consecutive rows are a view. Every k-th row is a small copy, with strides that BLAS can read.
        X = self.X[chosen] if chosen.step is None else np.ascontiguousarray(self.X[chosen])
        y, s = map(np.ascontiguousarray, (self.y[chosen], self.s[chosen]))
        return DenseBlock(X, y, s, intercept=self.b > 0)

    @classmethod
    def joined(cls, blocks: Sequence[DenseBlock]) -> DenseBlock:
        X, y, s = (np.concatenate([getattr(block, name) for block in blocks]) for name in "Xys")
        return cls(X, y, s, intercept=blocks[0].b > 0)

    def columns(self, chosen: NDArray[np.intp]) -> DenseBlock:
        X = self.X[:, chosen] if self._by_columns else self.X.take(chosen, axis=1)  # twice as fast
        return DenseBlock(X, self.y, self.s, intercept=self.b > 0)

    @property
    def column_counts(self) -> NDArray[np.intp]:
        return np.full(self.n_features, self.n_samples)

    def copy_columns(self, chosen: NDArray[np.intp], places: Indices, offset: int, target: Columns) -> None:
        # All columns have the same number of entries, so the target is a matrix.
        if not len(chosen):
            return
        rows = slice(offset, offset + self.n_samples)
        root = np.sqrt(self.s) * self.y
        shape = (len(chosen), -1)
        np.multiply(root, self.X[:, chosen].T, out=target.data.reshape(shape)[:, rows])
        target.indices.reshape(shape)[:, rows] = np.arange(rows.start, rows.stop)
