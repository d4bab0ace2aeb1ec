"""Plots of fitted models. matplotlib is an extra, imported by the first plot.

Every function draws on the given axes, or on a new figure, and returns the axes.
"""

from majorant.estimators.plots.convergence import plot_convergence
from majorant.estimators.plots.cross_validation import plot_cv, plot_selection_frequency
from majorant.estimators.plots.margins import plot_margins
from majorant.estimators.plots.path import plot_path

__all__ = ["plot_convergence", "plot_cv", "plot_margins", "plot_path", "plot_selection_frequency"]
