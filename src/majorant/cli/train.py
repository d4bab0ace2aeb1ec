"""`majorant train DATA [MODEL]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Memory, ModelOptions, ModelToWrite
from majorant.cli.data import open_data
from majorant.cli.fitting import PenaltyOptions, strength
from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.standardize import Standardizer
from majorant.cli.training import Job

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint


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
        if model is not None or writing != ModelOptions():
            raise typer.BadParameter("only measures, so leave out the files to write", param_hint="-v")
        from majorant.cli.cross_validation import cross_validate

        rows = open_data(data, reading, output, memory=memory)
        estimator = SparseSVC(**parameters, **fitting.parameters(rows.labels))
        rows = Standardizer(rows, wanted=fitting.standardize).scaled(rows)
        cross_validate(estimator, rows, folds, output)
        return
    saving = _checkpoint(checkpoint)
    job = Job.prepare(data, model, writing, reading, output, standardize=fitting.standardize, memory=memory)
    estimator = SparseSVC(**parameters, **fitting.parameters(job.data.labels))
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
