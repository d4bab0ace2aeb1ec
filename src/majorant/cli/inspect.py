"""`majorant inspect MODEL`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.predict import ModelArgument, load_any, origin_of
from majorant.cli.reading import names_of
from majorant.cli.train import summary


@grouped
def inspect(
    model: ModelArgument,
    *,
    top: Annotated[int, typer.Option(min=0, help="How many features to list, the largest first.")] = 20,
    answering: OutputOptions,
) -> None:
    """Show what a model file holds, and where it came from."""
    output = Output(answering)
    known = load_any(model)
    origin = origin_of(model)
    facts = _facts(known)
    lines = facts | _in_words(origin)
    width = max(map(len, lines))
    for name, value in lines.items():
        output.answer(f"{name:<{width}}  {value}")
    features = _features(known)
    labels = [str(label) for label in known.classes_]
    columns = [labels[1]] if len(labels) == 2 else labels
    if top and features:
        output.answer("")
        output.table(
            ["feature", *(f"towards {label}" for label in columns)],
            [[name, *(f"{value:+.6g}" if value else "0" for value in row)] for name, row in features[:top]],
            right=range(1, 1 + len(columns)),
        )
        if len(features) > top:
            output.answer(f"… and {len(features) - top:,} more (--top {len(features)})")
    known_facts = summary(known) if hasattr(known, "status_") else {"classes": known.classes_}
    output.finish(
        **known_facts,
        intercept=known.intercept_,
        coefficients=[{"feature": name, "values": row} for name, row in features],
        provenance=origin,
    )


def _facts(model: Any) -> dict[str, Any]:
    params = model.get_params(deep=False)
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        "penalty": f"{params['penalty']}, lam {model.lam_:.6g}"
        + (f", delta {params['delta']:g}" if params["penalty"] in ("hyperbolic", "welsch") else "")
        + (f", eta {params['eta']:g}" if params["eta"] else ""),
        "labels": ", ".join(map(str, model.classes_[:20])) + (" …" if len(model.classes_) > 20 else ""),
        "features": f"{len(model.support_):,} of {model.n_features_in_:,}",
        "intercept": ", ".join(f"{value:.6g}" for value in model.intercept_[:20]),
        "type": str(model.intercept_.dtype),
    }
    if hasattr(model, "status_"):
        facts |= {
            "convergence": model.status_.value,
            "objective": f"{model.objective_:.8g}",
            "gap": f"{model.gap_:.2e}",
            "stationarity": f"{model.stationarity_:.2e}",
            "iterations": model.n_iter_,
        }
    return facts


def _in_words(origin: dict[str, Any]) -> dict[str, str]:
    """Where a model comes from, as far as the other facts do not say it."""
    words: dict[str, Any] = {
        "data": origin.get("source"),
        "sha256": origin.get("sha256"),
        "rows": origin.get("n_rows"),
    }
    if "command" in origin:
        words["command"] = shlex.join(origin["command"])
    words |= {
        "versions": ", ".join(f"{name} {number}" for name, number in origin.get("versions", {}).items())
    }
    return {name: str(value) for name, value in words.items() if value}


def _features(model: Any) -> list[tuple[str, list[float]]]:
    """Every feature in use with its coefficients, the largest first."""
    import numpy as np
    import scipy.sparse as sp

    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    names = names_of(model)
    order = model.support_[
        np.argsort(-np.abs(coef[:, model.support_]).max(axis=0, initial=0.0), kind="stable")
    ]
    return [(names[j], coef[:, j].tolist()) for j in order]
