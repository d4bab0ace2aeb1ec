"""The folds of a cross-validation: in each a path, scored on the rows that the fold leaves out.

In memory the rows of a fold are copied. Elsewhere they stay where they are, and a fold is a view of all rows
in which those that it leaves out weigh nothing (`rows/folds.py`). Folds are then trained at the same time, so
that one pass over the rows serves all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from majorant.callbacks import ModelsProgress
from majorant.estimators.fit_problem import MATRICES, FitProblem
from majorant.estimators.linear import LinearClassifier
from majorant.estimators.path import fit_path
from majorant.estimators.shared_passes import run_sharing_passes
from majorant.estimators.sizes import place_of
from majorant.estimators.sources import FoldSpec
from majorant.estimators.svc import SparseSVC
from majorant.rows.folds import held_out_counts, held_out_scores, without_fold
from majorant.rows.partitioned import BlockStore, PartitionedRows, compute_stats_at_zero
from majorant.status import Matrix, Vector

# Entries of the coefficients that go along with one pass; and scores that come back from one.
COEFFICIENTS = 4_000_000
SCORES = 4_000_000

# What can be told from how many rows of each class are taken for each.
COUNTED = (None, "accuracy", "balanced_accuracy")


class Fold(NamedTuple):
    """What is left of a fold."""

    scores: Vector
    """For every strength, or number of features."""
    supports: list[NDArray[np.int32]]
    """The indices of the features, for every one of these."""
    failed: list[SparseSVC]
    """The models that did not converge."""


def fold_in_memory(
    template: SparseSVC,
    X: Any,
    y: Any,
    sample_weight: Vector | None,
    split: tuple[NDArray[np.intp], NDArray[np.intp]],
    grid: NDArray[Any],
    scorer: Any,
    score_params: Mapping[str, Any],
    progress: ModelsProgress,
) -> Fold:
    """One fold of rows that are in memory."""
    train, test = split
    weights = None if sample_weight is None else sample_weight[train]
    fit_problem = FitProblem(clone(template), _safe_indexing(X, train), _safe_indexing(y, train), weights)
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    extra = {
        name: _safe_indexing(value, test) if value is not None else None
        for name, value in score_params.items()
    }
    scores, supports, failed = [], [], []
    for model in fit_path(fit_problem, grid):
        if not model.converged_:
            failed.append(model)
        scores.append(scorer(copy(model).densify(), X_test, y_test, **extra))
        # Indices, not coefficients: what is kept of a strength is as small as its model.
        supports.append(model.support_.astype(np.int32))
        progress.advance(f"{place_of(model)}  score {scores[-1]:.4g}")
    return Fold(np.array(scores, dtype=np.float64), supports, failed)


# Elsewhere -------------------------------------------------------------------------------------------------


def folds_elsewhere(
    fit_problem: FitProblem,
    cut: FoldSpec,
    strengths: Vector,
    scoring: Any,
    scorer: Any,
    progress: ModelsProgress,
) -> list[Fold]:
    """All folds of rows that are not in memory, as many at the same time as their answers leave room for."""
    whole = fit_problem.unscaled_rows[0]
    assert isinstance(whole, PartitionedRows)
    stochastic = fit_problem.solver_for(fit_problem.objectives(fit_problem.potential)[0]).stochastic
    room = MATRICES // (len(fit_problem.rows) * (fit_problem.n_features + 1) ** 2)
    at_once = 1 if stochastic else max(1, min(cut.number, room))
    fit_problems = [fit_problem.on(parts) for parts in _rows_by_fold(fit_problem, whole, cut, at_once)]
    fold_scorer = _FoldScorer(whole.store, fit_problem, scoring, scorer)
    waiting = deque(range(cut.number))
    done: dict[int, Fold] = {}

    def work() -> None:
        while True:
            try:
                fold = waiting.popleft()
            except IndexError:
                return
            done[fold] = _fold_elsewhere(fit_problems[fold], fold, strengths, fold_scorer, progress)

    if at_once == 1:
        work()
    else:
        run_sharing_passes(whole.store, [work] * at_once)
    return [done[fold] for fold in range(cut.number)]


def _fold_elsewhere(
    fit_problem: FitProblem, fold: int, strengths: Vector, fold_scorer: _FoldScorer, progress: ModelsProgress
) -> Fold:
    models, supports, failed = [], [], []
    for model in fit_path(fit_problem, strengths):
        if not model.converged_:
            failed.append(model)
        models.append(sp.csr_array(model._coefficients()))
        supports.append(model.support_.astype(np.int32))
        progress.advance(f"lam {model.lam_:.3g}  {len(model.support_)} features")
    return Fold(fold_scorer.scores(fold, models), supports, failed)


def _rows_by_fold(
    fit_problem: FitProblem, whole: PartitionedRows, cut: FoldSpec, at_once: int
) -> list[list[PartitionedRows]]:
    """For each fold the rows that are not in it, as every problem labels them, with their loss at zero."""
    folds = range(cut.number)
    sizes = whole.n_samples - cut.folds.sizes(cut.counts)
    parts = _with_stats_at_zero(
        whole, [partial(without_fold, k, None) for k in folds], sizes, fit_problem, at_once
    )
    weights = np.array([_class_weights(rows) for rows in parts])
    if not np.all(weights > 0.0):
        fold, code = np.argwhere(weights <= 0.0)[0]
        (label,) = fit_problem.classes[code : code + 1].tolist()
        raise ValueError(
            f"Without fold {fold}, class {label!r} has no sample with a positive weight: take fewer folds."
        )
    if fit_problem.estimator.class_weight != "balanced":
        return parts
    # In every fold the classes that are left weigh the same.
    assert cut.factors is not None
    weights /= cut.factors
    factors = weights.sum(axis=1, keepdims=True) / (weights.shape[1] * weights) / cut.factors
    views = [partial(without_fold, k, factors[k]) for k in folds]
    return _with_stats_at_zero(whole, views, sizes, fit_problem, at_once)


def _with_stats_at_zero(
    whole: PartitionedRows,
    views: Sequence[Any],
    sizes: NDArray[np.int64],
    fit_problem: FitProblem,
    at_once: int,
) -> list[list[PartitionedRows]]:
    n_classes = len(fit_problem.classes)
    pairs = zip(views, sizes.tolist(), strict=True)
    parts = [whole.reweighted(view, size).by_problem(n_classes) for view, size in pairs]
    for start in range(0, len(parts), at_once):
        compute_stats_at_zero([rows for fold in parts[start : start + at_once] for rows in fold])
    return parts


def _class_weights(parts: Sequence[PartitionedRows]) -> list[float]:
    """What each class weighs: at θ = 0 every row loses its weight."""
    if len(parts) == 1:
        return [parts[0].stats_at_zero.negative.value, parts[0].stats_at_zero.positive.value]
    return [rows.stats_at_zero.positive.value for rows in parts]


class _FoldScorer:
    """Scores the models of a fold on the rows that it leaves out, many of them in one pass."""

    def __init__(self, store: BlockStore, fit_problem: FitProblem, scoring: Any, scorer: Any) -> None:
        self.store, self.classes, self.scorer = store, fit_problem.classes, scorer
        self.counted = scoring in COUNTED
        self.n_samples, self.n_features = fit_problem.rows[0].n_samples, fit_problem.n_features

    def scores(self, fold: int, models: Sequence[Any]) -> Vector:
        """The score of every model, given as θ, a row per class, in a sparse array."""
        columns = models[0].shape[0]
        batch = COEFFICIENTS // (columns * models[0].shape[1])
        if not self.counted:
            batch = min(batch, SCORES // (columns * self.n_samples))
        batches = [models[i : i + max(1, batch)] for i in range(0, len(models), max(1, batch))]
        of = self._by_counts if self.counted else self._by_scores
        found = [score for part in batches for score in of(fold, [theta.toarray() for theta in part])]
        return np.array(found, dtype=np.float64)

    def _by_counts(self, fold: int, models: Sequence[Matrix]) -> list[float]:
        C = len(self.classes)
        counts = reduce(add, self.store.map_blocks(partial(held_out_counts, fold, models, C)))
        # One row for every pair of a class and what is taken for it, which weighs as much as there are such.
        true, taken = np.divmod(np.arange(C * C), C)
        answers = np.eye(C)[taken] if C > 2 else 2.0 * taken - 1.0
        scores = []
        for theta, pairs in zip(models, counts.reshape(len(models), -1), strict=True):
            some = pairs > 0
            decision, y = PrecomputedDecision(self.classes, theta), self.classes[true[some]]
            scores.append(self.scorer(decision, answers[some], y, sample_weight=pairs[some]))
        return scores

    def _by_scores(self, fold: int, models: Sequence[Matrix]) -> list[float]:
        question = partial(held_out_scores, fold, models, len(self.classes))
        codes, blocks = zip(*self.store.map_blocks(question), strict=True)
        y, values = self.classes[np.concatenate(codes)], np.concatenate(blocks, axis=1)
        return [
            self.scorer(
                PrecomputedDecision(self.classes, theta), value[:, 0] if len(theta) == 1 else value, y
            )
            for theta, value in zip(models, values, strict=True)
        ]


class PrecomputedDecision(LinearClassifier, BaseEstimator):  # type: ignore[misc]
    """A model whose decisions on some rows are known: to a scorer, these are the rows.

    Parameters
    ----------
    classes : array (n_classes,)
    theta : array (n_rows, n_features + 1)
        Coefficients, the intercept last, of one row for two classes.
    """

    def __init__(self, classes: NDArray[Any], theta: Matrix) -> None:
        self.classes, self.theta = classes, theta
        self.classes_, self.coef_, self.intercept_ = classes, theta[:, :-1], theta[:, -1]
        self.support_ = np.flatnonzero(self.coef_.any(axis=0))
        self.n_features_in_ = self.coef_.shape[1]

    def decision_function(self, X: NDArray[Any]) -> NDArray[Any]:
        """The decisions themselves."""
        return X
