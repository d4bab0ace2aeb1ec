r"""Rows with scaled features: column j of X times u_j, without a copy of X.

`ScaledBlock` holds the unscaled block: it multiplies θ by u before it calls the block, and the block's sums
by u afterwards. So sparse rows stay sparse, and rows on a disk or a cluster need no other source.
`standard_deviations` computes the units that `standardize=True` divides by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from majorant.rows.base import LossByClass, LossSum, Rows
from majorant.rows.block import Block, Indices
from majorant.rows.columns import Columns
from majorant.rows.memory import MemoryRows
from majorant.rows.partitioned import PartitionedRows
from majorant.status import Matrix, Vector

# The share of Σ s x² below which Σ s x² minus the squared mean has lost too many digits: one more pass then
# computes the variance from centred values.
CANCELLED = 1e-6

# The largest standard deviation, relative to the mean, of a column that counts as constant.
CONSTANT = 1e-14


def standard_deviations(rows: Rows) -> Vector:
    """The standard deviation of every feature, weighted as the loss weighs the rows; 1 if it is constant."""
    found = deviations_from_mean(rows)
    return np.where(found > 0.0, found, 1.0)


def deviations_from_mean(rows: Rows) -> Vector:
    """The standard deviation of every feature, weighted as the loss weighs the rows.

    It follows from the gradient of the loss at θ = 0, without a pass over the rows, unless a feature is far
    from zero in units of its deviation.
    """
    stats = rows.stats_at_zero
    weight = stats.loss.value
    squares = stats.squares[:-1]
    means = 0.5 * (stats.negative.gradient[:-1] - stats.positive.gradient[:-1]) / weight
    variances = squares / weight - means**2
    for j in np.flatnonzero(variances <= CANCELLED * squares / weight).tolist():
        if squares[j] > 0.0:
            sums = rows.sum_blocks(partial(_centred_sums, j, float(means[j])))
            variances[j] = (sums[2] - sums[1] ** 2 / weight) / weight
    deviations = np.sqrt(np.maximum(variances, 0.0))
    return np.where(deviations > CONSTANT * np.abs(means), deviations, 0.0)


def _centred_sums(j: int, mean: float, block: Block) -> Vector:
    """Σ s, Σ s (x - mean) and Σ s (x - mean)² of one feature."""
    x = block.y * block.columns(np.array([j])).matvec(np.array([1.0, 0.0])) - mean
    return np.array([block.s.sum(), block.s @ x, block.s @ x**2])


def scaled_rows(parts: Sequence[Rows], units: Vector) -> list[Rows]:
    """The rows of every class with column j of X times units[j]; parts of one store share the transform."""
    scaled: list[Rows] = []
    known: dict[Callable[[Block], Block], Scaling] = {}
    for rows in parts:
        part: Rows
        if isinstance(rows, PartitionedRows):
            reweight = rows.transform.reweight
            scaling = known.setdefault(reweight, Scaling(reweight, units))
            part = replace(rows, transform=replace(rows.transform, reweight=scaling))
        else:
            assert isinstance(rows, MemoryRows)
            part = rows.transformed(lambda block: ScaledBlock(block, units))
        part.__dict__["stats_at_zero"] = _by_class(rows.stats_at_zero, np.append(units, 1.0))
        scaled.append(part)
    return scaled


def _scaled(loss: LossSum, units: Vector) -> LossSum:
    """The loss with the gradient in scaled coefficients."""
    return LossSum(loss.value, units * loss.gradient)


def _by_class(found: LossByClass, units: Vector) -> LossByClass:
    negative, positive, loss = (_scaled(part, units) for part in (found.negative, found.positive, found.loss))
    squares = units**2 * found.squares if found.squares.size else found.squares
    return LossByClass(negative, positive, loss, squares)


@dataclass(frozen=True, eq=False)
class Scaling:
    """A transform that changes the weights of a block, then scales its features; it can be pickled."""

    reweight: Callable[[Block], Block]
    units: Vector

    def __call__(self, block: Block) -> Block:
        return ScaledBlock(self.reweight(block), self.units)


def _of_block(name: str) -> Any:
    """A property that reads and writes an attribute of the unscaled block."""
    return property(attrgetter(f"block.{name}"), lambda self, value: setattr(self.block, name, value))


class ScaledBlock(Block):
    """A block with column j of X times units[j].

    Parameters
    ----------
    block : Block
        The block with the unscaled X.
    units : array (n_features,)
    """

    y, s, fold = _of_block("y"), _of_block("s"), _of_block("fold")
    dense, sparse_entries = _of_block("dense"), _of_block("sparse_entries")
    n_features, column_counts = _of_block("n_features"), _of_block("column_counts")
    squared_row_lengths = _of_block("squared_row_lengths")

    def __init__(self, block: Block, units: Vector) -> None:
        self.block, self.units = block, units
        super().__init__(block.y, block.s, intercept=block.b > 0.0)
        # The units of θ; the intercept is not scaled.
        self._units = np.append(units, 1.0)

    # Sums over the rows ------------------------------------------------------------------------

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        return _scaled(self.block.loss(self._units * theta, indices), self._units)

    def loss_by_class(self, theta: Vector, *, lengths: bool) -> LossByClass:
        return _by_class(self.block.loss_by_class(self._units * theta, lengths=lengths), self._units)

    def transposed_products(self, u: Matrix) -> Matrix:
        products = self.block.transposed_products(u)
        products *= self.units
        return products

    def squared_norms(self, units: Vector | None = None) -> Vector:
        return self.block.squared_norms(self.units if units is None else units * self.units)

    def design(self) -> Matrix:
        design = self.block.design()
        design *= self._units
        return design

    def matvec(self, d: Vector) -> Vector:
        return self.block.matvec(self._units * d)

    def active_product(self, active: NDArray[np.bool_], d: Vector, out: Vector | None = None) -> Vector:
        product = self.block.active_product(active, self._units * d, out)
        product *= self._units
        return product

    def rank_update(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        own = np.zeros_like(H), np.zeros_like(c)
        self.block.rank_update(rows, sign, *own)
        self._add(own, H, c)

    def symmetrize(self, H: Matrix) -> None:  # type: ignore[override]
        self.block.symmetrize(H)

    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        own = np.zeros_like(H), np.zeros_like(c)
        loss = self.block.advance(self._units * d, dv, v, active, *own)
        if not H.size:
            c[:] = 0.0  # without H, c is the gradient after the step
        self._add(own, H, c)
        return loss

    def _add(self, own: tuple[Matrix, Vector], H: Matrix, c: Vector) -> None:
        """Scale the sums of the block, and add them to H and c."""
        if H.size:
            H += self._units[:, np.newaxis] * own[0] * self._units
        c += self._units * own[1]

    def dual_epoch(self, order: Indices, inverse: Vector, theta: Vector) -> None:
        """As `CsrBlock.dual_epoch`, with the weights of the penalty in the units of the block."""
        from majorant.rows.csr import CsrBlock  # imports numba

        assert isinstance(self.block, CsrBlock)
        theta *= self._units
        self.block.dual_epoch(order, inverse * self._units**2, theta)
        theta /= self._units

    # Some of its rows or columns ---------------------------------------------------------------

    def rows(self, chosen: slice) -> Block:
        return ScaledBlock(self.block.rows(chosen), self.units)

    def columns(self, chosen: NDArray[np.intp]) -> Block:
        return ScaledBlock(self.block.columns(chosen), self.units[chosen])

    def renumbered(self, chosen: NDArray[np.intp]) -> Block:
        return ScaledBlock(self.block.renumbered(chosen), self.units[chosen])

    def relabelled(self, y: Vector, s: Vector) -> Self:
        return type(self)(self.block.relabelled(y, s), self.units)

    @classmethod
    def joined(cls, blocks: Sequence[Self]) -> Self:
        (kind,) = {type(block.block) for block in blocks}
        return cls(kind.joined([block.block for block in blocks]), blocks[0].units)

    def copy_columns(self, chosen: NDArray[np.intp], places: Indices, offset: int, target: Columns) -> None:
        self.block.copy_columns(chosen, places, offset, target)
        counts = self.column_counts[chosen]
        # The entries of a column have consecutive places.
        before = np.cumsum(counts) - counts
        entries = np.repeat(places - before, counts) + np.arange(counts.sum())
        target.data[entries] *= np.repeat(self.units[chosen], counts)
