"""The parts that all plots share: axes, names, legends, the axes of strengths and of numbers of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.status import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


GREY = "0.55"
# The length of matplotlib's colour cycle; more lines cannot be distinguished by colour.
MOST_COLOURS = 10
LONGEST_NAME = 30


def axes_for(ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    """The given axes, or those of a new figure with space for text beside the axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def plain(ax: Axes) -> Axes:
    """Remove the spines at the top and at the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend(ax: Axes, title: str | None = None) -> None:
    """Add a legend that covers no data."""
    # A long legend stands beside the axes.
    many = len(ax.get_legend_handles_labels()[1]) > 4
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if many else {}
    legend = ax.legend(edgecolor="none", framealpha=0.9, title=title, **beside)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class may be called "$"


def names_for(model: Any, names: Sequence[str] | None) -> Sequence[str]:
    """The names of the features."""
    n_features = model.coef_.shape[1]
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{i}" for i in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"There are {len(names)} names for {n_features} features.")
    return names


def shortened(name: Any) -> str:
    """A name short enough to stand beside the axes."""
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def height_in_points(ax: Axes) -> float:
    """The height of the axes in points, the unit of font sizes."""
    return float(ax.get_window_extent().height / ax.figure.dpi * 72.0)


def font_size(ax: Axes, n_lines: int) -> float:
    """The font size at which `n_lines` lines of text fit into the height of the axes."""
    return float(np.clip(height_in_points(ax) / (1.25 * max(n_lines, 1)), 4.0, 9.0))


def size_axis(ax: Axes, sizes: Vector, padding: float = 0.0) -> None:
    """An axis of numbers of features."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    beyond = padding * (sizes[-1] - sizes[0])
    ax.set_xlim(sizes[0] - beyond, sizes[-1] + beyond)
    ax.set_xlabel("Number of features")


def strength_axis(ax: Axes, lambdas: Vector, padding: float = 0.0) -> None:
    """A logarithmic axis of decreasing λ, with ticks that do not overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    if lambdas[0] < 100.0 * lambdas[-1]:
        # Powers of ten alone would be one tick or two, and matplotlib's own labels in between overlap.
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(lambda lam, _: f"{lam:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    beyond = (lambdas[0] / lambdas[-1]) ** padding
    ax.set_xlim(lambdas[0] * beyond, lambdas[-1] / beyond)
    ax.set_xlabel("Strength λ of the penalty")
