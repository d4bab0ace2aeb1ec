"""`majorant cv DATA [MODEL]`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from majorant.cli.arguments import (
    DataArgument,
    DataOptions,
    Memory,
    ModelOptions,
    ModelToWrite,
    NFeatures,
    Points,
    PreprocessingOptions,
    Ratio,
    refuse_memory,
)
from majorant.cli.choices import one_of
from majorant.cli.fitting import PenaltyOptions
from majorant.cli.grouped import grouped
from majorant.cli.help import MODEL
from majorant.cli.output import Output, OutputOptions
from majorant.cli.scoring import Scoring, check_score
from majorant.cli.training import Job
from majorant.cli.writing import checked_outputs


@grouped
def cv(
    data: DataArgument,
    model: ModelToWrite = None,
    *,
    folds: Annotated[
        int, typer.Option("-v", "--folds", min=2, help="How many folds.", rich_help_panel=MODEL)
    ] = 5,
    points: Points = 100,
    ratio: Ratio = 1e-3,
    selection: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="best, or 1se: the strongest (the fewest features) within a standard error of it.",
            callback=one_of(("best", "1se")),
            rich_help_panel=MODEL,
        ),
    ] = "best",
    scoring: Scoring = "accuracy",
    n_features: NFeatures = None,
    max_features: Annotated[
        int | None,
        typer.Option(min=1, help="The largest number of features of the model.", rich_help_panel=MODEL),
    ] = None,
    fitting: PenaltyOptions,
    memory: Memory = None,
    writing: ModelOptions,
    reading: DataOptions,
    preparing: PreprocessingOptions,
    answering: OutputOptions,
) -> None:
    """Train with the best strength, or the best number of features, by cross-validation.

    $ majorant cv a1a chosen.model --penalty l1 --selection 1se
    $ majorant cv a1a --n-features 30 --scoring roc_auc --folds 10
    """
    output = Output(answering)
    refuse_memory(n_features, memory)
    fitting.check()
    target = checked_outputs(data, model, writing)
    from majorant import SparseSVCCV
    from majorant.estimators.splitter import FoldsByPlace

    parameters: dict[str, Any] = {
        "lambdas": points,
        "ratio": ratio,
        "selection": selection,
        "scoring": scoring,
        "n_features": n_features,
        "max_features": max_features,
        "cv": FoldsByPlace(folds, fitting.seed) if memory is None else folds,  # the same rows in each
        "verbose": int(answering.talkative),
    }
    fitting.check_parameters(SparseSVCCV, parameters)
    job = Job.prepare(data, target, writing, reading, preparing, output, memory=memory)
    check_score(scoring, job.data.labels)
    estimator = SparseSVCCV(**parameters, **fitting.parameters(job.data.labels))
    interrupted = job.fit(estimator, output)
    _say(estimator, scoring, output)
    job.finish(estimator, output, interrupted=interrupted)


def _say(estimator: Any, scoring: str, output: Output) -> None:
    score = f"Cross-validated {scoring} {estimator.best_score_:.4g}"
    if estimator.n_features is not None:
        best, within = estimator.n_features_best_, estimator.n_features_1se_
        output.answer(
            f"{score} with {estimator.n_features_} features (best: {best}, one standard error: {within})"
        )
        choice = {
            "n_features_chosen": estimator.n_features_,
            "n_features_best": best,
            "n_features_1se": within,
        }
    else:
        best, within = estimator.lam_best_, estimator.lam_1se_
        output.answer(
            f"{score} at lam {estimator.lam_:.4g} (best: {best:.4g}, one standard error: {within:.4g})"
        )
        choice = {"lam_best": best, "lam_1se": within}
    output.facts |= {"score": estimator.best_score_, **choice, "cv_results": estimator.cv_results_}
