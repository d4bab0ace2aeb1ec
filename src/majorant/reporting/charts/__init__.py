"""The charts of a report, as SVG."""

from majorant.reporting.charts.chart import Figure
from majorant.reporting.charts.figures import (
    draw_certificate,
    draw_cv_scores,
    draw_margins,
    draw_objective,
    draw_path,
)

__all__ = ["Figure", "draw_certificate", "draw_cv_scores", "draw_margins", "draw_objective", "draw_path"]
