"""Plots of fitted models. matplotlib is an extra, imported by the first plot.

Every function draws on the given axes, or on a new figure, and returns the axes.
"""

from majorant.estimators.plots.fits import plot_convergence, plot_margins
from majorant.estimators.plots.strengths import plot_cv, plot_path, plot_selection_frequency

__all__ = ["plot_convergence", "plot_cv", "plot_margins", "plot_path", "plot_selection_frequency"]
