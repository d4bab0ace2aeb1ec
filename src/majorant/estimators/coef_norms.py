"""How large the coefficients of a feature are, over all classes and along a path: for pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC


def feature_norms(coef: Any) -> Vector:
    """The length of every feature's coefficients over the classes, of dense or sparse ones."""
    squares = coef.multiply(coef) if sp.issparse(coef) else np.square(coef, dtype=np.float64)
    return np.sqrt(np.asarray(squares.sum(axis=0), dtype=np.float64).ravel())


class Largest(NamedTuple):
    """The features with the largest coefficients anywhere on a path."""

    features: NDArray[np.intp]
    """Their indices, the largest first."""
    sizes: Matrix
    """(n_models, n_largest): of one problem the coefficients with their signs, of several their lengths."""
    n_selected: int
    """How many features have a coefficient that is not zero anywhere on the path."""


def largest_on_path(models: Sequence[SparseSVC], most: int, units: Vector | float = 1.0) -> Largest:
    """The `most` largest features; only their coefficients are made dense for all models.

    All coefficients are multiplied by `units`, one for each feature, where their sizes are to be compared so.
    """
    peaks = np.zeros(models[0].coef_.shape[1])
    for model in models:
        np.maximum(peaks, feature_norms(model.coef_) * units, out=peaks)
    selected = np.flatnonzero(peaks)
    largest = selected[np.argsort(-peaks[selected], kind="stable")][:most]
    sizes = np.empty((len(models), len(largest)))
    for row, model in zip(sizes, models, strict=True):
        part = model.coef_[:, largest]
        if part.shape[0] > 1:
            row[:] = feature_norms(part)
        else:
            row[:] = np.ravel(part.toarray() if sp.issparse(part) else part)
    sizes *= np.broadcast_to(units, peaks.shape)[largest]
    return Largest(largest, sizes, len(selected))
