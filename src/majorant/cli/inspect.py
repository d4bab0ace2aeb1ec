"""`majorant inspect MODEL`."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from majorant.cli.arguments import ModelToRead
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions

# More classes than this have no column each.
WIDE = 6


@grouped
def inspect(
    model: ModelToRead,
    *,
    top: Annotated[int, typer.Option(min=0, help="How many features to list, the largest first.")] = 20,
    answering: OutputOptions,
) -> None:
    """Show what a model file holds, and where it came from."""
    output = Output(answering)
    known = Model.read(model)
    origin = {} if known.origin is None else known.origin.facts()
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
    coefficients = [{"feature": name, "values": row} for name, row in features]
    output.finish(**known.summary, coefficients=coefficients, provenance=origin)


def _table(model: Model, features: list[tuple[str, list[float]]], output: Output) -> None:
    """A column for every class; of many classes, the one that a feature says most about."""
    labels = [str(label) for label in model.estimator.classes_]
    columns = [labels[1]] if len(labels) == 2 else labels
    if len(columns) <= WIDE:
        header = ["feature", *(f"towards {label}" for label in columns)]
        rows = [[name, *(f"{value:+.6g}" if value else "0" for value in row)] for name, row in features]
        output.table(header, rows, right=range(1, 1 + len(columns)))
        return
    rows = []
    for name, row in features:
        value, label = max(zip(row, columns, strict=True), key=lambda pair: abs(pair[0]))
        rows.append([name, label, f"{value:+.6g}", str(sum(map(bool, row)))])
    output.table(["feature", "most about class", "coefficient", "in classes"], rows, right=(2, 3))


def _facts(model: Model) -> dict[str, str]:
    estimator, facts = model.estimator, model.summary
    penalty = str(estimator.penalty)
    if math.isfinite(estimator.lam_):  # of an imported model it is not known
        penalty += f", lam {estimator.lam_:.6g}"
    if estimator.penalty in ("hyperbolic", "welsch"):
        penalty += f", delta {estimator.delta:g}"
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
    if "status" in facts:
        lines |= {
            "convergence": facts["status"],
            "objective": f"{facts['objective']:.8g}",
            "gap": f"{facts['gap']:.2e}",
            "stationarity": f"{facts['stationarity']:.2e}",
            "iterations": str(facts["n_iter"]),
        }
    return lines


def _features(model: Model) -> list[tuple[str, list[float]]]:
    """Every feature in use with its coefficients, the largest first."""
    import numpy as np
    import scipy.sparse as sp

    coef, support = model.estimator.coef_, model.estimator.support_
    used = coef[:, support].toarray() if sp.issparse(coef) else coef[:, support]
    order = np.argsort(-np.abs(used).max(axis=0, initial=0.0), kind="stable")
    names = model.names
    return [(names[support[k]], used[:, k].tolist()) for k in order]
