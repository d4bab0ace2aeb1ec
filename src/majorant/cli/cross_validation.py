"""`majorant train -v FOLDS`, as LIBLINEAR has it: the accuracy of models on rows that they have not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from majorant.cli.models import Model
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


def cross_validate(estimator: Any, data: CommandData, n_folds: int, output: Output) -> None:
    """Train as many models as there are folds, those of `majorant cv`; each predicts the rows of its fold."""
    from dataclasses import replace

    from sklearn.base import clone

    from majorant.estimators.sources import rows_by_block_and_class
    from majorant.estimators.splitter import fold_seed, stratified_folds

    classes, right = np.array(data.labels), 0
    with output.relayed_warnings(), output.waiting(f"{n_folds} folds"):
        counts = rows_by_block_and_class(data.tallies, classes)
        folds = stratified_folds(n_folds, fold_seed(estimator.random_state), counts)
        for fold in range(n_folds):
            source = WithoutFold(data.blocks, folds, classes, fold)
            X, y, weight = replace(data, blocks=source).training_rows
            model = Model(clone(estimator).fit(X, y, weight))
            for i, block in enumerate(data):
                assert block.y is not None
                right += int(np.sum(source.held_out(i, block.y) & (model.predict(block.X) == block.y)))
    accuracy = right / data.n_rows
    output.answer(f"Cross Validation Accuracy = {100.0 * accuracy:g}%")
    output.finish(cross_validation_accuracy=accuracy, folds=n_folds)
