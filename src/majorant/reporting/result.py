"""`Report`, the result of `report`: a page that a notebook displays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from markupsafe import escape


class Report(str):
    """The text of an HTML page; a notebook displays the page.

    Attributes
    ----------
    path : pathlib.Path or None
        The file with the page.
    """

    path: Path | None

    def __new__(cls, html: str, path: str | os.PathLike[str] | None = None) -> Self:
        """Make a report of a page."""
        made = super().__new__(cls, html)
        made.path = None if path is None else Path(path)
        return made

    @property
    def html(self) -> str:
        """The page."""
        return str(self)

    def __repr__(self) -> str:
        size = f"{len(self.encode()) / 1e3:.0f} KB"
        return f"<majorant report: {size}{'' if self.path is None else f', {self.path}'}>"

    def _repr_html_(self) -> str:
        """A frame with the page, whose script has access neither to the notebook nor to the network."""
        page = escape(self.html)
        return (
            f'<iframe srcdoc="{page}" title="majorant report" sandbox="allow-scripts allow-downloads" '
            'allow="clipboard-write" width="100%" height="720" style="border: 1px solid #8884"></iframe>'
        )
