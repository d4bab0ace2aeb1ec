"""Passes the solvers' iterations on to our callbacks, the progress bar, scikit-learn's callbacks.

scikit-learn 1.9 has callbacks of its own, which follow a tree of tasks. Ours is

    fit ── iteration                    two classes, or all at once
    fit ── class, or run ── iteration   a problem for every class; or several strengths (`max_features`)

An iteration is the step from one iterate to the next, so the starting point is where the first one begins. At
the end of each, an estimator is on offer that is what `fit` would leave if it stopped there; it is
made only for callbacks that ask for it. Older versions have no `sklearn.callback`, and there are only ours.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import _clone_parametrized

from majorant.callbacks import Callback, LiveProgress, Progress, last_line
from majorant.rows.pass_hooks import between_blocks
from majorant.status import Certificate, Evaluated, History, Record, Result, Status

if TYPE_CHECKING:
    from majorant.estimators.fit_problem import FitProblem
    from majorant.estimators.svc import SparseSVC

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's, and takes no callbacks."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            if callbacks:
                raise TypeError("callbacks of scikit-learn's kind need scikit-learn 1.9 or later")
            return self


class CallbackSupport(CallbackSupportMixin):  # type: ignore[misc]
    """An estimator that takes callbacks, ours and scikit-learn's, and hands them on to its clones."""

    def set_callbacks(self, *callbacks: Any) -> Self:
        """Have these told of every iteration of the following fits (none given: none are).

        Parameters
        ----------
        *callbacks : Callback or sklearn.callback.FitCallback
            E.g. ``TimeLimit(60)`` or ``Checkpoint("fit.npz")`` of `majorant.callbacks`; with
            scikit-learn 1.9 or later also those of `sklearn.callback`, to which an iteration is a task.

        Returns
        -------
        self
        """
        ours = tuple(callback for callback in callbacks if isinstance(callback, Callback))
        others = [callback for callback in callbacks if not isinstance(callback, Callback)]
        try:
            super().set_callbacks(*others)
        except TypeError as error:
            raise TypeError(
                f"callbacks must be instances of majorant.callbacks.Callback, or follow scikit-learn's "
                f"FitCallback protocol, got {others}: {error}"
            ) from error
        # A meta-estimator that lends us its callbacks, or takes them back, does not know of ours.
        if ours or not hasattr(self, "_parent_callback_ctx"):
            self._callbacks = ours
        return self

    def __sklearn_clone__(self) -> Self:
        clone: Self = _clone_parametrized(self)  # which since 1.9 copies scikit-learn's callbacks
        clone._callbacks = getattr(self, "_callbacks", ())
        return clone


@contextmanager
def watched(
    estimator: SparseSVC, fit_problem: FitProblem, X: Any, y: Any, sample_weight: Any
) -> Iterator[Sequence[Callback]]:
    """Whom to tell of the iterations of a fit, which ends with the fitted attributes in place."""
    ours = getattr(estimator, "_callbacks", ())
    others = getattr(estimator, "_skl_callbacks", ())
    if not estimator.verbose and not others:
        yield ours
        return
    skl_callbacks = SklearnCallbacks(estimator, fit_problem, X, y, sample_weight) if others else None
    with _display(estimator) as shown:
        yield (*ours, *shown, *([skl_callbacks] if skl_callbacks else []))
    if skl_callbacks:
        skl_callbacks.close()


@contextmanager
def _display(estimator: SparseSVC) -> Iterator[Sequence[Callback]]:
    """What `verbose` asks for; the bar is gone when the fit is over, however it ended."""
    if estimator.verbose != 1:
        yield [Progress()] if estimator.verbose else []
        return
    live, line = LiveProgress().open(), ""
    try:
        with between_blocks(live.on_pass):
            yield [live]
        certificate = Certificate(estimator.stationarity_, estimator.gap_)
        line = last_line(estimator.status_, str(certificate), estimator.n_iter_)
    finally:
        live.close(line)


class SklearnCallbacks(Callback):
    """Tells the callbacks of scikit-learn, each run of a fit through a callback of its own.

    `theta` is the model as far as it is known, a row per class: classes that are done, or were seen last, and
    the starting point of the others.
    """

    def __init__(
        self, estimator: SparseSVC, fit_problem: FitProblem, X: Any, y: Any, sample_weight: Any
    ) -> None:
        self.estimator, self.fit_problem = estimator, fit_problem
        self.theta = fit_problem.starting_point
        # Scorers want the X that the user has, with the names of its columns.
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.task = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.lock = threading.Lock()  # classes may be trained at the same time
        self._runs = 0
        self._single = len(fit_problem.positive) == 1 and estimator.max_features is None
        subtasks: int | None = estimator.max_iter if self._single else len(fit_problem.positive)
        if estimator.max_features is not None:
            subtasks = None  # as many strengths as it takes
        self.root = estimator._init_callback_context(
            max_subtasks=subtasks, sequential_subtasks=self._single
        ).call_on_fit_task_begin(**self.task)

    def for_problem(self, classes: Sequence[Any], positive: Any) -> Callback:
        several = len(self.fit_problem.positive) > 1
        row = classes.index(positive) if several else 0
        rows = slice(row, row + 1) if positive is not None else slice(None)
        if self._single:
            return _Iterations(self, self.root, rows)
        context = self.root.subcontext(
            task_name=f"class {positive!r}" if several else "run",
            task_id=self._runs,
            max_subtasks=self.estimator.max_iter,
        )
        self._runs += 1
        return _Iterations(self, context, rows)

    def close(self) -> None:
        """The fit is done, its attributes are those of the estimator."""
        self.root.call_on_fit_task_end(**self.task, reconstruction_attributes={})


class _Iterations(Callback):
    """Tells of one run: a subtask per iteration, in the context of the fit or of one class."""

    def __init__(self, parent: SklearnCallbacks, context: Any, rows: slice) -> None:
        self._parent, self._context, self._rows = parent, context, rows
        self._step: Any = None

    def on_begin(self, objective: Any, tol: float) -> None:
        self._objective, self._tol = objective, tol
        if self._context is not self._parent.root:
            with self._parent.lock:
                self._context.call_on_fit_task_begin(**self._parent.task)

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        model = self._model_at(iterate)
        with self._parent.lock:
            if self._step is not None:
                step, self._step = self._step, None
                if step.call_on_fit_task_end(**self._parent.task, reconstruction_attributes=model):
                    return Status.STOPPED
            done = record.certificate.error <= self._tol
            if not done and record.iteration < self._parent.estimator.max_iter:
                self._step = self._context.subcontext(task_name="iteration")
                self._step.call_on_fit_task_begin(**self._parent.task, reconstruction_attributes=model)
        return None

    def on_end(self, result: Result) -> None:
        model = self._model_at(self._delivered(result).iterate, final=True)
        with self._parent.lock:
            if self._step is not None:  # a step that was not taken: something else has ended the run
                self._step.call_on_fit_task_end(estimator=self._parent.estimator)
            if self._context is not self._parent.root:
                self._context.call_on_fit_task_end(**self._parent.task, reconstruction_attributes=model())

    def _delivered(self, reached: Result | Evaluated) -> Result:
        """What a run leaves that ended there."""
        if isinstance(reached, Evaluated):
            reached = Result(reached, Status.STOPPED, 0, Certificate(math.nan), History())
        parent = self._parent
        return parent.fit_problem.delivered(self._objective, reached)

    def _model_at(self, iterate: Evaluated, *, final: bool = False) -> Callable[[], dict[str, Any]]:
        """The fitted attributes if the run ended here, when they are asked for."""

        def attributes() -> dict[str, Any]:
            parent = self._parent
            theta = iterate.theta if final else self._delivered(iterate).iterate.theta
            parent.theta[self._rows] = theta.reshape(-1, parent.theta.shape[1])
            return parent.fit_problem.coefficients(parent.theta)

        return attributes
