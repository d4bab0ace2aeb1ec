"""The pictures of a report, as SVG."""

from majorant.reporting.charts.chart import Picture
from majorant.reporting.charts.convergence import draw_certificate, draw_objective
from majorant.reporting.charts.margins import draw_margins
from majorant.reporting.charts.strengths import draw_cv_scores, draw_path

__all__ = [
    "Picture",
    "draw_certificate",
    "draw_cv_scores",
    "draw_margins",
    "draw_objective",
    "draw_path",
]
