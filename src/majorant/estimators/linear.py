"""What a fitted linear classifier does, whichever way it was fitted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from majorant.estimators.advice import interruption
from majorant.estimators.calibration import Calibration, is_calibrated
from majorant.estimators.sources import is_on_dask
from majorant.estimators.validation import refuse_lazy
from majorant.rows.sources import RawBlock, Source
from majorant.rows.stream import read_ahead
from majorant.status import Matrix

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# The types of X that are not converted.
FLOATS = [np.float64, np.float32]


class LinearClassifier(ClassifierMixin):  # type: ignore[misc]
    """Decision, prediction and selection by `coef_`, `intercept_` and `classes_`."""

    coef_: Any
    intercept_: NDArray[Any]
    classes_: NDArray[Any]
    support_: NDArray[np.intp]
    n_features_in_: int
    lam_: float
    calibration_: Calibration
    fit_intercept: bool

    def _coefficients(self) -> Matrix:
        """θ, a row per class."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        beta = self.intercept_ if self.fit_intercept else np.zeros(len(coef))
        return np.column_stack([coef, beta]).astype(np.float64)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """w·x + β for every row of X.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n_samples, n_features), or Source
            A data frame needs only the columns that the model uses, if the model was fitted on one; all
            others may be missing, or have missing values. A source is read block by block. For a dask
            collection the answer is one, too.

        Returns
        -------
        array (n_samples,) or (n_samples, n_classes)
            With two classes, positive for the second; with more, the largest is the class predicted.
        """
        check_is_fitted(self)
        self._warn_if_interrupted()
        if is_on_dask(X):
            from majorant.estimators.clusters import predicted_lazily

            columns = 1 if len(self.classes_) == 2 else len(self.classes_)
            lazily: NDArray[Any] = predicted_lazily(self.decision_function, X, columns, self.intercept_.dtype)
            return lazily
        if isinstance(X, Source):
            return np.concatenate([self._scores(part.X) for part in self._blocks(X)])
        refuse_lazy("X", X)
        if (used := self._columns_in_use(X)) is not None:
            rows = check_array(used, dtype=FLOATS) if len(self.support_) else np.zeros(used.shape)
            return self._scores(rows, self.support_)
        X = validate_data(self, X, accept_sparse="csr", accept_large_sparse=True, reset=False, dtype=FLOATS)
        return self._scores(X)

    def _warn_if_interrupted(self) -> None:
        if text := interruption(self):
            warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def _columns_in_use(self, X: Any) -> Any:
        """The columns of a data frame that the model uses, if the frame has these and none that are unknown.

        None if X is something else, or scikit-learn's check of the names has something to say.
        """
        known, there = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        if known is None or there is None:
            return None
        known, there, used = list(known), list(there), list(known[self.support_])
        strange = set(there) - set(known) or set(used) - set(there) or len(set(there)) < len(there)
        if strange or (len(there) == len(known) and there != known):
            return None
        return X[used]

    def _scores(self, X: Any, features: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """w·x + β, for rows with some of the features, or with all."""
        coef = self.coef_ if features is None else self.coef_[:, features]
        scores = np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_)
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row of X, Eq. (eq:linClass).

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or Source

        Returns
        -------
        array (n_samples,)
        """
        if is_on_dask(X):
            from majorant.estimators.clusters import predicted_lazily

            lazily: NDArray[Any] = predicted_lazily(self.predict, X, 1, self.classes_.dtype)
            return lazily
        return self._decide(self.decision_function(X))

    @available_if(is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of every class, for every row of X.

        Only of a model that `majorant train --calibrate` has calibrated and `load_model` has read. In Python,
        scikit-learn's `CalibratedClassifierCV` calibrates.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or Source

        Returns
        -------
        array (n_samples, n_classes)
            The classes are in the order of `classes_`. The class that `predict` returns may be another one
            than that of the largest probability, as in `CalibratedClassifierCV`'s classifier.
        """
        calibration: Calibration = self.calibration_
        if is_on_dask(X):
            from majorant.estimators.clusters import predicted_lazily

            lazily: NDArray[Any] = predicted_lazily(
                self.predict_proba, X, len(self.classes_), np.dtype(np.float64)
            )
            return lazily
        return calibration.probabilities(self.decision_function(X))

    def _decide(self, scores: NDArray[Any]) -> NDArray[Any]:
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted rightly.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), or Source
        y : array (n_samples,)
            The true labels; a source has its own.
        sample_weight : array (n_samples,), optional

        Returns
        -------
        float
        """
        if not isinstance(X, Source):
            return float(super().score(X, y, sample_weight))
        self._warn_if_interrupted()
        right = total = 0.0
        for part, labels, weight in self._blocks(X):
            if labels is None:
                raise ValueError(f"{X.name} has no labels to compare with.")
            s = np.ones(len(labels)) if weight is None else np.asarray(weight)
            right += float(s @ (self._decide(self._scores(part)) == labels))
            total += float(s.sum())
        return right / total

    def _blocks(self, source: Source) -> Iterator[RawBlock]:
        """The blocks of a source, which must have the features of this model."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if source.n_features != self.n_features_in_:
            raise ValueError(
                f"{source.name} has {source.n_features} features, and the model was trained with "
                f"{self.n_features_in_}."
            )
        if names is not None and source.feature_names not in (None, tuple(names)):
            raise ValueError(f"{source.name} has other features than the model, or in another order.")

        def load(i: int) -> RawBlock:
            X, y, weight = source.load(i)
            return RawBlock(check_array(X, accept_sparse="csr", dtype=FLOATS), y, weight)

        return read_ahead(load, range(source.n_blocks))

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Which features have a coefficient that is not zero.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return their indices instead of a mask.

        Returns
        -------
        array of bool (n_features,), or of int
        """
        check_is_fitted(self)
        if indices:
            return self.support_
        mask = np.zeros(self.coef_.shape[1], dtype=np.bool_)
        mask[self.support_] = True
        return mask

    def coef_frame(self, X: Any = None) -> pd.DataFrame:
        """The features that the model uses, as a table, the largest effect first; needs pandas.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features), optional
            Rows whose standard deviations make coefficients comparable. Not needed with ``standardize=True``:
            the model knows the deviations.

        Returns
        -------
        pandas.DataFrame
            A row per feature, by name. Columns: ``coefficient`` (with more than two classes, a column per
            class); ``effect``, the largest coefficient without sign times the standard deviation, where that
            is known; ``share_of_folds``, of a `SparseSVCCV`, in what share of the folds the feature is used.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("coef_frame needs pandas: pip install pandas") from error
        from sklearn.preprocessing import StandardScaler

        from majorant.estimators.coef_norms import features_in_use

        check_is_fitted(self)
        deviations = getattr(self, "scale_", None)
        if X is not None:
            X = validate_data(self, X, accept_sparse="csr", reset=False)
            deviations = StandardScaler(with_mean=False).fit(X).scale_
        features, coefficients, effects = features_in_use(self.coef_, self.support_, deviations)
        names = getattr(self, "feature_names_in_", None)
        index = [f"x{j}" for j in features.tolist()] if names is None else names[features]
        labels = self.classes_.tolist()
        columns = ["coefficient"] if len(labels) == 2 else labels
        table = pd.DataFrame(coefficients, pd.Index(index, name="feature"), columns)
        if deviations is not None:
            table["effect"] = effects
        if hasattr(self, "selection_frequency_"):
            table["share_of_folds"] = self.selection_frequency_[features]
        return table

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

    def plot_margins(self, X: Any, y: ArrayLike, ax: Axes | None = None) -> Axes:
        """Draw how far the rows of X are on the right side, by class; needs matplotlib.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : array (n_samples,)
            The true labels.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from majorant.estimators.plots import plot_margins

        return plot_margins(self, X, y, ax)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
