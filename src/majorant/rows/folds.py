"""Folds of rows that are not in memory: which row belongs to which, told from its place alone.

The rows of each class are numbered in the order of the blocks. Each run of as many rows as there are folds
has one row for every fold, in an order drawn at random by the number of the run, the class and a seed. So the
folds have the same share of every class, to one row; they do not depend on how the rows are cut into blocks;
and a block knows its part of them from how many rows of each class went before it.

A fold is left out of a training by weights of zero, which is exact: a row of weight 0 adds nothing to a sum.
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
    """The rule.

    Parameters
    ----------
    number : int
        How many folds there are.
    seed : int
        Draws the order inside of each run.
    before : mapping of arrays (n_classes,)
        By block, how many rows of each class are in the blocks before it.
    """

    number: int
    seed: int
    before: Mapping[int, NDArray[np.int64]]

    @classmethod
    def of_counts(cls, number: int, seed: int, counts: NDArray[np.int64]) -> Folds:
        """From the number of rows by block and class."""
        return cls(number, seed, dict(enumerate(np.cumsum(counts, axis=0) - counts)))

    def only(self, i: int) -> Folds:
        """The rule for one block, which knows nothing of the others."""
        return replace(self, before={i: self.before[i]})

    def of_block(self, i: int, codes: NDArray[np.intp]) -> FoldOf:
        """The fold of each row of block i, from the number of its class."""
        folds = np.zeros(len(codes), dtype=np.int32)
        for code, first in enumerate(self.before[i].tolist()):
            mine = np.flatnonzero(codes == code)
            folds[mine] = self._drawn(code, first, first + len(mine))
        return folds

    def sizes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many rows each fold has, from how many each class has."""
        n = self.number
        rests = [self._drawn(code, total - total % n, total) for code, total in enumerate(counts.tolist())]
        return int((counts // n).sum()) + np.bincount(np.concatenate(rests), minlength=n)

    def _drawn(self, code: int, start: int, stop: int) -> FoldOf:
        """The folds of the rows from start to stop of a class."""
        n = self.number
        first_run, runs = start // n, -(-stop // n) - start // n
        places = (first_run * n + np.arange(runs * n)).astype(np.uint64)
        key = _scrambled(_scrambled(np.uint64(self.seed)) + np.uint64(code))
        order = np.argsort(_scrambled(places + key).reshape(runs, n), axis=1, kind="stable")
        begin = start - first_run * n
        return order.ravel()[begin : begin + stop - start].astype(np.int32)


def _scrambled(x: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Numbers that look as if drawn at random, each from one number: multiply by something odd, fold over."""
    x = np.atleast_1d(np.asarray(x, dtype=np.uint64))
    for factor in (0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB):
        x = (x ^ (x >> np.uint64(32))) * np.uint64(factor) + np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(29))


def without_fold(fold: int, factors: Vector | None, block: Block) -> Block:
    """The block with weight 0 for the rows of a fold; the others', times a factor of their class."""
    assert block.fold is not None
    s = np.where(block.fold == fold, 0.0, block.s)
    if factors is not None:
        s *= factors[_codes(block, len(factors))]
    return block.relabelled(block.y, s)


def held_out_counts(fold: int, models: Sequence[Matrix], n_classes: int, block: Block) -> NDArray[np.int64]:
    """Of the rows of a fold, how many of each class are taken for each, by each of the models.

    A model is θ, a row per class, or one for two classes.
    """
    assert block.fold is not None
    mine = block.fold == fold
    true = _codes(block, n_classes)[mine]
    counts = np.zeros((len(models), n_classes, n_classes), dtype=np.int64)
    for number, theta in enumerate(models):
        scores = _scores(theta, block)[:, mine]
        taken = (scores[0] > 0).astype(np.intp) if len(theta) == 1 else scores.argmax(axis=0)
        pairs = np.bincount(true * n_classes + taken, minlength=n_classes**2)
        counts[number] = pairs.reshape(n_classes, n_classes)
    return counts


def held_out_scores(
    fold: int, models: Sequence[Matrix], n_classes: int, block: Block
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Of the rows of a fold, the number of their class; and by each model w·x + β, a column per row of θ."""
    assert block.fold is not None
    mine = block.fold == fold
    scores = [_scores(theta, block)[:, mine].T for theta in models]
    return _codes(block, n_classes)[mine], np.stack(scores)


def _codes(block: Block, n_classes: int) -> NDArray[np.intp]:
    """The number of the class of each row."""
    codes: NDArray[np.intp] = ((block.y > 0.0) if n_classes == 2 else block.y).astype(np.intp)
    return codes


def _scores(theta: Matrix, block: Block) -> Matrix:
    plain = block.relabelled(np.ones(block.n_samples), block.s)
    return np.stack([plain.matvec(row) for row in theta])
