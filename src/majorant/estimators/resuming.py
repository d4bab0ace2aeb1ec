"""A fit that goes on where another one was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sklearn.utils._param_validation import InvalidParameterError

from majorant.callbacks import Callback, Checkpoint
from majorant.status import Status

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC


@contextmanager
def resumable(
    estimator: SparseSVC, checkpoint: str | os.PathLike[str] | Checkpoint | None
) -> Iterator[Sequence[Callback]]:
    """Who saves the iterates of a fit; a file that was only named is removed when the fit has ended."""
    if checkpoint is None:
        yield ()
        return
    if estimator.max_features is not None:
        raise InvalidParameterError(
            "A checkpoint is of one fit, and max_features makes many: leave out one of them."
        )
    saving = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint, resume=True)
    yield (saving,)
    if saving is not checkpoint and estimator.status_ is not Status.INTERRUPTED:
        saving.remove()
