"""`SparseSVC`: the sparse linear support vector classifier."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _clone_parametrized, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from majorant.blas import one_thread
from majorant.callbacks import Callback, Progress
from majorant.errors import MajorantError
from majorant.estimators.advice import convergence_advice
from majorant.estimators.validation import (
    check_features,
    check_penalty_factor,
    effective_weights,
    encode_labels,
)
from majorant.estimators.zeros import round_to_zero
from majorant.objective import Objective
from majorant.potentials import Potential, make_potential
from majorant.rows import MemoryRows
from majorant.solvers import Hybrid, Solver, choose_solver, make_solver, solve
from majorant.status import Evaluated, Result, Status, Vector


class SparseSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Linear support vector classifier with the squared hinge loss and few non-zero coefficients.

    Minimises over w and β (which is never penalised)

        Σ_k s_k max(0, 1 - y_k (w·x_k + β))² + Σ_i c_i φ(w_i) + η/2 ‖w‖²

    Parameters
    ----------
    penalty : str or Potential, default="hyperbolic"
        The potential φ: "hyperbolic" λ√(w²+δ²), a smooth ℓ1; "welsch" λ(1-exp(-w²/2δ²)), a smooth ℓ0;
        "l1" λ|w|; "l2" λ/2 w²; "none"; the name of any registered `Potential`, or an object of that kind.
    lam : float, default=1.0
        The strength λ. For ℓ1 and ℓ2 it is 1/C in LinearSVC's terms. Ignored by a Potential object.
    delta : float, default=1e-4
        The smoothing δ of "hyperbolic" and "welsch": coefficients far below it mean zero.
    eta : float, default=0.0
        The strength η of the additional ridge penalty (elastic net).
    penalty_factor : array of shape (n_features,), optional
        c_i ≥ 0, which multiplies φ feature by feature; 0 = never penalised by φ.
    solver : str or Solver, default="auto"
        "auto" (which is "newton"), "newton", "gradient", "mm", "mm-inversion", "mm-subspace", "mm-gradient",
        "sgd", "momentum", "adam", or an object of `majorant.solvers`, e.g. ``Adam(step=0.01)``.
    warmup : int, default=0
        Epochs of `warmup_solver` before a deterministic solver takes over: the paper's hybrids.
    warmup_solver : str or Solver, default="adam"
        What the warm-up runs.
    fit_intercept : bool, default=True
        Whether there is a β; otherwise it is 0.
    class_weight : dict or "balanced", optional
        Factors of the sample weights, by class. "balanced" makes both classes weigh the same.
    tol : float, default=1e-6
        The certificate at which to stop: `gap_`, where there is one, else `stationarity_`. It means the same
        for warm and cold starts.
    max_iter : int, default=1000
        The most iterations, or epochs of a stochastic solver.
    zero_tol : "auto" or float, default="auto"
        Which coefficients become exactly 0.0. "auto": those inside the potential's rounded bottom (10 δ for
        "hyperbolic", 3 δ for "welsch") that the loss does not pull out of it. A number: those not larger.
    warm_start : bool, default=False
        Start from the previous fit's coefficients instead of from 0.
    random_state : int, RandomState or None, default=None
        Makes stochastic solvers and warm-ups repeatable, bit for bit.
    verbose : int, default=0
        1 prints the progress at most twice a second, 2 every iteration.

    Attributes
    ----------
    coef_ : array (1, n_features)
        w, in the type of X.
    intercept_ : array (1,)
        β.
    classes_ : array (2,)
        The class labels; a positive decision function means the second.
    support_ : array of int
        The indices of the non-zero coefficients.
    n_iter_ : int
        Iterations taken.
    converged_ : bool
        Whether the certificate is within `tol`: `gap_`, or `stationarity_` where that is nan.
    status_ : Status
        Why the solver stopped; ``status_.value`` is a sentence.
    objective_ : float
        Φ at the coefficients.
    gap_ : float
        The duality gap relative to Φ: the minimum is no lower than (1 - gap_) Φ. nan for penalties that are
        not convex, and where a feature has no penalty at all. Like `stationarity_`, at the point where the
        solver stopped (before small coefficients are set to zero).
    stationarity_ : float
        The largest component of the gradient (at a kink, of the smallest subgradient), each in units of its
        feature's length over the rows inside the margin (all rows, where there is a gap), relative to θ = 0.
    history_ : History
        Time, objective, gap, stationarity and non-zeros per iteration; ``history_.to_frame()`` for pandas.
    solver_ : Solver
        What "auto" chose.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from majorant import SparseSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SparseSVC(lam=20.0)).fit(X, y)
    >>> len(model[-1].support_) < X.shape[1]
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [str, Potential],
        "lam": [Interval(Real, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "eta": [Interval(Real, 0, None, closed="left")],
        "penalty_factor": ["array-like", None],
        "solver": [str, Solver],
        "warmup": [Interval(Integral, 0, None, closed="left")],
        "warmup_solver": [str, Solver],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "zero_tol": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        penalty: str | Potential = "hyperbolic",
        *,
        lam: float = 1.0,
        delta: float = 1e-4,
        eta: float = 0.0,
        penalty_factor: ArrayLike | None = None,
        solver: str | Solver = "auto",
        warmup: int = 0,
        warmup_solver: str | Solver = "adam",
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        zero_tol: float | str = "auto",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.lam = lam
        self.delta = delta
        self.eta = eta
        self.penalty_factor = penalty_factor
        self.solver = solver
        self.warmup = warmup
        self.warmup_solver = warmup_solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.zero_tol = zero_tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    # Fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X with labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
            Not copied if it is float64 or float32, dense or CSR (with more than 1,000 features and a
            penalty with a kink, the columns in use are); never changed.
        y : array (n_samples,)
            Labels of two classes, of any type.
        sample_weight : array (n_samples,), optional
            Non-negative; a weight of 2 is the same as repeating the row.

        Returns
        -------
        self
            Also when Ctrl-C ends the fit: then the last iterate is kept in the attributes and
            `KeyboardInterrupt` is raised.
        """
        potential, solver = self._resolve_names()
        X, y = check_features(self, X, y)
        self.classes_, labels = encode_labels(self, y)
        weights = effective_weights(sample_weight, self.class_weight, X, self.classes_, labels)
        factor = check_penalty_factor(self.penalty_factor, X.shape[1])
        rows = MemoryRows(X, labels, weights, intercept=self.fit_intercept)
        objective = Objective(rows, potential, self.eta, factor)
        with one_thread():
            objective.check_scale()
            solver = self._with_warmup(choose_solver(objective) if solver is None else solver)
            result = solve(
                solver,
                objective,
                self._starting_point(X.shape[1]),
                tol=self.tol,
                max_iter=self.max_iter,
                seed=check_random_state(self.random_state).randint(np.iinfo(np.int32).max),
                callbacks=self._all_callbacks(),
            )
            self.solver_ = solver
            self._store(objective, result, X.dtype)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if not result.status.converged:
            warnings.warn(convergence_advice(result, solver, self.tol), ConvergenceWarning, stacklevel=2)
        return self

    def set_callbacks(self, *callbacks: Callback) -> Self:
        """Have these told of every iteration of the following fits (none given: none are).

        Parameters
        ----------
        *callbacks : Callback
            E.g. ``TimeLimit(60)`` or ``Checkpoint("theta.npy")`` of `majorant.callbacks`.
        """
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"{callback!r} is not a majorant.callbacks.Callback instance")
        self._callbacks = callbacks
        return self

    def __sklearn_clone__(self) -> Self:
        clone: Self = _clone_parametrized(self)
        return clone.set_callbacks(*getattr(self, "_callbacks", ()))

    def _resolve_names(self) -> tuple[Potential, Solver | None]:
        """The objects behind the names; None for "auto", which needs to see the data."""
        try:
            potential = make_potential(self.penalty, lam=self.lam, delta=self.delta)
            solver = None if self.solver == "auto" else make_solver(self.solver)
            make_solver(self.warmup_solver)
        except MajorantError as error:
            raise InvalidParameterError(str(error)) from error
        return potential, solver

    def _with_warmup(self, solver: Solver) -> Solver:
        if not self.warmup:
            return solver
        if solver.stochastic:
            raise InvalidParameterError(
                f"warmup={self.warmup} goes before a deterministic solver, and {solver.name!r} is stochastic "
                "itself: set warmup=0."
            )
        if self.warmup >= self.max_iter:
            raise InvalidParameterError(
                f"warmup={self.warmup} leaves no iteration for {solver.name!r}: max_iter is {self.max_iter} "
                "and counts both."
            )
        return Hybrid(make_solver(self.warmup_solver), solver, self.warmup)

    def _starting_point(self, n_features: int) -> Vector | None:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        if coef.shape != (1, n_features):
            return None
        beta = self.intercept_ if self.fit_intercept else np.zeros(1)
        return np.concatenate([coef[0], beta]).astype(np.float64)

    def _all_callbacks(self) -> tuple[Callback, ...]:
        callbacks: tuple[Callback, ...] = getattr(self, "_callbacks", ())
        if self.verbose:
            callbacks += (Progress(every=0.0 if self.verbose > 1 else 0.5),)
        return callbacks

    def _store(self, objective: Objective, result: Result, dtype: np.dtype[Any]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            at: Evaluated = round_to_zero(objective, result.iterate, self.zero_tol)
        if not np.all(np.abs(at.theta) <= np.finfo(dtype).max):
            dtype = np.dtype(np.float64)  # coefficients of very small features are beyond single precision
        self.coef_: Any = at.theta[np.newaxis, :-1].astype(dtype)
        self.intercept_ = at.theta[-1:].astype(dtype)
        self.support_ = np.flatnonzero(self.coef_[0])
        self.n_iter_ = max(result.n_iter, 1)
        self.status_ = result.status
        self.converged_ = result.status.converged
        self.objective_ = at.value
        self.gap_ = result.certificate.gap
        self.stationarity_ = result.certificate.stationarity
        self.history_ = result.history

    # Predicting --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> NDArray[Any]:
        """w·x + β for every row of X: positive for the second class.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)

        Returns
        -------
        array (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse="csr", accept_large_sparse=True, reset=False,
            dtype=[np.float64, np.float32],
        )  # fmt: skip
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return np.asarray(scores).ravel()

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row of X, Eq. (eq:linClass).

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)

        Returns
        -------
        array (n_samples,)
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int)])

    def sparsify(self) -> Self:
        """Keep `coef_` as a sparse matrix from now on, for small models of many features."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Undo `sparsify`."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
