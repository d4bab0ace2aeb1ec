"""`majorant inspect MODEL`."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import typer

from majorant.cli.arguments import ModelToRead
from majorant.cli.grouped import grouped
from majorant.cli.help import OUTPUT
from majorant.cli.models import Model, penalty_name
from majorant.cli.output import Output, OutputOptions

# More classes than this have no column each.
WIDE = 6


@grouped
def inspect(
    model: ModelToRead,
    *,
    top: Annotated[
        int, typer.Option(min=0, help="How many features to list, the largest first.", rich_help_panel=OUTPUT)
    ] = 20,
    answering: OutputOptions,
) -> None:
    """Show what a model file holds, and where it came from.

    $ majorant inspect a1a.model --top 5
    $ majorant inspect - --json < a1a.model
    """
    output = Output(answering)
    known = Model.read(model)
    origin = {} if known.origin is None else known.origin.facts()
    known.warn_if_interrupted(output)
    lines = _facts(known) | origin
    width = max(map(len, lines))
    for name, value in lines.items():
        output.answer(f"{name:<{width}}  {value}")
    features = _features(known)
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
        for feature in features
    ]
    if known.calibration is not None:
        output.facts["calibration"] = vars(known.calibration)
    output.finish(**known.summary, coefficients=coefficients, provenance=origin)


class Feature(NamedTuple):
    """A feature that a model uses."""

    name: str
    values: list[float]
    """Its coefficients, class by class."""
    effect: float
    """The largest of them, per standard deviation of the feature where that is known."""


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
    import numpy as np
    import scipy.sparse as sp

    coef, support = model.estimator.coef_, model.estimator.support_
    used = coef[:, support].toarray() if sp.issparse(coef) else coef[:, support]
    effects = np.abs(used).max(axis=0, initial=0.0)
    if model.deviations is not None:
        effects = effects * model.deviations[support]
    order = np.argsort(-effects, kind="stable")
    names, largest = model.names, effects[order].tolist()
    return [
        Feature(names[j], values, effect)
        for j, values, effect in zip(support[order].tolist(), used[:, order].T.tolist(), largest, strict=True)
    ]
