"""The coefficients against the strength of the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.estimators.coef_norms import largest_on_path
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
from majorant.status import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.path import Path

PALE = "0.8"
# Lines beyond the largest ones lie on top of each other near zero and only cost time.
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
        How many features to label.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    models = [model for model in path.models if model.lam_ > 0.0]  # 0 has no place on a logarithmic axis
    if len(models) < 2:
        raise ValueError("A path is drawn from at least two models with lam > 0.")
    lambdas = np.array([model.lam_ for model in models])
    names = names_for(models[0], names)
    largest, sizes, _ = largest_on_path(models, MOST_LINES)
    labelled = min(max(top, 0), len(largest))
    ax = axes_for(ax, size=(6.4, max(4.2, 0.8 + 0.16 * labelled)))
    from matplotlib.collections import LineCollection

    colours = [f"C{k % MOST_COLOURS}" for k in range(labelled)]
    # A line begins where its feature enters: before that, all of them would lie on each other at zero.
    begins = np.maximum((sizes != 0.0).argmax(axis=0) - 1, 0)
    lines = [np.column_stack([lambdas, column])[i:] for column, i in zip(sizes.T, begins, strict=True)]
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
    one_problem = models[0].coef_.shape[0] == 1
    ax.set_ylabel("Coefficient" if one_problem else "Length of the coefficients over all classes")
    if labelled:
        _label_line_ends(ax, sizes[-1, :labelled], [names[i] for i in largest[:labelled]], colours)
    return plain(ax)


def _label_line_ends(ax: Axes, ends: Vector, names: Sequence[Any], colours: Sequence[str]) -> None:
    """Names to the right of the axes, each as near to the end of its line as the others let it."""
    height = height_in_points(ax)
    size = font_size(ax, len(ends))
    low, high = ax.get_ylim()
    wanted = (ends - low) / (high - low)
    places = _spread(wanted, 1.25 * size / height)
    for end, place, name, colour in zip(wanted, places, names, colours, strict=True):
        # A thin line leads from the end to the name, which may have had to make way.
        ax.plot(
            [1.0, 1.03], [end, place], color=colour, linewidth=0.6, transform=ax.transAxes, clip_on=False,
            scalex=False, scaley=False,
        )  # fmt: skip
        ax.text(
            1.035, place, shortened(name), color=colour, fontsize=size, va="center", ha="left",
            transform=ax.transAxes, parse_math=False,
        )  # fmt: skip


def _spread(wanted: Vector, gap: float) -> Vector:
    """The places nearest to those wanted (in squares) that are in the same order and `gap` or more apart.

    With the gaps taken off, the order is all that is asked for: an isotonic regression. The places stay
    between 0 and 1, as far as they fit in there.
    """
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    room = max(1.0 - gap * (len(wanted) - 1), 0.0)
    places = np.empty(len(wanted))
    places[order] = np.clip(isotonic_regression(wanted[order] - steps), 0.0, room) + steps
    return places
