"""The scores of a classifier by scikit-learn, with 95 % intervals that hold for few rows.

An interval says which scores of the population are compatible with these rows. None of them has width zero,
also if no row is mistaken:

- accuracy, precision and recall are proportions: Wilson's interval;
- F1 = 2J / (1 + J) grows with J, the share of true positives among the rows that are positive or predicted to
  be: Wilson's interval of J, mapped;
- means over classes: the wider of two intervals at each end. The method of variance estimates recovery (Zou
  and Donner 2008) adds up the squared distances of the classes' values from the ends of their intervals; this
  is right for classes that differ. Wilson's interval of the mean is right for many small classes without many
  mistakes;
- ROC AUC: the score interval of Newcombe (2006, method 5) with the variance of Hanley and McNeil.

Rejected: bootstrap resamples. They have no mistake if the rows have none, and the interval is then "1 to 1".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import accuracy_score, precision_recall_fscore_support, roc_auc_score

from majorant.reporting.context import AskedScore, ScoredRows
from majorant.reporting.text import plain_text
from majorant.status import Vector

Z = float(norm.ppf(0.975))
# The classes are unequal if the smallest has less than this share of the rows of the largest.
EQUAL_CLASSES = 0.5
# Names of scikit-learn for scores that are listed under another name.
ALIASES = {"recall_macro": "balanced_accuracy"}

Interval = tuple[float, float]
Counts = NDArray[np.integer[Any]]
UNKNOWN = (math.nan, math.nan)


@dataclass(frozen=True)
class Score:
    """A score with its 95 % interval, and the score of the training rows for comparison."""

    key: str
    """scikit-learn's name of the score."""
    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    training: float | None = None

    @property
    def short_name(self) -> str:
        """The name without its explanation."""
        return self.name.split(" (")[0]

    @property
    def has_interval(self) -> bool:
        """Whether the ends of the interval are known."""
        return not math.isnan(self.low + self.high)


# Intervals -------------------------------------------------------------------------------------


def wilson(hits: Vector | Counts, rows: Vector | Counts) -> tuple[Vector, Vector]:
    """Wilson's interval of each proportion; 0 to 1 without rows."""
    rate = hits / np.maximum(rows, 1)
    weight = rows + Z**2
    centre = (rows * rate + 0.5 * Z**2) / weight
    half = Z / weight * np.sqrt(rows * rate * (1.0 - rate) + 0.25 * Z**2)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def mean_interval(
    values: Vector, ends: tuple[Vector, Vector], rows: Counts, classes_per_row: int = 1
) -> Interval:
    """The interval of the mean of the classes' values that are known, from those of the classes.

    With `classes_per_row` = 1, the values are independent: each row counts in one class. A row that counts in
    two classes moves two values at once, which at most doubles the variance of their mean.
    """
    known = ~np.isnan(values)
    if not known.any():
        return UNKNOWN
    value, low, high, rows = values[known], ends[0][known], ends[1][known], np.maximum(rows[known], 1)
    mean = float(value.mean())
    scale = math.sqrt(classes_per_row) / len(value)
    recovered = [
        mean - scale * float(np.linalg.norm(value - low)), mean + scale * float(np.linalg.norm(high - value))
    ]  # fmt: skip
    # The number of rows of equally large classes whose mean has the same variance.
    equivalent = np.array(len(value) ** 2 / np.sum(1.0 / rows) / classes_per_row)
    pooled = wilson(mean * equivalent, equivalent)
    return max(min(recovered[0], float(pooled[0])), 0.0), min(max(recovered[1], float(pooled[1])), 1.0)


def area_interval(area: float, positive: int, negative: int) -> Interval:
    """Newcombe's interval of the area under a ROC curve: the areas θ with |area - θ| ≤ Z √V(θ)."""
    if math.isnan(area):
        return UNKNOWN
    pairs, rest = positive * negative, 0.5 * (positive + negative) - 1.0

    def distance(theta: float) -> float:
        shape = 1.0 + rest * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
        return float((area - theta) ** 2 - Z**2 * theta * (1.0 - theta) * shape / pairs)

    low = 0.0 if area <= 0.0 else brentq(distance, 0.0, area - 1e-12 * area)
    high = 1.0 if area >= 1.0 else brentq(distance, area + 1e-12 * (1.0 - area), 1.0)
    return float(low), float(high)


# Scores ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassRates:
    """Precision, recall and F1 of each class; nan for a class that does not occur."""

    precision: Vector
    recall: Vector
    f1: Vector
    hits: Counts
    actual: Counts
    predicted: Counts

    @classmethod
    def of(cls, rows: ScoredRows, n_classes: int) -> ClassRates:
        """By scikit-learn; the precision of a class that occurs and is never predicted is 0."""
        true, predicted = rows.codes, rows.predicted
        precision, recall, f1, actual = precision_recall_fscore_support(
            true, predicted, labels=np.arange(n_classes), zero_division=np.nan
        )
        precision = np.where((actual > 0) & np.isnan(precision), 0.0, precision)
        hits = np.bincount(true[true == predicted], minlength=n_classes)
        return cls(precision, recall, f1, hits, actual, np.bincount(predicted, minlength=n_classes))

    def intervals(self) -> dict[str, tuple[Vector, Vector]]:
        """The intervals of the three rates of each class."""
        ends = wilson(self.hits, self.actual + self.predicted - self.hits)
        return {
            "precision": wilson(self.hits, self.predicted),
            "recall": wilson(self.hits, self.actual),
            "f1": (2.0 * ends[0] / (1.0 + ends[0]), 2.0 * ends[1] / (1.0 + ends[1])),
        }


def scores(
    evaluated: ScoredRows,
    training: ScoredRows | None,
    classes: tuple[str, ...],
    asked: AskedScore | None = None,
) -> tuple[Score, ...]:
    """All scores of the evaluated rows, and those of the training rows, if these are others.

    The first is the score that was asked for, if there is one. Otherwise it is the accuracy, or, if the
    classes are unequal, the balanced accuracy.
    """
    found = _listed(evaluated, classes)
    if training is not None:
        before = _listed(training, classes)
        found = [replace(score, training=other.value) for score, other in zip(found, before, strict=True)]
    first = _asked(found, asked, evaluated, training)
    if first is None:
        counts = np.bincount(evaluated.codes)
        counts = counts[counts > 0]
        unequal = counts.min() < EQUAL_CLASSES * counts.max()
        first = next(
            score for score in found if score.key == ("balanced_accuracy" if unequal else "accuracy")
        )
    return first, *(score for score in found if score is not first)


def _listed(rows: ScoredRows, classes: tuple[str, ...]) -> list[Score]:
    true, predicted = rows.codes, rows.predicted
    rates = ClassRates.of(rows, len(classes))
    ends = rates.intervals()
    right = wilson(np.array(np.count_nonzero(true == predicted)), np.array(len(true)))
    found = [
        Score("accuracy", "Accuracy", float(accuracy_score(true, predicted)), *map(float, right)),
        _mean_score(
            "balanced_accuracy", "Balanced accuracy (mean recall)", rates.recall, ends["recall"], rates.actual
        ),
    ]
    if len(classes) > 2:
        either = rates.actual + rates.predicted - rates.hits
        return [
            *found,
            _mean_score(
                "precision_macro", "Precision, mean over classes", rates.precision, ends["precision"],
                rates.predicted,
            ),
            _mean_score("f1_macro", "F1, mean over classes", rates.f1, ends["f1"], either, classes_per_row=2),
        ]  # fmt: skip
    positive = plain_text(classes[1], 24)
    for key, name, values in (
        ("precision", "Precision", rates.precision),
        ("recall", "Recall", rates.recall),
        ("f1", "F1", rates.f1),
    ):
        interval = UNKNOWN if np.isnan(values[1]) else (float(ends[key][0][1]), float(ends[key][1][1]))
        found.append(Score(key, f"{name} for “{positive}”", float(values[1]), *interval))
    n_positive = int(np.count_nonzero(true))
    n_negative = len(true) - n_positive
    area = float(roc_auc_score(true, rows.decision)) if n_positive and n_negative else math.nan
    return [*found, Score("roc_auc", "ROC AUC", area, *area_interval(area, n_positive, n_negative))]


def _mean_score(
    key: str, name: str, values: Vector, ends: tuple[Vector, Vector], rows: Counts, classes_per_row: int = 1
) -> Score:
    value = math.nan if np.isnan(values).all() else float(np.nanmean(values))
    return Score(key, name, value, *mean_interval(values, ends, rows, classes_per_row))


def _asked(
    found: list[Score], asked: AskedScore | None, evaluated: ScoredRows, training: ScoredRows | None
) -> Score | None:
    """The score that was asked for, with its interval if it is one of those found."""
    value = math.nan if asked is None else asked.value(evaluated)
    if asked is None or math.isnan(value):
        return None
    key = ALIASES.get(asked.name, asked.name)
    for score in found:
        # The class that scikit-learn calls positive may be the other one.
        if score.key == key and math.isclose(score.value, value, abs_tol=1e-12):
            return score
    name = plain_text(asked.name.replace("_", " "), 40)
    before = None if training is None else asked.value(training)
    return Score(key, name[:1].upper() + name[1:], value, training=before)


# Confusions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Confusion:
    """The entries of the confusion matrix that are not zero."""

    true: NDArray[np.intp]
    predicted: NDArray[np.intp]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: ScoredRows, n_classes: int) -> Confusion:
        """Count the pairs of true and predicted class."""
        pairs, counts = np.unique(rows.codes * n_classes + rows.predicted, return_counts=True)
        return cls(pairs // n_classes, pairs % n_classes, counts.astype(np.int64))
