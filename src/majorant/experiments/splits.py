"""Training and test rows of a data set, and generated rows for a machine without the data sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from majorant.experiments.study import DataSet
from majorant.status import Vector


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to test on; labels are -1 and +1."""

    X: Any
    y: Vector
    X_test: Any
    y_test: Vector


@lru_cache(maxsize=4)
def load_split(data: DataSet, split: int) -> Split:
    """The training and test rows of one split.

    Parameters
    ----------
    data : DataSet
    split : int
        From 0; the seed of a random split.
    """
    X, y = _load(data.source)
    X = X[:, : data.features]
    first = math.ceil(data.train_share * len(y))
    if data.shuffled:
        from sklearn.model_selection import train_test_split

        train, test = train_test_split(
            np.arange(len(y)), train_size=first, test_size=len(y) - first, random_state=split, stratify=y
        )
    else:
        train, test = np.arange(first), np.arange(first, len(y))
    X_train, X_test = X[train], X[test]
    if data.standardised:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Split(X_train, y[train], X_test, y[test])


@lru_cache(maxsize=2)
def _load(source: str) -> tuple[Any, Vector]:
    if source == "stand-in":
        return _generate()
    from majorant.datasets import load

    read = load(source, download=False)
    assert read.y is not None
    return read.X, np.where(read.y == np.max(read.y), 1.0, -1.0)


def _generate(n_samples: int = 400, n_features: int = 30, seed: int = 0) -> tuple[Any, Vector]:
    """Binary features as those of a1a: a quarter of them matter, labels are noisy, the last one is zero."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n_samples, n_features)) < rng.uniform(0.05, 0.5, n_features)).astype(np.float64)
    X[:, -1] = 0.0
    w = np.where(np.arange(n_features) % 4 == 0, rng.normal(0.0, 2.0, n_features), 0.0)
    score = X @ w + rng.normal(0.0, 1.0, n_samples)
    return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0)
