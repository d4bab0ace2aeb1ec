"""Charts with a row for each class: margins, and the values of a feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.estimators.plots.data import bin_edges
from majorant.reporting.charts.chart import COLOURS, DOT, FONT, Chart, Figure, LegendEntry
from majorant.reporting.charts.scales import Scale, linear_scale
from majorant.reporting.context import ReportContext
from majorant.reporting.features import FeatureSurvey
from majorant.reporting.text import percent, plain_text, text_width, truncated
from majorant.status import Vector

MOST_CLASSES = 40
MOST_BINS = 48
# A histogram or a box of fewer numbers hides how few they are.
MOST_DOTS = 50
# Features with a chart of their own, and classes that such a chart shows.
MOST_FEATURES, MOST_FEATURE_CLASSES = 6, 20
CLASS_NAME_WIDTH = 116.0

BOXES = (LegendEntry("c0 thick", "the middle half"), LegendEntry("c0", "the middle 90 %"))


def draw_margins(context: ReportContext) -> Figure:
    """Dots for few rows, else a histogram for each class; of many classes, boxes."""
    rows = context.evaluated
    margins = rows.margins
    present = np.unique(rows.codes).tolist()
    by_class = [margins[rows.codes == k] for k in present[:MOST_CLASSES]]
    names = [plain_text(context.classes[k]) for k in present[:MOST_CLASSES]]
    sentence = (
        f"{percent(float(np.mean(margins < 1.0)))} of the {rows.role} rows are inside the margin, "
        f"{percent(float(np.mean(margins < 0.0)))} on the wrong side."
    )
    histograms = len(rows) >= MOST_DOTS and len(names) <= COLOURS
    if histograms:
        edges = bin_edges(np.concatenate(by_class), MOST_BINS)
        low, high = float(edges[0]), float(edges[-1])
    else:
        low, high = _range(by_class)
    chart = _class_chart(
        "margins", "Margins by class", sentence, names,
        linear_scale(min(low, 0.0), max(high, 1.0), tight=True, most=6),
        x_label="Margin y f(x)" if context.binary else "f of the own class minus the largest other f",
        y_label="Share of each class’s rows" if histograms else "Class",
        height=190.0 / max(len(names), 2) if len(names) <= COLOURS else 17.0,
    )  # fmt: skip
    colours = _class_colours(len(names))
    if histograms:
        _draw_histograms(chart, by_class, edges, colours)
        boxes = False
    else:
        boxes = _draw_dots_and_boxes(chart, by_class, colours)
    chart.rule(x=0.0, classes="solid")
    if chart.x.high >= 1.0:
        chart.rule(x=1.0, classes="dashed")
    legend = [LegendEntry("solid", "0, the border"), LegendEntry("dashed", "1, the margin"), *BOXES * boxes]
    if len(present) > MOST_CLASSES:
        sentence += f" The first {MOST_CLASSES} of {len(present)} classes are shown."
    return chart.figure("Margins", legend, sentence)


def draw_features(context: ReportContext, survey: FeatureSurvey) -> list[Figure]:
    """The values of the features with the largest effects, by class."""
    return [_draw_feature(context, survey, j) for j in range(min(len(survey.features), MOST_FEATURES))]


def _draw_feature(context: ReportContext, survey: FeatureSurvey, j: int) -> Figure:
    values = survey.values[:, j]
    present = np.unique(survey.codes)[:MOST_FEATURE_CLASSES].tolist()
    by_class = [values[survey.codes == k] for k in present]
    names = [plain_text(context.classes[k]) for k in present]
    title = plain_text(context.names[survey.features[j]], 60)
    height = 34.0 if len(names) <= COLOURS else 17.0
    colours = _class_colours(len(names))
    levels = np.unique(values)
    if len(levels) == 2 or np.mean(values == 0.0) > 0.5:  # then a box would be a point
        what = "not zero" if levels[0] == 0.0 or len(levels) > 2 else f"{levels[-1]:g}, not {levels[0]:g}"
        chosen = [v != 0.0 if what == "not zero" else v == levels[-1] for v in by_class]
        shares = [float(np.mean(some)) for some in chosen]
        chart = _class_chart(
            f"feature-{j}", f"{title} by class", f"Share of each class’s rows where {title} is {what}.",
            names, linear_scale(0.0, 100.0 * max(shares) or 1.0), y_label="Class", height=height,
            x_label=f"Rows where the value is {what}, in %",
        )  # fmt: skip
        for k, share in enumerate(shares):
            middle = len(names) - 0.5 - k
            chart.line([0.0, 100.0 * share], [middle, middle], f"{colours[k]} thick")
        return chart.figure(title)
    chart = _class_chart(
        f"feature-{j}", f"{title} by class", f"The values of {title} in each class.", names,
        linear_scale(*_range(by_class), tight=True, most=6), y_label="Class", height=height,
        x_label="Standardised value" if context.standardized else "Value",
    )  # fmt: skip
    _draw_dots_and_boxes(chart, by_class, colours)
    return chart.figure(title)


def _range(by_class: Sequence[Vector]) -> tuple[float, float]:
    """What dots and boxes cover, with some space at both ends."""
    most = _most_dots(len(by_class))
    ends = np.array([np.quantile(v, [0.05, 0.95] if len(v) > most else [0.0, 1.0]) for v in by_class])
    low, high = float(ends.min()), float(ends.max())
    return low - 0.03 * (high - low), high + 0.03 * (high - low)


def _most_dots(n_classes: int) -> int:
    """The rows of a class that are drawn one by one; fewer if there is space for one line only."""
    return MOST_DOTS if n_classes <= COLOURS else MOST_DOTS // 4


def _class_colours(n_classes: int) -> list[str]:
    if n_classes == 2:
        return ["c1", "c0"]  # the colours of the coefficients that speak for them
    return [f"c{k}" for k in range(n_classes)] if n_classes <= COLOURS else ["c0"] * n_classes


def _class_chart(
    name: str,
    title: str,
    sentence: str,
    names: list[str],
    x: Scale,
    *,
    x_label: str,
    y_label: str,
    height: float,
) -> Chart:
    shown = [truncated(name, FONT, CLASS_NAME_WIDTH) for name in names]
    left = 12.0 + max(text_width(name, FONT) for name in shown)
    chart = Chart(
        name, title, sentence, x, Scale(0.0, float(len(names)), ()), x_label=x_label, y_label=y_label,
        height=height * len(names), left=left,
    )  # fmt: skip
    for k, text in enumerate(shown):
        chart.text(left - 8.0, chart.top + height * (k + 0.5) + 4.0, text, "end")
    return chart


def _draw_histograms(chart: Chart, by_class: list[Vector], edges: Vector, colours: list[str]) -> None:
    for k, margins in enumerate(by_class):
        heights = np.histogram(margins, edges)[0].astype(np.float64)
        heights *= 0.86 / heights.max()
        foot = len(by_class) - 1.0 - k
        chart.stairs(edges, heights, foot, colours[k])
        chart.rule(y=foot, classes="axis")


def _draw_dots_and_boxes(chart: Chart, by_class: list[Vector], colours: list[str]) -> bool:
    """A dot for each row of small classes; of others the middle half, the middle 90 % and the median."""
    height = 0.9 * (chart.bottom - chart.top) / len(by_class)
    most = _most_dots(len(by_class))
    for k, values in enumerate(by_class):
        middle = len(by_class) - 0.5 - k
        if len(values) <= most:
            chart.strip(values, middle, colours[k], height)
            continue
        low, first, median, third, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
        chart.line([low, high], [middle, middle], colours[k])
        chart.line([first, third], [middle, middle], f"{colours[k]} thick")
        # A hole in the bar, or a dot if the bar is too short for a hole.
        bar = float(chart.to_x(third) - chart.to_x(first))
        chart.dot(median, middle, *(("hole", 2.6) if bar > DOT else (colours[k], 3.5)))
    return any(len(values) > most for values in by_class)
