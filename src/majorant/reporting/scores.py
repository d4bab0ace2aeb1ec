"""The scores of a classifier, with bootstrap intervals.

A bootstrap resample of the rows, reduced to its confusion matrix, is a draw from a multinomial distribution.
So the bootstrap needs the counts alone, not the rows: a thousand resamples take as long for a hundred rows as
for a million. (`scipy.stats.bootstrap` resamples the rows.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.reporting.context import ScoredRows
from majorant.reporting.text import plain_text
from majorant.status import Matrix, Vector

RESAMPLES = 1000
SEED = 0
# The steps of a ROC curve in the bootstrap, at most. All rows within a step count as ties, which moves the
# area by less than 3e-4, and not at all with fewer different scores than this.
MOST_STEPS = 2048
# Random numbers drawn at a time.
BATCH = 4_000_000

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """A score with its 95 % interval, and the score of the training rows for comparison."""

    name: str
    value: float
    low: float
    high: float
    training: float | None = None


@dataclass(frozen=True, eq=False)
class Confusion:
    """The entries of the confusion matrix that are not zero."""

    true: NDArray[np.intp]
    predicted: NDArray[np.intp]
    counts: Counts
    n_classes: int

    @classmethod
    def of(cls, rows: ScoredRows, n_classes: int) -> Confusion:
        """Count the pairs of true and predicted class."""
        pairs, counts = np.unique(rows.codes * n_classes + rows.predicted, return_counts=True)
        return cls(pairs // n_classes, pairs % n_classes, counts.astype(np.int64), n_classes)

    def rates(self, counts: Counts) -> tuple[Matrix, Matrix, Matrix]:
        """Precision, recall and F1 of each class for rows of counts; nan for a class that does not occur."""
        right = (self.true == self.predicted).astype(np.float64)
        hits = self._sum_by_class(counts, self.true, right)
        actual = self._sum_by_class(counts, self.true, np.ones_like(right))
        predicted = self._sum_by_class(counts, self.predicted, np.ones_like(right))
        with np.errstate(invalid="ignore", divide="ignore"):
            # 0 as in scikit-learn for a class that occurs and is never predicted.
            precision = np.where((predicted == 0.0) & (actual > 0.0), 0.0, hits / predicted)
            return precision, hits / actual, 2.0 * hits / (actual + predicted)

    def _sum_by_class(self, counts: Counts, classes: NDArray[np.intp], weights: Vector) -> Matrix:
        shape = (len(classes), self.n_classes)
        return np.asarray(counts @ sp.csr_array((weights, (np.arange(len(classes)), classes)), shape=shape))

    def scores(self, counts: Counts) -> Matrix:
        """The scores named by `_score_names`, in columns, for rows of counts."""
        right = counts[:, self.true == self.predicted].sum(axis=1)
        precision, recall, f1 = self.rates(counts)
        columns = [right / counts.sum(axis=1), _mean(recall)]
        if self.n_classes == 2:
            columns += [precision[:, 1], recall[:, 1], f1[:, 1]]
        else:
            columns += [_mean(precision), _mean(f1)]
        return np.column_stack(columns)


def scores(evaluated: ScoredRows, training: ScoredRows | None, classes: tuple[str, ...]) -> tuple[Score, ...]:
    """All scores of the evaluated rows; beside them those of the training rows, if these are others."""
    values = _point_scores(evaluated, len(classes))
    before = [None] * len(values) if training is None else _point_scores(training, len(classes))
    confusion = Confusion.of(evaluated, len(classes))
    intervals = _intervals(confusion.counts, confusion.scores)
    if len(classes) == 2:
        intervals.append(_area_interval(evaluated))
    return tuple(
        Score(name, value, low, high, other)
        for name, value, (low, high), other in zip(
            _score_names(classes), values, intervals, before, strict=True
        )
    )


def _score_names(classes: tuple[str, ...]) -> list[str]:
    names = ["Accuracy", "Balanced accuracy (mean recall)"]
    if len(classes) > 2:
        return [*names, "Precision, mean over classes", "F1, mean over classes"]
    positive = plain_text(classes[1], 24)
    return [*names, *(f"{rate} for “{positive}”" for rate in ("Precision", "Recall", "F1")), "ROC AUC"]


def _point_scores(rows: ScoredRows, n_classes: int) -> list[float]:
    confusion = Confusion.of(rows, n_classes)
    values: list[float] = confusion.scores(confusion.counts[None])[0].tolist()
    return [*values, float(_area(_roc_counts(rows)[0][None])[0, 0])] if n_classes == 2 else values


def _mean(rates: Matrix) -> Vector:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no numbers is nan
        return np.asarray(np.nanmean(rates, axis=1))


def _intervals(counts: Counts, statistic: Callable[[Counts], Matrix]) -> list[tuple[float, float]]:
    """The central 95 % of every statistic over the resamples."""
    drawn = np.concatenate([statistic(part) for part in _resampled(counts)])
    known = [column[~np.isnan(column)] for column in drawn.T]
    ends = [np.percentile(column, [2.5, 97.5]) if len(column) else [np.nan, np.nan] for column in known]
    return [(float(low), float(high)) for low, high in ends]


def _resampled(counts: Counts) -> Iterator[Counts]:
    rng = np.random.default_rng(SEED)
    total, cells = int(counts.sum()), counts.ravel()
    batch = max(1, BATCH // len(cells))
    for start in range(0, RESAMPLES, batch):
        drawn = rng.multinomial(total, cells / total, size=min(batch, RESAMPLES - start))
        yield drawn.reshape(-1, *counts.shape)


def _area_interval(rows: ScoredRows) -> tuple[float, float]:
    """The interval of the area under the ROC curve: its width from the steps, its place from all scores."""
    exact, steps = _roc_counts(rows)
    shift = float(_area(exact[None])[0, 0]) - float(_area(steps[None])[0, 0])
    ((low, high),) = _intervals(steps, _area)
    return max(low + shift, 0.0), min(high + shift, 1.0)


def _roc_counts(rows: ScoredRows) -> tuple[Counts, Counts]:
    """The rows of both classes at each score, rising: (n_scores, 2); and the same in `MOST_STEPS` at most."""
    values, places = np.unique(rows.decision, return_inverse=True)
    exact = np.zeros((len(values), 2), dtype=np.int64)
    np.add.at(exact, (places, rows.codes), 1)
    if len(values) <= MOST_STEPS:
        return exact, exact
    edges = np.linspace(0, len(values), MOST_STEPS + 1).astype(int)[:-1]
    return exact, np.add.reduceat(exact, edges, axis=0)


def _area(counts: Counts) -> Matrix:
    """The area under the ROC curve: the share of pairs in the right order, ties counting half."""
    negative, positive = counts[..., 0].astype(np.float64), counts[..., 1].astype(np.float64)
    below = np.cumsum(negative, axis=1) - 0.5 * negative
    with np.errstate(invalid="ignore"):
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        return np.asarray((positive * below).sum(axis=1) / pairs)[:, None]
