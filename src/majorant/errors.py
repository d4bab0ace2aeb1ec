"""Errors whose messages say what to do. All are `ValueError`s, as scikit-learn's users expect."""

from __future__ import annotations

import os
from typing import Any


class MajorantError(ValueError):
    """The base of all errors of this package."""


class UnsuitableSolverError(MajorantError):
    """The chosen solver cannot solve the given problem; the message names those that can."""


class ScaleError(MajorantError):
    """Numbers so large that their squares overflow; the message says which to rescale."""


class ClusterLostError(MajorantError):
    """The Dask cluster that holds the rows does not answer any more.

    Parameters
    ----------
    message : str
        What happened, and what to do.
    theta : array, optional
        The last iterate: (w, β), with more than two classes a row for each; None before the first one.
    """

    def __init__(self, message: str, theta: Any = None) -> None:
        self.theta = theta
        super().__init__(message)


class OutputError(MajorantError):
    """A file cannot be written, or exists and must not be replaced."""


class ModelFileError(MajorantError):
    """A model file is damaged, of an unknown version, or no model file; nothing was loaded."""


class DataFileError(MajorantError):
    """Data cannot be read; the message begins with file:line:column, as far as known.

    Parameters
    ----------
    message : str
        One sentence: the defect and what to do.
    path : path, optional
        The file.
    line, column : int, optional
        Counted from 1; the column in bytes.
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.path, self.line, self.column = path, line, column
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class DownloadError(DataFileError):
    """A download failed; there is no file at its destination."""
