"""The charts of a training: convergence, the path, cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.estimators import SparseSVCCV
from majorant.estimators.path import Path
from majorant.estimators.plots.data import certificate_errors, cv_scores, marked, path_lines, subsample
from majorant.reporting.charts.chart import (
    COLOURS,
    FONT,
    MOST_POINTS,
    WIDTH,
    Chart,
    Figure,
    LegendEntry,
    spread,
)
from majorant.reporting.charts.scales import Scale, linear_scale, log_scale, scale_of
from majorant.reporting.context import ReportContext
from majorant.reporting.text import counted, number, plain_text, text_width, truncated
from majorant.status import Vector

# The most curves of problems, which show the range of all; more would cover each other.
MOST_CURVES = 40
# The most coefficients along a path; smaller ones would cover each other near zero.
MOST_PATH_LINES = 60
# The width of the names of features.
NAME_WIDTH = 132.0

# By strength, and by number of features.
X_LABELS = ("Strength λ of the penalty", "Number of features")
AGAINST = ("the strength of the penalty", "the number of features")

Curve = tuple[Vector, Vector]


# Convergence -----------------------------------------------------------------------------------


def draw_certificate(context: ReportContext) -> Figure | None:
    """The gap, or without a gap the stationarity, on a logarithmic scale against iterations."""
    curves = [_finite(h.column("iteration"), certificate_errors(h)) for h in context.histories]
    if context.model.n_features is not None:
        return None  # a search has a certificate at its end alone
    if not any(len(x) for x, _ in curves):
        return None
    certificate = "Stationarity" if np.isnan(context.model.gap_) else "Duality gap, relative to the objective"
    tol = context.model.tol
    y = scale_of(np.concatenate([values for _, values in curves] + [[tol] if tol > 0.0 else []]), log=True)
    last = max(1, *(int(x[-1]) for x, _ in curves if len(x)))
    end = number(max(values[-1] for _, values in curves if len(values)), 2)
    chart = Chart(
        "certificate", "How the certificate fell",
        f"{certificate} against iterations on a logarithmic scale; it ends at {end}.",
        linear_scale(0.0, last, most=min(5, last), tight=True), y, x_label="Iteration", y_label=certificate,
    )  # fmt: skip
    legend = _draw_curves(chart, curves, context)
    if tol > 0.0:
        chart.rule(y=tol, classes="dashed")
        legend.append(LegendEntry("dashed", f"tolerance {number(tol, 2)}"))
    note = "The dot is the certificate of the model; all points before it are estimates."
    return chart.figure("Certificate", legend, note)


def draw_objective(context: ReportContext) -> Figure | None:
    """Φ against the seconds of the solver."""
    curves = [_finite(h.column("time"), h.column("objective")) for h in context.histories]
    if not any(len(x) for x, _ in curves):
        return None
    values = np.concatenate([y for _, y in curves])
    seconds = max(float(x[-1]) for x, _ in curves if len(x))
    unit, factor = ("seconds", 1.0) if seconds >= 1.0 else ("milliseconds", 1e3)
    log = bool(values.min() > 0.0 and values.max() > 30.0 * values.min())
    chart = Chart(
        "objective", "How the objective fell",
        f"The objective against time: from {number(values.max(), 4)} to {number(values.min(), 4)} in "
        f"{number(factor * seconds)} {unit}.",
        linear_scale(0.0, max(factor * seconds, 1e-3), tight=True), scale_of(values, log=log),
        x_label=f"Time of the solver in {unit}", y_label="Objective" + " of each class" * (len(curves) > 1),
    )  # fmt: skip
    return chart.figure("Objective", _draw_curves(chart, [(factor * x, y) for x, y in curves], context))


def _finite(x: Vector, y: Vector) -> Curve:
    known = np.isfinite(y)
    return np.asarray(x, dtype=np.float64)[known], np.asarray(y, dtype=np.float64)[known]


def _draw_curves(chart: Chart, curves: Sequence[Curve], context: ReportContext) -> list[LegendEntry]:
    """A line with a dot at its end for each problem; a legend if colours distinguish the problems."""
    many = len(curves) > COLOURS
    for k, (x, y) in enumerate(curves[:MOST_CURVES]):
        if not len(x):
            continue
        shown = subsample(len(x), MOST_POINTS // 4 if many else MOST_POINTS)
        colour = "pale" if many else f"c{k}"
        chart.line(x[shown], y[shown], colour + " thin" * many)
        chart.dot(float(x[-1]), float(y[-1]), colour, 2.5 if many else 3.5)
    if many:
        drawn = counted(min(len(curves), MOST_CURVES), "class", "classes")
        return [LegendEntry("pale", f"one line for each of {drawn}")]
    names = context.classes[: len(curves)] if len(curves) > 1 else ()
    return [LegendEntry(f"c{k}", plain_text(name, 40)) for k, name in enumerate(names)]


# Strengths -------------------------------------------------------------------------------------


def draw_path(context: ReportContext, path: Path) -> Figure | None:
    """The coefficients against λ or the number of features, the largest coefficients with names."""
    units = 1.0 if context.deviations is None else context.deviations
    lines = path_lines(path, MOST_PATH_LINES, units, MOST_POINTS)
    if lines is None:
        return None
    at, sizes, count = lines.at, lines.sizes, len(lines.features)
    labelled = min(COLOURS, count)
    names = [
        truncated(plain_text(context.names[i]), FONT, NAME_WIDTH - 18.0) for i in lines.features[:labelled]
    ]
    y_label = "Coefficient" if lines.one_problem else "Length of the coefficients over the classes"
    chart = Chart(
        "path", "Coefficients along the path",
        f"The coefficients of {count} features against {AGAINST[lines.by_size]} from {number(at[0])} to "
        f"{number(at[-1])}.",
        _axis(at, by_size=lines.by_size), scale_of(np.append(sizes.ravel(), 0.0)),
        x_label=X_LABELS[lines.by_size],
        y_label=y_label + ("" if context.deviations is None else " × standard deviation"),
        height=220.0, right=24.0 + max((text_width(name, FONT) for name in names), default=0.0),
    )  # fmt: skip
    for k in reversed(range(count)):  # the largest on top
        start = lines.starts[k]
        chart.line(at[start:], sizes[start:, k], f"c{k}" if k < labelled else "pale thin")
    if sizes.size and sizes.min() < 0.0:
        chart.rule(y=0.0, classes="axis")
    _label_ends(chart, sizes[-1, :labelled], names)
    legend = []
    model = context.model
    here = model.lam_
    if lines.by_size:  # of a cross-validation, `n_features` are all numbers that it has compared
        here = float(getattr(model, "n_features_", len(model.support_)))
    if at.min() <= here <= at.max():
        chart.rule(x=here, classes="dashed")
        legend = [LegendEntry("dashed", f"this model, {_place(here, by_size=lines.by_size)}")]
    hidden = lines.n_selected - count
    note = f"The {MOST_PATH_LINES} largest are drawn, {hidden:,} smaller ones are not." if hidden else ""
    return chart.figure("Path", legend, note)


def _label_ends(chart: Chart, ends: Vector, names: list[str]) -> None:
    """Names to the right of the lines, as near to their ends as the other names allow."""
    ideal = chart.to_y(ends)
    places = spread(ideal.tolist(), 1.3 * FONT, chart.top, chart.bottom)
    for k, (end, place, name) in enumerate(zip(ideal, places, names, strict=True)):
        chart.leader((chart.right, float(end)), (chart.right + 14.0, place), f"c{k}")
        chart.text(chart.right + 18.0, place + 4.0, name, width=WIDTH - chart.right - 18.0)


def draw_cv_scores(model: SparseSVCCV) -> Figure | None:
    """The mean score with a band of one standard error; above, the mean number of features."""
    scores = cv_scores(model, MOST_POINTS)
    if scores is None:
        return None
    at, mean, error, by_size = scores.at, scores.mean, scores.standard_error, scores.by_size
    best, within = marked(model)
    score = plain_text(scores.score, 30)
    chart = Chart(
        "cv", "Score in cross-validation",
        f"{score} against {AGAINST[by_size]}; the best mean is {number(mean.max())} at "
        f"{_place(best, by_size=by_size)}.",
        _axis(at, by_size=by_size),
        linear_scale(float((mean - error).min()), float((mean + error).max())),
        x_label=X_LABELS[by_size], y_label=f"{score}, mean of {scores.n_splits} folds",
        height=200.0, header=20.0,
    )  # fmt: skip
    chart.band(at, mean - error, mean + error, "c0")
    chart.line(at, mean, "c0")
    if not by_size:
        _label_feature_counts(chart, at, scores.n_features)
    legend = [LegendEntry("c0", "mean ± one standard error")]
    marks = [(best, "dashed", "best"), (within, "dotted", "within one standard error")]
    if best == within:
        marks = [(best, "dashed", "best, also within one standard error")]
    for place, dashes, text in marks:
        if by_size or place > 0.0:
            chart.rule(x=place, classes=dashes)
            legend.append(LegendEntry(dashes, f"{text}: {_place(place, by_size=by_size)}"))
    chosen = "the best"
    if model.selection != "best":
        chosen = f"the {'fewest' if by_size else 'strongest'} within one standard error of the best"
    if by_size:
        note = f"Chosen: {chosen}, {_place(model.n_features_, by_size=True)}."
    else:
        note = f"Chosen: {chosen}, {_place(model.lam_)}. The numbers on top count the features, on average."
    return chart.figure("Cross-validation", legend, note)


def _axis(at: Vector, *, by_size: bool) -> Scale:
    """The axis of the strengths, falling, or of the numbers of features."""
    if by_size:
        return linear_scale(float(at[0]), float(at[-1]), most=max(1, min(8, int(at[-1] - at[0]))), tight=True)
    return log_scale(float(at[-1]), float(at[0]), falling=True)


def _place(value: float, *, by_size: bool = False) -> str:
    return counted(int(value), "feature") if by_size else f"λ = {number(value)}"


def _label_feature_counts(chart: Chart, lambdas: Vector, counts: Vector) -> None:
    """The number of features above some of the strengths, without overlap."""
    occupied = chart.left - 6.0
    for at, count in zip(chart.to_x(lambdas).tolist(), counts, strict=True):
        label = f"{count:,.0f}"
        half = 0.5 * text_width(label, FONT)
        if at - half >= occupied and at + half <= WIDTH:
            chart.text(at, chart.top - 8.0, label, "middle")
            occupied = at + half + 22.0
