"""ROC and precision-recall curves, by scikit-learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from majorant.estimators.plots.data import subsample
from majorant.reporting.charts.chart import COLOURS, MOST_POINTS, Chart, Figure, LegendEntry
from majorant.reporting.charts.scales import Scale, linear_scale
from majorant.reporting.context import ReportContext, ScoredRows
from majorant.reporting.text import counted, plain_text, share
from majorant.status import Vector

# More curves hide each other.
MOST_CURVES = 40

Points = tuple[Vector, Vector]


class _ClassCurves(NamedTuple):
    """The curves of one class against the rest."""

    name: str
    roc: Points
    area: float
    precision_recall: Points
    average_precision: float
    frequency: float


def draw_curves(context: ReportContext) -> list[Figure]:
    """Both charts, of the second of two classes or of each class against the rest; none without a rest."""
    rows = context.evaluated
    curves = _curves(context)
    if not curves:
        return []
    binary, many = context.binary, len(curves) > COLOURS
    points = MOST_POINTS // 4 if many else MOST_POINTS
    of = f"“{curves[0].name}”" if binary else "each class against the rest"
    areas = [curve.area for curve in curves]
    precisions = [curve.average_precision for curve in curves]
    charts = [
        Chart(
            "roc", "ROC curve", f"True positive rate against false positive rate of {of}; the area is "
            f"{_summary(areas)}.", _unit(), _unit(), x_label="False positive rate",
            y_label="True positive rate (recall)", height=250.0,
        ),
        Chart(
            "precision-recall", "Precision-recall curve", f"Precision against recall of {of}; the average "
            f"precision is {_summary(precisions)}.", _unit(), _unit(), x_label="Recall", y_label="Precision",
            height=250.0,
        ),
    ]  # fmt: skip
    charts[0].line([0.0, 1.0], [0.0, 1.0], "dashed")
    if binary:
        charts[1].rule(y=curves[0].frequency, classes="dashed")
    for k, curve in reversed(list(enumerate(curves[:MOST_CURVES]))):
        for chart, (x, y) in zip(charts, (curve.roc, curve.precision_recall), strict=True):
            at = subsample(len(x), points)
            chart.line(x[at], y[at], "pale thin" if many else f"c{k}")
    chance = ("chance", f"chance, {share(curves[0].frequency)}" if binary else "")
    if binary:
        for chart, place in zip(charts, _operating_point(rows), strict=True):
            chart.dot(*place, "c0", 4.5)
    figures = []
    titles, names = ("ROC curve", "Precision and recall"), ("area", "average precision")
    for chart, title, name, values, dashed in zip(
        charts, titles, names, (areas, precisions), chance, strict=True
    ):
        if many:
            drawn = counted(min(len(curves), MOST_CURVES), "class", "classes")
            legend = [LegendEntry("pale", f"one line for each of {drawn}")]
        else:
            legend = [
                LegendEntry(f"c{k}", f"{curve.name}, {name} {share(value)}")
                for k, (curve, value) in enumerate(zip(curves, values, strict=True))
            ]
        legend += [LegendEntry("dashed", dashed)] if dashed else []
        worst = curves[int(np.argmin(values))].name
        note = "The dot is where this model predicts: f(x) = 0." if binary else ""
        if many:
            note = f"Mean {name}: {share(float(np.mean(values)))}; lowest: {share(min(values))} (“{worst}”)."
        figures.append(chart.figure(title, legend, note))
    return figures


def _summary(values: list[float]) -> str:
    return share(float(np.mean(values))) + " on average" * (len(values) > 1)


def _unit() -> Scale:
    return linear_scale(0.0, 1.0)


def _curves(context: ReportContext) -> list[_ClassCurves]:
    rows = context.evaluated
    codes = [1] if context.binary else range(len(context.classes))
    curves = []
    for k in codes:
        true, decision = rows.codes == k, rows.decision if rows.decision.ndim == 1 else rows.decision[:, k]
        if true.all() or not true.any():
            continue
        false_rate, true_rate, _ = roc_curve(true, decision)
        precision, recall, _ = precision_recall_curve(true, decision, drop_intermediate=True)
        curves.append(
            _ClassCurves(
                plain_text(context.classes[k], 40),
                (false_rate, true_rate),
                float(roc_auc_score(true, decision)),
                _steps(recall[::-1], precision[::-1]),
                float(average_precision_score(true, decision)),
                float(true.mean()),
            )
        )
    return curves


def _steps(recall: Vector, precision: Vector) -> Points:
    """Between two recalls, the precision is that of the larger recall, as in the average precision."""
    return np.repeat(recall, 2)[1:-1], np.repeat(precision, 2)[2:]


def _operating_point(rows: ScoredRows) -> tuple[tuple[float, float], tuple[float, float]]:
    """The places of the predictions in both charts."""
    positive, predicted = rows.codes == 1, rows.predicted == 1
    recall = float(np.mean(predicted[positive]))
    precision = float(np.mean(positive[predicted])) if predicted.any() else 1.0
    return (float(np.mean(predicted[~positive])), recall), (recall, precision)
