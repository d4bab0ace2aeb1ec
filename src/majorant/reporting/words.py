"""What there is to say about a model in sentences."""

from __future__ import annotations

import math
import sys

from majorant.estimators.fitted import Origin
from majorant.potentials import Potential, make_potential
from majorant.reporting.scores import Score
from majorant.reporting.subject import Subject
from majorant.reporting.text import NO_BREAK, counted, number, share

# No claim is finer than the arithmetic.
EPSILON = sys.float_info.epsilon


def potential_of(subject: Subject) -> Potential:
    """The penalty that was fitted, with the strength that was found."""
    model = subject.model
    if isinstance(model.penalty, Potential):
        return model.penalty
    lam = 0.0 if math.isnan(model.lam_) else model.lam_
    return make_potential(model.penalty, lam=lam, delta=model.delta)


def summary(subject: Subject, accuracy: Score) -> str:
    """All of it in one sentence."""
    used = len(subject.model.support_)
    rows = subject.judged
    where = counted(len(rows), f"{rows.where} row")
    # Where no row is mistaken, resampling knows no chance.
    chance = f" (95{NO_BREAK}% interval {interval(accuracy)})" if accuracy.low < accuracy.high else ""
    return (
        f"{used:,} of {counted(subject.n_features, 'feature')}, accuracy {share(accuracy.value)}{chance} on "
        f"{where}, {_brief_certificate(subject)}."
    )


def interval(score: Score) -> str:
    """0.951 to 0.989."""
    return f"{share(score.low)} to {share(score.high)}"


def _brief_certificate(subject: Subject) -> str:
    model = subject.model
    if subject.origin is Origin.IMPORTED:
        return "imported: how it was trained is not known"
    if subject.origin is Origin.STREAM:
        return "learned from a stream"
    begin = "converged" if model.converged_ else "not converged"
    if not math.isnan(model.gap_):
        return f"{begin}: at most {number(max(model.gap_, EPSILON), 2)} above the minimum"
    return f"{begin}: stationarity {number(model.stationarity_, 2)}"


def certificate(subject: Subject) -> str:
    """How far the model is from the best there is, and why that is certain, or not."""
    model = subject.model
    if subject.origin is Origin.IMPORTED:
        return (
            "Imported: how it was trained is not known. The file that it comes from has its coefficients and "
            "tells neither what they minimise nor how well, so there is no certificate."
        )
    if subject.origin is Origin.STREAM:
        return (
            f"Learned by partial_fit from {counted(model.t_, 'row')}. A certificate would need all of them "
            "at once, so there is none."
        )
    begin = f"{model.status_.value} "
    if not math.isnan(model.gap_):
        return begin + (
            f"The objective is at most {number(max(model.gap_, EPSILON), 2)} of its value above the minimum "
            f"(the tolerance is {number(model.tol, 2)}). This is a proof: the duality gap shows that no "
            f"coefficients whatsoever have an objective below {number(model.lower_bound_, 6)}."
        )
    begin += (
        f"The stationarity is {number(model.stationarity_, 2)} (the tolerance is {number(model.tol, 2)}): "
    )
    if potential_of(subject).convex:
        return begin + (
            "no step along a single coefficient lowers the objective by a larger share. Nothing bounds how "
            "far it is above its minimum, because too many features have no penalty at all."
        )
    return begin + (
        "minimising the tangent majorant from here lowers the objective by no larger share. Nothing bounds "
        "how far it is above its minimum, because the penalty is not convex: this is a local minimum, and "
        "there may be lower ones."
    )
