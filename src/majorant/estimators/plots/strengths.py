"""Plots against the strength of the penalty or the number of features: paths, scores, frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from majorant.estimators.plots.axes import (
    GREY,
    MOST_COLOURS,
    axes_for,
    font_size,
    height_in_points,
    legend,
    names_for,
    plain,
    shortened,
    size_axis,
    strength_axis,
)
from majorant.estimators.plots.data import cv_scores, marked, most_frequent, path_lines
from majorant.status import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.path import Path


PALE = "0.8"
# Smaller coefficients than these cover each other near zero.
MOST_LINES = 300


def plot_path(path: Path, names: Sequence[str] | None = None, top: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the coefficients against λ, the strongest penalty on the left, or against the number of features.

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
        raise ValueError("A path is drawn from at least two models with lam > 0, or with n_features.")
    largest, sizes = found.features, found.sizes
    names = names_for(path.models[0], names)
    labelled = min(max(top, 0), len(largest))
    ax = axes_for(ax, size=(6.4, max(4.2, 0.8 + 0.16 * labelled)))
    from matplotlib.collections import LineCollection

    colours = [f"C{k % MOST_COLOURS}" for k in range(labelled)]
    lines = [np.column_stack([found.at, column])[i:] for column, i in zip(sizes.T, found.starts, strict=True)]
    ax.add_collection(LineCollection(lines[labelled:], colors=PALE, linewidths=0.6, zorder=1.5))
    # The largest is drawn last, on top.
    ax.add_collection(
        LineCollection(lines[:labelled][::-1], colors=colours[::-1], linewidths=1.5, zorder=2.5)
    )
    (size_axis if found.by_size else strength_axis)(ax, found.at)
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


def plot_cv(cv_model: SparseSVCCV, ax: Axes | None = None) -> Axes:
    """Draw the mean score, with a band of one standard error, against λ or the number of features.

    Vertical lines mark the best and the choice within one standard error; above the axes is the mean number
    of features.

    Parameters
    ----------
    cv_model : fitted SparseSVCCV
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(cv_model, "cv_results_")
    scores = cv_scores(cv_model)
    if scores is None:
        raise ValueError("Scores are drawn against at least two strengths above 0, or numbers of features.")
    at, mean, error = scores.at, scores.mean, scores.standard_error
    ax = axes_for(ax)
    if scores.n_splits > 1:
        ax.fill_between(at, mean - error, mean + error, color="C0", alpha=0.2, linewidth=0)
    ax.plot(at, mean, color="C0", marker="." if len(at) <= 50 else "")
    by_size = scores.by_size
    best, within = marked(cv_model)
    marks = [(best, "--", "best"), (within, ":", "1 SE")]
    if best == within:
        marks = [(best, "--", "best and 1 SE")]
    for place, dashes, text in marks:
        if by_size or place > 0.0:
            label = f"{text}: {place:.0f} features" if by_size else f"{text}: λ = {place:.3g}"
            ax.axvline(place, color="0.2", linestyle=dashes, linewidth=1.0, label=label)
    (size_axis if by_size else strength_axis)(ax, at, padding=0.02)  # the best may be the first or the last
    ax.set_ylabel(f"{scores.score}, mean ± one standard error")
    legend(ax)
    plain(ax)
    if not by_size:
        _label_feature_counts(ax, at, scores.n_features)
    return ax


def plot_selection_frequency(
    cv_model: SparseSVCCV, names: Sequence[str] | None = None, top: int = 30, ax: Axes | None = None
) -> Axes:
    """Draw the share of the folds that select each feature at the chosen strength, or number of features.

    A pale bar is a feature that the model fitted on all data does not use.

    Parameters
    ----------
    cv_model : fitted SparseSVCCV
    names : sequence of str, optional
        The names of all features; by default those of the data frame that was fitted, else x0, x1, ….
    top : int, default=30
        The number of features, most frequent first; of equally frequent features the larger first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(cv_model, "selection_frequency_")
    frequency = cv_model.selection_frequency_
    names = names_for(cv_model, names)
    n_selected = np.count_nonzero(frequency)
    shown = most_frequent(cv_model, cv_model.coef_, top)
    ax = axes_for(ax, size=(5.5, 1.2 + 0.2 * max(len(shown), 5)))
    final = np.isin(shown, cv_model.support_)
    bars = ax.barh(np.arange(len(shown)), frequency[shown], height=0.7, color="C0")
    for bar, used in zip(bars, final, strict=True):
        bar.set_alpha(1.0 if used else 0.35)
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_yticks(
        range(len(shown)), [shortened(names[i]) for i in shown], parse_math=False,
        fontsize=font_size(ax, len(shown)),
    )  # fmt: skip
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.0)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    explained = "" if final.all() else "\n(pale: not in the model fitted on all data)"
    ax.set_xlabel("Share of the folds that select the feature" + explained)
    hidden = f", the first {len(shown)} shown" if n_selected > len(shown) else ""
    chosen = f"λ = {cv_model.lam_:.3g}"
    if cv_model.n_features is not None:
        chosen = f"Size {cv_model.n_features_}"
    title = f"{chosen}, {n_selected} features selected in some fold{hidden}"
    ax.set_title(title, fontsize="medium")
    return plain(ax)


def _label_feature_counts(ax: Axes, lambdas: Vector, counts: Vector) -> None:
    """The number of features above some of the strengths, without overlap."""
    from matplotlib.ticker import NullLocator

    along = np.log(lambdas / lambdas[0]) / np.log(lambdas[-1] / lambdas[0])
    at = [0]
    for k in range(1, len(along)):
        if along[k] - along[at[-1]] > 0.12:
            at.append(k)
    above = ax.secondary_xaxis("top")
    above.set_xticks(lambdas[at], [f"{count:.0f}" for count in counts[at]], fontsize="small")
    above.xaxis.set_minor_locator(NullLocator())
    above.set_xlabel("Mean number of features", labelpad=6.0)
    above.tick_params(length=2.0)
    above.spines["top"].set_visible(False)
