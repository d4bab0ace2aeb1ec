"""`majorant path DATA [OUT]`."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from majorant.cli.fitting import PenaltyOptions, Scales
from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import DataArgument, DataOptions, keep_names, names_of, read_data
from majorant.cli.train import Force, check_output, sorted_labels

Points = Annotated[int, typer.Option(min=1, help="How many strengths.")]
Ratio = Annotated[float, typer.Option(help="The smallest strength, relative to the largest.")]


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
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Train a model for every strength of a path."""
    from majorant import sparse_svc_path

    output = Output(answering)
    parameters = fitting.parameters([])
    if out is not None:
        check_output(out, force=force)
    rows = read_data(data, reading, output)
    parameters = fitting.parameters(sorted_labels(rows))
    scales = Scales(rows.X, wanted=fitting.standardize)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sparse_svc_path(
            scales.scaled(rows.X), rows.y, lambdas=points, ratio=ratio, max_features=max_features,
            verbose=int(answering.talkative), **parameters,
        )  # fmt: skip
    for warning in caught:
        output.warn(str(warning.message))
    for model in found.models:
        scales.unscale(model)
    facts = [_facts(model, rows) for model in found.models]
    header = ["lam", "features", "objective", "gap", "training accuracy"]
    output.table(header, [_row(fact) for fact in facts], right=range(5))
    if out is not None:
        keep_names(found.models[0], rows)
        _write(found, out, force=force)
        output.facts["coefficients"] = str(out)
        output.say(f"Coefficients written to {out}")
    output.finish(path=facts)


def _facts(model: Any, rows: Any) -> dict[str, Any]:
    import numpy as np

    return {
        "lam": model.lam_,
        "features": len(model.support_),
        "objective": model.objective_,
        "gap": model.gap_,
        "accuracy": float(np.mean(model.predict(rows.X) == rows.y)),
        "converged": bool(model.converged_),
        "iterations": int(model.n_iter_),
    }


def _row(fact: dict[str, Any]) -> list[str]:
    return [
        f"{fact['lam']:.4g}",
        f"{fact['features']:,}",
        f"{fact['objective']:.6g}",
        f"{fact['gap']:.1e}",
        f"{fact['accuracy']:.2%}",
    ]


def _write(found: Any, out: Path, *, force: bool) -> None:
    """A row per model and class: λ, class, intercept, and the features that any model uses."""
    import numpy as np

    from majorant.files import replacing

    used = np.unique(np.concatenate([model.support_ for model in found.models])).astype(int)
    names = names_of(found.models[0])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["lam", "class", "intercept", *(names[j] for j in used)])
    for model in found.models:
        classes = model.classes_.tolist()
        coef = np.asarray(model.coef_[:, used].todense()) if len(used) else np.zeros((len(model.coef_), 0))
        for label, intercept, row in zip(
            classes if len(classes) > 2 else classes[1:],
            model.intercept_.tolist(),
            coef.tolist(),
            strict=True,
        ):
            writer.writerow([repr(model.lam_), label, repr(intercept), *map(repr, row)])
    with replacing(out, overwrite=force) as file:
        file.write(text.getvalue().encode())
