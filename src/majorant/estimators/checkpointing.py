"""A fit that goes on where another one was killed, or has lost its cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import InvalidParameterError

from majorant.callbacks import Callback, Checkpoint
from majorant.callbacks.base import can_begin_at
from majorant.errors import ClusterLostError, OutputError
from majorant.estimators.fitted import model_state, set_fitted
from majorant.rows import MemoryRows
from majorant.status import Evaluated, Record, Status

if TYPE_CHECKING:
    from majorant.estimators.fit_problem import FitProblem
    from majorant.estimators.svc import SparseSVC


@contextmanager
def resumable(
    estimator: SparseSVC, fit_problem: FitProblem, checkpoint: str | os.PathLike[str] | Checkpoint | None
) -> Iterator[Sequence[Callback]]:
    """Who saves the iterates of a fit; a file that was only named is removed when the fit has ended.

    If the rows are lost on the way, the estimator keeps the coefficients that it had come to, and the error
    says how to go on from them.
    """
    saving = _saving(estimator, checkpoint)
    trail = None if isinstance(fit_problem.rows[0], MemoryRows) else _Trail(fit_problem)
    try:
        yield [callback for callback in (trail, saving) if callback is not None]
    except BaseException as error:
        if saving is not None:
            with suppress(OSError, OutputError):  # the first error is the one to tell of
                saving.save()
        if isinstance(error, ClusterLostError) and trail is not None:
            raise _how_to_go_on(error, estimator, trail, saving) from error
        raise
    if saving is not None and saving is not checkpoint and estimator.status_ is not Status.INTERRUPTED:
        saving.remove()


def _saving(
    estimator: SparseSVC, checkpoint: str | os.PathLike[str] | Checkpoint | None
) -> Checkpoint | None:
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        saving = checkpoint
    else:
        saving = Checkpoint(checkpoint, resume=True)
    if saving is not None and estimator.max_features is not None:
        raise InvalidParameterError(
            "A checkpoint is of one fit, and max_features makes many: leave out one of them."
        )
    return saving


class _Trail(Callback):
    """Remembers where each problem of a fit has come to: `theta`, a row per class."""

    def __init__(self, fit_problem: FitProblem) -> None:
        self.fit_problem, self.theta = fit_problem, fit_problem.starting_point
        self.begun: set[int] = set()  # shared with the twins of all problems, as θ is
        self._row = 0

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        twin = copy(self)
        twin._row = self.fit_problem.positive.index(positive)
        return twin

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if can_begin_at(iterate, convex=self.fit_problem.potential.convex):
            theta = iterate.theta.reshape(-1, self.theta.shape[1])  # of all classes, if they are joint
            self.theta[self._row : self._row + len(theta)] = theta
            self.begun.add(self._row)
        return None


def _how_to_go_on(
    error: ClusterLostError, estimator: SparseSVC, trail: _Trail, saving: Checkpoint | None
) -> ClusterLostError:
    """The error with the last iterates of all classes, which the estimator keeps, and with advice."""
    message, theta = str(error), error.theta
    several = len(trail.theta) > 1
    if several:  # what the error has is of one of them
        theta = trail.theta if trail.begun else None
    # With `max_features` the way begins at another strength of the penalty.
    if trail.begun and estimator.max_features is None:
        lost = trail.fit_problem
        n_rows = lost.rows[0].n_samples  # nothing is claimed of the coefficients: the rows are out of reach
        set_fitted(estimator, model_state(lost.classes, trail.theta, lost.dtype, lost.potential, n_rows))
        message += "; with warm_start=True this model goes on from its last iterate"
        if saving is not None and saving.written:
            message += f", and with checkpoint={str(saving.path)!r} any other does"
    return ClusterLostError(message, theta)
