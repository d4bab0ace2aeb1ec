"""`StabilitySelection`: the features that most random halves of the rows select, with a bound on false ones.

Complementary pairs (Shah & Samworth 2013): the rows are cut into two random halves, `n_pairs` times, and the
estimator is fitted on every half (`halves.py`). The mathematics of the bounds is in `selection_bounds.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params, _check_sample_weight, check_is_fitted

from majorant.estimators.cv import SparseSVCCV
from majorant.estimators.halves import fit_halves, selection_matrix
from majorant.estimators.parameters import COUNT_FROM_1, POSITIVE, constrained, parameter
from majorant.estimators.selection_bounds import (
    ASSUMPTIONS,
    false_selections,
    halves_needed,
    most_selected,
    smallest_threshold,
)
from majorant.estimators.sources import is_on_dask
from majorant.estimators.stand_ins import FeatureCluster, find_clusters
from majorant.estimators.svc import SparseSVC
from majorant.estimators.validation import check_features, encode_labels
from majorant.rows.sources import Source
from majorant.status import Vector

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The threshold for which features_per_half="auto" chooses the number of features. Meinshausen & Bühlmann find
# results much the same for thresholds from 0.6 to 0.9.
USUAL_THRESHOLD = 0.75
# Rows of a half for each feature that it selects, at least: with fewer, l1 separates the classes by chance.
ROWS_PER_FEATURE = 2


@constrained
@dataclass(repr=False, eq=False)
class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The features that most random halves of the rows select, with a bound on how many of them are false.

    The rows are cut into two random halves, each with half of every class, `n_pairs` times. The estimator is
    fitted on every half. A feature is selected if at least a share `threshold` of all halves select it. With
    more than two classes, a half selects the features of any class.

    Parameters
    ----------
    estimator : SparseSVC, SparseSVCCV or other estimator, optional
        What selects features on a half; None means ``SparseSVC("l1", lam=0.0, standardize=True)``. Any
        scikit-learn estimator with `get_support` or `coef_` will do, also as the last step of a pipeline.
    n_pairs : int, default=50
        How many times the rows are cut into halves.
    features_per_half : "auto", int or None, default="auto"
        How many features a half may select. An int: at most that many, the first that enter along the path of
        the estimator's penalty down to its `lam` (or the best ones, if the estimator has `n_features`). None:
        what the estimator selects as it is, for instance with a fixed `lam`. "auto": as the estimator is, if
        it limits the number of features itself or is not one of majorant's; else as many as `max_false`
        allows with the `threshold` (0.75, if that is None), and one for two rows of a half at most.
    threshold : float, optional
        The share of halves that have to select a feature, above 0.5. By default the smallest one for which
        `error_bound_` is at most `max_false`.
    max_false : float, default=1.0
        The bound to keep to: how many features that are no more likely to be selected by a half than a random
        one may be selected, on average.
    assumption : {"r-concave", "unimodal", "none"}, default="r-concave"
        What the bound assumes of the distribution of how often such a feature is selected. The more is
        assumed, the smaller is the bound, and the more features a half may select.
    min_correlation : float, default=0.8
        The correlation, in size, from which on features count as interchangeable in `clusters_`.
    n_jobs : int, optional
        How many pairs to work on at the same time, in threads; -1 for all cores.
    random_state : int, RandomState or None, default=None
        Makes the halves repeatable.

    Attributes
    ----------
    selection_frequency_ : array (n_features,)
        The share of the halves that select each feature.
    threshold_ : float
        The threshold used; infinity if there is none that keeps to `max_false`.
    error_bound_ : float
        The bound at `threshold_`: on average, no more than that many features are selected that a half
        selects with a probability of at most `features_per_half_` / `n_features_in_`.
    features_per_half_ : float
        How many features a half selects: the most, if that is limited, else the mean.
    support_ : array of int
        The indices of the selected features.
    clusters_ : list of FeatureCluster
        Groups of interchangeable features of which at least a share `threshold_` of the halves select one:
        each selected feature with its stand-ins, and groups of which no feature alone is selected often
        enough.
        `print` shows "x12 or x13: 0.98 together". The bound is for features, not for clusters.
    selections_ : sparse array of bool (2 n_pairs, n_features)
        Which half selects which feature; rows 2i and 2i + 1 are a pair.
    classes_ : array (n_classes,)
        The class labels.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from majorant import SparseSVC, StabilitySelection
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = SparseSVC("l1", lam=0.0, standardize=True)
    >>> selection = StabilitySelection(svc, n_pairs=10, random_state=0).fit(X, y)
    >>> selection.error_bound_ <= 1.0
    True
    >>> selection.transform(X).shape[1] == len(selection.support_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    estimator: Any = parameter(None, HasMethods("fit"), None)
    _: KW_ONLY
    n_pairs: int = parameter(50, COUNT_FROM_1)
    features_per_half: int | str | None = parameter("auto", StrOptions({"auto"}), COUNT_FROM_1, None)
    threshold: float | None = parameter(None, Interval(Real, 0.5, 1, closed="right"), None)
    max_false: float = parameter(1.0, POSITIVE)
    assumption: str = parameter("r-concave", StrOptions(set(ASSUMPTIONS)))
    min_correlation: float = parameter(0.8, Interval(Real, 0, 1, closed="right"))
    n_jobs: int | None = parameter(None, Integral, None)
    random_state: int | np.random.RandomState | None = parameter(None, "random_state")

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the estimator on all halves, and count what they select.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features)
        y : array (n_samples,)
            Labels of two classes or more, with at least two rows each.
        **fit_params : dict
            For the fit of the estimator; of arrays with an entry per row, such as `sample_weight`, each half
            gets its part. Rows of weight 0 are left out. A weight belongs to a row, and a row to one half at
            most: a weight of 2 is the same as two equal rows only on average, since these may be separated.
            With metadata routing enabled, what the estimator has requested.

        Returns
        -------
        self
        """
        if isinstance(X, Source) or is_on_dask(X):
            raise TypeError(
                "StabilitySelection draws halves of rows in memory: pass an array or a sparse matrix."
            )
        X, y = check_features(self, X, y)
        classes, codes = encode_labels(y)
        labels, params = classes[codes], self._routed(fit_params)
        weights: Vector | None = None
        if params.get("sample_weight") is not None:
            weights = _check_sample_weight(
                params["sample_weight"], X, dtype=np.float64, ensure_non_negative=True
            )
            there = np.flatnonzero(weights > 0.0)
            params = _check_method_params(X, params | {"sample_weight": weights}, there)
            X, labels, codes, weights = X[there], labels[there], codes[there], weights[there]
        counts = np.bincount(codes, minlength=len(classes))
        self._check_classes(classes, counts)
        n_features = X.shape[1]
        estimator, limit = self._limited(n_features, int((counts // 2).sum()))
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_pairs)
        halves = fit_halves(estimator, X, labels, codes, params, seeds.tolist(), self.n_jobs)
        self.classes_ = classes
        self.selections_ = selection_matrix(halves, n_features)
        counted = np.bincount(self.selections_.indices, minlength=n_features)
        self.selection_frequency_ = counted / len(halves)
        self.features_per_half_ = float(counted.sum() / len(halves)) if limit is None else float(limit)
        self.threshold_ = self._threshold(n_features)
        self.error_bound_ = self._bound(self.threshold_)
        needed = halves_needed(self.threshold_, self.n_pairs)
        self.support_ = np.flatnonzero(counted >= needed)
        self.clusters_: list[FeatureCluster] = find_clusters(
            X, weights, self.selections_, self._names(), needed, self.min_correlation
        )
        if failed := sum(not half.converged for half in halves):
            warnings.warn(
                f"{failed} of {len(halves)} fits on halves of the rows did not converge: increase max_iter, "
                "or limit the number of features (features_per_half).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        """What goes to the fit of the estimator."""
        if not _routing_enabled():
            return fit_params
        return dict(process_routing(self, "fit", **fit_params).estimator.fit)

    def get_metadata_routing(self) -> MetadataRouter:
        """Who asks for which metadata: the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self._estimator(), method_mapping=mapping)

    def _estimator(self) -> Any:
        return SparseSVC("l1", lam=0.0, standardize=True) if self.estimator is None else self.estimator

    def _check_classes(self, classes: NDArray[Any], counts: NDArray[np.int64]) -> None:
        if np.count_nonzero(counts >= 2) < 2:
            (label,) = classes[counts < 2][:1].tolist()
            raise ValueError(
                f"Each half needs rows of two classes, but class {label!r} has fewer than two rows with a "
                "positive weight."
            )

    def _limited(self, n_features: int, n_rows: int) -> tuple[Any, int | None]:
        """The estimator for halves, and how many features it selects at most, if it has a limit."""
        estimator = self._estimator()
        ours = isinstance(estimator, SparseSVC | SparseSVCCV)
        by_size = ours and getattr(estimator, "n_features", None) is not None
        name = "n_features" if by_size else "max_features"
        given = getattr(estimator, name, None) if ours else None
        limit = int(given) if isinstance(given, Integral) else None
        wanted = self.features_per_half
        if wanted == "auto" and (not ours or given is not None):
            wanted = None
        if wanted is None:
            return estimator, limit
        if not ours:
            raise ValueError(
                f"features_per_half={wanted} needs a SparseSVC or SparseSVCCV, whose path tells which "
                f"features come first. With {type(estimator).__name__}, set features_per_half=None and limit "
                "the features by the estimator's own parameters."
            )
        if wanted == "auto":
            threshold = USUAL_THRESHOLD if self.threshold is None else self.threshold
            allowed = most_selected(n_features, threshold, self.max_false, self.n_pairs, self.assumption)
            wanted = min(allowed, max(1, n_rows // ROWS_PER_FEATURE))
        limit = min(int(wanted), n_features)
        return clone(estimator).set_params(**{name: limit}), limit

    def _bound(self, threshold: float) -> float:
        return false_selections(
            self.features_per_half_, self.n_features_in_, threshold, self.n_pairs, self.assumption
        )

    def _threshold(self, n_features: int) -> float:
        """The threshold given, or the smallest one that keeps to `max_false`."""
        if self.threshold is not None:
            return float(self.threshold)
        found = smallest_threshold(
            self.features_per_half_, n_features, self.max_false, self.n_pairs, self.assumption
        )
        if math.isinf(found):
            warnings.warn(
                f"No feature is selected: a half selects {self.features_per_half_:.4g} of {n_features} "
                f"features, and then no threshold bounds the false ones by max_false={self.max_false:g} (at "
                f"1.0 the bound is {self._bound(1.0):.3g}). Let a half select fewer features "
                "(features_per_half, or a stronger penalty), or increase max_false or n_pairs.",
                UserWarning,
                stacklevel=3,
            )
        return found

    def _names(self) -> Sequence[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else names

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.support_] = True
        return mask

    def to_frame(self) -> pd.DataFrame:
        """The features that some half selects, as a table, the most frequent first; needs pandas.

        Returns
        -------
        pandas.DataFrame
            A row per feature, by name. Columns: ``frequency``; ``selected``; ``error_bound``, the bound that
            would hold with the feature's frequency as the threshold.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        check_is_fitted(self)
        frequency, mask = self.selection_frequency_, self._get_support_mask()
        features = self._most_frequent(int(np.count_nonzero(frequency)))
        bounds = {share: self._bound(share) for share in np.unique(frequency[features]).tolist()}
        return pd.DataFrame(
            {
                "frequency": frequency[features],
                "selected": mask[features],
                "error_bound": [bounds[share] for share in frequency[features].tolist()],
            },
            index=pd.Index([str(self._names()[i]) for i in features], name="feature"),
        )

    def _most_frequent(self, count: int) -> NDArray[np.intp]:
        order = np.lexsort((np.arange(self.n_features_in_), -self.selection_frequency_))
        return np.asarray(order[:count], dtype=np.intp)

    def plot(self, top: int = 30, ax: Axes | None = None) -> Axes:
        """Draw the selection frequencies of the most frequent features, and the threshold; needs matplotlib.

        Parameters
        ----------
        top : int, default=30
            How many features to show.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots.frequencies import plot_stability

        check_is_fitted(self)
        return plot_stability(self, top, ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = False
        return tags
