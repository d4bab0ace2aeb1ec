"""The tables of a report as values for its templates, by name: scores, classes, confusions, coefficients."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from majorant.estimators.coef_norms import feature_norms
from majorant.estimators.plots.data import most_frequent
from majorant.reporting.context import ReportContext
from majorant.reporting.features import FeatureSurvey
from majorant.reporting.scores import ClassRates, Confusion, Score
from majorant.reporting.text import number, plain_text, power_of_ten, share

TableValues = dict[str, Any]

# Steps of shading in the style sheet.
SHADES = 6


@dataclass(frozen=True)
class Bar:
    """A bar in a table cell: its start and its length in percent of the cell."""

    start: str
    length: str
    classes: str


@dataclass(frozen=True)
class Cell:
    """A number, and the CSS class of its background."""

    text: str
    shade: str = ""


def make_bar(share: float, lowest: float = 0.0, highest: float = 1.0) -> Bar:
    """A bar from zero to `share`, in a cell that reaches from `lowest` ≤ 0 to `highest` ≥ 0."""
    width = (highest - lowest) / 100.0
    length = abs(share) / width
    start = (min(share, 0.0) - lowest) / width
    return Bar(f"{start:.4g}", f"{max(length, 0.4):.4g}", "minus" if share < 0.0 else "plus")


# Scores ----------------------------------------------------------------------------------------


def score_table(scores: tuple[Score, ...], context: ReportContext) -> TableValues:
    """The table of scores; the common axis of the intervals ends at 1 and begins at a tenth below all."""
    floor = math.floor(10.0 * min([0.9, *(score.low for score in scores if score.has_interval)])) / 10.0
    counts = np.bincount(context.evaluated.codes, minlength=len(context.classes))
    largest = int(counts.argmax())
    baseline = (
        f"A model that always predicts “{plain_text(context.classes[largest], 40)}” has an accuracy of "
        f"{share(float(counts[largest] / counts.sum()))} and a balanced accuracy of "
        f"{share(1.0 / np.count_nonzero(counts))}."
    )
    return {
        "rows": [_score_row(score, floor) for score in scores],
        "floor": f"{floor:g}",
        "baseline": baseline,
    }


def _score_row(score: Score, floor: float) -> TableValues:
    known = score.has_interval
    low, value, high = (
        f"{100.0 * (end - floor) / (1.0 - floor):.1f}" for end in (score.low, score.value, score.high)
    )
    return {
        "name": score.name,
        "value": share(score.value),
        "interval": f"{share(score.low)} – {share(score.high)}" if known else "—",
        "training": "" if score.training is None else share(score.training),
        "mark": (low, value, high) if known else None,  # in percent of the cell
    }


# Classes ---------------------------------------------------------------------------------------


# A larger matrix is neither readable nor small.
MOST_CLASSES = 40


def class_rows(context: ReportContext) -> list[TableValues]:
    """The first classes, as many as are readable, in the model's order."""
    n_classes = len(context.classes)
    rates = ClassRates.of(context.evaluated, n_classes)
    training = np.bincount(context.training.codes, minlength=n_classes)
    test = None if context.test is None else np.bincount(context.test.codes, minlength=n_classes)
    one_problem = len(context.coef) < n_classes  # two classes share one problem
    return [
        {
            "name": plain_text(context.classes[k], 60),
            "training": int(training[k]),
            "share": make_bar(float(training[k] / max(training.max(), 1))),
            "test": None if test is None else int(test[k]),
            "features": None if one_problem else int(np.count_nonzero(context.coef[k])),
            "intercept": "" if one_problem else number(context.model.intercept_[k], 4, sign=True),
            "precision": share(rates.precision[k]),
            "recall": share(rates.recall[k]),
            "f1": share(rates.f1[k]),
        }
        for k in range(min(n_classes, MOST_CLASSES))
    ]


def confusion_table(context: ReportContext) -> TableValues:
    """The confusions among the evaluated rows; shades are shares of the true class."""
    n_classes = len(context.classes)
    confusion = Confusion.of(context.evaluated, n_classes)
    compact = n_classes > 8
    names = tuple(plain_text(name, 22 if compact else 40) for name in context.classes)
    if n_classes > MOST_CLASSES:
        wrong = np.flatnonzero(confusion.true != confusion.predicted)
        wrong = wrong[np.argsort(-confusion.counts[wrong], kind="stable")][:MOST_CLASSES]
        mistakes = [
            (names[confusion.true[c]], names[confusion.predicted[c]], int(confusion.counts[c])) for c in wrong
        ]
        return {"rows": (), "mistakes": mistakes}
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    table[confusion.true, confusion.predicted] = confusion.counts
    totals = np.maximum(table.sum(axis=1), 1)
    rows = [
        [_count_cell(int(table[i, j]), float(table[i, j] / totals[i]), i == j) for j in range(n_classes)]
        for i in range(n_classes)
    ]
    return {"names": names, "rows": rows, "mistakes": (), "compact": compact}


def _count_cell(count: int, share: float, right: bool) -> Cell:
    if count == 0:
        return Cell("0", "nil")
    return Cell(f"{count:,}", f"{'p' if right else 'm'}{max(1, math.ceil(SHADES * share))}")


# Wrong rows ------------------------------------------------------------------------------------


MOST_MISTAKES = 25


def mistake_table(context: ReportContext) -> TableValues:
    """The rows that are predicted wrong, those farthest on the wrong side first."""
    rows = context.evaluated
    predicted, margins = rows.predicted, rows.margins
    wrong = np.flatnonzero(predicted != rows.codes)
    worst = wrong[np.argsort(margins[wrong], kind="stable")[:MOST_MISTAKES]]
    names = [plain_text(name, 40) for name in context.classes]
    binary = rows.decision.ndim == 1
    return {
        "count": len(wrong),
        "binary": binary,
        "has_names": rows.row_names is not None,
        "rows": [
            {
                "row": f"{i:,}",
                "name": "" if rows.row_names is None else plain_text(rows.row_names[i], 60),
                "actual": names[rows.codes[i]],
                "predicted": names[predicted[i]],
                "score": number(float(rows.decision[i] if binary else margins[i]), sign=True, short=True),
            }
            for i in worst.tolist()
        ],
    }


# Coefficients ----------------------------------------------------------------------------------


# Limits that keep the file below 1 MB, whatever the names are.
MOST_ROWS = 2000
MOST_BYTES = 600_000
# More classes than this have a heat map of their own instead of columns.
MOST_COLUMNS = 6
HEAT_MAP_ROWS = 25


def coefficient_table(context: ReportContext) -> TableValues:
    """The features with coefficients that are not zero, as many as fit."""
    coef, n_problems = context.coef, len(context.coef)
    lengths = _lengths(coef)
    scaled = context.effects
    effects = lengths if scaled is coef else _lengths(scaled)
    order = context.largest
    frequency = getattr(context.model, "selection_frequency_", None)
    columns = n_problems if 1 < n_problems <= MOST_COLUMNS else 0
    largest = float(np.abs(scaled).max()) if coef.size else 0.0
    lowest, highest = float(effects.min(initial=0.0)), float(effects.max(initial=0.0))
    has_effect = effects is not lengths
    rows: list[TableValues] = []
    written = 0
    for i in order[:MOST_ROWS].tolist():
        name = plain_text(context.names[i])
        values = coef[:, i].tolist()
        values += [abs(float(effects[i]))] if has_effect else []
        values += [] if frequency is None else [float(frequency[i])]
        exact = " ".join(f"{value:.6g}" for value in values)
        written += 255 + 50 * columns + len(str(escape(name)).encode()) + len(exact)
        if written > MOST_BYTES:
            break
        cells = zip(coef[:, i].tolist(), scaled[:, i].tolist(), strict=True)
        rows.append(
            {
                "rank": len(rows) + 1,
                "name": name,
                "value": number(lengths[i], 4, sign=n_problems == 1, short=True),
                "bar": make_bar(float(effects[i]), lowest, highest),
                "by_class": [_coefficient_cell(w, effect, largest) for w, effect in cells] if columns else [],
                "effect": number(abs(effects[i]), 3, short=True),
                "frequency": "" if frequency is None else f"{100.0 * frequency[i]:.0f} %",
                "exact": exact,
            }
        )
    exported = ["coefficient"] if n_problems == 1 else [plain_text(name, 40) for name in context.classes]
    exported += ["effect"] * has_effect + ["share of folds"] * (frequency is not None)
    return {
        "rows": rows,
        "used": len(order),
        "value_header": "Coefficient" if n_problems == 1 else "Length",
        "class_headers": [plain_text(name, 24) for name in context.classes] if columns else [],
        "by_class": n_problems > 1,
        "has_frequency": frequency is not None,
        "has_effect": has_effect,
        "exported": json.dumps(["feature", *exported]),
    }


def heat_map(context: ReportContext) -> TableValues:
    """The coefficients of the largest features for each of many classes; few have columns in the table."""
    if len(context.coef) <= MOST_COLUMNS:
        return {"rows": ()}
    features = context.largest[:HEAT_MAP_ROWS]
    effects = context.effects[:MOST_CLASSES, features].T
    largest = float(np.abs(effects).max(initial=0.0))
    # Numbers of two digits fit into the cells.
    power = math.floor(math.log10(largest)) - 1 if largest else 0
    return {
        "classes": [plain_text(name, 22) for name in context.classes[:MOST_CLASSES]],
        "names": [plain_text(context.names[i], 40) for i in features.tolist()],
        "unit": power_of_ten(power),
        "rows": [[_heat_cell(effect, largest, power) for effect in row] for row in effects.tolist()],
    }


def _heat_cell(effect: float, largest: float, power: int) -> Cell:
    cell = _coefficient_cell(effect, effect, largest)
    return Cell(f"{effect / 10.0**power:+.0f}".replace("-", "−") if effect else "0", cell.shade)


def correlated_rows(context: ReportContext, survey: FeatureSurvey) -> list[TableValues]:
    """Selected features, each with the left-out features that are correlated with it."""
    return [
        {
            "name": plain_text(context.names[i], 60),
            "others": [(plain_text(context.names[k], 60), number(r, 2, sign=True)) for k, r in others],
        }
        for i, others in zip(survey.features.tolist(), survey.correlated, strict=True)
        if others
    ]


def _lengths(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficient of every feature, or the length of its coefficients over all classes."""
    return coef[0] if len(coef) == 1 else feature_norms(coef)


def _coefficient_cell(value: float, effect: float, largest: float) -> Cell:
    if value == 0.0:
        return Cell("0", "nil")
    step = max(1, math.ceil(SHADES * abs(effect) / largest)) if largest else 1
    return Cell(number(value, 3, sign=True, short=True), f"{'m' if value < 0 else 'p'}{step}")


def frequency_rows(context: ReportContext, most: int = 20) -> tuple[tuple[str, Bar, str, bool], ...]:
    """The features that most folds select: name, bar, share, and whether the model uses it."""
    frequency = getattr(context.model, "selection_frequency_", None)
    if frequency is None:
        return ()
    used = set(context.model.support_.tolist())
    return tuple(
        (plain_text(context.names[i], 60), make_bar(float(share)), f"{100.0 * share:.0f} %", i in used)
        for i, share in (
            (i, frequency[i]) for i in most_frequent(context.model, context.effects, most).tolist()
        )
    )
