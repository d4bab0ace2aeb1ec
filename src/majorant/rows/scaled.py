r"""Rows whose features are in other units: column j of X times u_j, without a copy of X.

`ScaledBlock` answers every question by the block that it holds: θ is multiplied by u before, and sums over
the rows are multiplied by u after. So sparse rows stay sparse, and rows on a disk or a cluster need no other
source. `standard_deviations` has the units that `standardize=True` divides by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from majorant.rows.base import LossByClass, LossSum, Rows
from majorant.rows.block import Block, Indices
from majorant.rows.columns import Columns
from majorant.rows.folds import FoldOf
from majorant.rows.memory import MemoryRows
from majorant.rows.partitioned import PartitionedRows
from majorant.status import Matrix, Vector

# The share of Σ s x² that is left after centring, below which the difference has lost too many digits and the
# rows are read once more.
CANCELLED = 1e-6

# A standard deviation that is smaller, relative to the mean, is rounding: the column is constant.
CONSTANT = 1e-14


def standard_deviations(rows: Rows) -> Vector:
    """The standard deviation of every feature, weighted as the loss weighs the rows; 1 if it is constant."""
    found = deviations_from_mean(rows)
    return np.where(found > 0.0, found, 1.0)


def deviations_from_mean(rows: Rows) -> Vector:
    """The standard deviation of every feature, weighted as the loss weighs the rows.

    Known from the loss at θ = 0, without a pass over the rows, unless features are far from zero compared to
    their deviation.
    """
    stats = rows.stats_at_zero
    weight = stats.loss.value
    squares = stats.squares[:-1]
    means = 0.5 * (stats.negative.gradient[:-1] - stats.positive.gradient[:-1]) / weight
    variances = squares / weight - means**2
    for j in np.flatnonzero(variances <= CANCELLED * squares / weight).tolist():
        if squares[j] > 0.0:
            variances[j] = _variance(rows, j, float(means[j]))
    deviations = np.sqrt(np.maximum(variances, 0.0))
    return np.where(deviations > CONSTANT * np.abs(means), deviations, 0.0)


def _variance(rows: Rows, j: int, mean: float) -> float:
    """The variance of one feature, from what its mean leaves of each row: one pass."""
    weight, first, second = rows.sum_blocks(lambda block: _centred_sums(block, j, mean)).tolist()
    return float((second - first**2 / weight) / weight)


def _centred_sums(block: Block, j: int, mean: float) -> Vector:
    """Σ s, Σ s (x - mean) and Σ s (x - mean)² of one feature."""
    x = block.y * block.columns(np.array([j])).matvec(np.array([1.0, 0.0])) - mean
    return np.array([block.s.sum(), block.s @ x, block.s @ x**2])


def scaled_rows(parts: Sequence[Rows], units: Vector) -> list[Rows]:
    """The rows of every class with column j of X times units[j]; of one store, with one transform."""
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
    """The loss of coefficients in other units."""
    return LossSum(loss.value, units * loss.gradient)


def _by_class(found: LossByClass, units: Vector) -> LossByClass:
    negative, positive, loss = (_scaled(part, units) for part in (found.negative, found.positive, found.loss))
    squares = units**2 * found.squares if found.squares.size else found.squares
    return LossByClass(negative, positive, loss, squares)


@dataclass(frozen=True, eq=False)
class Scaling:
    """Changes the weights of a block, then its units: a transform that can be sent to a worker."""

    reweight: Callable[[Block], Block]
    units: Vector

    def __call__(self, block: Block) -> Block:
        return ScaledBlock(self.reweight(block), self.units)


class ScaledBlock(Block):
    """A block with column j of X times units[j].

    Parameters
    ----------
    block : Block
        With X as it is.
    units : array (n_features,)
    """

    def __init__(self, block: Block, units: Vector) -> None:
        self.block, self.units = block, units
        super().__init__(block.y, block.s, intercept=block.b > 0.0)
        self.dense, self.sparse_entries = block.dense, block.sparse_entries
        self.fold: FoldOf | None = block.fold
        # Those of θ: the intercept stays as it is.
        self._units = np.append(units, 1.0)

    @property
    def y(self) -> Vector:
        """The labels, which are the block's."""
        return self.block.y

    @y.setter
    def y(self, labels: Vector) -> None:
        self.block.y = labels

    @property
    def s(self) -> Vector:
        """The weights, which are the block's."""
        return self.block.s

    @s.setter
    def s(self, weights: Vector) -> None:
        self.block.s = weights

    @property
    def n_features(self) -> int:
        return self.block.n_features

    @property
    def squared_row_lengths(self) -> float:
        return self.block.squared_row_lengths

    @property
    def column_counts(self) -> NDArray[np.intp]:
        return self.block.column_counts

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
            c[:] = 0.0  # the gradient after the step takes its place
        self._add(own, H, c)
        return loss

    def _add(self, own: tuple[Matrix, Vector], H: Matrix, c: Vector) -> None:
        """Add what the block has found, in its own units, to H and c."""
        if H.size:
            H += self._units[:, np.newaxis] * own[0] * self._units
        c += self._units * own[1]

    def dual_epoch(self, order: Indices, inverse: Vector, theta: Vector) -> None:
        """As `CsrBlock.dual_epoch`: the penalty of the block's own coefficients has other weights."""
        from majorant.rows.csr import CsrBlock  # imports numba

        assert isinstance(self.block, CsrBlock)
        theta *= self._units
        self.block.dual_epoch(order, inverse * self._units**2, theta)
        theta /= self._units

    # Parts of it -------------------------------------------------------------------------------

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
        # The places of the entries of a column follow on each other.
        before = np.cumsum(counts) - counts
        entries = np.repeat(places - before, counts) + np.arange(counts.sum())
        target.data[entries] *= np.repeat(self.units[chosen], counts)
