"""`majorant inspect MODEL`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from majorant.cli.arguments import Force, ModelToRead
from majorant.cli.grouped import grouped
from majorant.cli.help import OUTPUT
from majorant.cli.models import Model, penalty_name
from majorant.cli.output import Output, OutputOptions
from majorant.cli.writing import STDOUT, check_output, csv_line

# More classes than this have no column each.
WIDE = 6


@grouped
def inspect(
    model: ModelToRead,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="A CSV file for the coefficients of all features in use.", show_default=False
        ),
    ] = None,
    *,
    top: Annotated[
        int, typer.Option(min=0, help="How many features to list, the largest first.", rich_help_panel=OUTPUT)
    ] = 20,
    csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="Print the coefficients as CSV, and nothing else.", rich_help_panel=OUTPUT
        ),
    ] = False,
    force: Force = False,
    answering: OutputOptions,
) -> None:
    """Show what a model file holds, and where it came from.

    $ majorant inspect a1a.model --top 5
    $ majorant inspect a1a.model coefficients.csv
    """
    output = Output(answering)
    if out == STDOUT:
        out, csv = None, True
    if out is not None:
        check_output(out, model, force=force)
    known = Model.read(model)
    known.warn_if_interrupted(output)
    features = _features(known)
    if csv and out is None and not answering.json:
        typer.echo(_csv(known, features), nl=False)
        return
    lines = _facts(known) | known.told
    width = max(map(len, lines))
    for name, value in lines.items():
        output.answer(f"{name:<{width}}  {value}")
    if top and features:
        output.answer("")
        _table(known, features[:top], output)
        if len(features) > top:
            output.answer(f"… and {len(features) - top:,} more (--top {len(features)})")
        if known.deviations is not None:
            output.answer(
                "Ordered by effect: coefficient times standard deviation of the feature in training"
            )
    coefficients = [
        {"feature": feature.name, "values": feature.values}
        | ({} if known.deviations is None else {"effect": feature.effect})
        | ({} if feature.share_of_folds is None else {"share_of_folds": feature.share_of_folds})
        for feature in features
    ]
    if out is not None:
        from majorant.files import atomic_write

        with atomic_write(out, overwrite=force) as file:
            file.write(_csv(known, features).encode())
        output.facts["csv"] = str(out)
        output.say(f"Coefficients written to {out}")
    if known.calibration is not None:
        output.facts["calibration"] = vars(known.calibration)
    if known.preprocessing is not None:
        output.facts["preprocessing"] = vars(known.preprocessing)
    output.finish(**known.summary, coefficients=coefficients, provenance=known.told)


class Feature(NamedTuple):
    """A feature that a model uses."""

    name: str
    values: list[float]
    """Its coefficients, class by class."""
    effect: float
    """The largest of them, per standard deviation of the feature where that is known."""
    share_of_folds: float | None
    """Of a cross-validation, in what share of the folds the feature is used."""


def _csv(model: Model, features: list[Feature]) -> str:
    """The table of `coef_frame`."""
    labels = model.estimator.classes_.tolist()
    header = ["feature", *(["coefficient"] if len(labels) == 2 else labels)]
    scaled, searched = model.deviations is not None, hasattr(model.estimator, "selection_frequency_")
    header += ["effect"] * scaled + ["share_of_folds"] * searched
    rows = [
        [feature.name, *feature.values, *[feature.effect] * scaled, *[feature.share_of_folds] * searched]
        for feature in features
    ]
    return "".join(map(csv_line, [header, *rows]))


def _table(model: Model, features: list[Feature], output: Output) -> None:
    """A column for every class; of many classes, the one that a feature says most about."""
    labels = [str(label) for label in model.estimator.classes_]
    columns = [labels[1]] if len(labels) == 2 else labels
    scaled = model.deviations is not None
    effects = [[f"{feature.effect:.4g}"] if scaled else [] for feature in features]
    more = ["effect"] if scaled else []
    if len(columns) <= WIDE:
        header = ["feature", *(f"towards {label}" for label in columns), *more]
        rows = [
            [feature.name, *(f"{value:+.6g}" if value else "0" for value in feature.values), *effect]
            for feature, effect in zip(features, effects, strict=True)
        ]
        output.table(header, rows, right=range(1, len(header)))
        return
    rows = []
    for feature, effect in zip(features, effects, strict=True):
        value, label = max(zip(feature.values, columns, strict=True), key=lambda pair: abs(pair[0]))
        rows.append([feature.name, label, f"{value:+.6g}", str(sum(map(bool, feature.values))), *effect])
    header = ["feature", "most about class", "coefficient", "in classes", *more]
    output.table(header, rows, right=range(2, len(header)))


def _facts(model: Model) -> dict[str, str]:
    from majorant.estimators.advice import interruption

    estimator, facts = model.estimator, model.summary
    penalty = name = penalty_name(estimator)
    if math.isfinite(estimator.lam_):  # of an imported model it is not known
        penalty += f", lam {estimator.lam_:.6g}"
    if name in ("hyperbolic", "welsch"):
        from majorant.potentials import Potential

        default = Potential.registry[name].default_delta
        penalty += f", delta {default if estimator.delta is None else estimator.delta:g}"
    if estimator.eta:
        penalty += f", eta {estimator.eta:g}"
    classes = [str(label) for label in estimator.classes_]
    lines: dict[str, Any] = {
        "model": type(estimator).__name__,
        "penalty": penalty,
        "classes": ", ".join(classes[:20]) + (" …" if len(classes) > 20 else ""),
        "features": model.selected,
        "intercept": ", ".join(f"{value:.6g}" for value in estimator.intercept_[:20]),
        "type": str(estimator.intercept_.dtype),
    }
    if model.calibration is not None:
        calibration = model.calibration
        lines["probabilities"] = f"{calibration.method}, from the held-out rows of {calibration.folds} folds"
    if "status" in facts:
        lines |= {
            "convergence": interruption(estimator) or facts["status"],
            "objective": f"{facts['objective']:.8g}",
            "gap": f"{facts['gap']:.2e}",
            "stationarity": f"{facts['stationarity']:.2e}",
            "iterations": str(facts["n_iter"]),
        }
    return lines


def _features(model: Model) -> list[Feature]:
    """Every feature in use, the largest effect first."""
    from majorant.estimators.coef_norms import features_in_use

    estimator, names = model.estimator, model.names
    features, coefficients, effects = features_in_use(estimator.coef_, estimator.support_, model.deviations)
    shares = getattr(estimator, "selection_frequency_", None)
    shares = [None] * len(features) if shares is None else shares[features].tolist()
    columns = (features.tolist(), coefficients.tolist(), effects.tolist(), shares)
    return [Feature(names[j], *values) for j, *values in zip(*columns, strict=True)]
