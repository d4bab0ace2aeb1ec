"""The folds that rows elsewhere are cut into, for rows in memory.

So the command line chooses the same strength by cross-validation, whether the rows fit into memory or not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from majorant.rows.folds import Folds


def fold_seed(random_state: Any) -> int:
    """What draws the folds; always the same without a `random_state`."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def stratified_folds(number: int, seed: int, counts: NDArray[np.int64]) -> Folds:
    """The folds of blocks of rows, from the number of rows by block and class."""
    rows = counts.sum(axis=0)
    if rows.max() < number:
        raise ValueError(f"No class has {number} rows, and each fold needs one: take fewer folds.")
    if rows.min() < number:
        warnings.warn(
            f"A class has fewer rows ({rows.min()}) than there are folds ({number}), so it is missing from "
            "some of them.",
            UserWarning,
            stacklevel=3,
        )
    return Folds.of_counts(number, seed, counts)


@dataclass(frozen=True)
class FoldsByPlace:
    """Stratified folds, as `SparseSVCCV(cv=number)` draws them for a source; for scikit-learn, a splitter.

    Parameters
    ----------
    number : int
        Of folds.
    random_state : int, optional
        That of the estimator.
    """

    number: int
    random_state: int | None = None

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """How many folds there are."""
        return self.number

    def split(
        self, X: Any, y: ArrayLike, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """For every fold the rows to train on, and those to test on."""
        _, codes = np.unique(np.asarray(y), return_inverse=True)
        rule = stratified_folds(self.number, fold_seed(self.random_state), np.bincount(codes)[np.newaxis])
        folds = rule.of_block(0, codes)
        for fold in range(self.number):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
