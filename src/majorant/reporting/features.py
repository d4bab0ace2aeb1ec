"""The values of features by class, and their correlations with features that the model does not use.

`survey_features` makes one pass over the blocks of X. Values and correlations are those of at most
`MOST_ROWS` rows, evenly spaced, so that the pass takes little longer than reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.estimators.correlations import Correlations, most_correlated
from majorant.reporting.context import ReportContext
from majorant.rows.sources import Source
from majorant.rows.stream import read_blocks
from majorant.status import Matrix

# The most features whose correlations are computed, those with the largest effects.
MOST_FEATURES = 25
# The most rows for values and correlations. With 20,000 rows, the standard error of a correlation is 0.007.
MOST_ROWS = 20_000
# The most entries of a dense X for correlations (40 MB in double precision), but at least FEWEST_ROWS rows.
MOST_ENTRIES, FEWEST_ROWS = 5_000_000, 200
# The most sums of products with the features: 40 MB.
MOST_PRODUCTS = 5_000_000
# Smaller correlations occur by chance among many features.
LEAST_CORRELATION = 0.5
MOST_CORRELATED = 3


@dataclass(frozen=True, eq=False)
class FeatureSurvey:
    """Values and correlations of features, from one pass over the rows."""

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
    """Read the rows of the report once, usually the training rows, for all that it says about features."""
    X, n_rows = context.training.X, len(context.training)
    blocks: Iterable[Any] = (block.X for block in read_blocks(X)) if isinstance(X, Source) else (X,)
    features = context.largest[: max(1, min(MOST_FEATURES, MOST_PRODUCTS // context.n_features))]
    correlations = Correlations(features, context.n_features)
    size = filled = start = step = 0
    storage, taken, values = "", [], []
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
        values.append(correlations.add(rows if step == 1 else rows[at]))
    return FeatureSurvey(
        density=float(filled / size) if size else 0.0,
        storage=storage,
        features=features,
        values=np.concatenate(values),
        codes=context.training.codes[np.concatenate(taken)],
        correlated=most_correlated(
            correlations.result(), LEAST_CORRELATION, MOST_CORRELATED, without=context.largest
        ),
    )


def _step(n_rows: int, n_dense: int) -> int:
    """The step of the rows that are read: every step-th row."""
    most = MOST_ROWS
    if n_dense:
        most = min(most, max(MOST_ENTRIES // n_dense, FEWEST_ROWS))
    return max(1, math.ceil(n_rows / most))
