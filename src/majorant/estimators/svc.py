"""`SparseSVC`: the sparse linear support vector classifier."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning

from majorant.callbacks import Checkpoint
from majorant.estimators.advice import (
    convergence_advice,
    overall,
    search_advice,
    severity,
    width_advice,
)
from majorant.estimators.checkpointing import resumable
from majorant.estimators.fit_problem import FitProblem
from majorant.estimators.fitted import model_state, set_fitted
from majorant.estimators.lambda_grid import limit_features
from majorant.estimators.linear import LinearClassifier
from majorant.estimators.parameters import (
    COUNT,
    COUNT_FROM_1,
    NOT_NEGATIVE,
    ProblemParameters,
    constrained,
    parameter,
)
from majorant.estimators.partial_fit import available_if_streams, learn
from majorant.estimators.sklearn_callbacks import CallbackSupport, watched
from majorant.interrupts import CtrlC
from majorant.potentials import Potential
from majorant.solvers import Solver
from majorant.status import Result, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@constrained
@dataclass(repr=False, eq=False, kw_only=True)
class SparseSVC(CallbackSupport, LinearClassifier, ProblemParameters, BaseEstimator):  # type: ignore[misc]
    r"""Linear support vector classifier with the squared hinge loss and few non-zero coefficients.

    Minimises over w and β (which is never penalised)

        Σ_k s_k max(0, 1 - y_k (w·x_k + β))² + Σ_i c_i φ(w_i) + η/2 ‖w‖²

    Parameters
    ----------
    penalty : str or Potential, default="hyperbolic"
        The potential φ: "hyperbolic" λ√(w²+δ²), a smooth ℓ1; "welsch" λ(1-exp(-w²/2δ²)) and "geman-mcclure"
        λw²/(w²+δ²), smooth ℓ0; "lp", a smooth λ√|w|; "cauchy" λ/2 log(1+w²/δ²); with a kink at zero, "mcp"
        and "scad", which are ℓ1 near zero and constant beyond δ, and "log-sum" λ log(1+|w|/δ); "l1" λ|w|;
        "l2" λ/2 w²; "none"; the name of any registered `Potential`, or an object of that kind, such as
        ``SCAD(lam=1.0, delta=0.2, gamma=3.0)``.
    lam : float, default=1.0
        The strength λ. For ℓ1 and ℓ2 it is 1/C in LinearSVC's terms. Ignored by a Potential object.
    delta : float, optional
        The width δ of the potential, in the units of the coefficients (with `standardize`, of the
        coefficients of standardised features). For smooth potentials, coefficients far below δ mean zero; by
        default it is 1e-9 for "hyperbolic", 1e-5 for "cauchy", 1e-6 for "welsch", 1e-7 for "lp" and 1e-8
        for "geman-mcclure", so that exact zeros cost less than `tol`. For "mcp" and "scad", coefficients
        beyond δ are not shrunk; by default it is 0.1, as for "log-sum". With δ far below the coefficients,
        "welsch" and "geman-mcclure" do not depend on the units of X.
    eta : float, default=0.0
        The strength η of the additional ridge penalty (elastic net).
    penalty_factor : array of shape (n_features,), optional
        c_i ≥ 0, which multiplies φ feature by feature; 0 = never penalised by φ.
    refit : {"l2"} or None, default=None
        "l2": the penalty selects the features only; the coefficients are those of a light ridge on the
        features selected (relaxed ℓ1), η_i/2 w_i² with η_i a thousandth of the curvature of the loss along
        feature i. So they are not shrunk. `objective_`, `gap_`, `lower_bound_` and `stationarity_` are then
        those of this ridge on these features; `lam_` and `history_` are those of the selection.
    standardize : bool, default=False
        Whether the penalty sees every feature in units of its standard deviation, weighted as the loss weighs
        the rows: φ(σ_i w_i) and η/2 σ_i² w_i² take the place of φ(w_i) and η/2 w_i². `coef_` is for X as
        it is. Features are divided, not shifted, so sparse X stays sparse; nothing of X is copied. (The
        intercept is free, so shifting the features would change nothing but the intercept.)
    solver : str or Solver, default="auto"
        "auto" (which is "newton", but "mm-subspace" for a penalty that is not convex with more than 3,000
        features of rows that are not in memory), "newton", "gradient", "mm", "mm-inversion", "mm-subspace",
        "mm-gradient", "sgd", "momentum", "adam", or an object of `majorant.solvers`, e.g.
        ``Adam(step=0.01)``.
    warmup : int, default=0
        Epochs of `warmup_solver` before a deterministic solver takes over: the paper's hybrids.
    warmup_solver : str or Solver, default="adam"
        What the warm-up runs.
    fit_intercept : bool, default=True
        Whether there is a β; otherwise it is 0.
    class_weight : dict or "balanced", optional
        Factors of the sample weights, by class. "balanced" makes all classes weigh the same.
    multi_class : {"ovr", "joint"}, default="ovr"
        What to do with more than two classes. "ovr": a problem per class, that class against all others,
        each with features of its own. "joint": one problem for all classes, whose penalty is
        Σ_i c_i φ(‖W_·i‖): a feature is in for every class or out for every class.
    n_features : int, optional
        Search for the best features of this number (all, if there are fewer) instead of those that the
        penalty selects, whatever their units. What shrinks their coefficients is a ridge in units of their
        standard deviations, λ/2 Σ c_i σ_i² w_i² + η/2 Σ σ_i² w_i²: with ``penalty="l2"`` λ is `lam`, with
        "none" 0, and with the default penalty (and η = 0) a thousandth of the sum of the weights; other
        penalties are refused. Features are added one by one, and swapped until no swap of a weak feature
        for a good one lowers Φ. Features with a penalty factor of 0 are always used, and not counted. With
        ``multi_class="ovr"``, each class has as many features of its own, with "joint" all classes have the
        same. `max_iter` is the most features added or swapped. Rows have to be in memory.
    max_features : int, optional
        If `lam` selects more features than this, take the smallest strength of the path down to `lam` that
        does not; `lam_` tells which.
    tol : float, default=1e-6
        The certificate at which to stop: `gap_`, where there is one, else `stationarity_`. It means the same
        for warm and cold starts.
    max_iter : int, default=1000
        The most iterations, or epochs of a stochastic solver.
    zero_tol : "auto" or float, default="auto"
        Which coefficients become exactly 0.0. "auto": those inside the potential's rounded bottom (10 δ for
        "hyperbolic", 3 δ for "welsch") that the loss does not pull out of it, as many as `tol` allows. A
        number: those not larger, whatever it costs.
    warm_start : bool, default=False
        Start from the previous fit's coefficients instead of from 0.
    random_state : int, RandomState or None, default=None
        Makes stochastic solvers and warm-ups repeatable, bit for bit.
    n_jobs : int, optional
        How many classes to train at the same time, in threads that share X; -1 for all cores.
    verbose : int, default=0
        1 shows a progress bar (a line every few seconds where there is no terminal), 2 a line per iteration.

    Attributes
    ----------
    coef_ : array (1, n_features) or (n_classes, n_features)
        w, in the type of X (in double precision, where single precision would cost more than `tol`); one row
        for two classes, one per class for more.
    intercept_ : array (1,) or (n_classes,)
        β.
    classes_ : array (n_classes,)
        The class labels. With two, a positive decision function means the second.
    support_ : array of int
        The indices of the features with a coefficient that is not zero.
    lam_ : float
        The strength λ of the fitted penalty: `lam`, unless `max_features` asked for more.
    n_iter_ : int
        Iterations taken; of several problems, the most. After `partial_fit`, the batches since it began.
    t_ : int
        Rows learned from: those of `fit`, and of every call of `partial_fit` after it.
    converged_ : bool
        Whether the certificate is within `tol`: `gap_`, or `stationarity_` where that is nan.
    status_ : Status
        Why the solver stopped; ``status_.value`` is a sentence.
    objective_ : float
        Φ at `coef_` and `intercept_`, summed over the problems.
    gap_ : float
        How far Φ at the coefficients can be above its minimum, relative to Φ without the constant Σ c_i φ(0).
        nan for penalties that are not convex, and with more than 1,000 features that nothing penalises.
    lower_bound_ : float
        What the gap proves: no coefficients whatsoever have a smaller Φ. nan where there is no gap.
    stationarity_ : float
        Where there is no gap: how far Φ can fall, relative to Φ, when the tangent majorant at the
        coefficients is minimised. Where there is one: the largest fall that a step along one coefficient
        promises.
    scale_ : array (n_features,)
        With ``standardize=True`` or `n_features`, the standard deviations σ of the features (1 for constant
        features).
    history_ : History, or a list of one per class
        Time, objective, gap, stationarity and non-zeros per iteration; ``history_.to_frame()`` for pandas.
    solver_ : Solver
        What "auto" chose.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    With `n_features`, `objective_`, `gap_`, `lower_bound_` and `stationarity_` are about the problem with the
    features of the model alone: the gap proves how far Φ is above the minimum over all coefficients of these
    features. No bound is known for other features; ``status_.value`` says which were tried.

    What needs all rows to be known, from `converged_` to `history_`, is not there after `partial_fit`.

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

    lam: float = parameter(1.0, NOT_NEGATIVE)
    warmup: int = parameter(0, COUNT)
    warmup_solver: str | Solver = parameter("adam", str, Solver)
    n_features: int | None = parameter(None, COUNT, None, since=3)
    max_features: int | None = parameter(None, COUNT_FROM_1, None)
    warm_start: bool = parameter(False, "boolean")
    n_jobs: int | None = parameter(None, Integral, None)
    verbose: int = parameter(0, "verbose")

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature of __init__ anew each time, a tenth of a small fit.
        names: list[str] = super()._get_param_names()
        return names

    # Fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> Self:
        """Train on the rows of X with labels y.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or Source
            An array is not copied if it is float64 or float32, dense or CSR, and never changed. (What is
            copied of a CSR matrix: column numbers of 8 bytes; column numbers, if a quarter of the features
            has no entries; with many features and a penalty with a kink, the columns in use.) A `Source`
            (`majorant.datasets.open_source`) need not fit into memory: every pass reads it anew.
        y : array (n_samples,)
            Labels of two classes or more, of any type. A source has its own, and its own weights.
        sample_weight : array (n_samples,), optional
            Non-negative; a weight of 2 is the same as repeating the row.
        checkpoint : path or Checkpoint, optional
            A file for the iterate, replaced every minute and removed at the end. If it is there already, left
            by a fit of the same problem that was killed, this one goes on from it.

        Returns
        -------
        self
            Also when Ctrl-C ends the fit: then the last iterate is kept in the attributes and
            `KeyboardInterrupt` is raised. When the cluster that has the rows is lost, `coef_` and
            `intercept_` keep it, for `warm_start`, and `ClusterLostError` is raised.
        """
        fit_problem = FitProblem(self, X, y, sample_weight)
        fit_problem.start(self._coefficients() if self.warm_start and hasattr(self, "coef_") else None)
        with (
            CtrlC() as ctrl_c,
            resumable(self, fit_problem, checkpoint) as saving,
            watched(self, fit_problem, X, y, sample_weight) as watching,
        ):
            callbacks = [*watching, *saving]
            if self.max_features is None:
                potential, results = fit_problem.potential, fit_problem.run(fit_problem.potential, callbacks)
            else:
                potential, results = limit_features(fit_problem, self.max_features, callbacks)
            advice = width_advice(fit_problem.objectives(potential), results, self.zero_tol)
            results = list(fit_problem.refitted(potential, results))
            self._store(fit_problem, potential, results)
        if self.status_ is Status.INTERRUPTED or ctrl_c.pressed:
            raise KeyboardInterrupt
        if not self.converged_ and self.status_ is not Status.STOPPED:  # which was asked for
            worst, objective = max(
                zip(results, fit_problem.objectives(potential), strict=True),
                key=lambda pair: severity(pair[0]),
            )
            if self.n_features is not None and worst.status is Status.MAX_ITER:
                advice = search_advice(worst, self.n_features)
            else:
                advice = convergence_advice(worst, self.solver_, self.tol, objective)
            warnings.warn(advice, ConvergenceWarning, stacklevel=2)
        elif advice:
            warnings.warn(advice, UserWarning, stacklevel=2)
        return self

    @available_if_streams
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        n_samples: int | None = None,
    ) -> Self:
        """Learn from these rows, once each, and forget them: for data that come in parts or do not end.

        The memory it takes is that of the coefficients, however many rows there are. It goes on from where
        the last call, or `fit`, has left off. The steps are those of "sgd" if `solver` is "auto", of "sgd",
        "momentum" or "adam" as `solver` says; there is no such method for other solvers and for penalties
        with a kink ("l1"), which need all rows at once. `tol`, `max_iter`, `warmup`, `n_jobs`, `verbose` and
        callbacks are not used.

        `lam` means what it means in a `fit` on all rows so far, so it weighs less and less against them. For
        several passes over the same data, or a fixed weight, say how many rows there are: `n_samples`.

        `zero_tol` is for `coef_` alone, not for the coefficients that the next call starts from. "auto" sets
        nothing to zero, since it asks all rows whether zero could hold.

        Parameters
        ----------
        X : array or sparse matrix (n_rows, n_features)
            With the features of the first call. In batches of the solver's `batch_size` (64 by default), in
            random order; a call with fewer rows is a smaller step (of "adam": a noisier one).
        y : array (n_rows,)
            Labels out of `classes`, of which some may be missing.
        classes : array (n_classes,), optional
            All labels that are ever to come; needed at the first call, unless `fit` went before.
        sample_weight : array (n_rows,), optional
            Non-negative.
        n_samples : int, optional
            The rows K of one pass over the data. The penalty is then weighed as in a `fit` on K rows, and the
            step decays with every K rows by the solver's `schedule`: repeated passes tend to what `fit`
            finds. Without it every call belongs to one first pass, whose step does not decay.

        Returns
        -------
        self
        """
        learn(self, X, y, classes, sample_weight, n_samples)
        return self

    def plot_convergence(self, ax: Axes | None = None, *, against: str = "time") -> Axes:
        """Draw the certificate as the fit went on; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        against : {"time", "iteration"}, default="time"
            What runs along the horizontal axis.

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots import plot_convergence

        return plot_convergence(self, ax, against=against)

    def _store(self, fit_problem: FitProblem, potential: Potential, results: Sequence[Result]) -> None:
        """Set the fitted attributes by what was delivered of every problem."""
        thetas = [fit_problem.in_user_units(result.iterate.theta) for result in results]
        theta = np.concatenate(thetas).reshape(len(fit_problem.rows), -1)
        # Coefficients that rounding to single precision would take from what is claimed are not rounded.
        with np.errstate(over="ignore"):
            exact = np.array_equal(theta.astype(fit_problem.dtype), theta)
        dtype = fit_problem.dtype if exact else np.dtype(np.float64)
        problems = fit_problem.objectives(potential)
        constant = 0.0 if self.refit else sum(problem.constant for problem in problems)
        certificate, bound = overall(results), math.nan
        if not math.isnan(certificate.gap):
            bound = float(sum(result.iterate.lower_bound for result in results) + constant)
        status = max(results, key=severity).status
        histories = [result.history for result in results]
        state = model_state(fit_problem.classes, theta, dtype, potential, fit_problem.rows[0].n_samples)
        state |= {
            "n_iter_": max(1, *(result.n_iter for result in results)),
            "status_": status,
            "converged_": status.converged,
            "objective_": float(sum(result.iterate.value for result in results) + constant),
            "gap_": certificate.gap,
            "stationarity_": certificate.stationarity,
            "lower_bound_": bound,
            "history_": histories[0] if len(histories) == 1 else histories,
            "solver_": fit_problem.solver_for(problems[0]),
        }
        if fit_problem.deviations is not None:
            state["scale_"] = fit_problem.deviations
        set_fitted(self, state)
