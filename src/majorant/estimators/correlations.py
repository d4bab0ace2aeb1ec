"""Correlations of some features with all, in one product: block by block, weighted, sparse or dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.status import Matrix, Vector

# Entries of the dense rows that are converted and shifted at a time: 32 MB in double precision.
BLOCK_ENTRIES = 4_000_000
# A variance below this share of the mean square is rounding: the feature is constant.
CONSTANT = 1e-12


class Correlations:
    """Sums over rows for the correlations of some features with all.

    Parameters
    ----------
    features : array of int
        The features whose correlations are wanted.
    n_features : int
        How many there are.
    """

    def __init__(self, features: NDArray[np.intp], n_features: int) -> None:
        self.features = features
        self.shift: Vector | None = None
        self.weight = 0.0
        self.sums, self.squares = np.zeros(n_features), np.zeros(n_features)
        self.products = np.zeros((len(features), n_features))

    def add(self, X: Any, weights: Vector | None = None) -> Matrix:
        """Add the rows of a block, with their weights; returns the values of the wanted features."""
        X = X.astype(np.float64)
        if sp.issparse(X) and self.shift is not None:
            X = X.toarray()
        values = X[:, self.features]
        values = values.toarray() if sp.issparse(values) else values
        s = np.ones(X.shape[0]) if weights is None else weights
        if sp.issparse(X):
            self.squares += X.multiply(X).T @ s
            self.products += (X.T @ (s[:, None] * values)).T
        else:
            if self.shift is None:  # dense columns may be far from zero
                self.shift = np.zeros(X.shape[1]) if self.weight or not len(X) else X.mean(axis=0)
            X = X - self.shift
            self.squares += s @ (X * X)
            self.products += (s[:, None] * X[:, self.features]).T @ X
        self.sums += X.T @ s
        self.weight += float(s.sum())
        return np.asarray(values)

    def add_all(self, X: Any, weights: Vector | None = None) -> None:
        """Add the rows of a large X; dense ones are taken some at a time."""
        step = X.shape[0] if sp.issparse(X) else max(1, BLOCK_ENTRIES // X.shape[1])
        for start in range(0, X.shape[0], max(step, 1)):
            rows = slice(start, start + step)
            self.add(X[rows], None if weights is None else weights[rows])

    def result(self) -> Matrix:
        """(n_some, n_features), 0 with features that are constant or have missing values."""
        weight = self.weight or 1.0
        mean = self.sums / weight
        variance = self.squares / weight - mean**2
        deviation = np.sqrt(np.where(variance > CONSTANT * self.squares / weight, variance, np.inf))
        covariance = self.products / weight - np.outer(mean[self.features], mean)
        return np.nan_to_num(covariance / deviation / deviation[self.features, None])


def most_correlated(
    correlations: Matrix, least: float, most: int, without: NDArray[np.intp]
) -> list[list[tuple[int, float]]]:
    """For every row, the features with the largest correlations in size, and these correlations.

    Parameters
    ----------
    correlations : array (n_some, n_features)
    least : float
        The smallest size of a correlation.
    most : int
        The number of features, of each row.
    without : array of int
        Features that are left out.
    """
    sizes = np.abs(correlations)
    sizes[:, without] = 0.0
    most = min(most, sizes.shape[1])
    found = []
    for row, values in zip(sizes, correlations, strict=True):
        largest = np.argpartition(-row, most - 1)[:most]
        largest = largest[np.lexsort((largest, -row[largest]))]
        found.append([(int(i), float(values[i])) for i in largest if row[i] >= least])
    return found
