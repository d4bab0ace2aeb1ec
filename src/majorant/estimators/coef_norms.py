"""The features that a model uses, and how large their coefficients are, over all classes and along a path."""

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


class FeaturesInUse(NamedTuple):
    """The features that a model uses, the largest effect first."""

    features: NDArray[np.intp]
    """Their indices."""
    coefficients: Matrix
    """(n_in_use, n_rows of coef_)."""
    effects: Vector
    """The largest coefficient of each, without sign, times the standard deviation where that is known."""


def features_in_use(coef: Any, support: NDArray[np.intp], deviations: Vector | None = None) -> FeaturesInUse:
    """What a model uses, in order; `deviations` are the standard deviations of all features."""
    used = coef[:, support].toarray() if sp.issparse(coef) else coef[:, support]
    effects = np.abs(used).max(axis=0, initial=0.0)
    if deviations is not None:
        effects = effects * deviations[support]
    order = np.argsort(-effects, kind="stable")
    return FeaturesInUse(support[order], used[:, order].T, effects[order])


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
