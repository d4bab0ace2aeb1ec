"""A block of CSR rows. Imports numba, so it is imported only when there is such a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.rows import kernels
from majorant.rows.base import LossByClass, LossSum
from majorant.rows.block import Block, Indices
from majorant.rows.threads import ENTRIES_PER_BLOCK, blocks_for, map_parts
from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.rows.columns import Columns

# The most products of two entries that one call of a kernel adds up: a few tenths of a second, since Ctrl-C
# is checked between two calls.
PRODUCTS = 1e8
# The number of entries compared at a time, so that numpy's temporary arrays stay in the cache.
PIECE = 16_384


class CsrBlock(Block):
    """Rows in CSR form, whose sums are the compiled loops of `kernels`.

    `entries` are the values, their column numbers, and the first and last place of each row's entries.
    """

    def __init__(
        self,
        entries: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
        n_features: int,
        y: Vector,
        s: Vector,
        *,
        intercept: bool,
        ones: bool,
    ) -> None:
        super().__init__(y, s, intercept=intercept)
        self._entries = entries
        self._csr = (None if ones else entries[0], *entries[1:])
        self._n_features = n_features
        self.sparse_entries = int((entries[3] - entries[2]).sum())
        # The last features that `renumbered` has kept, and the new column numbers: a list that the blocks of
        # other classes share.
        self._renumbered: list[NDArray[Any]] = []

    @classmethod
    def of(cls, X: Any, y: Vector, s: Vector, *, intercept: bool) -> CsrBlock:
        """The rows of a scipy matrix."""
        # With unsigned indices the compiled loops need no test for negative ones: 1.4 times as fast.
        pointers = _unsigned(X.indptr)
        entries = (X.data, _narrow(X.indices, X.shape[1]), pointers[:-1], pointers[1:])
        ones = _all_ones(X.data)
        return cls(entries, X.shape[1], y, s, intercept=intercept, ones=ones)

    @property
    def n_features(self) -> int:
        return self._n_features

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        if indices is None:  # as fast as a kernel without classes, which would have to be compiled too
            return self.loss_by_class(theta, lengths=False).loss
        data, columns, starts, stops = self._csr
        value, gradient = np.zeros(1), np.zeros((1, len(theta)))
        kernels.loss_by_class(
            data, columns, starts[indices], stops[indices], self.y[indices], self.s[indices], self.b, theta,
            value, gradient, np.zeros(0),
        )  # fmt: skip
        return LossSum(float(value[0]), gradient[0])

    def loss_by_class(self, theta: Vector, *, lengths: bool) -> LossByClass:
        values, gradients = np.zeros(2), np.zeros((2, len(theta)))
        squares = np.zeros(len(theta) if lengths else 0)
        kernels.loss_by_class(*self._csr, self.y, self.s, self.b, theta, values, gradients, squares)
        negative, positive = map(LossSum, values.tolist(), gradients)
        return LossByClass(negative, positive, negative + positive, squares)

    def transposed_products(self, u: Matrix) -> Matrix:
        products = np.zeros((len(u), self.n_features))
        for own, product in zip(np.ascontiguousarray(u), products, strict=True):
            kernels.transposed_product(*self._csr, own, product)
        return products

    def squared_norms(self, units: Vector | None = None) -> Vector:
        norms = np.zeros(self.n_samples)
        units = np.ones(self.n_features) if units is None else units
        kernels.squared_norms(*self._entries, units, norms)
        return norms

    def design(self) -> Matrix:
        data, indices, starts, stops = self._entries
        X = np.zeros((self.n_samples, self.n_features))
        for row, start, stop in zip(X, starts.tolist(), stops.tolist(), strict=True):
            row[indices[start:stop]] = data[start:stop]
        return self._design_from(X)

    def matvec(self, d: Vector) -> Vector:
        result = np.empty(self.n_samples)
        kernels.matvec(*self._csr, self.y, self.b, d, result)
        return result

    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        data, indices, starts, stops = self._csr
        total = 0.0
        for part in self._pieces if H.size else [slice(None)]:
            check()
            total += kernels.advance(
                data, indices, starts[part], stops[part], self.y[part], self.s[part], self.b, d,
                dv[part], v[part], active[part], H, c,
            )  # fmt: skip
        return float(total)

    def rank_update(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        for part in _pieces(self._lengths[rows] ** 2):
            check()
            kernels.rank_update(*self._csr, self.y, self.s, self.b, rows[part], sign, H, c)

    @cached_property
    def _lengths(self) -> NDArray[np.float64]:
        """The number of entries of each row."""
        _, _, starts, stops = self._entries
        return np.asarray(stops - starts, dtype=np.float64)

    @property
    def squared_row_lengths(self) -> float:
        return float(self._lengths @ self._lengths)

    @cached_property
    def _pieces(self) -> list[slice]:
        """The rows in slices that are short enough for one call, even if a Gram matrix is built of them."""
        return _pieces(self._lengths**2)

    @staticmethod
    def symmetrize(H: Matrix) -> None:
        kernels.symmetrize(H)

    def active_product(self, active: NDArray[np.bool_], d: Vector, out: Vector | None = None) -> Vector:
        product = np.empty(len(d)) if out is None else out
        product.fill(0.0)
        kernels.active_product(*self._csr, self.s, self.b, active, d, product)
        return product

    def dual_epoch(self, order: Indices, inverse: Vector, theta: Vector) -> None:
        """One step of dual coordinate descent for each row's dual variable: see `kernels.dual_epoch`."""
        kernels.dual_epoch(*self._csr, self.y, self.s, self.b, order, inverse, theta)

    # Some of its rows or columns ---------------------------------------------------------------

    def rows(self, chosen: slice) -> CsrBlock:
        data, indices, starts, stops = self._entries
        starts, stops, y, s = map(
            np.ascontiguousarray, (starts[chosen], stops[chosen], self.y[chosen], self.s[chosen])
        )
        entries = (data, indices, starts, stops)
        return CsrBlock(entries, self.n_features, y, s, intercept=self.b > 0, ones=self._csr[0] is None)

    def columns(self, chosen: NDArray[np.intp]) -> CsrBlock:
        position = np.full(self.n_features, -1, dtype=np.int32)
        position[chosen] = np.arange(len(chosen), dtype=np.int32)
        capacity = int(self.column_counts[chosen].sum())
        data = np.empty(capacity + 1, dtype=self._entries[0].dtype)
        indices = np.empty(capacity + 1, dtype=np.uint32)
        ends = np.zeros(self.n_samples + 1, dtype=np.uint64)
        kernels.take_columns(*self._entries, position, data, indices, ends)
        entries = (data, indices, ends[:-1], ends[1:])
        return CsrBlock(entries, len(chosen), self.y, self.s, intercept=self.b > 0, ones=self._csr[0] is None)

    def renumbered(self, chosen: NDArray[np.intp]) -> CsrBlock:
        """The same rows without the other features, whose entries are zero: only column numbers are copied.

        The stored entries of other features are zero, or so small that their squares are; they become entries
        of the first feature, where they change nothing.
        """
        data, indices, starts, stops = self._entries
        cached = self._renumbered
        if not cached or not np.array_equal(cached[0], chosen):
            position = np.zeros(self.n_features, dtype=np.uint32)
            position[chosen] = np.arange(len(chosen), dtype=np.uint32)
            # The arrays of `columns` have one unused entry at the end, whose column number may be anything.
            renumbered = np.empty(len(indices), dtype=np.uint32)
            count = blocks_for(len(indices), ENTRIES_PER_BLOCK)
            map_parts(
                lambda part: kernels.renumber(indices[part], position, renumbered[part]), len(indices), count
            )
            cached[:] = chosen, renumbered
        entries = (data, cached[1], starts, stops)
        return CsrBlock(entries, len(chosen), self.y, self.s, intercept=self.b > 0, ones=self._csr[0] is None)

    @classmethod
    def joined(cls, blocks: Sequence[CsrBlock]) -> CsrBlock:
        first = blocks[0]
        data, indices = (np.concatenate([block._entries[k] for block in blocks]) for k in (0, 1))
        before = np.cumsum([0] + [len(block._entries[0]) for block in blocks[:-1]]).astype(np.uint64)
        starts, stops = (
            np.concatenate([n + block._entries[k] for n, block in zip(before, blocks, strict=True)])
            for k in (2, 3)
        )
        y, s = (np.concatenate([getattr(block, name) for block in blocks]) for name in "ys")
        ones = all(block._csr[0] is None for block in blocks)
        entries = (data, indices, starts, stops)
        return cls(entries, first.n_features, y, s, intercept=first.b > 0, ones=ones)

    @cached_property
    def exact(self) -> bool:
        data = 1.0 if self._csr[0] is None else kernels.largest_whole(self._entries[0])
        weights = kernels.largest_whole(self.s)
        return bool(2.0 * weights * data**2 * self.n_samples < 2.0**53)

    @cached_property
    def column_counts(self) -> NDArray[np.intp]:
        counts = np.zeros(self.n_features, dtype=np.intp)
        kernels.column_counts(*self._entries, counts)
        return counts

    def copy_columns(self, chosen: NDArray[np.intp], places: Indices, offset: int, target: Columns) -> None:
        # First the chosen columns, row by row; then only their entries are sorted by column.
        part = self.columns(chosen)
        kernels.csr_to_csc(
            *part._entries, np.sqrt(self.s) * self.y, places.copy(), offset, target.data, target.indices
        )


def _all_ones(values: NDArray[Any]) -> bool:
    """Whether each value is 1; stops at the first piece with another value."""
    pieces = (values[start : start + PIECE] for start in range(0, len(values), PIECE))
    return all(bool(np.all(piece == 1.0)) for piece in pieces)


def _unsigned(indices: NDArray[Any]) -> NDArray[Any]:
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)


def _narrow(indices: NDArray[Any], n_features: int) -> NDArray[Any]:
    """Column numbers in 4 bytes; a copy if they have 8 bytes, which every pass would have to read."""
    return indices.astype(np.uint32) if n_features < 2**32 and indices.itemsize == 8 else _unsigned(indices)


def _pieces(products: NDArray[np.float64]) -> list[slice]:
    """Slices of the rows with about PRODUCTS products each, by each row's number of products."""
    done = np.cumsum(products)
    if not len(done) or done[-1] <= PRODUCTS:
        return [slice(0, len(done))]
    ends = np.searchsorted(done, np.arange(PRODUCTS, done[-1], PRODUCTS)) + 1
    cuts = np.unique([0, *ends.tolist(), len(done)]).tolist()
    return [slice(a, b) for a, b in pairwise(cuts)]
