"""The paper's figures of results, and those that it should have had: gaps by time, zeros by iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from majorant.experiments.outcomes import Outcomes
from majorant.experiments.protocol import STOCHASTIC, DataSet, Regulariser
from majorant.reporting.charts.chart import Chart, Key, Picture
from majorant.reporting.charts.scales import Scale, around, linear_scale
from majorant.reporting.text import number
from majorant.status import Vector

__all__ = ["draw_gaps", "draw_stochastic", "draw_zeros"]

# A hybrid has the colour of its deterministic version, in dashes.
STYLES = {
    "FG": "pale", "MMI": "c0", "H MMI": "c0 dashes", "MM": "c1", "H MM": "c1 dashes", "SUB": "c2",
    "H SUB": "c2 dashes", "auto": "c3 heavy", "LIBLINEAR": "c4",
}  # fmt: skip
STOCHASTIC_STYLES = {"sgd": "c0", "momentum": "c2", "adam": "c1"}
LAMBDA_STYLES = ("c3", "c1", "c2", "c0", "pale")
# Below this share of Φ*, a gap is rounding.
ROUNDING = 1e-13

PANELS = {
    ("a1a", "Welsch"): "a", ("a1a", "ℓ2"): "b", ("w8a", "hyperbolic"): "c", ("w8a", "ℓ2"): "d",
    ("cina0", "Welsch"): "e", ("cina0", "ℓ2"): "f",
}  # fmt: skip
"""The panels of fig:optimality; it has none for the other three problems."""


class Curve(NamedTuple):
    """A line of a picture."""

    name: str
    classes: str
    x: Vector
    y: Vector


def draw_gaps(outcomes: Outcomes) -> list[tuple[Picture, Picture]]:
    """fig:optimality: for each problem the gap of all methods by iterations, and by time.

    By time our `auto` is there as well and, where it has the same problem, LIBLINEAR.
    """
    return [_gap_pair(outcomes, *problem) for problem in outcomes.problems()]


def _gap_pair(outcomes: Outcomes, data: DataSet, regulariser: Regulariser) -> tuple[Picture, Picture]:
    minimum = outcomes.minimum(data, regulariser)
    records = [(m.name, outcomes.cells(data, regulariser, m)[0]) for m in outcomes.study.methods]
    by_iteration = [_gap_curve(name, record, minimum, "iteration") for name, record in records]
    peers = [("auto", outcomes.references(data, regulariser)[:1])]
    others = [outcomes.plan.liblinear(data, regulariser)] if regulariser.potential == "none" else []
    peers.append(("LIBLINEAR", [record for _, record in outcomes.results.of(others)]))
    records += [(name, found[0]) for name, found in peers if found]
    by_time = [_gap_curve(name, record, minimum, "time") for name, record in records]

    panel = PANELS.get((data.name, regulariser.name))
    where = f"panel {panel}" if panel else "not in the paper"
    problem = f"{data.name}, {regulariser.name}"
    name = f"gap-{data.name}-{regulariser.potential}".replace(" ", "-")
    split = "" if data.splits == 1 else " Of the first split."
    low = minimum * ROUNDING
    iterations = _picture(
        f"{name}-iterations", f"{problem} (fig:optimality, {where})", by_iteration,
        linear_scale(0.0, max(float(curve.x[-1]) for curve in by_iteration), tight=True),
        "Iteration or epoch", f"Φ − Φ*, with Φ* = {number(minimum, 7)}.{split}{_hidden(by_iteration)}", low,
    )  # fmt: skip
    seconds = np.concatenate([curve.x for curve in by_time])
    time = _picture(
        f"{name}-time", f"{problem}, by time", by_time, around(seconds[seconds > 0.0], log=True),
        "Seconds of one core", f"The same by time.{split}", low,
    )  # fmt: skip
    return iterations, time


def _hidden(curves: Sequence[Curve]) -> str:
    """A sentence about lines that cannot be seen, since another is drawn on them."""
    pairs = [
        f" {under.name} lies under {over.name}."
        for k, under in enumerate(curves)
        for over in curves[k + 1 :]
        if len(under.y) == len(over.y) and np.allclose(np.log(under.y), np.log(over.y), atol=0.05)
    ]
    return "".join(pairs)


def _gap_curve(name: str, record: dict[str, Any], minimum: float, against: str) -> Curve:
    phi = np.array([value for value in record["phi"] if value is not None])
    x = (
        np.arange(len(phi), dtype=np.float64)
        if against == "iteration"
        else np.array(record["time"])[: len(phi)]
    )
    if name == "LIBLINEAR":  # a point for each tolerance, not a way from one to the next
        order = np.argsort(x)
        x, phi = x[order], np.minimum.accumulate(phi[order])
    shown = x > 0.0 if against == "time" else x >= 0.0
    gap = np.maximum(phi - minimum, ROUNDING * minimum)
    return Curve(name, STYLES[name], x[shown], gap[shown])


def _picture(
    name: str, title: str, curves: Sequence[Curve], x: Scale, x_label: str, note: str, low: float
) -> Picture:
    gaps = np.concatenate([curve.y for curve in curves])
    best = min(curves, key=lambda curve: float(curve.y[-1]))
    description = (
        f"The gap of {len(curves)} methods on a logarithmic scale; the lowest in the end is {best.name}."
    )
    y = around(np.append(gaps[gaps > low], [gaps.max()]), log=True)
    chart = Chart(
        name, title, description, x, y, x_label=x_label, y_label="Optimality gap Φ − Φ*", height=210.0
    )
    for curve in curves:
        chart.line(curve.x, np.maximum(curve.y, y.low), curve.classes)
    return Picture(title, chart.svg(), tuple(Key(curve.classes, curve.name) for curve in curves), note)


def draw_stochastic(outcomes: Outcomes) -> list[Picture]:
    """fig:stochastic: the stochastic methods at their best learning rates."""
    pictures = []
    for data in outcomes.study.data:
        if data.standardised or data.shuffled:
            continue
        tasks = [outcomes.plan.stochastic(data, outcomes.plan.convex, solver) for solver in STOCHASTIC]
        found = list(outcomes.results.of(tasks))
        if len(found) < len(tasks):
            continue
        minimum = outcomes.minimum(data, outcomes.plan.convex)
        curves = []
        for task, record in found:
            phi = np.array([value for value in record["phi"] if value is not None])
            gap = np.maximum(phi - minimum, ROUNDING * minimum)
            name = f"{task.method.solver}, rate {task.method.rate:g}"
            curves.append(Curve(name, STOCHASTIC_STYLES[task.method.solver], np.arange(float(len(phi))), gap))
        epochs = linear_scale(0.0, float(outcomes.study.iterations), tight=True)
        where = "fig:stochastic" if data.name == "a1a" else "not in the paper"
        title = f"Stochastic methods, {data.name}, hyperbolic ({where})"
        note = f"Rates are the best after {outcomes.study.warmup} epochs; steps are constant."
        picture = _picture(f"stochastic-{data.name}", title, curves, epochs, "Epoch", note, 0.0)
        pictures.append(picture)
    return pictures


def draw_zeros(outcomes: Outcomes) -> list[Picture]:
    """How far the tables sparsity:* are from converged: zeros by iterations, and at the minimum."""
    pictures = []
    plan, study = outcomes.plan, outcomes.study
    for data in study.data:
        found = [
            (lam, outcomes.cells(data, plan.stronger(lam), plan.sparsity_method()),
             outcomes.references(data, plan.stronger(lam)))
            for lam in study.lambdas
            if not data.standardised
        ]  # fmt: skip
        if not found or not all(stopped and converged for _, stopped, converged in found):
            continue
        final = {lam: converged[0]["zeros"][-1] for lam, _, converged in found}
        traces = {lam: np.array(stopped[0]["zeros"]) for lam, stopped, _ in found}
        first = min(study.warmup + 1, study.iterations)  # the end of the warm-up itself is not on the way
        settled = np.concatenate([trace[first:] for trace in traces.values()])
        top = float(max(*final.values(), settled.max()))
        chart = Chart(
            f"zeros-{data.name}", f"Zeros by iterations, {data.name}",
            f"Coefficients of at most {study.zero_below:g} in size at each iteration of {study.sparsity_of}.",
            linear_scale(0.0, float(study.iterations), tight=True), linear_scale(0.0, max(top, 1.0)),
            x_label="Iteration", y_label="Zeros", height=190.0,
        )  # fmt: skip
        keys = []
        for (lam, trace), style in zip(traces.items(), LAMBDA_STYLES, strict=False):
            chart.line(np.arange(first, len(trace)), trace[first:], style)
            chart.dot(float(study.iterations), float(final[lam]), style, 4.0)
            keys.append(Key(style, f"λ = {lam:g}"))
        note = f"{study.sparsity_of}, hyperbolic, after its warm-up; the dots are the zeros at the minimum."
        pictures.append(Picture(f"Zeros by iterations, {data.name}", chart.svg(), tuple(keys), note))
    return pictures
