"""`majorant cv DATA [MODEL]`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from majorant.cli.fitting import PenaltyOptions, Scales
from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.path import Points, Ratio
from majorant.cli.reading import DataArgument, DataOptions, read_data
from majorant.cli.running import fit
from majorant.cli.train import (
    Force,
    ModelArgument,
    Report,
    Test,
    check_outputs,
    finish_model,
    sorted_labels,
)


@grouped
def cv(
    data: DataArgument,
    model: ModelArgument = None,
    *,
    folds: Annotated[int, typer.Option("-v", "--folds", min=2, help="How many folds.")] = 5,
    points: Points = 100,
    ratio: Ratio = 1e-3,
    selection: Annotated[
        str, typer.Option(metavar="RULE", help="best, or 1se: the strongest within a standard error of it.")
    ] = "best",
    scoring: Annotated[str, typer.Option(metavar="SCORE", help="Any score of scikit-learn.")] = "accuracy",
    fitting: PenaltyOptions,
    test: Test = None,
    report: Report = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Train with the best strength by cross-validation."""
    from sklearn.model_selection import StratifiedKFold

    from majorant import SparseSVCCV

    output = Output(answering)
    fitting.parameters([])
    target = check_outputs(data, model, report, force=force)
    rows = read_data(data, reading, output)
    estimator = SparseSVCCV(
        lambdas=points, ratio=ratio, selection=selection, scoring=scoring,
        cv=StratifiedKFold(folds, shuffle=True, random_state=fitting.seed),
        verbose=int(answering.talkative), **fitting.parameters(sorted_labels(rows)),
    )  # fmt: skip
    scales = Scales(rows.X, wanted=fitting.standardize)
    interrupted = fit(estimator, rows, scales, output)
    output.answer(
        f"Cross-validated {scoring} {estimator.best_score_:.4g} at lam {estimator.lam_:.4g} "
        f"(best: {estimator.lam_best_:.4g}, one standard error: {estimator.lam_1se_:.4g})"
    )
    chosen: dict[str, Any] = {
        "score": estimator.best_score_,
        "lam_best": estimator.lam_best_,
        "lam_1se": estimator.lam_1se_,
        "cv_results": estimator.cv_results_,
    }
    output.facts |= chosen
    finish_model(
        estimator, rows, target, output, test=test, report=report, force=force, reading=reading,
        scales=scales, interrupted=interrupted,
    )  # fmt: skip
