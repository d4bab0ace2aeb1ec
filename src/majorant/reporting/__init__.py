"""A fitted model as one HTML file.

The charts are SVG drawn by a few functions of our own (`charts/`), not by matplotlib, for three reasons:
colours are CSS variables, so one chart suits light, dark and paper; text is text, for screen readers and
searches; and a report needs no package that the core does not need. jinja2 makes the page with automatic
escaping, since names of features and labels of classes may be any text. The page loads nothing, and its
Content-Security-Policy allows only its own few lines of script.
"""

from majorant.reporting.page import report

__all__ = ["report"]
