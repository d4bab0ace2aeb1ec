"""`majorant path DATA [OUT]`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, Memory, Points, Ratio
from majorant.cli.fitting import PenaltyOptions
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import labels_of, read_data
from majorant.cli.streaming import accuracies_by_blocks, open_data, refuse_with_memory, timed_passes
from majorant.cli.streaming import labels_of as labels_in
from majorant.cli.training import Scales
from majorant.cli.writing import check_output

if TYPE_CHECKING:
    from majorant.estimators import SparseSVC


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
    max_features: Annotated[int | None, typer.Option(help="End before a model with more features.")] = None,
    fitting: PenaltyOptions,
    memory: Memory = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Train a model for every strength of a path."""
    from majorant import SparseSVC, sparse_svc_path

    output = Output(answering)
    fitting.check(SparseSVC, {"max_features": max_features})
    if memory is not None:
        refuse_with_memory({"--standardize": fitting.standardize, "DATA -": data == "-"})
    if out is not None:
        check_output(out, data, force=force)

    def follow(X: Any, y: Any, labels: list[Any]) -> Sequence[SparseSVC]:
        with output.relayed_warnings():
            return sparse_svc_path(
                X, y, lambdas=points, ratio=ratio, max_features=max_features,
                verbose=int(answering.talkative), **fitting.parameters(labels),
            ).models  # fmt: skip

    if memory is None:
        rows = read_data(data, reading, output)
        assert rows.y is not None
        scales = Scales(rows.X, wanted=fitting.standardize)
        estimators = follow(scales.scaled(rows.X), rows.y, labels_of(rows))
        for estimator in estimators:
            scales.unscale(estimator)
        models = [Model.trained(estimator, rows) for estimator in estimators]
        right = [model.right(rows.X, rows.y) / len(rows.y) for model in models]
    else:
        source = open_data(data, reading, memory, output)
        with timed_passes() as times:
            estimators = follow(source, None, labels_in(source) if fitting.class_weight else [])
        times.tell(int(estimators[0].t_), output)
        models = list(map(Model, estimators))
        right = accuracies_by_blocks(models, source)
    facts = [_facts(model, share) for model, share in zip(models, right, strict=True)]
    header = ["lam", "features", "objective", "gap", "training accuracy"]
    output.table(header, [_row(fact) for fact in facts], right=range(5))
    if out is not None:
        _write(models, out, force=force)
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
    """A row per model and class: λ, class, intercept, and the features that any model uses."""
    import numpy as np

    from majorant.files import atomic_write

    used = np.unique(np.concatenate([model.estimator.support_ for model in models])).astype(int)
    names = models[0].names
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["lam", "class", "intercept", *(names[j] for j in used)])
    for model in models:
        estimator = model.estimator
        labels = estimator.classes_.tolist()
        coef = estimator.coef_[:, used].toarray().tolist()
        positive = labels if len(labels) > 2 else labels[1:]
        for label, intercept, row in zip(positive, estimator.intercept_.tolist(), coef, strict=True):
            writer.writerow([repr(estimator.lam_), label, repr(intercept), *map(repr, row)])
    with atomic_write(out, overwrite=force) as file:
        file.write(text.getvalue().encode())
