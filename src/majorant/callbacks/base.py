"""The base class of callbacks, and the names of the problems of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.status import Evaluated, Record, Result, Status, Vector

if TYPE_CHECKING:
    from majorant.objective import Objective


class Callback:
    """The base of all callbacks; each method does nothing until overridden.

    >>> class StopAtTen(Callback):
    ...     def on_iterate(self, iterate, record):
    ...         return Status.STOPPED if record.iteration == 10 else None
    """

    start_theta: Vector | None = None
    """The θ to start from: the driver reads it after `on_begin`."""
    best_theta: Vector | None = None
    """The θ to keep instead of the last one: the driver reads it at the end of a run."""

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        """The callback for one problem of a fit: itself, unless overridden.

        Parameters
        ----------
        classes : sequence
            All labels, in order.
        positive : label or None
            The class that is trained against the rest (the second of two classes); None: all at once.
        """
        return self

    def on_begin(self, objective: Objective, tol: float) -> None:
        """Called before the first iterate."""

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        """Called after every iterate; a returned `Status` stops the run."""
        return None

    def on_end(self, result: Result) -> None:
        """Called after the last iterate, whatever the reason."""


def can_begin_at(iterate: Evaluated, *, convex: bool) -> bool:
    """Whether a later run may start from this iterate.

    If Φ has many minima, an iterate of a surrogate problem could lead to another one.
    """
    return convex or bool(np.isfinite(iterate.loss_gradient).all())


def one_of_many(classes: Sequence[Any], positive: Any) -> bool:
    """Whether the problem is one class of more than two against the rest."""
    return positive is not None and len(classes) > 2


def name_of(classes: Sequence[Any], positive: Any) -> str:
    """The prefix of a problem's lines if a fit has several problems."""
    if not one_of_many(classes, positive):
        return ""
    return f"class {positive!r} ({list(classes).index(positive) + 1} of {len(classes)})  "
