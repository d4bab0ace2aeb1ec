"""`majorant train -v FOLDS`, as LIBLINEAR has it: the scores of models on rows that they have not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from majorant.cli.models import Model
from majorant.cli.scoring import Evaluation, check_score, show_metrics
from majorant.rows.folds import Folds
from majorant.rows.sources import RawBlock, Source, Tally, TransformedSource

if TYPE_CHECKING:
    from majorant.cli.data import CommandData
    from majorant.cli.output import Output


class WithoutFold(TransformedSource):
    """The blocks of a source, in which the rows of one fold weigh nothing."""

    def __init__(self, source: Source, folds: Folds, classes: Any, fold: int) -> None:
        super().__init__(source, transform=lambda X: X)
        self.folds, self.classes, self.fold = folds, classes, fold

    def held_out(self, i: int, y: Any) -> Any:
        """Which rows of block i are in the fold."""
        return self.folds.of_block(i, np.searchsorted(self.classes, y)) == self.fold

    def load(self, i: int) -> RawBlock:
        X, y, _ = self.source.load(i)
        return RawBlock(X, y, 1.0 - self.held_out(i, y))

    def tally(self, i: int) -> Tally:
        return Source.tally(self, i)


@dataclass(frozen=True)
class HeldOut:
    """What models say of rows that they have not seen."""

    y: NDArray[Any]
    """The labels of all rows, fold by fold."""
    decision: NDArray[Any]
    """The values of the decision function of the model without the fold of the row."""
    scores: list[float]
    """The score of each fold."""


def predict_held_out(estimator: Any, data: CommandData, n_folds: int, scoring: str = "accuracy") -> HeldOut:
    """Train as many models as there are folds, those of `majorant cv`; each predicts the rows of its fold."""
    from sklearn.base import clone
    from sklearn.metrics import get_scorer

    from majorant.estimators.folds import PrecomputedDecision
    from majorant.estimators.sources import rows_by_block_and_class
    from majorant.estimators.splitter import fold_seed, stratified_folds

    classes, scorer = np.array(data.labels), get_scorer(scoring)
    counts = rows_by_block_and_class(data.tallies, classes)
    folds = stratified_folds(n_folds, fold_seed(estimator.random_state), counts)
    labels, decisions, scores = [], [], []
    for fold in range(n_folds):
        source = WithoutFold(data.blocks, folds, classes, fold)
        X, y, weight = replace(data, blocks=source).training_rows
        model = Model(clone(estimator).fit(X, y, weight))
        parts = []
        for i, block in enumerate(data):
            held_out = source.held_out(i, block.y)
            if held_out.any():
                assert block.y is not None
                parts.append((block.y[held_out], model.scores(block.X[held_out])))
        true, decision = (np.concatenate(each) for each in zip(*parts, strict=True))
        theta = model.estimator._coefficients()
        scores.append(float(scorer(PrecomputedDecision(classes, theta), decision, true)))
        labels.append(true)
        decisions.append(decision)
    return HeldOut(np.concatenate(labels), np.concatenate(decisions), scores)


def cross_validate(estimator: Any, data: CommandData, n_folds: int, scoring: str, output: Output) -> None:
    """Say how good models are on rows that they have not seen."""
    check_score(scoring, data.labels)
    with output.relayed_warnings(), output.waiting(f"{n_folds} folds"):
        held_out = predict_held_out(estimator, data, n_folds, scoring)
    evaluation = Evaluation(data.labels)
    evaluation.add(held_out.y, held_out.decision)
    metrics, score = evaluation.metrics(), float(np.mean(held_out.scores))
    if scoring == "accuracy":  # of all rows, as LIBLINEAR has it
        output.answer(f"Cross Validation Accuracy = {100.0 * metrics['accuracy']:g}%")
    else:
        output.answer(f"Cross Validation {scoring} = {score:.6g} (mean of {n_folds} folds)")
    show_metrics(output, {"held-out rows": metrics})
    output.finish(
        cross_validation_accuracy=metrics["accuracy"], cross_validation_metrics=metrics, folds=n_folds,
        scoring=scoring, cross_validation_score=score, fold_scores=held_out.scores,
    )  # fmt: skip
