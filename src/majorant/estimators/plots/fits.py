"""Plots of a fit: the certificate over time, and the margins of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from majorant.estimators.plots.axes import GREY, MOST_COLOURS, axes_for, legend, plain
from majorant.estimators.plots.data import bin_edges, certificate_errors, margins_of
from majorant.status import History, Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.linear import LinearClassifier
    from majorant.estimators.svc import SparseSVC

MOST_BINS = 100
# Margins that are all equal have bins of this width.
MIN_WIDTH = 1e-3


def plot_convergence(
    model: SparseSVC | SparseSVCCV | History | Sequence[History],
    ax: Axes | None = None,
    *,
    against: str = "time",
) -> Axes:
    """Draw the certificate of a fit on a logarithmic scale against time or iterations.

    Between two evaluations of the certificate the line is constant. All values are estimates except the last,
    the dot, which is the certificate of the fitted model.

    Parameters
    ----------
    model : fitted SparseSVC or SparseSVCCV, History, or sequence of History
        A model adds a line at its `tol`, and the names of its classes if each has a problem of its own.
    ax : matplotlib Axes, optional
    against : {"time", "iteration"}, default="time"
        The horizontal axis: seconds of the solver, or its iterations.

    Returns
    -------
    matplotlib Axes
    """
    if against not in ("time", "iteration"):
        raise ValueError(f"against={against!r} must be 'time' or 'iteration'.")
    histories, names, tol = _histories_of(model)
    if not any(len(history) for history in histories):
        raise ValueError("There is no record of any iteration to draw.")
    ax = axes_for(ax)
    few = len(histories) <= MOST_COLOURS
    for k, (history, name) in enumerate(zip(histories, names, strict=True)):
        error = certificate_errors(history)
        colour = f"C{k}" if few else GREY
        along = history.column(against)
        ax.plot(along, error, color=colour, drawstyle="steps-post", linewidth=1.5 if few else 0.7, label=name)
        ax.plot(along[-1:], error[-1:], ".", color=colour, markersize=8, clip_on=False)
    ax.set_yscale("log")
    _mark_tolerance(ax, tol)
    ax.set_xlabel("Time in seconds" if against == "time" else "Iteration")
    ax.set_ylabel(_certificate_name(histories))
    if few and len(histories) > 1:
        legend(ax, title="Class")
    return plain(ax)


def _histories_of(model: Any) -> tuple[list[History], list[str], float | None]:
    """The traces to draw, their names, and the tolerance if it is known."""
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


def plot_margins(model: LinearClassifier, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw histograms of the margins of the rows of X, by class.

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
    ax = axes_for(ax)
    classes = [k for k in range(len(model.classes_)) if np.any(codes == k)]
    edges = bin_edges(margins, MOST_BINS, MIN_WIDTH).tolist()
    if len(classes) > MOST_COLOURS:
        ax.hist(margins, edges, color="C0", alpha=0.7)
    else:
        # Two histograms can overlap; more are stacked, to stay readable.
        several = len(classes) > 2
        ax.hist(
            [margins[codes == k] for k in classes], edges, histtype="stepfilled", stacked=several,
            color=[f"C{k}" for k in classes], label=[str(model.classes_[k]) for k in classes],
            alpha=0.7 if several else 0.5,
        )  # fmt: skip
        legend(ax, title="Class")
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
    return plain(ax)


def _margins(model: Any, X: Any, y: ArrayLike) -> tuple[Vector, NDArray[np.intp]]:
    """The margin of every row, and the index of its class."""
    labels = column_or_1d(y)
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    check_consistent_length(scores, labels)
    unknown = np.setdiff1d(labels, model.classes_)
    if len(unknown):
        raise ValueError(f"y holds labels the model was not fitted on: {unknown[:5].tolist()}.")
    codes = np.searchsorted(model.classes_, labels)
    return margins_of(scores, codes), codes
