"""The coefficients against the strength of the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.estimators.plots.axes import (
    GREY,
    MOST_COLOURS,
    axes_for,
    font_size,
    height_in_points,
    names_for,
    plain,
    shortened,
    strength_axis,
)
from majorant.estimators.plots.data import path_lines
from majorant.status import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.path import Path

PALE = "0.8"
# Smaller coefficients than these cover each other near zero.
MOST_LINES = 300


def plot_path(path: Path, names: Sequence[str] | None = None, top: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the coefficients against the strength λ, the strongest penalty on the left.

    The features with the largest coefficients on the path are labelled at its end, the others are thin and
    grey. Of more than 300 features the 300 largest are drawn; those never selected are not.

    Parameters
    ----------
    path : Path
        What `sparse_svc_path` returns. For more than two classes the length of a feature's coefficients over
        all classes is drawn.
    names : sequence of str, optional
        The names of all features; by default those of the data frame that was fitted, else x0, x1, ….
    top : int, default=10
        The number of features to label.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    found = path_lines(path, MOST_LINES)
    if found is None:
        raise ValueError("A path is drawn from at least two models with lam > 0.")
    lambdas, largest, sizes = found.lambdas, found.features, found.sizes
    names = names_for(path.models[0], names)
    labelled = min(max(top, 0), len(largest))
    ax = axes_for(ax, size=(6.4, max(4.2, 0.8 + 0.16 * labelled)))
    from matplotlib.collections import LineCollection

    colours = [f"C{k % MOST_COLOURS}" for k in range(labelled)]
    lines = [np.column_stack([lambdas, column])[i:] for column, i in zip(sizes.T, found.starts, strict=True)]
    ax.add_collection(LineCollection(lines[labelled:], colors=PALE, linewidths=0.6, zorder=1.5))
    # The largest is drawn last, on top.
    ax.add_collection(
        LineCollection(lines[:labelled][::-1], colors=colours[::-1], linewidths=1.5, zorder=2.5)
    )
    strength_axis(ax, lambdas)
    low, high = (min(0.0, sizes.min()), max(0.0, sizes.max())) if sizes.size else (0.0, 1.0)
    ax.set_ylim(low - 0.04 * (high - low) * (low < 0.0), high + 0.04 * (high - low))
    if low < 0.0:
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
    ax.set_ylabel("Coefficient" if found.one_problem else "Length of the coefficients over all classes")
    if labelled:
        _label_line_ends(ax, sizes[-1, :labelled], [names[i] for i in largest[:labelled]], colours)
    return plain(ax)


def _label_line_ends(ax: Axes, ends: Vector, names: Sequence[Any], colours: Sequence[str]) -> None:
    """Names to the right of the axes, as near to the ends of their lines as the other names allow."""
    height = height_in_points(ax)
    size = font_size(ax, len(ends))
    low, high = ax.get_ylim()
    ideal = (ends - low) / (high - low)
    places = _spread(ideal, 1.25 * size / height)
    for end, place, name, colour in zip(ideal, places, names, colours, strict=True):
        # A thin line connects the end with the name, which may be at another height.
        ax.plot(
            [1.0, 1.03], [end, place], color=colour, linewidth=0.6, transform=ax.transAxes, clip_on=False,
            scalex=False, scaley=False,
        )  # fmt: skip
        ax.text(
            1.035, place, shortened(name), color=colour, fontsize=size, va="center", ha="left",
            transform=ax.transAxes, parse_math=False,
        )  # fmt: skip


def _spread(ideal: Vector, gap: float) -> Vector:
    """The places nearest to the ideal ones (least squares) in the same order and at least `gap` apart.

    Without the gaps, this is an isotonic regression. The places are between 0 and 1 as far as they fit.
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(ideal, kind="stable")
    steps = gap * np.arange(len(ideal))
    room = max(1.0 - gap * (len(ideal) - 1), 0.0)
    places = np.empty(len(ideal))
    places[order] = np.clip(isotonic_regression(ideal[order] - steps), 0.0, room) + steps
    return places
