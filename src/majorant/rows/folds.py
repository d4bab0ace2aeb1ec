"""Folds of rows that are not in memory: the place of a row determines its fold.

The rows of each class are numbered in the order of the blocks, and cut into runs of n rows, for n folds. Each
run has one row of every fold, in a pseudo-random order that depends on the number of the run, the class and a
seed. So all folds have the same share of every class, to one row; they do not depend on how the rows are cut
into blocks; and the folds of a block follow from the number of rows of each class in the blocks before it.

To leave a fold out of a training, its rows get the weight 0. This is exact: such a row adds 0 to every sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from majorant.rows.block import Block
from majorant.status import Matrix, Vector

FoldOf: TypeAlias = NDArray[np.int32]
"""The number of the fold of each row."""


@dataclass(frozen=True, eq=False)
class Folds:
    """The rule that assigns rows to folds.

    Parameters
    ----------
    number : int
        The number of folds.
    seed : int
        The seed of the order inside each run.
    before : mapping of arrays (n_classes,)
        For each block, the number of rows of each class in the blocks before it.
    """

    number: int
    seed: int
    before: Mapping[int, NDArray[np.int64]]

    @classmethod
    def of_counts(cls, number: int, seed: int, counts: NDArray[np.int64]) -> Folds:
        """From the number of rows by block and class."""
        return cls(number, seed, dict(enumerate(np.cumsum(counts, axis=0) - counts)))

    def only(self, i: int) -> Folds:
        """The rule for one block, without the counts of the others: small enough to be sent with a task."""
        return replace(self, before={i: self.before[i]})

    def of_block(self, i: int, codes: NDArray[np.intp]) -> FoldOf:
        """The fold of each row of block i; `codes` are the numbers of the rows' classes."""
        folds = np.zeros(len(codes), dtype=np.int32)
        for code, first in enumerate(self.before[i].tolist()):
            rows = np.flatnonzero(codes == code)
            folds[rows] = self._folds_of_class(code, first, first + len(rows))
        return folds

    def sizes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of rows of each fold, from that of each class."""
        n = self.number
        last_runs = [
            self._folds_of_class(code, total - total % n, total) for code, total in enumerate(counts.tolist())
        ]
        return int((counts // n).sum()) + np.bincount(np.concatenate(last_runs), minlength=n)

    def _folds_of_class(self, code: int, start: int, stop: int) -> FoldOf:
        """The folds of the rows of a class whose numbers are in [start, stop)."""
        n = self.number
        first_run, runs = start // n, -(-stop // n) - start // n
        places = (first_run * n + np.arange(runs * n)).astype(np.uint64)
        key = _scrambled(_scrambled(np.uint64(self.seed)) + np.uint64(code))
        order = np.argsort(_scrambled(places + key).reshape(runs, n), axis=1, kind="stable")
        begin = start - first_run * n
        return order.ravel()[begin : begin + stop - start].astype(np.int32)


def _scrambled(x: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """A pseudo-random number for each number: a hash by multiplications and shifts."""
    x = np.atleast_1d(np.asarray(x, dtype=np.uint64))
    for factor in (0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB):
        x = (x ^ (x >> np.uint64(32))) * np.uint64(factor) + np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(29))


def without_fold(fold: int, factors: Vector | None, block: Block) -> Block:
    """The block with weight 0 for the rows of a fold, and the other weights times a factor of their class."""
    assert block.fold is not None
    s = np.where(block.fold == fold, 0.0, block.s)
    if factors is not None:
        s *= factors[_codes(block, len(factors))]
    return block.relabelled(block.y, s)


def held_out_counts(fold: int, models: Sequence[Matrix], n_classes: int, block: Block) -> NDArray[np.int64]:
    """The confusion matrices of models on the rows of a fold: (model, true class, predicted class).

    A model is θ, with a row per class, or one row for two classes.
    """
    assert block.fold is not None
    held_out = block.fold == fold
    true = _codes(block, n_classes)[held_out]
    counts = np.zeros((len(models), n_classes, n_classes), dtype=np.int64)
    for number, theta in enumerate(models):
        scores = _scores(theta, block)[:, held_out]
        predicted = (scores[0] > 0).astype(np.intp) if len(theta) == 1 else scores.argmax(axis=0)
        pairs = np.bincount(true * n_classes + predicted, minlength=n_classes**2)
        counts[number] = pairs.reshape(n_classes, n_classes)
    return counts


def held_out_scores(
    fold: int, models: Sequence[Matrix], n_classes: int, block: Block
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The class numbers of the rows of a fold, and w·x + β by each model: (model, row, row of θ)."""
    assert block.fold is not None
    held_out = block.fold == fold
    scores = [_scores(theta, block)[:, held_out].T for theta in models]
    return _codes(block, n_classes)[held_out], np.stack(scores)


def _codes(block: Block, n_classes: int) -> NDArray[np.intp]:
    """The number of the class of each row."""
    codes: NDArray[np.intp] = ((block.y > 0.0) if n_classes == 2 else block.y).astype(np.intp)
    return codes


def _scores(theta: Matrix, block: Block) -> Matrix:
    """w·x + β for every row of θ and of the block."""
    unlabelled = block.relabelled(np.ones(block.n_samples), block.s)
    return np.stack([unlabelled.matvec(row) for row in theta])
