"""How far the rows are on the right side of the border, class by class."""

from __future__ import annotations

import math

import numpy as np

from majorant.reporting.charts.chart import COLOURS, FONT, Chart, Key, Picture
from majorant.reporting.charts.scales import Scale, linear_scale
from majorant.reporting.subject import Subject
from majorant.reporting.text import fitted, percent, plain_text, text_width
from majorant.status import Vector

MOST_BINS = 48
MOST_CLASSES = 40
LABEL_ROOM = 116.0


def draw_margins(subject: Subject) -> Picture:
    """A histogram for each class, one below the other; of many classes, where their middle rows are."""
    rows = subject.judged
    margins = rows.margins
    present = [k for k in range(len(subject.classes)) if np.any(rows.codes == k)]
    by_class = [margins[rows.codes == k] for k in present[:MOST_CLASSES]]
    names = [plain_text(subject.classes[k]) for k in present[:MOST_CLASSES]]
    inside, wrong = float(np.mean(margins < 1.0)), float(np.mean(margins < 0.0))
    sentence = (
        f"{percent(inside)} of the {rows.where} rows are inside the margin, "
        f"{percent(wrong)} on the wrong side."
    )
    label = "Margin y f(x)" if len(subject.classes) == 2 else "f of the own class minus the largest other f"
    histogram = len(by_class) <= COLOURS
    draw = _histograms if histogram else _quantiles
    chart = draw(by_class, names, label, sentence)
    chart.rule(x=0.0, classes="solid")
    if chart.x.high >= 1.0:
        chart.rule(x=1.0, classes="dashed")
    keys = [Key("solid", "0, the border"), Key("dashed", "1, the margin")]
    if not histogram:
        keys += [Key("c0 thick", "the middle half"), Key("c0", "the middle 90 %")]
    if len(present) > MOST_CLASSES:
        sentence += f" The first {MOST_CLASSES} of {len(present)} classes are shown."
    return Picture("Margins", chart.svg(), tuple(keys), sentence)


def _chart(
    names: list[str], x: Scale, x_label: str, sentence: str, *, row: float, y_label: str
) -> tuple[Chart, float]:
    shown = [fitted(name, FONT, LABEL_ROOM) for name in names]
    left = 12.0 + max(text_width(name, FONT) for name in shown)
    count = len(names)
    y = Scale(0.0, float(count), ())
    chart = Chart(
        "margins", "Margins by class", sentence, x, y, x_label=x_label, y_label=y_label, height=row * count,
        left=left,
    )  # fmt: skip
    for k, name in enumerate(shown):
        chart.text(left - 8.0, chart.top + row * (k + 0.5) + 4.0, name, "end")
    return chart, row


def _histograms(by_class: list[Vector], names: list[str], x_label: str, sentence: str) -> Chart:
    edges = _edges(np.concatenate(by_class))
    x = linear_scale(min(float(edges[0]), 0.0), max(float(edges[-1]), 1.0), tight=True, most=6)
    row = 190.0 / max(len(names), 2)
    chart, _ = _chart(names, x, x_label, sentence, row=row, y_label="Share of each class’s rows")
    # Of two classes, the colours of the coefficients that speak for them.
    colours = (1, 0) if len(names) == 2 else range(len(names))
    for k, margins in enumerate(by_class):
        heights = np.histogram(margins, edges)[0].astype(np.float64)
        heights *= 0.86 / heights.max()
        foot = len(names) - 1.0 - k
        chart.steps(edges, heights, foot, f"c{colours[k]}")
        chart.rule(y=foot, classes="axis")
    return chart


def _quantiles(by_class: list[Vector], names: list[str], x_label: str, sentence: str) -> Chart:
    ends = np.array([np.quantile(margins, [0.05, 0.25, 0.5, 0.75, 0.95]) for margins in by_class])
    x = linear_scale(min(float(ends.min()), 0.0), max(float(ends.max()), 1.0), most=6)
    chart, _ = _chart(names, x, x_label, sentence, row=17.0, y_label="Class")
    for k, (low, first, median, third, high) in enumerate(ends.tolist()):
        middle = len(names) - 0.5 - k
        chart.line([low, high], [middle, middle], "c0")
        chart.line([first, third], [middle, middle], "c0 thick")
        chart.dot(median, middle, "hole", 2.6)
    return chart


def _edges(margins: Vector) -> Vector:
    """Bins by Freedman and Diaconis' rule, not too many; 0 is an edge, so that no bar is on both sides."""
    low, high = np.quantile(margins, [0.25, 0.75])
    span = max(float(np.ptp(margins)), 1e-9 * float(np.abs(margins).max()), 1e-9)
    width = max(2.0 * float(high - low) / np.cbrt(len(margins)), span / MOST_BINS)
    if width <= 1.0:
        width = 1.0 / math.floor(1.0 / width)  # 1 is an edge as well
    first, last = math.floor(float(margins.min()) / width), math.floor(float(margins.max()) / width) + 1
    return np.asarray(width * np.arange(first, last + 1))
