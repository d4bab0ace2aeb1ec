"""Random halves of the rows, and what an estimator selects on each: the work of `StabilitySelection`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_method_params

from majorant.estimators.parallel import run_in_threads


class Half(NamedTuple):
    """What a half of the rows selects."""

    features: NDArray[np.int32]
    converged: bool


def complementary_halves(
    codes: NDArray[np.intp], random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two disjoint random sets of rows, each with half of the rows of every class, rounded down."""
    first, second = [], []
    for code in range(int(codes.max()) + 1):
        rows = random.permutation(np.flatnonzero(codes == code))
        half = len(rows) // 2
        first.append(rows[:half])
        second.append(rows[half : 2 * half])
    return np.sort(np.concatenate(first)), np.sort(np.concatenate(second))


def fit_halves(
    estimator: Any,
    X: Any,
    labels: NDArray[Any],
    codes: NDArray[np.intp],
    params: Mapping[str, Any],
    seeds: Sequence[int],
    n_jobs: int | None,
) -> list[Half]:
    """What the estimator selects on both halves of every pair, one pair after the other.

    Parameters
    ----------
    estimator : estimator
        Cloned for every half.
    X : array or CSR (n_samples, n_features)
    labels, codes : arrays (n_samples,)
        The label of each row, and the number of its class.
    params : mapping
        For the fit; arrays with an entry per row are cut.
    seeds : sequence of int
        One for each pair.
    n_jobs : int, optional
        How many pairs to work on at the same time.
    """

    def pair(seed: int) -> list[Half]:
        halves = complementary_halves(codes, np.random.RandomState(seed))
        return [_fit_half(estimator, X, labels, rows, params) for rows in halves]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller gives one warning for all
        pairs = run_in_threads([partial(pair, seed) for seed in seeds], n_jobs)
    return [half for both in pairs for half in both]


def _fit_half(
    estimator: Any, X: Any, labels: NDArray[Any], rows: NDArray[np.intp], params: Mapping[str, Any]
) -> Half:
    own = _check_method_params(X, params, rows)
    model = clone(estimator).fit(X[rows], labels[rows], **own)
    last = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(last, "get_support"):
        mask = last.get_support()
    elif hasattr(last, "coef_"):
        coef = last.coef_.toarray() if sp.issparse(last.coef_) else last.coef_
        mask = np.atleast_2d(coef).any(axis=0)
    else:
        raise TypeError(f"{type(last).__name__} has neither get_support nor coef_ to tell what it selects.")
    if len(mask) != X.shape[1]:
        raise ValueError(
            f"{type(last).__name__} selects among {len(mask)} features, but X has {X.shape[1]}: the steps "
            "before it must keep the features."
        )
    return Half(np.flatnonzero(mask).astype(np.int32), bool(getattr(last, "converged_", True)))


def selection_matrix(halves: Sequence[Half], n_features: int) -> Any:
    """Which half selects which feature, as a CSR array of booleans."""
    indptr = np.cumsum([0, *(len(half.features) for half in halves)])
    indices = np.concatenate([half.features for half in halves])
    shape = (len(halves), n_features)
    return sp.csr_array((np.ones(len(indices), dtype=np.bool_), indices, indptr), shape=shape)
