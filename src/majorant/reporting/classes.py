"""The classes of a model: their rows, and who is mistaken for whom."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from majorant.reporting.cells import SHADES, Bar, Cell, make_bar
from majorant.reporting.scores import Confusion
from majorant.reporting.subject import Subject
from majorant.reporting.text import number, plain_text, share

# A matrix of more is neither readable nor small.
MOST_CLASSES = 40


@dataclass(frozen=True)
class ClassRow:
    """One class: how many rows it has, and how well they are told from the others."""

    name: str
    training: int
    share: Bar
    test: int | None
    precision: str
    recall: str
    f1: str
    features: int | None
    """Of its own problem; None where there is one problem for two classes."""
    intercept: str


def class_rows(subject: Subject) -> tuple[ClassRow, ...]:
    """As many classes as are readable, in the model's order."""
    n_classes = len(subject.classes)
    confusion = Confusion.of(subject.judged, n_classes)
    precision, recall, f1 = (rate[0] for rate in confusion.rates(confusion.counts[None]))
    training = np.bincount(subject.training.codes, minlength=n_classes)
    test = None if subject.test is None else np.bincount(subject.test.codes, minlength=n_classes)
    of_its_own = len(subject.coef) == n_classes
    return tuple(
        ClassRow(
            name=plain_text(subject.classes[k], 60),
            training=int(training[k]),
            share=make_bar(float(training[k] / max(training.max(), 1))),
            test=None if test is None else int(test[k]),
            features=int(np.count_nonzero(subject.coef[k])) if of_its_own else None,
            intercept=number(subject.model.intercept_[k], 4, sign=True) if of_its_own else "",
            precision=share(precision[k]),
            recall=share(recall[k]),
            f1=share(f1[k]),
        )
        for k in range(min(n_classes, MOST_CLASSES))
    )


@dataclass(frozen=True, eq=False)
class ConfusionTable:
    """All classes against all, or, of too many, who is mistaken for whom most often."""

    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    mistakes: tuple[tuple[str, str, int], ...]
    where: str
    compact: bool


def confusion_table(subject: Subject) -> ConfusionTable:
    """By the rows the model is judged by; shades are shares of the row's class."""
    n_classes = len(subject.classes)
    confusion = Confusion.of(subject.judged, n_classes)
    compact = n_classes > 8
    names = tuple(plain_text(name, 22 if compact else 40) for name in subject.classes)
    if n_classes > MOST_CLASSES:
        wrong = np.flatnonzero(confusion.true != confusion.predicted)
        wrong = wrong[np.argsort(-confusion.counts[wrong], kind="stable")][:MOST_CLASSES]
        mistakes = tuple(
            (names[confusion.true[c]], names[confusion.predicted[c]], int(confusion.counts[c])) for c in wrong
        )
        return ConfusionTable((), (), mistakes, subject.judged.where, False)
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    table[confusion.true, confusion.predicted] = confusion.counts
    totals = np.maximum(table.sum(axis=1), 1)
    rows = tuple(
        tuple(_tally(int(table[i, j]), float(table[i, j] / totals[i]), i == j) for j in range(n_classes))
        for i in range(n_classes)
    )
    return ConfusionTable(names, rows, (), subject.judged.where, compact)


def _tally(count: int, share: float, right: bool) -> Cell:
    if count == 0:
        return Cell("0", "nil")
    return Cell(f"{count:,}", f"{'p' if right else 'm'}{max(1, math.ceil(SHADES * share))}")
