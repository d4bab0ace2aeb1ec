"""What the strength λ of the penalty does: to the coefficients, and to the score in cross-validation."""

from __future__ import annotations

import numpy as np

from majorant.estimators import SparseSVCCV
from majorant.estimators.coef_norms import largest_on_path
from majorant.estimators.path import Path
from majorant.reporting.charts.chart import COLOURS, FONT, WIDTH, Chart, Key, Picture, spread, subsample
from majorant.reporting.charts.scales import around, linear_scale, log_scale
from majorant.reporting.subject import Subject
from majorant.reporting.text import fitted, number, plain_text, text_width
from majorant.status import Vector

# Lines beyond the largest ones lie on each other near zero.
MOST_LINES = 60
LABEL_ROOM = 132.0


def draw_path(subject: Subject, path: Path) -> Picture | None:
    """The coefficients against λ, the strongest penalty on the left, the largest with their names."""
    models = [model for model in path.models if model.lam_ > 0.0]  # 0 has no place on a logarithmic axis
    if len(models) < 2:
        return None
    models = [models[i] for i in subsample(len(models))]
    lambdas = np.array([model.lam_ for model in models])
    units = 1.0 if subject.deviations is None else subject.deviations
    largest, sizes, n_selected = largest_on_path(models, MOST_LINES, units)
    labelled = min(COLOURS, len(largest))
    names = [fitted(plain_text(subject.names[i]), FONT, LABEL_ROOM - 18.0) for i in largest[:labelled]]
    room = 24.0 + max((text_width(name, FONT) for name in names), default=0.0)
    one = models[0].coef_.shape[0] == 1
    chart = Chart(
        "path",
        "Coefficients along the path",
        f"The coefficients of {len(largest)} features against the strength of the penalty, which falls from "
        f"{number(lambdas[0])} to {number(lambdas[-1])}.",
        log_scale(float(lambdas[-1]), float(lambdas[0]), falling=True),
        around(np.append(sizes.ravel(), 0.0)),
        x_label="Strength λ of the penalty",
        y_label=("Coefficient" if one else "Length of the coefficients over the classes")
        + ("" if subject.deviations is None else " × standard deviation"),
        height=220.0,
        right=room,
    )
    # A line begins where its feature enters: before that, all of them would lie on each other at zero.
    begins = np.maximum((sizes != 0.0).argmax(axis=0) - 1, 0)
    for k in reversed(range(len(largest))):  # the largest on top
        begin = begins[k]
        chart.line(lambdas[begin:], sizes[begin:, k], f"c{k}" if k < labelled else "pale thin")
    if sizes.size and sizes.min() < 0.0:
        chart.rule(y=0.0, classes="axis")
    _label_ends(chart, sizes[-1, :labelled], names)
    keys: tuple[Key, ...] = ()
    if lambdas[-1] <= subject.model.lam_ <= lambdas[0]:
        chart.rule(x=subject.model.lam_, classes="dashed")
        keys = (Key("dashed", f"this model, λ = {number(subject.model.lam_)}"),)
    hidden = n_selected - len(largest)
    note = f"The {MOST_LINES} largest are drawn, {hidden:,} smaller ones are not." if hidden else ""
    return Picture("Path", chart.svg(), keys, note)


def _label_ends(chart: Chart, ends: Vector, names: list[str]) -> None:
    """Names to the right, each as near to the end of its line as the others let it."""
    wanted = chart.up(ends)
    places = spread(wanted.tolist(), 1.3 * FONT, chart.top, chart.bottom)
    for k, (end, place, name) in enumerate(zip(wanted, places, names, strict=True)):
        chart.leader((chart.right, float(end)), (chart.right + 14.0, place), f"c{k}")
        chart.text(chart.right + 18.0, place + 4.0, name, room=WIDTH - chart.right - 18.0)


def draw_cv_scores(model: SparseSVCCV) -> Picture | None:
    """The mean score with a band of one standard error against λ; above, how many features that is."""
    results = model.cv_results_
    at = np.flatnonzero(results["lam"] > 0.0)
    if len(at) < 2:
        return None
    at = at[subsample(len(at))]
    lambdas, mean = results["lam"][at], results["mean_test_score"][at]
    n_splits = sum(name.startswith("split") for name in results)
    error = results["std_test_score"][at] / np.sqrt(n_splits - 1) if n_splits > 1 else np.zeros(len(at))
    scoring = model.scoring
    score = (
        "Accuracy" if scoring is None else plain_text(scoring, 30) if isinstance(scoring, str) else "Score"
    )
    chart = Chart(
        "cv",
        "Score in cross-validation",
        f"{score} against the strength of the penalty; the best mean is {number(mean.max())} at λ = "
        f"{number(model.lam_best_)}.",
        log_scale(float(lambdas[-1]), float(lambdas[0]), falling=True),
        linear_scale(float((mean - error).min()), float((mean + error).max())),
        x_label="Strength λ of the penalty",
        y_label=f"{score}, mean of {n_splits} folds",
        height=200.0,
        header=20.0,
    )
    chart.band(lambdas, mean - error, mean + error, "c0")
    chart.line(lambdas, mean, "c0")
    _count_features(chart, lambdas, results["mean_n_features"][at])
    keys = [Key("c0", "mean ± one standard error")]
    marks = [(model.lam_best_, "dashed", "best"), (model.lam_1se_, "dotted", "within one standard error")]
    if model.lam_best_ == model.lam_1se_:
        marks = [(model.lam_best_, "dashed", "best, also within one standard error")]
    for lam, dashes, text in marks:
        if lam > 0.0:
            chart.rule(x=lam, classes=dashes)
            keys.append(Key(dashes, f"{text}: λ = {number(lam)}"))
    chosen = (
        "the best" if model.selection == "best" else "the strongest within one standard error of the best"
    )
    note = f"Chosen: {chosen}, λ = {number(model.lam_)}. The numbers on top count the features, on average."
    return Picture("Cross-validation", chart.svg(), tuple(keys), note)


def _count_features(chart: Chart, lambdas: Vector, counts: Vector) -> None:
    """The number of features at some of the strengths, far enough from each other to be read."""
    occupied = chart.left - 6.0
    for at, count in zip(chart.across(lambdas).tolist(), counts, strict=True):
        label = f"{count:,.0f}"
        half = 0.5 * text_width(label, FONT)
        if at - half >= occupied and at + half <= WIDTH:
            chart.text(at, chart.top - 8.0, label, "middle")
            occupied = at + half + 22.0
