"""How good a classifier is, with what chance may have had to do with it.

To draw as many rows as there are, with replacement, and count who was taken for whom is to draw the table of
these counts from a multinomial distribution. So a bootstrap needs the counts alone: a thousand resamples cost
the same for a hundred rows and for a million.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.reporting.subject import Rows
from majorant.reporting.text import plain_text
from majorant.status import Matrix, Vector

RESAMPLES = 1000
SEED = 0
# The steps of a ROC curve in the bootstrap, at most. All rows within a step count as ties, which
# moves the area by less than 3e-4, and not at all where there are no more different scores than this.
MOST_STEPS = 2048
# Numbers drawn at a time.
BATCH = 4_000_000

Statistic = Callable[[NDArray[np.int64]], Matrix]


@dataclass(frozen=True)
class Score:
    """A score with its 95 % interval, and that on the training rows for comparison."""

    name: str
    value: float
    low: float
    high: float
    training: float | None = None


@dataclass(frozen=True, eq=False)
class Confusion:
    """How many rows of each class were taken for each class, where there are any."""

    true: NDArray[np.intp]
    predicted: NDArray[np.intp]
    counts: NDArray[np.int64]
    n_classes: int

    @classmethod
    def of(cls, rows: Rows, n_classes: int) -> Confusion:
        """Count them."""
        cells, counts = np.unique(rows.codes * n_classes + rows.predicted, return_counts=True)
        return cls(cells // n_classes, cells % n_classes, counts.astype(np.int64), n_classes)

    def by_class(self, counts: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
        """Rows taken rightly, rows there are, and rows predicted, class by class, for tables of counts."""

        def sums(classes: NDArray[np.intp], keep: NDArray[np.bool_] | float = 1.0) -> Matrix:
            cells = np.arange(len(classes))
            weights = np.broadcast_to(np.asarray(keep, dtype=np.float64), len(classes))
            adder = sp.csr_array((weights, (cells, classes)), shape=(len(classes), self.n_classes))
            return np.asarray(counts @ adder)

        return sums(self.true, self.true == self.predicted), sums(self.true), sums(self.predicted)

    def rates(self, counts: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
        """Precision, recall and F1 of each class; nan for a class that is neither there nor predicted."""
        hits, actual, claimed = self.by_class(counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            recall = hits / actual
            f1 = 2.0 * hits / (actual + claimed)
            # Nothing claimed, nothing right: 0 as in scikit-learn, if there was something to claim.
            precision = np.where((claimed == 0.0) & (actual > 0.0), 0.0, hits / claimed)
        return precision, recall, f1


def scores(judged: Rows, training: Rows | None, classes: tuple[str, ...]) -> tuple[Score, ...]:
    """All scores of the rows judged; those of the training rows beside them if they are others."""
    judges = [_ByConfusion(judged, classes)] + ([_ByRank(judged)] if len(classes) == 2 else [])
    other: list[float | None] = []
    if training is not None:
        other += _ByConfusion(training, classes).point()
        other += _ByRank(training).point() if len(classes) == 2 else []
    names = [name for judge in judges for name in judge.names]
    values = [value for judge in judges for value in judge.point()]
    intervals = [interval for judge in judges for interval in judge.intervals()]
    return tuple(
        Score(name, value, low, high, before)
        for name, value, (low, high), before in zip(
            names, values, intervals, other or [None] * len(names), strict=True
        )
    )


class _ByConfusion:
    """What can be told from who was taken for whom."""

    def __init__(self, rows: Rows, classes: tuple[str, ...]) -> None:
        self.confusion = Confusion.of(rows, len(classes))
        self.names = ["Accuracy", "Balanced accuracy (mean recall)"]
        self.two = len(classes) == 2
        if self.two:
            positive = plain_text(classes[1], 24)
            self.names += [f"{rate} for “{positive}”" for rate in ("Precision", "Recall", "F1")]
        else:
            self.names += ["Precision, mean over classes", "F1, mean over classes"]

    def point(self) -> list[float]:
        return [float(value) for value in self._of(self.confusion.counts[None])[0]]

    def intervals(self) -> list[tuple[float, float]]:
        return _intervals(self.confusion.counts, self._of)

    def _of(self, counts: NDArray[np.int64]) -> Matrix:
        right = counts[:, self.confusion.true == self.confusion.predicted].sum(axis=1)
        precision, recall, f1 = self.confusion.rates(counts)
        columns = [right / counts.sum(axis=1), _mean(recall)]
        if self.two:
            columns += [precision[:, 1], recall[:, 1], f1[:, 1]]
        else:
            columns += [_mean(precision), _mean(f1)]
        return np.column_stack(columns)


class _ByRank:
    """What can be told from the order of the decision function: the area under the ROC curve."""

    names = ("ROC AUC",)

    def __init__(self, rows: Rows) -> None:
        self.exact, self.steps = _roc_counts(rows)

    def point(self) -> list[float]:
        return [float(_area(self.exact[None])[0, 0])]

    def intervals(self) -> list[tuple[float, float]]:
        # The steps are for the width of the interval, not for its place.
        shift = self.point()[0] - float(_area(self.steps[None])[0, 0])
        ((low, high),) = _intervals(self.steps, _area)
        return [(max(low + shift, 0.0), min(high + shift, 1.0))]


def _mean(rates: Matrix) -> Vector:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is nan, which is right
        return np.asarray(np.nanmean(rates, axis=1))


def _intervals(counts: NDArray[np.int64], statistic: Statistic) -> list[tuple[float, float]]:
    """Where 95 % of the resampled statistics lie, one by one."""
    drawn = np.concatenate([statistic(part) for part in _resampled(counts)])
    result = []
    for column in drawn.T:
        known = column[~np.isnan(column)]
        ends = np.percentile(known, [2.5, 97.5]).tolist() if len(known) else [np.nan, np.nan]
        result.append((ends[0], ends[1]))
    return result


def _resampled(counts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(SEED)
    total = int(counts.sum())
    cells = counts.ravel()
    batch = max(1, BATCH // len(cells))
    for start in range(0, RESAMPLES, batch):
        drawn = rng.multinomial(total, cells / total, size=min(batch, RESAMPLES - start))
        yield drawn.reshape(-1, *counts.shape)


def _roc_counts(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of both classes at each score, rising: (n_scores, 2); and the same in `MOST_STEPS` at most."""
    values, places = np.unique(rows.decision, return_inverse=True)
    exact = np.zeros((len(values), 2), dtype=np.int64)
    np.add.at(exact, (places, rows.codes), 1)
    if len(values) <= MOST_STEPS:
        return exact, exact
    edges = np.linspace(0, len(values), MOST_STEPS + 1).astype(int)[:-1]
    return exact, np.add.reduceat(exact, edges, axis=0)


def _area(counts: NDArray[np.int64]) -> Matrix:
    """The area under the ROC curve: the share of pairs that are in order, ties being half."""
    negative, positive = counts[..., 0].astype(np.float64), counts[..., 1].astype(np.float64)
    below = np.cumsum(negative, axis=1) - 0.5 * negative
    with np.errstate(invalid="ignore"):
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        return np.asarray((positive * below).sum(axis=1) / pairs)[:, None]
