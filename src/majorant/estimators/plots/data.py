"""The numbers that the plots and the charts of a report show, computed once for both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from majorant.estimators.coef_norms import feature_norms, largest_on_path
from majorant.status import History, Matrix, Vector

if TYPE_CHECKING:
    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.path import Path

# Zero has no logarithm; certificates below the machine precision are rounding errors.
SMALLEST = float(np.finfo(float).eps)


def certificate_errors(history: History) -> Vector:
    """The gap or the stationarity of every iterate, at least the machine precision."""
    return np.array([max(record.certificate.error, SMALLEST) for record in history], dtype=np.float64)


def margins_of(decision: NDArray[Any], codes: NDArray[np.intp]) -> Vector:
    """The margin of each row: y f(x), or f of the row's class minus the largest other f."""
    if decision.ndim == 1:
        return np.asarray(np.where(codes == 1, decision, -decision), dtype=np.float64)
    scores, rows = np.array(decision, dtype=np.float64), np.arange(len(codes))
    own = scores[rows, codes]
    scores[rows, codes] = -np.inf
    return np.asarray(own - scores.max(axis=1))


def bin_edges(margins: Vector, max_bins: int, min_width: float = 0.0) -> Vector:
    """Bins of a width by Freedman and Diaconis' rule, about `max_bins` at most.

    0 is an edge, and 1 as well unless the bins are wider than that: no bar is on both sides of either.
    """
    low, high = np.quantile(margins, [0.25, 0.75])
    span = max(float(np.ptp(margins)), 1e-9 * float(np.abs(margins).max()), 1e-9)
    width = max(2.0 * float(high - low) / np.cbrt(len(margins)), span / max_bins, min_width)
    if width <= 1.0:
        width = 1.0 / math.floor(1.0 / width)
    first, last = math.floor(float(margins.min()) / width), math.floor(float(margins.max()) / width) + 1
    return np.asarray(width * np.arange(first, last + 1))


class PathLines(NamedTuple):
    """The coefficients along a path."""

    at: Vector
    """The strengths, falling; or the numbers of features, rising."""
    by_size: bool
    """Whether `at` are numbers of features."""
    features: NDArray[np.intp]
    """The features drawn, the largest first."""
    sizes: Matrix
    """(n_models, n_features): coefficients, or of several problems their Euclidean norms."""
    starts: NDArray[np.intp]
    """Where each line begins, a model before its feature enters: earlier, all lines would overlap at 0."""
    n_selected: int
    """The number of features with a coefficient on the path that is not zero."""
    one_problem: bool


def path_lines(
    path: Path, max_lines: int, units: Vector | float = 1.0, max_points: int = 0
) -> PathLines | None:
    """The largest coefficients along a path; None for less than two models, or strengths above 0.

    Parameters
    ----------
    path : Path
    max_lines : int
        The number of features, the largest first.
    units : array (n_features,), optional
        Factors that make coefficients of different features comparable.
    max_points : int
        The number of models, evenly chosen; 0: all.
    """
    by_size = path.by_size
    models = [model for model in path.models if by_size or model.lam_ > 0.0]  # 0 has no logarithm
    if len(models) < 2:
        return None
    models = [models[i] for i in subsample(len(models), max_points or len(models))]
    features, sizes, n_selected = largest_on_path(models, max_lines, units)
    starts = np.maximum((sizes != 0.0).argmax(axis=0) - 1, 0)
    at = np.array([model.n_features if by_size else model.lam_ for model in models], dtype=np.float64)
    return PathLines(at, by_size, features, sizes, starts, n_selected, models[0].coef_.shape[0] == 1)


class CVScores(NamedTuple):
    """The scores of a cross-validation against the strength λ, or the number of features."""

    at: Vector
    """The strengths, falling; or the numbers of features, rising."""
    by_size: bool
    """Whether `at` are numbers of features."""
    mean: Vector
    standard_error: Vector
    """Zero with a single fold."""
    n_features: Vector
    """The mean number of features."""
    n_splits: int
    score: str


def cv_scores(model: SparseSVCCV, max_points: int = 0) -> CVScores | None:
    """The scores of a fitted model; None for less than two numbers of features, or strengths above 0."""
    results, by_size = model.cv_results_, model.n_features is not None
    grid = np.asarray(results["n_features" if by_size else "lam"], dtype=np.float64)
    at = np.flatnonzero(by_size | (grid > 0.0))  # 0 has no logarithm
    if len(at) < 2:
        return None
    at = at[subsample(len(at), max_points or len(at))]
    n_splits = sum(name.startswith("split") for name in results)
    error = results["std_test_score"][at] / math.sqrt(max(n_splits - 1, 1)) * (n_splits > 1)
    scoring = model.scoring
    score = "Accuracy" if scoring is None else scoring if isinstance(scoring, str) else "Score"
    mean, n_features = results["mean_test_score"][at], results["mean_n_features"][at]
    return CVScores(grid[at], by_size, mean, error, n_features, n_splits, score)


def marked(model: SparseSVCCV) -> tuple[float, float]:
    """Where the best mean score is, and the choice within one standard error of it."""
    if model.n_features is not None:
        return float(model.n_features_best_), float(model.n_features_1se_)
    return model.lam_best_, model.lam_1se_


def most_frequent(model: SparseSVCCV, sizes: Any, top: int) -> NDArray[np.intp]:
    """The features that most folds select; of equally frequent features the largest first."""
    frequency = model.selection_frequency_
    selected = np.flatnonzero(frequency)
    order = np.lexsort((-feature_norms(sizes)[selected], -frequency[selected]))
    return np.asarray(selected[order][: max(top, 0)])


def subsample(count: int, most: int) -> NDArray[np.intp]:
    """The indices of the first, the last and evenly chosen points in between, `most` in all."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))
