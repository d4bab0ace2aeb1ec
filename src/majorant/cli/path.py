"""`majorant path DATA [OUT]`."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from majorant.cli.arguments import (
    DataArgument,
    DataOptions,
    Force,
    Memory,
    NFeatures,
    Points,
    PreprocessingOptions,
    Ratio,
    refuse_memory,
)
from majorant.cli.data import open_data
from majorant.cli.fitting import PenaltyOptions
from majorant.cli.grouped import grouped
from majorant.cli.help import MODEL
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.training import timed_passes
from majorant.cli.writing import check_output, write_or_rescue


@grouped
def path(
    data: DataArgument,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="A CSV file for the coefficients of all models.", show_default=False
        ),
    ] = None,
    *,
    points: Points = 20,
    ratio: Ratio = 1e-3,
    n_features: NFeatures = None,
    max_features: Annotated[
        int | None, typer.Option(min=1, help="End before a model with more features.", rich_help_panel=MODEL)
    ] = None,
    fitting: PenaltyOptions,
    memory: Memory = None,
    force: Force = False,
    reading: DataOptions,
    preparing: PreprocessingOptions,
    answering: OutputOptions,
) -> None:
    """Train a model for every strength of a path, or for every number of features.

    $ majorant path a1a coefficients.csv --penalty l1 --points 20
    $ majorant path patients.csv --label outcome --n-features 10
    """
    output = Output(answering)
    refuse_memory(n_features, memory)
    fitting.check()
    if out is not None:
        check_output(out, data, force=force)
    from majorant import SparseSVC, sparse_svc_path

    fitting.check_parameters(SparseSVC, {"n_features": n_features, "max_features": max_features})
    rows = open_data(data, reading, output, memory=memory, preprocessing=preparing.preprocessing(reading))
    X, y, _ = rows.training_rows
    with timed_passes(rows, output), output.relayed_warnings():
        estimators = sparse_svc_path(
            X, y, lambdas=points, ratio=ratio, n_features=n_features, max_features=max_features,
            verbose=int(answering.talkative), **fitting.parameters(rows.labels),
        ).models  # fmt: skip
    models = [Model.trained(estimator, rows) for estimator in estimators]
    right = [count / rows.n_rows for count in rows.right(models)]
    facts = [_facts(model, share) for model, share in zip(models, right, strict=True)]
    header = ["lam", "features", "objective", "gap", "training accuracy"]
    left_out = 0 if n_features is None else 1  # the strength, if the number of features is what differs
    output.table(header[left_out:], [_row(fact)[left_out:] for fact in facts], right=range(5 - left_out))
    if out is not None:
        write_or_rescue(out, partial(_write, models, force=force))
        output.facts["coefficients"] = str(out)
        output.say(f"Coefficients written to {out}")
    output.finish(path=facts)


def _facts(model: Model, right: float) -> dict[str, Any]:
    estimator = model.estimator
    return {
        "lam": estimator.lam_,
        "n_selected": len(estimator.support_),
        "objective": estimator.objective_,
        "gap": estimator.gap_,
        "train_accuracy": right,
        "converged": bool(estimator.converged_),
        "n_iter": int(estimator.n_iter_),
    }


def _row(fact: dict[str, Any]) -> list[str]:
    return [
        f"{fact['lam']:.4g}",
        f"{fact['n_selected']:,}",
        f"{fact['objective']:.6g}",
        f"{fact['gap']:.1e}",
        f"{fact['train_accuracy']:.2%}",
    ]


def _write(models: list[Model], out: Path, *, force: bool) -> None:
    """A row per model and class: λ or the number of features, class, intercept, and all features in use."""
    import numpy as np

    from majorant.files import atomic_write

    used = np.unique(np.concatenate([model.estimator.support_ for model in models])).astype(int)
    names = models[0].names
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    by_size = models[0].estimator.n_features is not None
    writer.writerow(["n_features" if by_size else "lam", "class", "intercept", *(names[j] for j in used)])
    for model in models:
        estimator = model.estimator
        labels = estimator.classes_.tolist()
        coef = estimator.coef_[:, used].toarray().tolist()
        positive = labels if len(labels) > 2 else labels[1:]
        for label, intercept, row in zip(positive, estimator.intercept_.tolist(), coef, strict=True):
            place = estimator.n_features if by_size else estimator.lam_
            writer.writerow([repr(place), label, repr(intercept), *map(repr, row)])
    with atomic_write(out, overwrite=force) as file:
        file.write(text.getvalue().encode())
