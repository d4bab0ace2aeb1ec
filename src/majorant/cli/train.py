"""`majorant train DATA [MODEL]`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.fitting import PenaltyOptions, Scales, strength
from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions, command_line, command_words
from majorant.cli.reading import (
    DataArgument,
    DataOptions,
    matching,
    names_of,
    predicted,
    read_data,
)
from majorant.cli.running import fit

if TYPE_CHECKING:
    from majorant.callbacks import Checkpoint
    from majorant.datasets import Data

ModelArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL", help="The file to write.  [default: DATA.model, here]", show_default=False
    ),
]
# The models of the path that a report shows.
PICTURED = 30

Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="For data that do not fit into memory: read them block by block, and keep no more than this, "
        "e.g. 2GB.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("-f", "--force", help="Replace files that exist.")]
Test = Annotated[str | None, typer.Option("--test", metavar="DATA", help="Data to test the model on.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report of the model.")
]


@grouped
def train(
    data: DataArgument,
    model: ModelArgument = None,
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
        typer.Option("-v", metavar="FOLDS", help="LIBLINEAR: only the accuracy by cross-validation."),
    ] = None,
    test: Test = None,
    report: Report = None,
    memory: Memory = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save the way there every minute; if it was, go on from it.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Train a model on a data file and write it to a file."""
    from majorant import SparseSVC

    output = Output(answering)
    penalty, lam = fitting.penalty_name, strength(lam, cost)
    target = None if folds else check_outputs(data, model, report, force=force)
    saving = checkpoint_of(checkpoint)
    if memory is not None:
        from majorant.cli.streaming import train_by_blocks

        refuse_with_memory(
            {"--standardize": fitting.standardize, "-v": folds, "--report": report, "DATA -": data == "-"}
        )
        assert target is not None
        parameters = {"lam": lam, "max_features": max_features}
        train_by_blocks(
            data, target, memory, parameters, output, fitting=fitting, reading=reading, test=test,
            force=force, saving=saving,
        )  # fmt: skip
        return
    rows = read_data(data, reading, output)
    estimator = SparseSVC(
        lam=lam, max_features=max_features, **fitting.parameters(sorted_labels(rows)) | {"penalty": penalty}
    )
    scales = Scales(rows.X, wanted=fitting.standardize)
    if folds:
        _cross_validate(estimator, scales.scaled(rows.X), rows.y, folds, output)
        return
    assert target is not None
    interrupted = fit(estimator, rows, scales, output, saving)
    finish_model(
        estimator, rows, target, output, test=test, report=report, force=force, reading=reading,
        scales=scales, interrupted=interrupted,
    )  # fmt: skip
    if saving is not None:
        saving.remove()


def refuse_with_memory(options: dict[str, Any]) -> None:
    """Say which of the options needs all rows in memory, if one was given."""
    for name, given in options.items():
        if given:
            raise typer.BadParameter(f"{name} needs all rows in memory: leave out --memory, or {name}")


def checkpoint_of(path: Path | None) -> Checkpoint | None:
    """What saves the way of a fit."""
    if path is None:
        return None
    from majorant.callbacks import Checkpoint

    return Checkpoint(path, resume=True)


def finish_model(
    estimator: Any,
    rows: Data,
    target: Path,
    output: Output,
    *,
    test: str | None,
    report: Path | None,
    force: bool,
    reading: DataOptions,
    scales: Scales,
    interrupted: bool,
) -> None:
    """Score a fitted model, write it and its report; after Ctrl-C the model alone."""
    if interrupted:
        write(estimator, rows, target, output, force=force)
        output.finish(**summary(estimator))
        raise KeyboardInterrupt
    scores, held_out = _scores(estimator, rows, test, reading, output)
    write(estimator, rows, target, output, force=force)
    if report is not None:
        write_report(estimator, rows, held_out, report, output, scales=scales, force=force)
    output.finish(**summary(estimator), **scores)


def check_outputs(data: str, model: Path | None, report: Path | None, *, force: bool) -> Path:
    """Where the model goes; what cannot be written is said before anything is computed."""
    if model is None:
        model = Path(("stdin" if data == "-" else Path(data).name) + ".model")
    for path in (model, report):
        if path is not None:
            check_output(path, force=force)
    return model


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or exists and may not be replaced."""
    from majorant.errors import OutputError
    from majorant.files import check_writable

    try:
        check_writable(path, overwrite=force)
    except OutputError as error:
        hint = ": --force replaces it" if path.is_file() else ""
        raise OutputError(f"{error}{hint}") from None


def sorted_labels(data: Data) -> list[Any]:
    """The class labels of the data, each once."""
    import numpy as np

    labels: list[Any] = np.unique(data.y).tolist()  # type: ignore[arg-type]
    return labels


def write(estimator: Any, data: Any, path: Path, output: Output, *, force: bool) -> None:
    """The model to its file, with what it was trained on and how."""
    from majorant.persistence import Provenance, save_model

    origin = Provenance.of(estimator, data, command_words())
    save_model(estimator, path, provenance=origin, overwrite=force)
    output.facts["model"] = str(path)
    output.say(f"{selected(estimator)}. Model written to {path}")


def selected(estimator: Any) -> str:
    """How many features a model uses."""
    return f"{len(estimator.support_):,} of {estimator.n_features_in_:,} features"


def write_report(
    estimator: Any,
    data: Data,
    test: tuple[Any, Any] | None,
    path: Path,
    output: Output,
    *,
    scales: Scales,
    force: bool,
) -> None:
    """The report to its file, with the path of the penalty unless that would take long."""
    from majorant import report

    X_test, y_test = test or (None, None)
    quick = output.facts["seconds"] < 2.0
    report(
        estimator, data.X, data.y, path, X_test=X_test, y_test=y_test, feature_names=names_of(estimator),
        path_result=_path(estimator, data, scales) if quick else None,
        provenance={"data": data.source, "sha256 of the data": data.sha256}, command=command_line(),
        overwrite=force,
    )  # fmt: skip
    output.facts["report"] = str(path)
    output.say(f"Report written to {path}")


def _path(estimator: Any, data: Data, scales: Scales) -> Any:
    """Models of the same kind for other strengths, down to that of the model at least."""
    import numpy as np

    from majorant import lambda_max, sparse_svc_path

    if estimator.penalty == "none" or not estimator.lam_ > 0.0:
        return None
    shared = ("penalty", "delta", "eta", "solver", "fit_intercept", "class_weight", "multi_class", "max_iter")
    parameters = {name: getattr(estimator, name) for name in shared} | {"tol": 1e-3}
    X = scales.scaled(data.X)
    strongest = lambda_max(X, data.y, **parameters)
    if not (np.isfinite(strongest) and strongest > 0.0):
        return None  # a ridge has no strength that makes all coefficients zero
    weakest = min(estimator.lam_, 1e-2 * strongest)
    strengths = np.geomspace(strongest, weakest, PICTURED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = sparse_svc_path(X, data.y, lambdas=strengths, **parameters)
    for model in path.models:
        scales.unscale(model)
    return path


def _scores(
    estimator: Any, data: Data, test: str | None, reading: DataOptions, output: Output
) -> tuple[dict[str, Any], tuple[Any, Any] | None]:
    """Accuracy on the training rows and on the test rows; and these, if there are any."""
    import numpy as np

    scores = {"train_accuracy": float(np.mean(predicted(estimator, data.X) == data.y))}
    held_out = None
    said = f"Accuracy {scores['train_accuracy']:.2%} on the training rows"
    if test is not None:
        rows = read_data(test, reading, output, what="test_data")
        X = matching(rows, estimator, output)
        scores["test_accuracy"] = float(np.mean(predicted(estimator, X) == rows.y))
        held_out = X, rows.y
        said += f", {scores['test_accuracy']:.2%} on the test rows"
    output.say(said)
    return scores, held_out


def _cross_validate(estimator: Any, X: Any, y: Any, folds: int, output: Output) -> None:
    """LIBLINEAR's -v: the accuracy over all rows, each predicted by a model that has not seen it."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    splitter = StratifiedKFold(folds, shuffle=True, random_state=estimator.random_state)
    accuracy = float(np.mean(cross_val_predict(estimator, X, y, cv=splitter) == y))
    output.answer(f"Cross Validation Accuracy = {100.0 * accuracy:g}%")
    output.finish(cross_validation_accuracy=accuracy, folds=folds)


def summary(estimator: Any) -> dict[str, Any]:
    """The facts of a fitted model, for programs."""
    return {
        "penalty": str(estimator.penalty),
        "lam": estimator.lam_,
        "classes": estimator.classes_,
        "features": int(estimator.n_features_in_),
        "selected": estimator.support_,
        "objective": estimator.objective_,
        "lower_bound": estimator.lower_bound_,
        "gap": estimator.gap_,
        "stationarity": estimator.stationarity_,
        "converged": bool(estimator.converged_),
        "status": estimator.status_.value,
        "iterations": int(estimator.n_iter_),
    }
