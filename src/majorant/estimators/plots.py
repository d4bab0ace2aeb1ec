"""Pictures of fitted models. matplotlib is an extra, imported when something is drawn.

Every function draws on the axes it is given, or on a figure of its own, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from majorant.status import History, Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.linear import LinearClassifier
    from majorant.estimators.path import Path
    from majorant.estimators.svc import SparseSVC

GREY = "0.55"
PALE = "0.8"
# As many colours as matplotlib's cycle has; more lines than this cannot be told apart by colour.
MOST_COLOURS = 10
# Lines beyond the largest ones lie on top of each other near zero and only cost time.
MOST_LINES = 300
LONGEST_NAME = 30


def plot_convergence(
    model: SparseSVC | SparseSVCCV | History | Sequence[History],
    ax: Axes | None = None,
    *,
    against: str = "time",
) -> Axes:
    """Draw the certificate of a fit, on a logarithmic scale, as the fit went on.

    Where a solver did not ask how far it was, the line stays at what was known. All of it is an estimate but
    the last point, the dot, which is the certificate of the fitted model.

    Parameters
    ----------
    model : fitted SparseSVC or SparseSVCCV, History, or sequence of History
        A model adds a line at its `tol`, and the names of its classes where there is a problem for each.
    ax : matplotlib Axes, optional
    against : {"time", "iteration"}, default="time"
        What runs along the horizontal axis: seconds of the solver, or its iterations.

    Returns
    -------
    matplotlib Axes
    """
    if against not in ("time", "iteration"):
        raise ValueError(f"against={against!r} must be 'time' or 'iteration'.")
    histories, names, tol = _histories_of(model)
    if not any(len(history) for history in histories):
        raise ValueError("There is no record of any iteration to draw.")
    ax = _axes(ax)
    few = len(histories) <= MOST_COLOURS
    for k, (history, name) in enumerate(zip(histories, names, strict=True)):
        # Zero has no logarithm; what is below the machine precision is as good as zero.
        error = np.array([max(record.certificate.error, np.finfo(float).eps) for record in history])
        colour = f"C{k}" if few else GREY
        along = history.column(against)
        ax.plot(along, error, color=colour, drawstyle="steps-post", linewidth=1.5 if few else 0.7, label=name)
        ax.plot(along[-1:], error[-1:], ".", color=colour, markersize=8, clip_on=False)
    ax.set_yscale("log")
    _mark_tolerance(ax, tol)
    ax.set_xlabel("Time in seconds" if against == "time" else "Iteration")
    ax.set_ylabel(_certificate_name(histories))
    if few and len(histories) > 1:
        _legend(ax, title="Class")
    return _plain(ax)


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
    names = _names_for(models[0], names)
    largest, sizes = _largest_coefficients(models)
    labelled = min(max(top, 0), len(largest))
    ax = _axes(ax, size=(6.4, max(4.2, 0.8 + 0.16 * labelled)))
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
    _strength_axis(ax, lambdas)
    low, high = (min(0.0, sizes.min()), max(0.0, sizes.max())) if sizes.size else (0.0, 1.0)
    ax.set_ylim(low - 0.04 * (high - low) * (low < 0.0), high + 0.04 * (high - low))
    if low < 0.0:
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
    one_problem = models[0].coef_.shape[0] == 1
    ax.set_ylabel("Coefficient" if one_problem else "Length of the coefficients over all classes")
    if labelled:
        _label_line_ends(ax, sizes[-1, :labelled], [names[i] for i in largest[:labelled]], colours)
    return _plain(ax)


def plot_selection_frequency(
    cv_model: SparseSVCCV, names: Sequence[str] | None = None, top: int = 30, ax: Axes | None = None
) -> Axes:
    """Draw in what share of the folds each feature is selected at the strength chosen.

    A pale bar is a feature that the model fitted on all data does not use.

    Parameters
    ----------
    cv_model : fitted SparseSVCCV
    names : sequence of str, optional
        The names of all features; by default those of the data frame that was fitted, else x0, x1, ….
    top : int, default=30
        How many features to show, most frequent first; of equals, that with the larger coefficient.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(cv_model, "selection_frequency_")
    frequency = cv_model.selection_frequency_
    names = _names_for(cv_model, names)
    selected = np.flatnonzero(frequency)
    order = np.lexsort((-_lengths(cv_model.coef_)[selected], -frequency[selected]))
    shown = selected[order][: max(top, 0)]
    ax = _axes(ax, size=(5.5, 1.2 + 0.2 * max(len(shown), 5)))
    final = np.isin(shown, cv_model.support_)
    bars = ax.barh(np.arange(len(shown)), frequency[shown], height=0.7, color="C0")
    for bar, used in zip(bars, final, strict=True):
        bar.set_alpha(1.0 if used else 0.35)
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_yticks(
        range(len(shown)), [_shortened(names[i]) for i in shown], parse_math=False,
        fontsize=_font_size(ax, len(shown)),
    )  # fmt: skip
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.0)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    explained = "" if final.all() else "\n(pale: not in the model fitted on all data)"
    ax.set_xlabel("Share of the folds that select the feature" + explained)
    hidden = len(selected) - len(shown)
    ax.set_title(
        f"λ = {cv_model.lam_:.3g}, {len(selected)} features selected in some fold"
        + (f", the first {len(shown)} shown" if hidden else ""),
        fontsize="medium",
    )
    return _plain(ax)


def plot_margins(model: LinearClassifier, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw how far the rows of X are on the right side: histograms of their margins, by class.

    Parameters
    ----------
    model : fitted SparseSVC or SparseSVCCV, or a pipeline that ends with one
    X : array or sparse matrix (n_samples, n_features)
    y : array (n_samples,)
        The true labels. The margin of a row is y f(x), with y = ±1, for two classes; for more, f of the own
        class minus the largest f of the others, and the histograms are stacked.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model)
    margins, codes = _margins(model, X, y)
    ax = _axes(ax)
    classes = [k for k in range(len(model.classes_)) if np.any(codes == k)]
    edges = _bin_edges(margins)
    if len(classes) > MOST_COLOURS:
        ax.hist(margins, edges, color="C0", alpha=0.7)
    else:
        # Two shapes can be seen through each other; more are a tangle and stand on top of each other instead.
        several = len(classes) > 2
        ax.hist(
            [margins[codes == k] for k in classes], edges, histtype="stepfilled", stacked=several,
            color=[f"C{k}" for k in classes], label=[str(model.classes_[k]) for k in classes],
            alpha=0.7 if several else 0.5,
        )  # fmt: skip
        _legend(ax, title="Class")
    for border, dashes in ((0.0, ":"), (1.0, "--")):
        ax.axvline(border, color="0.2", linestyle=dashes, linewidth=1.0)
    inside, wrong = 100.0 * np.mean(margins < 1.0), 100.0 * np.mean(margins < 0.0)
    if len(model.classes_) == 2:
        ax.set_xlabel("Margin y f(x)")
        ax.set_title(f"{inside:.3g} % of the rows inside the margin, {wrong:.3g} % on the wrong side")
    else:
        ax.set_xlabel("f of the own class minus the largest other f")
        ax.set_title(f"{inside:.3g} % of the rows inside the margin of 1, {wrong:.3g} % on the wrong side")
    ax.title.set_fontsize("medium")
    ax.set_ylabel("Rows")
    return _plain(ax)


def plot_cv(cv_model: SparseSVCCV, ax: Axes | None = None) -> Axes:
    """Draw the mean score, with a band of one standard error, against the strength λ.

    Vertical lines are at `lam_best_` and `lam_1se_`; above the axes stands the mean number of features.

    Parameters
    ----------
    cv_model : fitted SparseSVCCV
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(cv_model, "cv_results_")
    results = cv_model.cv_results_
    at = np.flatnonzero(results["lam"] > 0.0)  # 0 has no place on a logarithmic axis
    if len(at) < 2:
        raise ValueError("Scores are drawn against at least two strengths above 0.")
    lambdas, mean = results["lam"][at], results["mean_test_score"][at]
    n_splits = sum(name.startswith("split") for name in results)
    ax = _axes(ax)
    if n_splits > 1:
        error = results["std_test_score"][at] / np.sqrt(n_splits - 1)
        ax.fill_between(lambdas, mean - error, mean + error, color="C0", alpha=0.2, linewidth=0)
    ax.plot(lambdas, mean, color="C0", marker="." if len(at) <= 50 else "")
    best, within = cv_model.lam_best_, cv_model.lam_1se_
    marks = [(best, "--", "best"), (within, ":", "1 SE")]
    if best == within:
        marks = [(best, "--", "best and 1 SE")]
    for lam, dashes, text in marks:
        if lam > 0.0:
            ax.axvline(lam, color="0.2", linestyle=dashes, linewidth=1.0, label=f"{text}: λ = {lam:.3g}")
    _strength_axis(ax, lambdas, padding=0.02)  # the best may be the first or the last
    scoring = cv_model.scoring
    score = "Accuracy" if scoring is None else scoring if isinstance(scoring, str) else "Score"
    ax.set_ylabel(f"{score}, mean ± one standard error")
    _legend(ax)
    _plain(ax)
    _count_on_top(ax, lambdas, results["mean_n_features"][at])
    return ax


# What several of them need ---------------------------------------------------------------------


def _axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    """The axes given, or those of a new figure that makes room for what stands beside them."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _plain(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _legend(ax: Axes, title: str | None = None) -> None:
    # A long one stands beside the axes: inside it would cover something.
    many = len(ax.get_legend_handles_labels()[1]) > 4
    beside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if many else {}
    legend = ax.legend(edgecolor="none", framealpha=0.9, title=title, **beside)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a class may be called "$"


def _names_for(model: Any, names: Sequence[str] | None) -> Sequence[str]:
    """What the features are called."""
    n_features = model.coef_.shape[1]
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{i}" for i in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"There are {len(names)} names for {n_features} features.")
    return names


def _shortened(name: Any) -> str:
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _lengths(coef: Any) -> Vector:
    """The length of every feature's coefficients over the classes, of dense or sparse ones."""
    squares = coef.multiply(coef) if sp.issparse(coef) else np.square(coef, dtype=np.float64)
    return np.sqrt(np.asarray(squares.sum(axis=0), dtype=np.float64).ravel())


def _height_in_points(ax: Axes) -> float:
    return float(ax.get_window_extent().height / ax.figure.dpi * 72.0)


def _font_size(ax: Axes, n_lines: int) -> float:
    """Small enough for so many lines of text to stand one below the other in the axes."""
    return float(np.clip(_height_in_points(ax) / (1.25 * max(n_lines, 1)), 4.0, 9.0))


def _strength_axis(ax: Axes, lambdas: Vector, padding: float = 0.0) -> None:
    """λ along the axis, falling, in equal factors, with ticks that have room."""
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


# Convergence -----------------------------------------------------------------------------------


def _histories_of(model: Any) -> tuple[list[History], list[str], float | None]:
    """The traces to draw, what each is of, and the tolerance if it is known."""
    given, classes, tol = model, None, None
    if not isinstance(model, Sequence):
        check_is_fitted(model, "history_")
        given, classes, tol = model.history_, model.classes_, model.tol
    histories = [given] if isinstance(given, History) else list(given)
    if not all(isinstance(history, History) for history in histories):
        raise TypeError("model must be a fitted SparseSVC, a History or a sequence of History.")
    names = range(len(histories)) if classes is None or len(classes) != len(histories) else classes
    return histories, [str(name) for name in names], tol


def _certificate_name(histories: Sequence[History]) -> str:
    bounded = {not np.isnan(record.gap) for history in histories for record in history}
    if len(bounded) > 1:
        return "Duality gap or stationarity"
    return "Duality gap, relative to the objective" if True in bounded else "Stationarity"


def _mark_tolerance(ax: Axes, tol: float | None) -> None:
    if tol:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1.0)
        ax.annotate(
            f"tol = {tol:g}", (0.0, tol), xycoords=("axes fraction", "data"), xytext=(4.0, 3.0),
            textcoords="offset points", color="0.35", fontsize="small",
        )  # fmt: skip


# Paths -----------------------------------------------------------------------------------------


def _largest_coefficients(models: Sequence[SparseSVC]) -> tuple[NDArray[np.intp], Vector]:
    """The features with the largest coefficients anywhere on the path, largest first, and these.

    Of one problem the coefficients with their signs, of several their lengths: (n_models, n_largest). Only
    the coefficients that are drawn are ever made dense for all models.
    """
    peaks = np.zeros(models[0].coef_.shape[1])
    for model in models:
        np.maximum(peaks, _lengths(model.coef_), out=peaks)
    selected = np.flatnonzero(peaks)
    largest = selected[np.argsort(-peaks[selected], kind="stable")][:MOST_LINES]
    sizes = np.empty((len(models), len(largest)))
    for row, model in zip(sizes, models, strict=True):
        part = model.coef_[:, largest]
        if part.shape[0] > 1:
            row[:] = _lengths(part)
        else:
            row[:] = np.ravel(part.toarray() if sp.issparse(part) else part)
    return largest, sizes


def _label_line_ends(ax: Axes, ends: Vector, names: Sequence[Any], colours: Sequence[str]) -> None:
    """Names to the right of the axes, each as near to the end of its line as the others let it."""
    height = _height_in_points(ax)
    size = _font_size(ax, len(ends))
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
            1.035, place, _shortened(name), color=colour, fontsize=size, va="center", ha="left",
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


# Margins and cross-validation ------------------------------------------------------------------


def _margins(model: Any, X: Any, y: ArrayLike) -> tuple[Vector, NDArray[np.intp]]:
    """The margin of every row, and the number of its class."""
    labels = column_or_1d(y)
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    check_consistent_length(scores, labels)
    unknown = np.setdiff1d(labels, model.classes_)
    if len(unknown):
        raise ValueError(f"y holds labels the model was not fitted on: {unknown[:5].tolist()}.")
    codes = np.searchsorted(model.classes_, labels)
    if scores.ndim == 1:
        return np.where(codes == 1, scores, -scores), codes
    rows = np.arange(len(codes))
    own = scores[rows, codes]
    scores[rows, codes] = -np.inf
    return own - scores.max(axis=1), codes


def _bin_edges(margins: Vector) -> list[float]:
    """Bins of a width by Freedman and Diaconis' rule, at most about 100.

    0 is an edge, and 1 as well unless the bins are wider than that: no bar is on both sides.
    """
    low, high = np.quantile(margins, [0.25, 0.75])
    width = max(2.0 * (high - low) / np.cbrt(len(margins)), np.ptp(margins) / 100.0, 1e-3)
    width = 1.0 / np.ceil(1.0 / width) if width <= 1.0 else np.ceil(width)
    first = int(np.floor(margins.min() / width))
    return [width * k for k in range(first, int(np.floor(margins.max() / width)) + 2)]


def _count_on_top(ax: Axes, lambdas: Vector, counts: Vector) -> None:
    """The number of features at some of the strengths, far enough from each other to be read."""
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
