"""A chart: two axes, and lines, bands and bars between them, as SVG whose colours are CSS classes.

Every chart is 400 units wide, the width of a phone; a wide page shows two charts side by side with smaller
text. Axis labels are above and below the chart, legends outside as HTML, so that nothing can overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from majorant.reporting.charts.scales import Scale
from majorant.reporting.text import text_width, truncated
from majorant.status import Vector

WIDTH = 400.0
FONT = 12.0
# The most points of a line; with more, their distance would be less than a pixel.
MOST_POINTS = 200
COLOURS = 6
# The diameter of the dots of a strip, with the space between two.
DOT = 5.6


@dataclass(frozen=True)
class LegendEntry:
    """One line of a legend: the CSS classes of the stroke, and its meaning."""

    classes: str
    text: str


@dataclass(frozen=True)
class Figure:
    """A finished chart with its title, its legend and an explanation."""

    title: str
    svg: Markup
    legend: Sequence[LegendEntry] = ()
    note: str = ""


def element(tag: str, content: Any = "", **attributes: Any) -> Markup:
    """An SVG element with escaped content. `class_` is class, `stroke_width` stroke-width."""
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _short(value))
        for name, value in attributes.items()
        if value is not None
    )
    if content == "":
        return Markup("<{}{}/>").format(Markup(tag), written)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, content)


def _short(value: Any) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


class Chart:
    """Two axes to draw between.

    Parameters
    ----------
    name : str
        Unique on the page.
    title, description : str
        The content of the chart in words: for screen readers.
    x, y : Scale
    x_label, y_label : str
        The labels of the axes; that of y stands above the chart.
    height : float
        The height of the area between the axes.
    left, right : float, optional
        The space beside the area; by default the left one has the width of the y ticks.
    header : float
        The space between the label of the y axis and the area, for a second row of ticks.
    """

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        x: Scale,
        y: Scale,
        *,
        x_label: str,
        y_label: str,
        height: float = 190.0,
        left: float | None = None,
        right: float = 14.0,
        header: float = 0.0,
    ) -> None:
        self.name, self.title, self.description = name, title, description
        self.x, self.y = x, y
        widths = [text_width(label, FONT) for _, label in y.ticks]
        self.left = 10.0 + max(widths, default=0.0) if left is None else left
        self.right = WIDTH - right
        self.top = 28.0 + header
        self.bottom = self.top + height
        self._parts: list[Markup] = []
        self._draw_axes(x_label, y_label)

    def to_x(self, values: Any) -> Vector:
        """Horizontal places of data coordinates."""
        return self.left + (self.right - self.left) * self.x(values)

    def to_y(self, values: Any) -> Vector:
        """Vertical places of data coordinates, counted from above."""
        return self.bottom - (self.bottom - self.top) * self.y(values)

    def line(self, x: Any, y: Any, classes: str) -> None:
        """A line through points."""
        self._parts.append(element("path", d=_svg_path(self.to_x(x), self.to_y(y)), class_=f"line {classes}"))

    def band(self, x: Any, low: Any, high: Any, classes: str) -> None:
        """The area between two lines."""
        along = self.to_x(x)
        shape = (
            _svg_path(np.append(along, along[::-1]), np.append(self.to_y(low), self.to_y(high)[::-1])) + "Z"
        )
        self._parts.append(element("path", d=shape, class_=f"band {classes}"))

    def dot(self, x: float, y: float, classes: str, radius: float = 3.5) -> None:
        """A point."""
        across, up = float(self.to_x(x)), float(self.to_y(y))
        self._parts.append(element("circle", cx=across, cy=up, r=radius, class_=f"dot {classes}"))

    def strip(self, values: Any, y: float, classes: str, height: float) -> None:
        """A dot for each number, at a number of the vertical axis; dots that would overlap are stacked."""
        across = np.sort(self.to_x(values))
        most = max(1, int(height / DOT))
        lanes = np.array(side_by_side(across.tolist(), DOT, most))
        up = float(self.to_y(y)) + DOT * np.where(lanes % 2, (lanes + 1) // 2, -(lanes // 2))
        shape = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in zip(across.tolist(), up.tolist(), strict=True))
        self._parts.append(element("path", d=shape, class_=f"strip {classes}"))

    def stairs(self, edges: Any, heights: Any, foot: float, classes: str) -> None:
        """A histogram whose base is at a number of the vertical axis."""
        along = np.repeat(self.to_x(edges), 2)
        tops = self.to_y(foot + np.concatenate([[0.0], np.repeat(heights, 2), [0.0]]))
        self._parts.append(element("path", d=_svg_path(along, tops) + "Z", class_=f"area {classes}"))

    def rule(self, *, x: float | None = None, y: float | None = None, classes: str = "") -> None:
        """A line across the whole chart, at a number of one axis."""
        if x is not None:
            at = float(self.to_x(x))
            shape = f"M{at:.1f} {self.top:.1f}V{self.bottom:.1f}"
        else:
            at = float(self.to_y(y))
            shape = f"M{self.left:.1f} {at:.1f}H{self.right:.1f}"
        self._parts.append(element("path", d=shape, class_=f"rule {classes}"))

    def text(self, x: float, y: float, text: str, classes: str = "", *, width: float | None = None) -> None:
        """Text at a place of the chart (not in data coordinates), shortened to a width if one is given."""
        shown = text if width is None else truncated(text, FONT, width)
        self._parts.append(element("text", shown, x=x, y=y, class_=classes or None))

    def leader(self, start: tuple[float, float], end: tuple[float, float], classes: str) -> None:
        """A thin line between two places of the chart (not in data coordinates)."""
        shape = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
        self._parts.append(element("path", d=shape, class_=f"leader {classes}"))

    def _draw_axes(self, x_label: str, y_label: str) -> None:
        middle = 0.5 * (self.left + self.right)
        self.text(0.0, 13.0, y_label, "label")
        self.text(middle, self.bottom + 38.0, x_label, "label middle")
        for value, label in self.y.ticks:
            self.rule(y=value, classes="grid")
            self.text(self.left - 6.0, float(self.to_y(value)) + 4.0, label, "end")
        occupied = -np.inf
        ticks = sorted(self.x.ticks, key=lambda tick: float(self.to_x(tick[0])))
        for value, label in ticks:
            at, half = float(self.to_x(value)), 0.5 * text_width(label, FONT)
            self._parts.append(element("path", d=f"M{at:.1f} {self.bottom:.1f}v4", class_="rule axis"))
            # A label that would touch its neighbour, or leave the chart, is omitted; its tick stays.
            if at - half > occupied + 4.0 and at + half <= WIDTH + 1.0:
                self.text(at, self.bottom + 17.0, label, "middle")
                occupied = at + half
        self._parts.append(
            element("path", d=f"M{self.left:.1f} {self.bottom:.1f}H{self.right:.1f}", class_="rule axis")
        )

    def figure(self, title: str, legend: Sequence[LegendEntry] = (), note: str = "") -> Figure:
        """The finished chart with a title, a legend and an explanation."""
        return Figure(title, self.svg(), legend, note)

    def svg(self) -> Markup:
        """The chart as an SVG element."""
        head = element("title", self.title, id=f"{self.name}-title")
        head += element("desc", self.description, id=f"{self.name}-desc")
        height = self.bottom + 44.0
        return element(
            "svg", head + Markup("").join(self._parts), viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", role="img",
            class_="chart", aria_labelledby=f"{self.name}-title", aria_describedby=f"{self.name}-desc",
        )  # fmt: skip


def _svg_path(across: Vector, up: Vector) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(across.tolist(), up.tolist(), strict=True))


def side_by_side(places: Sequence[float], width: float, most: int) -> list[int]:
    """The lane of each place, in rising order: the first of `most` that is free for `width`, else 0."""
    ends = [-np.inf] * most
    lanes = []
    for place in places:
        lane = next((k for k, end in enumerate(ends) if place >= end), 0)
        ends[lane] = place + width
        lanes.append(lane)
    return lanes


def spread(ideal: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the ideal ones, in their order, `gap` apart and between two bounds as far as they fit."""
    order = np.argsort(ideal, kind="stable")
    places = np.asarray(ideal, dtype=np.float64)[order]
    for k in range(len(places)):
        places[k] = max(places[k], low + k * gap, places[k - 1] + gap if k else low)
    for k in reversed(range(len(places))):
        limit = high - (len(places) - 1 - k) * gap
        places[k] = max(min(places[k], limit, places[k + 1] - gap if k + 1 < len(places) else limit), low)
    result = np.empty(len(places))
    result[order] = places
    return [float(place) for place in result]
