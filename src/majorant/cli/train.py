"""`majorant train DATA [MODEL]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Memory, ModelOptions, ModelToWrite
from majorant.cli.fitting import PenaltyOptions, strength
from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import labels_of, read_data
from majorant.cli.streaming import prepare, refuse_with_memory
from majorant.cli.training import Scales

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint
    from majorant.datasets import Data


@grouped
def train(
    data: DataArgument,
    model: ModelToWrite = None,
    *,
    lam: Annotated[
        float | None,
        typer.Option(
            help="Strength of the penalty: larger, fewer features.  [default: 1]", show_default=False
        ),
    ] = None,
    cost: Annotated[
        float | None, typer.Option("-c", metavar="C", help="LIBLINEAR: C, which is 1/lam.")
    ] = None,
    max_features: Annotated[
        int | None, typer.Option(help="No more features than this: a stronger penalty, if need be.")
    ] = None,
    fitting: PenaltyOptions,
    folds: Annotated[
        int | None,
        typer.Option("-v", min=2, metavar="FOLDS", help="LIBLINEAR: only the accuracy by cross-validation."),
    ] = None,
    memory: Memory = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a checkpoint every minute; resume if FILE exists.",
            show_default=False,
        ),
    ] = None,
    writing: ModelOptions,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Train a model on a data file and write it to a file."""
    from majorant import SparseSVC

    output = Output(answering)
    parameters: dict[str, Any] = {"lam": strength(lam, cost), "max_features": max_features}
    fitting.check(SparseSVC, parameters)
    if folds is not None:
        refuse_with_memory({"-v": memory is not None})
        if model is not None or writing != ModelOptions():
            raise typer.BadParameter("only measures, so leave out the files to write", param_hint="-v")
        rows = read_data(data, reading, output)
        estimator = SparseSVC(**parameters, **fitting.parameters(labels_of(rows)))
        _cross_validate(estimator, rows, folds, output, standardize=fitting.standardize)
        return
    saving = _checkpoint(checkpoint)
    job = prepare(data, model, writing, reading, output, standardize=fitting.standardize, memory=memory)
    estimator = SparseSVC(**parameters, **fitting.parameters(job.labels if fitting.class_weight else []))
    interrupted = job.fit(estimator, output, saving)
    job.finish(estimator, output, interrupted=interrupted)
    if saving is not None:
        saving.remove()


def _checkpoint(path: Path | None) -> Checkpoint | None:
    """What saves the way of a fit."""
    if path is None:
        return None
    from majorant.callbacks import Checkpoint

    return Checkpoint(path, resume=True)


def _cross_validate(estimator: Any, data: Data, folds: int, output: Output, *, standardize: bool) -> None:
    """LIBLINEAR's -v: the accuracy over all rows, each predicted by a model that has not seen it."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    X = Scales(data.X, wanted=standardize).scaled(data.X)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=estimator.random_state)
    with output.relayed_warnings(), output.waiting(f"{folds} folds"):
        accuracy = float(np.mean(cross_val_predict(estimator, X, data.y, cv=splitter) == data.y))
    output.answer(f"Cross Validation Accuracy = {100.0 * accuracy:g}%")
    output.finish(cross_validation_accuracy=accuracy, folds=folds)
