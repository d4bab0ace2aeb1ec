"""How a fit went on: its certificate by iterations, its objective by time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.reporting.charts.chart import COLOURS, MOST_POINTS, Chart, Key, Picture, colour, subsample
from majorant.reporting.charts.scales import SMALLEST, around, linear_scale
from majorant.reporting.subject import Subject
from majorant.reporting.text import counted, number, plain_text
from majorant.status import Vector

# More lines than this are a carpet, which these are enough to show.
MOST_LINES = 40

Curve = tuple[Vector, Vector]


def draw_certificate(subject: Subject) -> Picture | None:
    """The gap, or the stationarity where there is none, on a logarithmic scale against iterations."""
    curves = []
    for history in subject.histories:
        errors = np.array([record.certificate.error for record in history], dtype=np.float64)
        curves.append(_finite(history.column("iteration"), np.maximum(errors, SMALLEST)))
    if not any(len(x) for x, _ in curves):
        return None
    bounded = not np.isnan(subject.model.gap_)
    what = "Duality gap, relative to the objective" if bounded else "Stationarity"
    tol = subject.model.tol
    low = [tol] if tol > 0.0 else []
    y = around(np.concatenate([values for _, values in curves] + [low]), log=True)
    last = max(int(x[-1]) for x, _ in curves if len(x))
    chart = Chart(
        "certificate",
        "How the certificate fell",
        f"{what} against iterations on a logarithmic scale; it ends at "
        f"{number(max(values[-1] for _, values in curves if len(values)), 2)}.",
        linear_scale(0.0, max(last, 1), most=min(5, max(last, 1)), tight=True),
        y,
        x_label="Iteration",
        y_label=what,
    )
    keys = _draw(chart, curves, subject)
    if tol > 0.0:
        chart.rule(y=tol, classes="dashed")
        keys += (Key("dashed", f"tolerance {number(tol, 2)}"),)
    note = "All points are estimates but the last, the dot, which is what is certified."
    return Picture("Certificate", chart.svg(), keys, note)


def draw_objective(subject: Subject) -> Picture | None:
    """Φ against the seconds of the solver."""
    curves = [_finite(h.column("time"), h.column("objective")) for h in subject.histories]
    if not any(len(x) for x, _ in curves):
        return None
    values = np.concatenate([y for _, y in curves])
    seconds = max(float(x[-1]) for x, _ in curves if len(x))
    unit, factor = ("seconds", 1.0) if seconds >= 1.0 else ("milliseconds", 1e3)
    curves = [(factor * x, y) for x, y in curves]
    log = bool(values.min() > 0.0 and values.max() > 30.0 * values.min())
    chart = Chart(
        "objective",
        "How the objective fell",
        f"The objective against time: from {number(values.max(), 4)} to {number(values.min(), 4)} in "
        f"{number(factor * seconds)} {unit}.",
        linear_scale(0.0, max(factor * seconds, 1e-3), tight=True),
        around(values, log=log),
        x_label=f"Time of the solver in {unit}",
        y_label="Objective" + (" of each class" if len(curves) > 1 else ""),
    )
    keys = _draw(chart, curves, subject)
    return Picture("Objective", chart.svg(), keys)


def _finite(x: Vector, y: Vector) -> Curve:
    known = np.isfinite(y)
    return np.asarray(x, dtype=np.float64)[known], np.asarray(y, dtype=np.float64)[known]


def _draw(chart: Chart, curves: Sequence[Curve], subject: Subject) -> tuple[Key, ...]:
    """A line with a dot at its end for each problem; a legend where colours can tell them apart."""
    several = len(curves) > COLOURS
    for k, (x, y) in enumerate(curves[:MOST_LINES]):
        if not len(x):
            continue
        shown = subsample(len(x), MOST_POINTS // 4 if several else MOST_POINTS)
        chart.line(x[shown], y[shown], colour(k, len(curves)) + (" thin" if several else ""))
        chart.dot(float(x[-1]), float(y[-1]), colour(k, len(curves)), 2.5 if several else 3.5)
    if len(curves) == 1:
        return ()
    if several:
        drawn = min(len(curves), MOST_LINES)
        return (Key("pale", f"one line for each of {counted(drawn, 'class', 'classes')}"),)
    return tuple(Key(f"c{k}", plain_text(name, 40)) for k, name in enumerate(subject.classes[: len(curves)]))
