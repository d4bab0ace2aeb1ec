r"""Learning from a stream: what `SparseSVC.partial_fit` does.

Rows arrive call by call; each call goes through its rows once, in random batches, and forgets them. What is
kept (`Descent`, one per class) has the size of θ: the coefficients, the memory of the update rule, how many
rows there were and the largest of them, which bounds the default step.

What is minimised. Let T be the number of rows of all calls, the present one included. A call may tell how
many rows K one pass over the data has (`n_samples`); if it does not, K = T. Its batches estimate the gradient
of

    Φ_K(θ)/K = mean_k s_k ρ²(y_k (w·x_k + β)) + f(w)/K,        f(w) = Σ_i c_i φ(w_i) + η/2 ‖w‖²

with the mean over what the rows are drawn from, as `solvers/stochastic.py` does within `fit` (κ = 1/K).

- K told, passes over the same K rows: Φ_K is the Φ of `fit`, and repeated passes with a decaying step lead to
  its minimiser, as the epochs of `fit` do. A pass in one call *is* such an epoch, bit for bit.
- K told, a stream that never ends, its rows drawn independently from one distribution: a decaying step leads
  to the minimiser of E[s ρ²] + f/K. So λ means what it means in a `fit` on K rows.
- K not told: Φ_T is the Φ of a `fit` on all rows so far, and moves on with them. The penalty is spread over
  ever more rows and fades, as it does in `fit` if λ stays as it is while rows are added. (Passes over the
  same rows are no exception: they count as a `fit` on that many copies.) The schedule counts passes, seen/K,
  and the first one never ends: the step stays between schedule(1) and schedule(0) times α, θ ends in a cloud
  around the minimiser, and follows it if the stream drifts.

With `weighting="paper"`, κ = 1: the mean loss plus f, whatever K is, and K is for the schedule alone.

A step divides by the batch size also where a call has fewer rows (but not by more than K): for `sgd` and
`momentum`, how the stream is cut into calls changes the noise of a step, not how far a row can move θ. (The
steps of `adam` have one length, so it wants calls of a batch or more.) Rows count one each, whatever they
weigh, as they do in `fit`. In Φ_K a weight of 2 is the same as a row that comes twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from numbers import Integral
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError

from majorant.blas import one_thread
from majorant.errors import ScaleError, UnsuitableSolverError
from majorant.estimators.fit_problem import resolve_names, rows_by_problem
from majorant.estimators.fitted import model_state, set_fitted
from majorant.estimators.validation import (
    check_classes,
    check_features,
    check_penalty_factor,
    effective_weights,
    encode_known_labels,
)
from majorant.objective import Objective
from majorant.solvers import SGD, Descent, StochasticSolver, require_suitable

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC


class available_if_streams:  # noqa: N801, a decorator, as scikit-learn's `available_if`
    """Makes a method an attribute only of estimators that can learn from a stream; others say why not."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: SparseSVC | None, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        try:
            with suppress(InvalidParameterError):  # which partial_fit itself will say
                stream_solver(estimator)
        except UnsuitableSolverError as error:
            raise AttributeError(f"This {type(estimator).__name__} has no partial_fit: {error}") from error
        return MethodType(self.method, estimator)


def stream_solver(estimator: SparseSVC) -> StochasticSolver:
    """The solver whose steps a stream takes, or an error that says why there is none.

    "auto" is `sgd`: what it is called elsewhere (`SGDClassifier`), and its default step, unlike Adam's, is
    stable whatever the units of the features are.
    """
    potential, solver = resolve_names(estimator)
    if estimator.multi_class == "joint":
        raise UnsuitableSolverError(
            "multi_class='joint' has no stochastic solver: for partial_fit set multi_class='ovr'."
        )
    if estimator.n_features is not None:
        raise UnsuitableSolverError(
            "n_features is a search that needs all rows at once: for partial_fit set n_features=None and a "
            "larger lam."
        )
    if solver is None:
        solver = SGD()
    if not isinstance(solver, StochasticSolver):
        raise UnsuitableSolverError(
            f"solver {solver.name!r} needs all rows at once. For partial_fit set solver to 'auto' (which is "
            "'sgd' there), 'sgd', 'momentum', 'adam', or an object of these kinds."
        )
    if not potential.smooth:
        raise UnsuitableSolverError(
            f"partial_fit needs a differentiable potential, and {potential.name!r} has a kink at zero. The "
            "penalty 'hyperbolic' with a small delta is a smooth 'l1'."
        )
    return solver


def learn(
    estimator: SparseSVC,
    X: Any,
    y: Any,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None,
    n_samples: Any,
) -> None:
    """Go through the rows once; if anything is wrong with them, the estimator stays as it is."""
    solver = stream_solver(estimator)
    potential, _ = resolve_names(estimator)
    _refuse_what_needs_all_rows(estimator, n_samples)
    begun = hasattr(estimator, "coef_")
    if classes is None and not begun:
        raise ValueError(
            "The first call of partial_fit needs the labels of all classes that are to come: pass them as "
            "classes, e.g. np.unique(y) of all data."
        )
    known = estimator.classes_ if begun else None
    labels = known if classes is None else check_classes(classes, known)
    assert labels is not None
    X, y = check_features(estimator, X, y, reset=not begun)
    codes = encode_known_labels(y, labels)
    weights = effective_weights(sample_weight, estimator.class_weight, X, labels, codes, complete=False)
    factor = check_penalty_factor(estimator.penalty_factor, X.shape[1])
    parts = rows_by_problem(X, codes, weights, n_classes=len(labels), intercept=estimator.fit_intercept)
    stream = _continued(estimator, solver, (len(parts), X.shape[1] + 1))
    pass_length = stream[0].seen + len(codes) if n_samples is None else n_samples
    # Overflow ends in values that are not finite, which are looked for.
    with np.errstate(over="ignore", invalid="ignore"), one_thread():
        for descent, rows in zip(stream, parts, strict=True):
            objective = Objective(rows, potential, estimator.eta, factor)
            require_suitable(solver, objective)
            descent.note_largest_row(rows)
            descent.epoch(objective, pass_length)
    theta = np.stack([descent.theta for descent in stream])
    if not np.isfinite(theta).all():
        raise ScaleError(
            "These rows lead to coefficients that are not finite, and were not learned from: rescale the "
            "features, e.g. with sklearn.preprocessing.StandardScaler, or give the solver a smaller step."
        )
    if not isinstance(estimator.zero_tol, str):
        theta[:, :-1][np.abs(theta[:, :-1]) <= estimator.zero_tol] = 0.0
    state = model_state(labels, theta, X.dtype, potential, stream[0].seen, stream)
    set_fitted(estimator, state | {"solver_": solver, "n_iter_": stream[0].steps})


def _continued(estimator: SparseSVC, solver: StochasticSolver, shape: tuple[int, int]) -> list[Descent]:
    """The stream so far, to be changed without regret: one descent per problem."""
    if stream := getattr(estimator, "_stream", None):
        twins: list[Descent] = [descent.copy() for descent in stream]
        for twin in twins:
            if twin.solver != solver:
                twin.follow(solver)
            if not estimator.fit_intercept:
                twin.theta[-1] = 0.0
        return twins
    fitted = hasattr(estimator, "coef_")
    starts = estimator._coefficients() if fitted else np.zeros(shape)
    seed = check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)
    return [Descent(solver, theta, seed, estimator.t_ if fitted else 0) for theta in starts]


def _refuse_what_needs_all_rows(estimator: SparseSVC, n_samples: Any) -> None:
    if estimator.class_weight == "balanced":
        raise InvalidParameterError(
            "class_weight='balanced' needs the labels of all rows, which partial_fit does not have. Pass "
            "a dict of weights instead, e.g. by sklearn.utils.class_weight.compute_class_weight('balanced', "
            "classes=classes, y=sample) with a large enough sample of the labels."
        )
    if estimator.standardize:
        raise InvalidParameterError(
            "standardize=True needs all rows at once, which partial_fit does not have. Scale the features "
            "before, e.g. with the partial_fit of sklearn.preprocessing.StandardScaler(with_mean=False)."
        )
    if estimator.refit is not None:
        raise InvalidParameterError(
            "refit='l2' needs all rows at once, which partial_fit does not have: set refit=None."
        )
    if estimator.max_features is not None:
        raise InvalidParameterError(
            "max_features needs a path of strengths over all rows: for partial_fit set max_features=None "
            "and a larger lam."
        )
    if n_samples is not None and not (isinstance(n_samples, Integral) and int(n_samples) >= 1):
        raise ValueError(f"n_samples must be a positive integer or None, got {n_samples!r}.")
