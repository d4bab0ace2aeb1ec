"""The paper's figures, and two more kinds: gaps by time, and zeros by iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from majorant.experiments.paper import PANELS
from majorant.experiments.study import STOCHASTIC
from majorant.experiments.study_results import Problem, StudyResults
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.potentials import L2, Hyperbolic, Welsch
from majorant.reporting.charts.chart import Chart, Figure, LegendEntry
from majorant.reporting.charts.scales import Scale, linear_scale, scale_of
from majorant.reporting.text import number
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from majorant.status import Vector

# A hybrid has the colour of its deterministic version, dashed.
STYLES = {
    "FG": "pale", "MMI": "c0", "H MMI": "c0 dashes", "MM": "c1", "H MM": "c1 dashes", "SUB": "c2",
    "H SUB": "c2 dashes", "auto": "c3 heavy", "LIBLINEAR": "c4", "sgd": "c0", "momentum": "c2", "adam": "c1",
}  # fmt: skip
LAMBDA_STYLES = ("c3", "c1", "c2", "c0", "pale")
# Gaps below this share of Φ* are rounding errors.
ROUNDING = 1e-13


class Curve(NamedTuple):
    """A line of a figure."""

    name: str
    classes: str
    x: Vector
    y: Vector


def _gap_curve(
    method: str, record: dict[str, Any], minimum: float, against: str = "iteration", name: str | None = None
) -> Curve:
    phi = np.array([value for value in record["phi"] if value is not None])
    x = np.arange(float(len(phi))) if against == "iteration" else np.array(record["time"])[: len(phi)]
    if method == "LIBLINEAR":  # one fit per tolerance, in any order of time
        order = np.argsort(x)
        x, phi = x[order], np.minimum.accumulate(phi[order])
    shown = x > 0.0 if against == "time" else x >= 0.0
    gap = np.maximum(phi - minimum, ROUNDING * minimum)
    return Curve(name or method, STYLES[method], x[shown], gap[shown])


def _gap_figure(
    name: str, title: str, curves: Sequence[Curve], x: Scale, x_label: str, note: str, low: float
) -> Figure:
    gaps = np.concatenate([curve.y for curve in curves])
    best = min(curves, key=lambda curve: float(curve.y[-1]))
    y = scale_of(np.append(gaps[gaps > low], [gaps.max()]), log=True)
    chart = Chart(
        name, title, f"The gap of {len(curves)} methods on a logarithmic scale; the lowest in the end is "
        f"{best.name}.", x, y, x_label=x_label, y_label="Optimality gap Φ − Φ*", height=210.0,
    )  # fmt: skip
    for curve in curves:
        chart.line(curve.x, np.maximum(curve.y, y.low), curve.classes)
    return chart.figure(title, [LegendEntry(curve.classes, curve.name) for curve in curves], note)


def draw_gaps(results: StudyResults) -> list[tuple[Figure, Figure]]:
    """fig:optimality: for each problem the gap of all methods by iterations, and by time.

    The figures by time also show our `auto` and, for ℓ2, LIBLINEAR.
    """
    return [_gap_pair(results, problem) for problem in results.complete()]


def _gap_pair(results: StudyResults, problem: Problem) -> tuple[Figure, Figure]:
    data, regulariser, minimum = problem.data, problem.regulariser, results.minimum(problem)
    records = {method: found[0] for method, found in problem.runs.items()}
    by_iteration = [_gap_curve(method, record, minimum) for method, record in records.items()]
    if problem.reference:
        records["auto"] = problem.reference[0]
    if regulariser.potential == "none":
        peers = results.records.select([results.plan.liblinear(data, regulariser)])
        records |= {run.method.name: record for run, record in peers}
    by_time = [_gap_curve(method, record, minimum, "time") for method, record in records.items()]

    panel = PANELS.get(data.name, {}).get(regulariser.name)
    place = f"panel {panel}" if panel else "not in the paper"
    title = f"{data.name}, {regulariser.name}"
    name = f"gap-{data.name}-{regulariser.potential}".replace(" ", "-")
    split = "" if data.splits == 1 else " Of the first split."
    low = minimum * ROUNDING
    iterations = _gap_figure(
        f"{name}-iterations", f"{title} (fig:optimality, {place})", by_iteration,
        linear_scale(0.0, max(float(curve.x[-1]) for curve in by_iteration), tight=True),
        "Iteration or epoch",
        f"Φ − Φ*, with Φ* = {number(minimum, 7)}.{split}{_covered(by_iteration)}", low,
    )  # fmt: skip
    seconds = np.concatenate([curve.x for curve in by_time])
    time = _gap_figure(
        f"{name}-time", f"{title}, by time", by_time, scale_of(seconds[seconds > 0.0], log=True),
        "Seconds of one core", f"The same by time.{split}", low,
    )  # fmt: skip
    return iterations, time


def _covered(curves: Sequence[Curve]) -> str:
    """A sentence about each line that another line covers."""
    pairs = [
        f" {under.name} lies under {over.name}."
        for k, under in enumerate(curves)
        for over in curves[k + 1 :]
        if len(under.y) == len(over.y) and np.allclose(np.log(under.y), np.log(over.y), atol=0.05)
    ]
    return "".join(pairs)


def draw_stochastic(results: StudyResults) -> list[Figure]:
    """fig:stochastic: the stochastic methods at their best learning rates."""
    figures = []
    study, convex = results.study, results.plan.convex
    for problem in results.problems:
        data = problem.data
        if data.standardised or data.shuffled or problem.regulariser != convex:
            continue
        runs = [results.plan.stochastic(data, convex, solver) for solver in STOCHASTIC]
        found = list(results.records.select(runs))
        if len(found) < len(runs):
            continue
        curves = [
            _gap_curve(
                run.method.solver, record, results.minimum(problem),
                name=f"{run.method.solver}, rate {run.method.rate:g}",
            )
            for run, record in found
        ]  # fmt: skip
        place = "fig:stochastic" if data.name == "a1a" else "not in the paper"
        title = f"Stochastic methods, {data.name}, hyperbolic ({place})"
        note = f"Rates are the best after {study.warmup} epochs; steps are constant."
        epochs = linear_scale(0.0, float(study.iterations), tight=True)
        figures.append(_gap_figure(f"stochastic-{data.name}", title, curves, epochs, "Epoch", note, 0.0))
    return figures


def draw_zeros(results: StudyResults) -> list[Figure]:
    """The distance of the tables sparsity:* from convergence: zeros by iterations, and at the minimum."""
    figures = []
    study = results.study
    for data in study.data:
        by_strength = {} if data.standardised else results.by_strength(data)
        if not by_strength or not all(
            one.reference and study.sparsity_of in one.runs for one in by_strength.values()
        ):
            continue
        final = {lam: one.reference[0]["zeros"][-1] for lam, one in by_strength.items()}
        traces = {lam: np.array(one.runs[study.sparsity_of][0]["zeros"]) for lam, one in by_strength.items()}
        first = min(study.warmup + 1, study.iterations)  # the first iterate of the method after the warm-up
        top = float(max(*final.values(), *(trace[first:].max() for trace in traces.values())))
        title = f"Zeros by iterations, {data.name}"
        chart = Chart(
            f"zeros-{data.name}", title,
            f"Coefficients of at most {study.zero_below:g} in size at each iteration of {study.sparsity_of}.",
            linear_scale(0.0, float(study.iterations), tight=True), linear_scale(0.0, max(top, 1.0)),
            x_label="Iteration", y_label="Zeros",
        )  # fmt: skip
        legend = []
        for (lam, trace), style in zip(traces.items(), LAMBDA_STYLES, strict=False):
            chart.line(np.arange(first, len(trace)), trace[first:], style)
            chart.dot(float(study.iterations), float(final[lam]), style, 4.0)
            legend.append(LegendEntry(style, f"λ = {lam:g}"))
        note = f"{study.sparsity_of}, hyperbolic, after its warm-up; the dots are the zeros at the minimum."
        figures.append(chart.figure(title, legend, note))
    return figures


# The figures of the theory, which need no results --------------------------------------------------


def draw_theory() -> list[Figure]:
    """A classifier, the losses, and the potentials with their limits."""
    return [_draw_classifier(), _draw_losses(), *_draw_potentials()]


def _draw_classifier() -> Figure:
    """fig:linclassEX: a trained classifier of points in the plane."""
    rng = np.random.default_rng(3)
    y = np.repeat([-1.0, 1.0], 30)
    X = rng.normal(0.0, 0.55, (60, 2)) + np.outer(y, [1.1, 0.8])
    theta = solve(Newton(), Objective(MemoryRows(X, y), L2(1e-2))).iterate.theta
    size = 1.02 * float(np.abs(X).max())
    axis = linear_scale(-size, size)
    errors = int(np.count_nonzero(np.sign(X @ theta[:2] + theta[2]) != y))
    chart = Chart(
        "classifier", "A linear classifier", f"Sixty points of two classes and the line between them; "
        f"{errors} of them on the wrong side.", axis, axis, x_label="Feature 1", y_label="Feature 2",
    )  # fmt: skip
    for (a, b), label in zip(X.tolist(), y, strict=True):
        chart.dot(a, b, "c0" if label > 0 else "c1", 2.8)
    x = np.linspace(axis.low, axis.high, 400)
    for level, classes in ((-1.0, "dotted"), (0.0, "solid"), (1.0, "dotted")):
        line = (level - theta[2] - theta[0] * x) / theta[1]  # w·x + β = level
        ends = np.flatnonzero((line >= axis.low) & (line <= axis.high))[[0, -1]]
        chart.line(x[ends], line[ends], classes)
    entries = (("c0", "class +1"), ("c1", "class −1"), ("solid", "the border"), ("dotted", "margins"))
    return chart.figure("Toy classifier (fig:linclassEX)", [LegendEntry(*entry) for entry in entries])


def _draw_losses() -> Figure:
    """fig:hingeLoss, with the squared hinge, which is what the paper minimises."""
    v = np.linspace(-2.0, 2.5, 181)
    chart = Chart(
        "losses", "Losses", "Misclassification count, hinge and squared hinge loss against the margin.",
        linear_scale(-2.0, 2.5), linear_scale(0.0, 4.0), x_label="Margin v = y(w·x + β)", y_label="Loss",
    )  # fmt: skip
    chart.line([-2.0, 0.0, 0.0, 2.5], [1.0, 1.0, 0.0, 0.0], "c1")
    chart.line(v, np.maximum(1.0 - v, 0.0), "c5")
    squared = SquaredHinge.value(v)
    chart.line(v[squared <= 4.0], squared[squared <= 4.0], "c0")
    entries = (("c1", "misclassified or not"), ("c5", "hinge"), ("c0", "squared hinge"))
    note = "The paper prints the squared hinge as max{(1 − v)², 0}, and means max{1 − v, 0}², as drawn here."
    return chart.figure("Losses (fig:hingeLoss)", [LegendEntry(*entry) for entry in entries], note)


def _draw_potentials() -> list[Figure]:
    """fig:regFunctions: the hyperbolic (a) and Welsch's potential (b), and their limits for δ → 0."""
    w, ends = np.linspace(-1.0, 1.0, 201), np.array([-1.0, 1.0])
    figures: list[Figure] = []
    kinds: dict[Any, tuple[Any, ...]] = {
        Hyperbolic: ("The hyperbolic potential", " |w|", (w, np.abs(w)), "|w|", (0.1, 0.4)),
        Welsch: ("Welsch's potential", ", 1 unless w is 0", (ends, ends**2),
                 "1 if w ≠ 0 (0 at the dot)", (0.1, 0.3)),
    }  # fmt: skip
    for kind, (title, limit, (x, y), entry, deltas) in kinds.items():
        chart = Chart(
            kind.name, title, f"{title} for two δ, and its limit{limit}.",
            linear_scale(-1.0, 1.0), linear_scale(0.0, 1.2), x_label="w", y_label="φ(w), λ = 1",
        )  # fmt: skip
        chart.line(x, y, "dashed")
        if kind is Welsch:
            chart.dot(0.0, 0.0, "c3", 3.0)
        legend = [LegendEntry("dashed", entry)]
        for delta, colour in zip(deltas, ("c0", "c2"), strict=True):
            chart.line(w, kind(1.0, delta).value(w), colour)
            legend.append(LegendEntry(colour, f"δ = {delta:g}"))
        name = title.removeprefix("The ").capitalize()
        figures.append(chart.figure(f"{name} (fig:regFunctions {'ab'[len(figures)]})", legend))
    return figures
