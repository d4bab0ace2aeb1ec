"""The margins of rows: their signed distances from the border between the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from majorant.estimators.plots.axes import MOST_COLOURS, axes_for, legend, plain
from majorant.estimators.plots.data import bin_edges, margins_of
from majorant.status import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.linear import LinearClassifier


MOST_BINS = 100
# Margins that are all equal have bins of this width.
MIN_WIDTH = 1e-3


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
