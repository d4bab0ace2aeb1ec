"""What the rows say about the features: values by class, and correlations with features that are left out.

This takes one pass over the blocks of X. Values and correlations are those of at most `MOST_ROWS` rows,
evenly chosen, so that the pass costs little more than reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.reporting.context import ReportContext
from majorant.rows.sources import Source
from majorant.rows.stream import read_blocks
from majorant.status import Matrix, Vector

# Features whose correlations are computed: the largest effects.
MOST_FEATURES = 25
# Rows that values and correlations are of. With 20,000 rows, the standard error of a correlation is 0.007.
MOST_ROWS = 20_000
# Entries of a dense X that correlations are of (40 MB in double precision), but at least FEWEST_ROWS rows.
MOST_ENTRIES, FEWEST_ROWS = 5_000_000, 200
# Sums of products with the features: 40 MB.
MOST_PRODUCTS = 5_000_000
# Weaker correlations occur by chance among many features.
LEAST_CORRELATION = 0.5
MOST_CORRELATED = 3


@dataclass(frozen=True, eq=False)
class FeatureSurvey:
    """The result of the pass."""

    density: float
    """The share of entries that are not zero."""
    storage: str
    """How X is stored."""
    features: NDArray[np.intp]
    """Features of the model, the largest effects first."""
    values: Matrix
    """(n_rows_taken, n_features): the values of these features."""
    codes: NDArray[np.intp]
    """The classes of the rows taken."""
    correlated: list[list[tuple[int, float]]]
    """For each of these features, those of the most correlated features that the model leaves out."""


def survey_features(context: ReportContext) -> FeatureSurvey:
    """One pass over the rows of the report, usually the training rows."""
    X, n_rows = context.training.X, len(context.training)
    blocks: Iterable[Any] = (block.X for block in read_blocks(X)) if isinstance(X, Source) else (X,)
    features = context.largest[: max(1, min(MOST_FEATURES, MOST_PRODUCTS // context.n_features))]
    moments = _Moments(features, context.n_features)
    size = filled = start = step = 0
    storage, taken = "", []
    for block in blocks:
        sparse = sp.issparse(block)
        kind = np.dtype(block.dtype).name if sparse or isinstance(block, np.ndarray) else "table"
        storage = f"{'sparse' if sparse else 'dense'} {kind}"
        rows = sp.csr_array(block) if sparse else np.asarray(block)
        missing = 0 if sparse else int(np.count_nonzero(rows != rows))
        size += rows.shape[0] * rows.shape[1] - missing
        filled += int(np.count_nonzero(rows.data if isinstance(rows, sp.csr_array) else rows)) - missing
        step = step or _step(n_rows, 0 if sparse else context.n_features)
        at = np.arange(-start % step, rows.shape[0], step)
        taken.append(start + at)
        start += rows.shape[0]
        moments.add(rows if step == 1 else rows[at])
    return FeatureSurvey(
        density=float(filled / size) if size else 0.0,
        storage=storage,
        features=features,
        values=np.concatenate(moments.values),
        codes=context.training.codes[np.concatenate(taken)],
        correlated=_correlated(moments.correlations(), context.largest),
    )


def _step(n_rows: int, n_dense: int) -> int:
    """Every how many rows one is taken."""
    most = MOST_ROWS
    if n_dense:
        most = min(most, max(MOST_ENTRIES // n_dense, FEWEST_ROWS))
    return max(1, math.ceil(n_rows / most))


class _Moments:
    """Sums over rows for the correlations of some features with all."""

    def __init__(self, features: NDArray[np.intp], n_features: int) -> None:
        self.features = features
        self.values: list[Matrix] = []
        self.shift: Vector | None = None
        self.rows = 0
        self.sums, self.squares = np.zeros(n_features), np.zeros(n_features)
        self.products = np.zeros((len(features), n_features))

    def add(self, X: Any) -> None:
        """Add the rows of a block. Dense columns are shifted, since they may be far from zero."""
        X = X.astype(np.float64)
        if sp.issparse(X) and self.shift is not None:
            X = X.toarray()
        some = X[:, self.features]
        if sp.issparse(X):
            some = some.toarray()
            self.values.append(some)
            self.squares += np.asarray(X.multiply(X).sum(axis=0)).ravel()
            self.products += (X.T @ some).T
        else:
            self.values.append(some)
            if self.shift is None:
                self.shift = np.zeros(X.shape[1]) if self.rows or not len(X) else X.mean(axis=0)
            X = X - self.shift
            self.squares += np.einsum("ij,ij->j", X, X)
            self.products += X[:, self.features].T @ X
        self.sums += np.asarray(X.sum(axis=0)).ravel()
        self.rows += X.shape[0]

    def correlations(self) -> Matrix:
        """(n_some, n_features), 0 with features that are constant or have missing values."""
        rows = max(self.rows, 1)
        mean = self.sums / rows
        variance = self.squares / rows - mean**2
        deviation = np.sqrt(np.where(variance > 1e-12 * self.squares / rows, variance, np.inf))
        covariance = self.products / rows - np.outer(mean[self.features], mean)
        return np.nan_to_num(covariance / deviation / deviation[self.features, None])


def _correlated(correlations: Matrix, used: NDArray[np.intp]) -> list[list[tuple[int, float]]]:
    sizes = np.abs(correlations)
    sizes[:, used] = 0.0
    most = min(MOST_CORRELATED, sizes.shape[1])
    found = []
    for row, values in zip(sizes, correlations, strict=True):
        largest = np.argpartition(-row, most - 1)[:most]
        largest = largest[np.lexsort((largest, -row[largest]))]
        found.append([(int(i), float(values[i])) for i in largest if row[i] >= LEAST_CORRELATION])
    return found
