"""The plot of a stability selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from majorant.estimators.plots.axes import GREY, axes_for, font_size, plain, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from majorant.estimators.stability import StabilitySelection


def plot_stability(model: StabilitySelection, top: int = 30, ax: Axes | None = None) -> Axes:
    """Draw the share of the halves that select each feature, and the threshold.

    A pale bar is a feature below the threshold. A thin line goes on to the frequency of its cluster.

    Parameters
    ----------
    model : fitted StabilitySelection
    top : int, default=30
        The number of features, most frequent first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    frequency, names = model.selection_frequency_, model._names()
    n_seen = int(np.count_nonzero(frequency))
    shown = model._most_frequent(min(max(top, 0), n_seen))
    ax = axes_for(ax, size=(5.5, 1.6 + 0.2 * max(len(shown), 5)))
    at = np.arange(len(shown))
    bars = ax.barh(at, frequency[shown], height=0.7, color="C0")
    for bar, feature in zip(bars, shown, strict=True):
        bar.set_alpha(1.0 if feature in model.support_ else 0.35)
    together = {i: c.frequency for c in model.clusters_ if len(c.features) > 1 for i in c.features}
    lines = [(y, frequency[i], together[i]) for y, i in enumerate(shown.tolist()) if i in together]
    if lines:
        y, start, end = zip(*lines, strict=True)
        ax.hlines(y, start, end, color="C1", linewidth=1.5)
        ax.plot(end, y, "|", color="C1", label="together with features correlated to it")
    if np.isfinite(model.threshold_):
        ax.axvline(model.threshold_, color=GREY, linestyle="--", linewidth=1.0)
    if lines:
        ax.legend(loc="lower right", frameon=False, fontsize="small")
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_yticks(
        range(len(shown)), [shortened(names[i]) for i in shown], parse_math=False,
        fontsize=font_size(ax, len(shown)),
    )  # fmt: skip
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0.0, 1.0)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.set_xlabel("Share of the halves that select the feature")
    hidden = f", the first {len(shown)} shown" if n_seen > len(shown) else ""
    if np.isfinite(model.threshold_):
        title = (
            f"{len(model.support_)} of {n_seen} features reach {model.threshold_:.0%}{hidden}\n"
            f"expected false selections at most {model.error_bound_:.2g}"
        )
    else:
        title = f"No threshold keeps to max_false = {model.max_false:g}{hidden}"
    ax.set_title(title, fontsize="medium", loc="left")
    return plain(ax)
