"""Clusters of interchangeable features: a selected feature and those that could stand in for it.

Of two features that are nearly equal, some halves of the rows select the first, others the second, and
neither may be selected often. Their cluster is: its frequency is the share of halves that select at least one
of its features. Where no half selects two of them, that is the sum of their frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.estimators.correlations import Correlations, most_correlated
from majorant.status import Vector

# Features that may lead a cluster beside the selected ones: the next in frequency.
MORE_LEADERS = 50
# Products of these with all features: 40 MB.
MOST_PRODUCTS = 5_000_000
# Features of a cluster.
MOST_MEMBERS = 20


@dataclass(frozen=True)
class FeatureCluster:
    """Features that can stand in for each other; the first is selected most often."""

    features: tuple[int, ...]
    """Their indices: the leader, then the others by correlation."""
    names: tuple[str, ...]
    """Their names."""
    correlations: tuple[float, ...]
    """Their correlations with the leader."""
    frequencies: tuple[float, ...]
    """The share of the halves that select each."""
    frequency: float
    """The share of the halves that select at least one of them."""

    def __str__(self) -> str:
        together = " together" if len(self.names) > 1 else ""
        return f"{' or '.join(self.names)}: {self.frequency:.2f}{together}"


def find_clusters(
    X: Any, weights: Vector | None, selections: Any, names: Sequence[str], needed: int, min_correlation: float
) -> list[FeatureCluster]:
    """The clusters that enough halves select, the most frequent first.

    Parameters
    ----------
    X : array or CSR (n_samples, n_features)
    weights : array (n_samples,), optional
        What the correlations weigh the rows by.
    selections : sparse array of bool (n_halves, n_features)
        Which half selects which feature.
    names : sequence of str
        The names of all features.
    needed : int
        The number of halves that select a feature of a cluster.
    min_correlation : float
        The least correlation, in size, of a feature with the leader of its cluster.
    """
    n_halves, n_features = selections.shape
    columns = selections.tocsc()
    counts = np.diff(columns.indptr)
    n_selected = int(np.count_nonzero(counts >= needed))
    most = min(n_selected + MORE_LEADERS, max(1, MOST_PRODUCTS // n_features))
    order = np.lexsort((np.arange(n_features), -counts))[:most]
    leaders: NDArray[np.intp] = order[counts[order] > 0]
    if n_halves < needed or not len(leaders):
        return []
    sums = Correlations(leaders, n_features)
    sums.add_all(X, weights)
    correlations = sums.result()
    taken = np.zeros(n_features, dtype=np.bool_)
    clusters = []
    for leader, row in zip(leaders.tolist(), correlations, strict=True):
        if taken[leader]:
            continue
        without = np.append(np.flatnonzero(taken), leader)
        ((*others,),) = most_correlated(row[None], min_correlation, MOST_MEMBERS - 1, without)
        members = [leader, *(i for i, _ in others)]
        together = len(np.unique(np.concatenate([_halves(columns, i) for i in members])))
        if together < needed:
            continue
        taken[members] = True
        clusters.append(
            FeatureCluster(
                features=tuple(members),
                names=tuple(str(names[i]) for i in members),
                correlations=(1.0, *(r for _, r in others)),
                frequencies=tuple(float(counts[i] / n_halves) for i in members),
                frequency=together / n_halves,
            )
        )
    return sorted(clusters, key=lambda cluster: -cluster.frequency)


def _halves(columns: Any, feature: int) -> NDArray[np.intp]:
    """The halves that select a feature."""
    return np.asarray(columns.indices[columns.indptr[feature] : columns.indptr[feature + 1]], dtype=np.intp)
