"""`majorant train DATA [MODEL]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import (
    DataArgument,
    DataOptions,
    Memory,
    ModelOptions,
    ModelToWrite,
    NFeatures,
    PreprocessingOptions,
    refuse_memory,
)
from majorant.cli.data import open_data
from majorant.cli.fitting import PenaltyOptions, strength
from majorant.cli.grouped import grouped
from majorant.cli.help import LARGE_DATA, LIBLINEAR, MODEL
from majorant.cli.output import Output, OutputOptions
from majorant.cli.scoring import Scoring
from majorant.cli.training import Job
from majorant.cli.writing import check_output, checked_outputs

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
            min=0.0,
            help="Strength of the penalty: larger, fewer features.  [default: 1]",
            show_default=False,
            rich_help_panel=MODEL,
        ),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option("-c", metavar="C", help="C, which is 1/lam.", rich_help_panel=LIBLINEAR),
    ] = None,
    n_features: NFeatures = None,
    max_features: Annotated[
        int | None,
        typer.Option(
            min=1, help="At most this many features: a stronger penalty, if necessary.", rich_help_panel=MODEL
        ),
    ] = None,
    fitting: PenaltyOptions,
    folds: Annotated[
        int | None,
        typer.Option(
            "-v",
            min=2,
            metavar="FOLDS",
            help="Only the score by cross-validation.",
            rich_help_panel=LIBLINEAR,
        ),
    ] = None,
    scoring: Scoring = "accuracy",
    memory: Memory = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a checkpoint every minute; resume if FILE exists.",
            show_default=False,
            rich_help_panel=LARGE_DATA,
        ),
    ] = None,
    writing: ModelOptions,
    reading: DataOptions,
    preparing: PreprocessingOptions,
    answering: OutputOptions,
) -> None:
    """Train a model on a data file and write it to a file.

    $ majorant train a1a --penalty l1 --lam 3 --test a1a.t --report a1a.html
    $ majorant train patients.csv --label outcome --drop id --standardize
    """
    output = Output(answering)
    parameters: dict[str, Any] = {
        "lam": strength(lam, cost), "n_features": n_features, "max_features": max_features,
    }  # fmt: skip
    refuse_memory(n_features, memory)
    fitting.check()
    if folds is not None:
        if model is not None or writing != ModelOptions():
            raise typer.BadParameter("only measures, so leave out the files to write", param_hint="-v")
        _cross_validate(data, parameters, folds, scoring, fitting, memory, reading, preparing, output)
        return
    if scoring != "accuracy":
        raise typer.BadParameter("is for cross-validation: add -v FOLDS", param_hint="--scoring")
    target = checked_outputs(data, model, writing)
    if checkpoint is not None:
        check_output(checkpoint, data, target, force=True)
    from majorant import SparseSVC

    fitting.check_parameters(SparseSVC, parameters)
    saving = _checkpoint(checkpoint)
    job = Job.prepare(data, target, writing, reading, preparing, output, memory=memory)
    estimator = SparseSVC(**parameters, **fitting.parameters(job.data.labels))
    interrupted = job.fit(estimator, output, saving)
    job.finish(estimator, output, interrupted=interrupted)
    if saving is not None:
        saving.remove()


def _cross_validate(
    data: str,
    parameters: dict[str, Any],
    folds: int,
    scoring: str,
    fitting: PenaltyOptions,
    memory: str | None,
    reading: DataOptions,
    preparing: PreprocessingOptions,
    output: Output,
) -> None:
    """Measure how good models with these parameters are."""
    from majorant import SparseSVC
    from majorant.cli.cross_validation import cross_validate

    fitting.check_parameters(SparseSVC, parameters)
    rows = open_data(data, reading, output, memory=memory, preprocessing=preparing.preprocessing(reading))
    estimator = SparseSVC(**parameters, **fitting.parameters(rows.labels))
    cross_validate(estimator, rows, folds, scoring, output)


def _checkpoint(path: Path | None) -> Checkpoint | None:
    """What saves the way of a fit."""
    if path is None:
        return None
    from majorant.callbacks import Checkpoint

    return Checkpoint(path, resume=True)
