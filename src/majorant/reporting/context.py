"""The checked input of a report: a fitted model, rows with its predictions, and names."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from majorant.errors import MajorantError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.coef_norms import feature_norms
from majorant.estimators.fitted import Origin, origin_of
from majorant.estimators.folds import PrecomputedDecision
from majorant.estimators.plots.data import margins_of
from majorant.reporting.text import plain_text
from majorant.rows.sources import ArraySource, FunctionSource, Source
from majorant.rows.stream import read_blocks
from majorant.status import History, Vector

# The names of sources without a name of their own.
UNNAMED = {source.name for source in (Source, FunctionSource, ArraySource)}


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with labels, and the predictions of the model for them."""

    X: Any
    """With all features of the model; nan where the value of a feature that it does not use is missing."""
    codes: NDArray[np.intp]
    """The index of each row's class."""
    decision: NDArray[Any]
    """w·x + β: (n_rows,) for two classes, (n_rows, n_classes) for more."""
    role: str
    """"training", "test", or "given" (it is not known whether the model was trained on these rows)."""
    row_names: Sequence[Any] | None = None
    """The index of a data frame, unless that only counts the rows."""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def predicted(self) -> NDArray[np.intp]:
        """The index of the class predicted for each row."""
        if self.decision.ndim == 1:
            return (self.decision > 0).astype(np.intp)
        return np.asarray(self.decision.argmax(axis=1))

    @property
    def margins(self) -> Vector:
        """Y f(x), or f of the row's class minus the largest other f."""
        return margins_of(self.decision, self.codes)


@dataclass(frozen=True, eq=False)
class AskedScore:
    """The score that a search or a cross-validation maximised."""

    name: str
    scorer: Any
    """scikit-learn's: called with an estimator, X and y."""
    model: SparseSVC | SparseSVCCV

    def value(self, rows: ScoredRows) -> float:
        """The score of the model on these rows; nan if the scorer fails."""
        model, X = self.model, rows.X
        # As in a cross-validation on a source, the scorer gets the decisions.
        if isinstance(X, Source) or (isinstance(X, np.ndarray) and np.isnan(X).any()):
            theta = np.column_stack([copy(model).densify().coef_, model.intercept_])
            model, X = PrecomputedDecision(model.classes_, theta), rows.decision
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return float(self.scorer(model, X, self.model.classes_[rows.codes]))
        except (ValueError, TypeError, AttributeError):
            return math.nan  # for example a scorer for other labels, or with further arguments


@dataclass(frozen=True, eq=False)
class ReportContext:
    """A fitted model with names for its features and classes, and its training and test rows."""

    model: SparseSVC | SparseSVCCV
    coef: NDArray[np.float64]
    """(1, n_features) or (n_classes, n_features), dense."""
    names: Sequence[Any]
    """The names of the features as given; only those shown are converted to text."""
    classes: tuple[str, ...]
    training: ScoredRows
    test: ScoredRows | None
    steps: tuple[str, ...]
    """The transformers before the model, in a pipeline."""
    data_name: str | None = None
    """The name of the data."""
    standardized: bool = False
    """Whether the pipeline gives the model standardised features."""
    search: Any = None
    """The fitted search (such as `GridSearchCV`) that the model comes from."""
    deviations: NDArray[np.float64] | None = None
    """The standard deviations of the features: coefficients times these are comparable."""
    trained_on: bool | None = True
    """Whether the model was trained on `training`; None if that is not known."""

    @property
    def effects(self) -> NDArray[np.float64]:
        """The coefficients, per standard deviation of the features where these are known."""
        return self.coef if self.deviations is None else self.coef * self.deviations

    @cached_property
    def largest(self) -> NDArray[np.intp]:
        """The features with a coefficient that is not zero, the largest effects first."""
        support = np.flatnonzero(self.coef.any(axis=0))
        return np.asarray(support[np.argsort(-feature_norms(self.effects)[support], kind="stable")])

    @property
    def asked(self) -> AskedScore | None:
        """The score that the search, or else the cross-validation, maximised, if one was given."""
        scoring, scorer = getattr(self.search, "scoring", None), getattr(self.search, "scorer_", None)
        if scoring is None:
            scoring = getattr(self.model, "scoring", None)
            scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
        if isinstance(scorer, dict):  # several scorers, of which `refit` names one
            scoring = self.search.refit
            scorer = scorer.get(scoring) if isinstance(scoring, str) else None
        if scorer is None:
            return None
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score asked for")
        return AskedScore(name, scorer, self.model)

    @property
    def evaluated(self) -> ScoredRows:
        """The rows of the scores: the test rows if there are any, else the training rows."""
        return self.training if self.test is None else self.test

    @property
    def origin(self) -> Origin:
        """The source of the coefficients, inferred from the model's attributes."""
        return origin_of(self.model)

    @property
    def binary(self) -> bool:
        """Whether there are two classes, which share one problem."""
        return len(self.classes) == 2

    @property
    def n_features(self) -> int:
        """The number of features of the model."""
        return int(self.coef.shape[1])

    @property
    def histories(self) -> list[History]:
        """The traces of the model's problems; empty unless it was fitted."""
        histories = getattr(self.model, "history_", [])
        histories = [histories] if isinstance(histories, History) else list(histories)
        return [history for history in histories if len(history)]


def make_context(
    model: Any,
    X: Any,
    y: Any,
    feature_names: Any,
    X_test: Any,
    y_test: Any,
    *,
    deviations: Any = None,
    trained_on: bool | None = True,
    data_name: str | None = None,
) -> ReportContext:
    """Check the input of a report."""
    if (X_test is None) != (y_test is None):
        raise MajorantError("X_test and y_test belong together: pass both or neither")
    last, before, search = _parts(model)
    try:
        check_is_fitted(last, "coef_")
    except NotFittedError:
        raise MajorantError("the model is not fitted: call its fit before report") from None
    names = _names(last, before, feature_names)
    steps = () if before is None else tuple(type(step).__name__ for _, step in before.steps)
    return ReportContext(
        model=last,
        coef=np.asarray(copy(last).densify().coef_, dtype=np.float64),
        names=names,
        classes=tuple(plain_text(label) for label in last.classes_.tolist()),
        training=_rows(last, before, X, y, "", "training" if trained_on else "given"),
        test=None if X_test is None else _rows(last, before, X_test, y_test, "_test", "test"),
        steps=steps,
        data_name=data_name or (X.name if isinstance(X, Source) and X.name not in UNNAMED else None),
        standardized=before is not None and _standardizes(before),
        search=search,
        deviations=_checked_deviations(
            getattr(last, "scale_", None) if deviations is None else deviations, last.n_features_in_
        ),
        trained_on=trained_on,
    )


def _parts(model: Any) -> tuple[Any, Pipeline | None, Any]:
    """The classifier, the steps before it in a pipeline, and the search that found it."""
    if isinstance(model, SparseSVC | SparseSVCCV):
        return model, None, None
    if isinstance(model, Pipeline):
        last, inner, search = _parts(model.steps[-1][1])
        steps = [*model.steps[:-1], *(() if inner is None else inner.steps)]
        return last, Pipeline(steps) if steps else None, search
    if hasattr(model, "best_estimator_"):
        last, before, _ = _parts(model.best_estimator_)
        return last, before, model
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        raise MajorantError(
            "the search has no best_estimator_, since it is not fitted or has refit=False: call its fit with "
            "refit=True before report"
        )
    raise MajorantError(
        "a report needs a fitted SparseSVC or SparseSVCCV, a pipeline that ends in one, or a search for the "
        f"best of these, not an object of type {type(model).__name__}"
    )


def _standardizes(before: Pipeline) -> bool:
    """Whether a StandardScaler scales the features; a selection after it keeps their scale."""
    steps = [step for _, step in before.steps if not hasattr(step, "get_support")]
    return bool(steps) and isinstance(steps[-1], StandardScaler) and bool(steps[-1].with_std)


def _names(last: Any, before: Pipeline | None, given: Any) -> Sequence[Any]:
    """The names of the model's features; in a pipeline, those that its transformers return."""
    n_features = last.n_features_in_
    if isinstance(given, str):
        raise MajorantError("feature_names must be a list of names, not one string")
    if before is not None:
        try:
            return list(
                before.get_feature_names_out(None if given is None else np.array(given, dtype=object))
            )
        except (AttributeError, ValueError, TypeError) as error:
            raise MajorantError(
                "the pipeline does not know the names of its features ("
                f"{_sentence(error)}): transform the rows first and report on its last step"
            ) from None
    if given is None:
        given = getattr(last, "feature_names_in_", None)
    if given is None:
        return [f"x{i}" for i in range(n_features)]
    names = list(given)
    if len(names) != n_features:
        raise MajorantError(f"there are {len(names)} feature_names for the model's {n_features} features")
    return names


def _checked_deviations(given: Any, n_features: int) -> NDArray[np.float64] | None:
    if given is None:
        return None
    deviations = np.asarray(given, dtype=np.float64)
    if deviations.shape != (n_features,) or not np.all(np.isfinite(deviations) & (deviations >= 0.0)):
        raise MajorantError(f"deviations must be {n_features} numbers, one for each feature, none below 0")
    return deviations


def _rows(last: Any, before: Pipeline | None, X: Any, y: Any, suffix: str, role: str) -> ScoredRows:
    index = X.index if hasattr(X, "iloc") else None  # only data frames of pandas have both
    row_names = None if index is None or type(index).__name__ == "RangeIndex" else list(index)
    try:
        if before is not None:
            X = before.transform(X)
        with warnings.catch_warnings():
            # The model was fitted on a data frame, and X is an array with the same columns.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            decision = np.asarray(_decision(last, X))
            X = _all_columns(last, X)
        labels = column_or_1d(y)
    except (ValueError, TypeError) as error:
        raise MajorantError(f"X{suffix} or y{suffix} does not suit the model: {_sentence(error)}") from None
    if len(labels) != len(decision):
        raise MajorantError(f"X{suffix} has {len(decision)} rows, but y{suffix} has {len(labels)} labels")
    codes = _codes(labels, last.classes_, f"y{suffix}")
    return ScoredRows(X, codes, decision, role, row_names)


def _decision(model: Any, X: Any) -> NDArray[Any]:
    """The decision function, for which features that the model does not use may be missing."""
    if isinstance(X, Source) and X.n_features == model.n_features_in_:
        return np.concatenate([_decision(model, block.X) for block in read_blocks(X)])
    dense = isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == model.n_features_in_
    if dense and X.dtype.kind == "f" and np.isnan(X).any():
        used = model.support_
        rows = check_array(X[:, used]) if len(used) else X[:, used]
        decision: NDArray[Any] = model._scores(rows, used)
        return decision
    return np.asarray(model.decision_function(X))


def _all_columns(model: Any, X: Any) -> Any:
    """A data frame with all columns of the model, nan where a column is not there."""
    known, there = getattr(model, "feature_names_in_", None), getattr(X, "columns", None)
    if known is None or there is None or list(there) == list(known):
        return X
    place = {name: j for j, name in enumerate(known)}
    whole = np.full((len(X), len(known)), np.nan)
    whole[:, [place[name] for name in there]] = np.asarray(X, dtype=np.float64)
    return whole


def _codes(labels: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.intp]:
    # By Python's equality, for which 1 and 1.0 are the same label, but 1 and "1" are not.
    numbers = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([numbers.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if np.any(codes < 0):
        unknown = labels[codes < 0].tolist()[0]
        raise MajorantError(
            f"{name} has the label {plain_text(repr(unknown))}, which is not among the model's "
            f"{len(classes)} classes"
        )
    return codes


def _sentence(error: Exception) -> str:
    """The first sentence of an error message of scikit-learn."""
    return str(error).split("\n")[0].split(". ")[0].rstrip(".:")
