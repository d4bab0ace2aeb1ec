"""A fitted model as one HTML file that people like to look at.

The pictures are SVG drawn by a few functions of our own (`charts/`), not by matplotlib, for three reasons:
colours are CSS variables, so the same picture is right in light, in dark and on paper; its text is text,
which a screen reader reads and a search finds; and a report needs nothing that the core does not need. The
page is made by jinja2 with automatic escaping, since names of features and labels of classes may be any text.
It loads nothing, and its Content-Security-Policy lets it run nothing but its own few lines of script.
"""

from majorant.reporting.page import report

__all__ = ["report"]
