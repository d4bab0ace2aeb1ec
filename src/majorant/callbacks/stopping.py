"""Stop after some time, or when the score of validation rows no longer improves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant.callbacks.base import Callback, one_of_many
from majorant.errors import MajorantError
from majorant.status import Evaluated, Record, Result, Status, Vector

if TYPE_CHECKING:
    from majorant.objective import Objective


class TimeLimit(Callback):
    """Stop after `seconds` seconds of solver time (without callbacks and evaluation).

    With a problem for every class, each problem has that time.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise MajorantError(f"seconds must be positive, got {seconds!r}")
        self.seconds = seconds

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return Status.TIME_LIMIT if record.time >= self.seconds else None


class EarlyStopping(Callback):
    """Stop when the score of validation rows no longer improves, and keep the iterate with the best score.

    The score is the accuracy on the validation rows; for a class against the rest, the mean of the accuracies
    on that class and on the rest, since "never this class" is right for most rows. Of iterates with equal
    scores the last is kept. If the kept iterate is not the last one, a run that has converged or stalled has
    the status `Status.STOPPED`, unless the kept iterate is within the tolerance as well.

    Parameters
    ----------
    X : array or sparse matrix (n_samples, n_features)
        Validation rows, preprocessed like the training rows.
    y : array (n_samples,)
        Their labels; without an estimator, 1 and anything else.
    patience : int, default=5
        Stop after this number of iterations without improvement. Iterations that do not change θ do not
        count.
    tol : float, default=0.0
        The smallest increase of the score that counts as an improvement.
    sample_weight : array (n_samples,), optional
        Weights of the validation rows.

    Attributes
    ----------
    best_theta : array
        The best θ = (w, β) of the last run; None before the first run, and with a problem for every class.
    best_score : float
        Its score.
    by_class : dict
        With a problem for every class, the callback of each, with its `best_theta` and `best_score`.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        patience: int = 5,
        tol: float = 0.0,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        from sklearn.utils import check_X_y
        from sklearn.utils.validation import _check_sample_weight

        if patience < 1 or not tol >= 0.0:
            raise MajorantError(f"patience={patience!r} must be at least 1, and tol={tol!r} not negative")
        self.X, self.y = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        self.patience, self.tol = patience, tol
        self.sample_weight: Vector = _check_sample_weight(sample_weight, self.X, dtype=np.float64)
        if np.any(self.sample_weight < 0.0) or not self.sample_weight.any():
            raise MajorantError("sample_weight must be non-negative, and positive for some row")
        self.by_class: dict[Any, EarlyStopping] = {}
        self._codes: NDArray[np.intp] = (self.y == 1).astype(np.intp)
        self._balanced = False
        self._parent: EarlyStopping | None = None
        self._reset()

    def _reset(self) -> None:
        self.best_theta, self.best_score = None, -math.inf
        self._last: Vector | None = None
        self._to_beat, self._waited = -math.inf, 0

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        codes = {label: code for code, label in enumerate(classes)}
        unknown = sorted(set(self.y.tolist()) - codes.keys(), key=str)
        if unknown:
            raise MajorantError(
                f"EarlyStopping has validation rows with labels that are not trained on: {unknown}"
            )
        # Clones of an estimator share callbacks and may be fitted at the same time.
        watcher = copy(self)
        watcher._balanced = one_of_many(classes, positive)
        if positive is None:
            watcher._codes = np.array([codes[label] for label in self.y.tolist()], dtype=np.intp)
        else:
            watcher._codes = (self.y == positive).astype(np.intp)
        if watcher._balanced:
            if positive == classes[0]:
                self._reset()
                self.by_class = {}
            self.by_class[positive] = watcher
        else:
            watcher._parent = self
        return watcher

    def on_begin(self, objective: Objective, tol: float) -> None:
        expected, given = len(objective.factor), self.X.shape[1]
        if given != expected:
            raise MajorantError(
                f"EarlyStopping has validation rows with {given} features, and the model is trained on "
                f"{expected}"
            )
        self._reset()

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        if self._last is not None and np.array_equal(self._last, iterate.theta):
            return None
        self._last = iterate.theta.copy()
        score = self.score(self._last)
        if score >= self.best_score:
            self.best_theta, self.best_score = self._last, score
        if score > self._to_beat + self.tol:
            self._to_beat, self._waited = score, 0
        else:
            self._waited += 1
        return Status.STOPPED if self._waited >= self.patience else None

    def on_end(self, result: Result) -> None:
        if self._parent is not None:
            self._parent.best_theta, self._parent.best_score = self.best_theta, self.best_score

    def score(self, theta: Vector) -> float:
        """The accuracy of θ on the validation rows; balanced for one class of many."""
        rows = theta.reshape(-1, self.X.shape[1] + 1)
        decisions = self.X @ rows[:, :-1].T + rows[:, -1]
        predicted = decisions.argmax(axis=1) if len(rows) > 1 else (decisions[:, 0] > 0.0).astype(np.intp)
        right = predicted == self._codes
        parts = [self._codes == code for code in (0, 1)] if self._balanced else [np.full(len(right), True)]
        shares = [
            float(self.sample_weight[part] @ right[part] / self.sample_weight[part].sum())
            for part in parts
            if self.sample_weight[part].any()
        ]
        return sum(shares) / len(shares)
