"""`SparseSVCCV`: the strength of the penalty, or the number of features, by cross-validation along a path."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_sample_weight

from majorant.callbacks import ModelsProgress
from majorant.estimators.advice import grid_advice
from majorant.estimators.fit_problem import FitProblem, resolve_names
from majorant.estimators.fitted import get_fitted, set_fitted
from majorant.estimators.folds import Fold, fold_in_memory, folds_elsewhere
from majorant.estimators.lambda_grid import most_features
from majorant.estimators.linear import LinearClassifier
from majorant.estimators.parameters import COUNT_FROM_1, ProblemParameters, constrained, declared, parameter
from majorant.estimators.path import fit_path, grid_for, warn_of_failures
from majorant.estimators.sources import FoldSpec, is_on_dask
from majorant.estimators.splitter import fold_seed
from majorant.estimators.svc import SparseSVC
from majorant.interrupts import CtrlC, check, ending_on
from majorant.rows import Source
from majorant.rows.threads import in_context

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@constrained
@dataclass(repr=False, eq=False, kw_only=True)
class SparseSVCCV(LinearClassifier, ProblemParameters, BaseEstimator):  # type: ignore[misc]
    """`SparseSVC` with its strength `lam`, or its number of features, chosen by cross-validation.

    In every fold the whole path of strengths is fitted, each model from where the last one ended, and scored
    on what the fold leaves out. Then the strength that is best on average, or the largest one that is no
    worse than the best by more than a standard error, is fitted on all data. With `n_features`, numbers of
    features take the place of strengths: the best, or the smallest that is no worse by a standard error.

    Parameters
    ----------
    penalty : str or Potential, default="hyperbolic"
        As in `SparseSVC`, like all parameters that are not listed here.
    lambdas : int or array, default=100
        How many strengths, from `lambda_max` of all data down to `ratio` times that; or which.
    ratio : float, default=1e-3
        The smallest strength, relative to the largest.
    n_features : int or array of int, optional
        Numbers of features to compare instead of strengths: the largest (from 1 on), or which. Each model has
        the best features of that number that a search finds, as in `SparseSVC`; then `lambdas` and `ratio`
        have no use.
    cv : int, splitter or iterable, default=None
        As in scikit-learn; None means 5 stratified folds. On a source or on Dask, a number: stratified folds,
        drawn by `random_state` (always the same if that is None), whatever the blocks.
    scoring : str, callable or None, default=None
        What makes a model good; None means its accuracy. (On a source or on Dask, a callable gets the values
        of the decision function as X.)
    selection : {"best", "1se"}, default="best"
        Which strength to take: that of the best mean score, or the largest one whose mean score is within
        one standard error of the best; of numbers of features, the smallest.
    max_features : int, optional
        The most features of the model. The strengths then end before the first whose model of all data has
        more features.
    n_jobs : int, optional
        How many folds to fit at the same time, in threads.
    verbose : int, default=0
        1 shows a progress bar over the models of all folds (lines where there is no terminal).

    Attributes
    ----------
    lam_ : float
        The strength chosen; with `n_features`, that of the ridge.
    lam_best_, lam_1se_ : float
        The strength of the best mean score, and the one by the rule of one standard error.
    lambdas_ : array (n_lambdas,)
        All strengths, falling.
    n_features_ : int
        With `n_features`: the number chosen.
    n_features_best_, n_features_1se_, sizes_
        With `n_features`, in the place of `lam_best_`, `lam_1se_` and `lambdas_`: the number of the best mean
        score, the one by the rule of one standard error, and all numbers, rising.
    best_score_ : float
        The mean score of the strength chosen.
    cv_results_ : dict of arrays
        Per strength: lam (or n_features), the score of every split, mean and standard deviation over the
        splits, rank, and the mean number of features. ``pandas.DataFrame(model.cv_results_)`` reads it.
    selection_frequency_ : array (n_features,)
        In what share of the folds the model at the strength chosen uses the feature.
    coef_, intercept_, classes_, support_, converged_, objective_, gap_, …
        Of the model fitted on all data, as in `SparseSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from majorant import SparseSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseSVCCV("l1", lambdas=20, selection="1se").fit(scale(X), y)
    >>> bool(model.lam_ >= model.lam_best_)
    True
    """

    lambdas: int | ArrayLike = parameter(100, COUNT_FROM_1, "array-like")
    ratio: float = parameter(1e-3, Interval(Real, 0, 1, closed="neither"))
    n_features: int | ArrayLike | None = parameter(None, COUNT_FROM_1, "array-like", None, since=3)
    cv: Any = parameter(None, "cv_object")
    scoring: Any = parameter(None, StrOptions(set(get_scorer_names())), callable, None)
    selection: str = parameter("best", StrOptions({"best", "1se"}))
    max_features: int | None = parameter(None, COUNT_FROM_1, None, since=2)
    n_jobs: int | None = parameter(None, Integral, None)
    verbose: int = parameter(0, "verbose")

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Choose the strength and fit with it on all data.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or Source
            Of a source, or on Dask, the folds share passes over the rows.
        y : array (n_samples,)
            A source has its own.
        sample_weight : array (n_samples,), optional
            Used for fitting; for scoring as well if metadata routing is enabled and the scorer asks for it.
        **params : dict
            Given to the splitter and the scorer that ask for them, if metadata routing is enabled.

        Returns
        -------
        self
        """
        _raise_for_params(params, self, "fit")
        template = self._template()
        if isinstance(X, Source) or is_on_dask(X):
            return self._fit_elsewhere(template, X, y, sample_weight)
        fit_problem = FitProblem(template, X, y, sample_weight)
        grid, models = self._grid(fit_problem)
        X, y = indexable(X, fit_problem.labels)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
        weights: Any = sample_weight
        split_params, score_params = self._route(sample_weight, params)
        scorer = check_scoring(template, scoring=self.scoring)
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y, **split_params))

        def fold(split: tuple[NDArray[np.intp], NDArray[np.intp]]) -> Fold | None:
            try:
                check()
                return fold_in_memory(template, X, y, weights, split, grid, scorer, score_params, progress)
            except KeyboardInterrupt:  # not to be raised in a thread, whose pool may wait for ever
                return None

        with (
            CtrlC() as ctrl_c,
            ending_on(lambda: ctrl_c.pressed),
            ModelsProgress(len(splits) * len(grid), shown=bool(self.verbose)) as progress,
        ):
            answers = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(in_context(partial(fold, split)))() for split in splits
            )
        folds = [answer for answer in answers if answer is not None]
        if ctrl_c.pressed or len(folds) < len(splits):
            raise KeyboardInterrupt
        return self._finish(fit_problem, grid, folds, models)

    def _grid(self, fit_problem: FitProblem) -> tuple[NDArray[Any], list[SparseSVC]]:
        """The strengths or the numbers of features to compare, and the models of all data if they are needed.

        They are needed if `max_features` limits the strengths, and for a penalty that is not convex: the
        delivered model is then one of the path.
        """
        grid = grid_for(fit_problem, self.n_features, self.lambdas, self.ratio)
        if self.max_features is None and fit_problem.potential.convex:
            return grid, []
        largest = most_features(fit_problem) if np.ndim(self.lambdas) == 0 else None
        with CtrlC():
            models = list(fit_path(fit_problem, grid, self.max_features, largest))
        return grid[: len(models)], models

    def _fit_elsewhere(self, template: SparseSVC, X: Any, y: Any, sample_weight: Any) -> Self:
        """The same for rows that are not in memory."""
        if not isinstance(self.cv, Integral | None):
            raise TypeError(
                f"cv={self.cv!r} needs rows that are in memory: a source is cut into a number of folds, e.g. "
                "cv=5."
            )
        scorer = check_scoring(template, scoring=self.scoring)
        cut = FoldSpec(5 if self.cv is None else int(self.cv), fold_seed(self.random_state))
        with ModelsProgress(shown=bool(self.verbose)) as progress:
            fit_problem = FitProblem(template, X, y, sample_weight, cut=cut)
            grid, models = self._grid(fit_problem)
            progress.total = cut.number * len(grid)
            folds = folds_elsewhere(fit_problem, cut, grid, self.scoring, scorer, progress)
            return self._finish(fit_problem, grid, folds, models)

    def _finish(
        self,
        fit_problem: FitProblem,
        grid: NDArray[Any],
        folds: Sequence[Fold],
        models: Sequence[SparseSVC],
    ) -> Self:
        """Choose by what the folds say, and fit on all data, unless there are models of all data."""
        scores = np.stack([fold.scores for fold in folds], axis=1)
        chosen, state = self._choose(grid, scores, [fold.supports for fold in folds], fit_problem.n_features)
        warn_of_failures([model for fold in folds for model in fold.failed], scores.size)
        model = models[chosen] if models else next(fit_path(fit_problem, grid[chosen : chosen + 1]))
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit, if this one has no names
        set_fitted(self, get_fitted(model.densify()) | state)
        if not self.converged_:
            warnings.warn(
                f"The final fit did not converge: {self.status_.value} Increase max_iter, or take larger "
                "strengths.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if advice := grid_advice(self, fit_problem):
            warnings.warn(advice, UserWarning, stacklevel=3)
        return self

    def _template(self) -> SparseSVC:
        """What is trained in every fold, for every strength."""
        parameters = {name: getattr(self, name) for name in declared(ProblemParameters)}
        if self.n_features is not None:
            if self.max_features is not None:
                raise InvalidParameterError(
                    "n_features are the numbers of features to compare, and max_features is a limit for what "
                    "a penalty selects: leave out one of them."
                )
            parameters["n_features"] = 0  # each model on a path has its own
        return SparseSVC(**parameters)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean score against λ, with the strengths to choose from; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots import plot_cv

        return plot_cv(self, ax)

    def plot_selection_frequency(
        self, names: Sequence[str] | None = None, top: int = 30, ax: Axes | None = None
    ) -> Axes:
        """Draw in what share of the folds each feature is selected; needs matplotlib.

        Parameters
        ----------
        names : sequence of str, optional
            The names of all features; by default those of the data frame that was fitted, else x0, x1, ….
        top : int, default=30
            How many features to show.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots import plot_selection_frequency

        return plot_selection_frequency(self, names, top, ax)

    def _route(self, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the splitter, and what to the scorer."""
        if not _routing_enabled():
            return {}, {}
        routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
        return routed.splitter.split, routed.scorer.score

    def get_metadata_routing(self) -> MetadataRouter:
        """Who asks for which metadata: this estimator, its splitter and its scorer."""
        fit_to = MethodMapping().add(caller="fit", callee="split")
        score_to = MethodMapping().add(caller="fit", callee="score")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=check_cv(self.cv, classifier=True), method_mapping=fit_to)
            .add(scorer=check_scoring(SparseSVC(), scoring=self.scoring), method_mapping=score_to)
        )

    def _choose(
        self,
        grid: NDArray[Any],
        scores: NDArray[Any],
        supports: Sequence[list[NDArray[np.int32]]],
        n_features: int,
    ) -> tuple[int, dict[str, Any]]:
        """The place on the grid to take, and the attributes that the scores of all folds lead to."""
        sizes = np.array([[len(support) for support in fold] for fold in supports])
        mean, spread = scores.mean(axis=1), scores.std(axis=1)
        if not np.all(np.isfinite(mean)):
            raise ValueError("Some scores are not finite: check the scorer, and that it suits every fold.")
        best = int(np.argmax(mean))  # of several, the strongest, or the fewest features
        error = scores.std(axis=1, ddof=1)[best] / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else 0.0
        within = int(np.flatnonzero(mean >= mean[best] - error)[0])
        chosen = best if self.selection == "best" else within
        selected = np.concatenate([fold[chosen] for fold in supports])
        by_size = self.n_features is not None
        results = {
            "n_features" if by_size else "lam": grid,
            **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
            "mean_test_score": mean,
            "std_test_score": spread,
            "rank_test_score": 1 + np.array([int(np.count_nonzero(mean > score)) for score in mean]),
            "mean_n_features": sizes.mean(axis=0),
        }
        if by_size:
            names: list[str] = ["n_features_", "n_features_best_", "n_features_1se_"]
            places = dict(zip(names, map(int, grid[[chosen, best, within]]), strict=True))
            choice: dict[str, Any] = {"sizes_": grid, **places}
        else:
            choice = {"lambdas_": grid, "lam_best_": float(grid[best]), "lam_1se_": float(grid[within])}
        return chosen, choice | {
            "best_score_": float(mean[chosen]),
            "selection_frequency_": np.bincount(selected, minlength=n_features) / len(supports),
            "cv_results_": results,
        }


def check_parameters(estimator: SparseSVC | SparseSVCCV) -> None:
    """Raise what `fit` would raise whatever the data, as far as that can be known without any."""
    estimator._validate_params()
    resolve_names(estimator._template() if isinstance(estimator, SparseSVCCV) else estimator)
