"""Tables of a name and a fact: the data, the settings, the versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from majorant import __version__
from majorant.persistence import Provenance
from majorant.reporting.subject import Origin, Subject, density_and_storage
from majorant.reporting.text import counted, number, plain_text
from majorant.reporting.words import potential_of


def data_facts(subject: Subject) -> list[tuple[str, str]]:
    """The rows of the report: what the model was trained on, as a rule."""
    density, storage = density_and_storage(subject.training.X)
    facts = [
        (f"{subject.training.where.capitalize()} rows", f"{len(subject.training):,}"),
        ("Features", f"{subject.n_features:,}"),
        ("Classes", f"{len(subject.classes):,}"),
        ("Entries that are not zero", f"{number(100.0 * density)} %"),
        ("Stored as", storage),
    ]
    if subject.test is not None:
        facts.insert(1, ("Test rows", f"{len(subject.test):,}"))
    if subject.steps:
        facts.append(("Transformed by", plain_text(", then ".join(subject.steps), 300)))
    return facts


def settings(subject: Subject) -> list[tuple[str, str]]:
    """What was minimised, how, and what came out."""
    model = subject.model
    if subject.origin is Origin.IMPORTED:  # its parameters are what `fit` would do, not what was done
        return [("Training", "not known: the coefficients were imported")]
    potential = potential_of(subject)
    formula = f", φ(w) = {potential.formula}" if potential.formula else ""
    facts = [("Penalty", f"{potential.name}{formula}"), ("Strength λ", number(model.lam_, 4))]
    if hasattr(potential, "delta"):
        facts.append(("Smoothing δ", number(potential.delta, 3)))
    if model.eta:
        facts.append(("Ridge η", number(model.eta, 3)))
    if model.penalty_factor is not None:
        facts.append(("Penalty factors", "given, feature by feature"))
    if model.class_weight is not None:
        facts.append(("Class weights", plain_text(model.class_weight)))
    if len(subject.classes) > 2:
        ways = {"ovr": "each against the rest", "joint": "jointly"}
        facts.append(("Classes trained", ways[model.multi_class]))
    facts += [
        ("Intercept", "fitted, never penalised" if model.fit_intercept else "none"),
        (
            "Solver",
            f"{model.solver_.name}, {counted(model.n_iter_, 'iteration')} of at most {model.max_iter:,}",
        ),
        ("Tolerance", number(model.tol, 2)),
    ]
    for name, attribute, digits in (
        ("Objective", "objective_", 6),
        ("Lower bound of it", "lower_bound_", 6),
        ("Duality gap", "gap_", 2),
        ("Stationarity", "stationarity_", 2),
    ):
        value = getattr(model, attribute, np.nan)  # not there after partial_fit
        if not np.isnan(value):
            facts.append((name, number(value, digits)))
    if model.random_state is not None:
        facts.append(("Random state", plain_text(model.random_state)))
    return facts


def versions() -> list[tuple[str, str]]:
    """What it was computed with."""
    packages = [(name, version(name)) for name in ("numpy", "scipy", "scikit-learn")]
    return [("majorant", __version__), ("Python", platform.python_version()), *packages]


def provenance_facts(provenance: Provenance | Mapping[Any, Any] | None) -> list[tuple[str, str]]:
    """What the caller knows of the data, as text."""
    known = provenance.facts() if isinstance(provenance, Provenance) else provenance or {}
    return [(plain_text(key), plain_text(value, 300)) for key, value in list(known.items())[:50]]
