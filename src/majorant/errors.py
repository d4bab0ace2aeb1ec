"""Errors that say what to do next. All are `ValueError`s, as scikit-learn's users expect."""

from __future__ import annotations


class MajorantError(ValueError):
    """The base of all errors of this package."""


class UnsuitableSolverError(MajorantError):
    """The chosen solver cannot solve the given problem; the message names those that can."""


class ScaleError(MajorantError):
    """Numbers so large that their squares overflow; the message says which to rescale."""
