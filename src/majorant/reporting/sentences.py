"""The sentences of a report, and its tables of names and values."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from majorant import __version__
from majorant.estimators.fitted import Origin
from majorant.estimators.sizes import fitted_potential
from majorant.persistence import Provenance
from majorant.potentials import Potential
from majorant.reporting.context import ReportContext
from majorant.reporting.features import FeatureSurvey
from majorant.reporting.scores import Score
from majorant.reporting.text import NO_BREAK, counted, number, plain_text, share
from majorant.status import Certificate

# No bound is claimed below the machine precision.
EPSILON = sys.float_info.epsilon


def potential_of(context: ReportContext) -> Potential:
    """The fitted penalty, with the strength that was chosen."""
    return fitted_potential(context.model)


def summary(context: ReportContext, first: Score) -> str:
    """The model in one sentence."""
    used = len(context.model.support_)
    rows = context.evaluated
    name = first.short_name
    name = name[0].lower() + name[1:] if name[1:2].islower() else name  # not ROC AUC
    chance = f" (95{NO_BREAK}% interval {interval(first)})" if first.has_interval else ""
    return (
        f"{used:,} of {counted(context.n_features, 'feature')}, {name} {share(first.value)}{chance} on "
        f"{counted(len(rows), f'{rows.role} row')}, {_training_state(context)}."
    )


def interval(score: Score) -> str:
    """The interval of a score, as 0.951 to 0.989."""
    return f"{share(score.low)} to {share(score.high)}"


def _training_state(context: ReportContext) -> str:
    if context.origin is Origin.IMPORTED:
        return "imported: how it was trained is not known"
    if context.origin is Origin.STREAM:
        return "learned from a stream"
    return "converged" if context.model.converged_ else "not converged"


def convergence_summary(context: ReportContext) -> str:
    """The distance of the objective from its minimum, in a short sentence."""
    model = context.model
    state = _training_state(context)
    if context.origin is not Origin.FITTED:
        return f"{state[0].upper()}{state[1:]}."
    error, tol = Certificate(model.stationarity_, model.gap_).error, number(model.tol, 2)
    name = "stationarity" if math.isnan(model.gap_) else "duality gap"
    return f"{state[0].upper()}{state[1:]}: {name} {number(max(error, EPSILON), 2)}, tolerance {tol}."


def certificate(context: ReportContext) -> str:
    """The distance of the model from the minimum, and the reason for its certainty."""
    model = context.model
    if context.origin is Origin.IMPORTED:
        return (
            "Imported: how it was trained is not known. The imported file has coefficients only, without "
            "an objective and its value, so there is no certificate."
        )
    if context.origin is Origin.STREAM:
        return (
            f"Learned by partial_fit from {counted(model.t_, 'row')}. A certificate would need all of them "
            "at once, so there is none."
        )
    begin = f"{model.status_.value} "
    if not math.isnan(model.gap_):
        whose = "coefficients" if model.n_features is None else "coefficients of these features"
        bound = (
            f"The objective is at most {number(max(model.gap_, EPSILON), 2)} of its value above the minimum "
            f"(the tolerance is {number(model.tol, 2)}). This is a proof: the duality gap shows that no "
            f"{whose} have an objective below {number(model.lower_bound_, 6)}."
        )
        if model.n_features is not None:
            bound += " Nothing is proved of other features of this number."
        return begin + bound
    begin += (
        f"The stationarity is {number(model.stationarity_, 2)} (the tolerance is {number(model.tol, 2)}): "
    )
    if potential_of(context).convex:
        return begin + (
            "no step along a single coefficient lowers the objective by a larger share. Nothing bounds how "
            "far it is above its minimum, because too many features have no penalty at all."
        )
    return begin + (
        "minimising the tangent majorant from here lowers the objective by no larger share. Nothing bounds "
        "how far it is above its minimum, because the penalty is not convex: this is a local minimum, and "
        "there may be lower ones."
    )


# Tables of names and values --------------------------------------------------------------------


def data_facts(context: ReportContext, survey: FeatureSurvey) -> list[tuple[str, str]]:
    """The rows of the report, usually the training rows."""
    facts = [
        (f"{context.training.role.capitalize()} rows", f"{len(context.training):,}"),
        ("Features", f"{context.n_features:,}"),
        ("Classes", f"{len(context.classes):,}"),
        ("Entries that are not zero", f"{number(100.0 * survey.density)} %"),
        ("Stored as", survey.storage),
    ]
    if context.test is not None:
        facts.insert(1, ("Test rows", f"{len(context.test):,}"))
    if context.data_name is not None:
        facts.insert(0, ("Data", plain_text(context.data_name, 300)))
    if context.steps:
        facts.append(("Transformed by", plain_text(", then ".join(context.steps), 300)))
    return facts


def settings(context: ReportContext) -> list[tuple[str, str]]:
    """The objective, the solver and the result."""
    model = context.model
    if context.origin is Origin.IMPORTED:  # its parameters are those of a later `fit`
        return [("Training", "not known: the coefficients were imported")]
    potential = potential_of(context)
    formula = f", φ(w) = {potential.formula}" if potential.formula else ""
    facts = [("Penalty", f"{potential.name}{formula}"), ("Strength λ", number(model.lam_, 4))]
    if model.n_features is not None:
        facts[0] = ("Penalty", f"{facts[0][1]}, in standard deviations")
        facts.insert(0, ("Number of features", _size(model)))
    if context.search is not None:
        facts = _search_facts(context.search) + facts
    if hasattr(potential, "delta"):
        facts.append(("Smoothing δ", number(potential.delta, 3)))
    if model.eta:
        facts.append(("Ridge η", number(model.eta, 3)))
    if model.penalty_factor is not None:
        facts.append(("Penalty factors", "given, feature by feature"))
    if model.class_weight is not None:
        facts.append(("Class weights", plain_text(model.class_weight)))
    if len(context.classes) > 2:
        strategies = {"ovr": "each against the rest", "joint": "jointly"}
        facts.append(("Classes trained", strategies[model.multi_class]))
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


def _size(model: Any) -> str:
    """The number of features that a model was asked for, or that cross-validation has chosen."""
    if hasattr(model, "n_features_"):
        return f"{model.n_features_:,}, chosen from {model.sizes_[0]:,} to {model.sizes_[-1]:,}"
    return f"{model.n_features:,}"


def _search_facts(search: Any) -> list[tuple[str, str]]:
    """Which search chose the model, and from how many candidates."""
    best = ", ".join(f"{name} = {value}" for name, value in search.best_params_.items())
    candidates = counted(len(search.cv_results_["params"]), "candidate")
    facts = [("Chosen by", plain_text(f"{type(search).__name__}, {candidates}: {best}", 300))]
    if hasattr(search, "best_score_"):
        facts.append(("Mean score in the search", number(search.best_score_, 4)))
    return facts


def versions() -> list[tuple[str, str]]:
    """The versions of the software."""
    packages = [(name, version(name)) for name in ("numpy", "scipy", "scikit-learn")]
    return [("majorant", __version__), ("Python", platform.python_version()), *packages]


def provenance_facts(provenance: Provenance | Mapping[Any, Any] | None) -> list[tuple[str, str]]:
    """The caller's facts about the data, as text."""
    known = provenance.facts() if isinstance(provenance, Provenance) else provenance or {}
    return [(plain_text(key), plain_text(value, 300)) for key, value in list(known.items())[:50]]
