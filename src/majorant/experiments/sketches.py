"""The figures of the paper's theory: a classifier, the losses, the potentials with their limits."""

from __future__ import annotations

import numpy as np

from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.potentials import L2, Hyperbolic, Welsch
from majorant.reporting.charts.chart import Chart, Key, Picture
from majorant.reporting.charts.scales import linear_scale
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve

__all__ = ["draw_sketches"]


def draw_sketches() -> list[Picture]:
    """The figures that need no results."""
    return [draw_classifier(), draw_losses(), draw_hyperbolic(), draw_welsch()]


def draw_classifier() -> Picture:
    """fig:linclassEX: a classifier of points in the plane, trained."""
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
    for level, classes in ((-1.0, "dotted"), (0.0, "solid"), (1.0, "dotted")):
        chart.line(*_across(theta, level, axis.low, axis.high), classes)
    keys = (
        Key("c0", "class +1"),
        Key("c1", "class −1"),
        Key("solid", "the border"),
        Key("dotted", "margins"),
    )
    return Picture("Toy classifier (fig:linclassEX)", chart.svg(), keys)


def _across(theta: np.ndarray, level: float, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """The part of the line w·x + β = level within a square."""
    w1, w2, beta = theta.tolist()
    x = np.linspace(low, high, 400)
    y = (level - beta - w1 * x) / w2
    inside = (y >= low) & (y <= high)
    ends = np.flatnonzero(inside)[[0, -1]]
    return x[ends], y[ends]


def draw_losses() -> Picture:
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
    keys = (Key("c1", "misclassified or not"), Key("c5", "hinge"), Key("c0", "squared hinge"))
    note = "The paper prints the squared hinge as max{(1 − v)², 0}; drawn is what it means, max{1 − v, 0}²."
    return Picture("Losses (fig:hingeLoss)", chart.svg(), keys, note)


def draw_hyperbolic() -> Picture:
    """fig:regFunctions (a)."""
    w = np.linspace(-1.0, 1.0, 201)
    chart = Chart(
        "hyperbolic", "The hyperbolic potential", "The hyperbolic potential for two δ, and its limit |w|.",
        linear_scale(-1.0, 1.0), linear_scale(0.0, 1.2), x_label="w", y_label="φ(w), λ = 1",
    )  # fmt: skip
    chart.line(w, np.abs(w), "dashed")
    for delta, colour in ((0.1, "c0"), (0.4, "c2")):
        chart.line(w, Hyperbolic(1.0, delta).value(w), colour)
    keys = (Key("dashed", "|w|"), Key("c0", "δ = 0.1"), Key("c2", "δ = 0.4"))
    return Picture("Hyperbolic potential (fig:regFunctions a)", chart.svg(), keys)


def draw_welsch() -> Picture:
    """fig:regFunctions (b)."""
    w = np.linspace(-1.0, 1.0, 201)
    chart = Chart(
        "welsch", "Welsch's potential", "Welsch's potential for two δ, and its limit, 1 unless w is 0.",
        linear_scale(-1.0, 1.0), linear_scale(0.0, 1.2), x_label="w", y_label="φ(w), λ = 1",
    )  # fmt: skip
    chart.line([-1.0, 1.0], [1.0, 1.0], "dashed")
    chart.dot(0.0, 0.0, "c3", 3.0)
    for delta, colour in ((0.1, "c0"), (0.3, "c2")):
        chart.line(w, Welsch(1.0, delta).value(w), colour)
    keys = (Key("dashed", "1 if w ≠ 0 (0 at the dot)"), Key("c0", "δ = 0.1"), Key("c2", "δ = 0.3"))
    return Picture("Welsch's potential (fig:regFunctions b)", chart.svg(), keys)
