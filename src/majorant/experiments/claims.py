"""What the paper claims, tested: each a sentence with a verdict that is computed from the results."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from majorant.experiments import printed
from majorant.experiments.outcomes import Outcomes
from majorant.experiments.plan import mean_phi
from majorant.experiments.protocol import STOCHASTIC, DataSet, Method, Regulariser
from majorant.experiments.verdicts import Verdict, listed

__all__ = ["all_claims"]

PAIRS = ("MMI", "MM", "SUB")
# Gaps within this factor of each other are the same.
SAME = 1.001


def all_claims(outcomes: Outcomes) -> list[Verdict]:
    """The paper's claims in the order of its text.

    Parameters
    ----------
    outcomes : Outcomes

    Returns
    -------
    list of Verdict
    """
    claims: tuple[Callable[[Outcomes], Verdict], ...] = (
        adam_is_the_best_warmup,
        hybrids_lower_the_gap,
        hybrid_inversion_is_best,
        hundred_iterations_are_enough,
        inversion_is_unstable,
        hybrids_score_higher,
        sparse_penalties_score_higher,
        scaling_decides_on_cina0,
        fast_methods,
        sparsity_grows,
        middle_strength_is_best,
    )
    return [claim(outcomes) for claim in claims]


def _name(data: DataSet, regulariser: Regulariser) -> str:
    return f"{data.name}/{regulariser.name}"


def _problems(outcomes: Outcomes) -> list[tuple[DataSet, Regulariser]]:
    """The paper's problems: data as they are, without those that we have scaled."""
    return [problem for problem in outcomes.problems() if not problem[0].standardised]


NO_RUNS = "the runs that it needs are not there"


def adam_is_the_best_warmup(outcomes: Outcomes) -> Verdict:
    """Fig. (fig:stochastic) and the text about it."""
    statement = f"Adam is the best of the stochastic methods after {outcomes.study.warmup} epochs"
    lost, sample, count = [], "", 0
    for data in outcomes.study.data:
        for regulariser in outcomes.study.regularisers:
            phi = _warm_phi(outcomes, data, regulariser)
            if data.standardised or not all(map(math.isfinite, phi.values())):
                continue
            count += 1
            best = min(phi, key=lambda solver: phi[solver])
            if best != "adam":
                lost.append(_name(data, regulariser))
                sample = sample or f"{best} has Φ = {phi[best]:.1f} and adam {phi['adam']:.1f} on {lost[0]}"
    if not count:
        return Verdict(statement, None, NO_RUNS)
    if not lost:
        reason = f"at its best learning rate it has the lowest Φ in all {count} problems"
        return Verdict(statement, True, reason)
    others = f"another method has a lower Φ in {len(lost)} of {count} problems ({listed(lost)}); {sample}"
    return Verdict(statement, False, others)


def _warm_phi(outcomes: Outcomes, data: DataSet, regulariser: Regulariser) -> dict[str, float]:
    """Φ after the warm-up by each stochastic method at its best learning rate."""
    rates = outcomes.plan.rates
    return {
        solver: mean_phi(
            outcomes.study, data, regulariser, solver, rates[data, regulariser, solver], outcomes.results
        )
        for solver in STOCHASTIC
    }


Worth = Callable[[DataSet, Regulariser, Method], float]
"""What a method is worth on a problem: more where it is better."""


def hybrids_lower_the_gap(outcomes: Outcomes) -> Verdict:
    """Fig. (fig:optimality): hybrids against their deterministic versions."""

    def worth(data: DataSet, regulariser: Regulariser, method: Method) -> float:
        return -float(np.mean(outcomes.gaps(data, regulariser, method)))

    statement = "Hybrids end with a lower Φ than their deterministic versions"
    return _pairwise(outcomes, statement, "a lower gap", worth, SAME)


def hybrids_score_higher(outcomes: Outcomes) -> Verdict:
    """The text about tab:a1a to tab:cina0: hybrids have the better scores."""

    def worth(data: DataSet, regulariser: Regulariser, method: Method) -> float:
        return outcomes.spread(outcomes.cells(data, regulariser, method), "F1").mean

    statement = "Hybrids have a higher F1 than their deterministic versions"
    return _pairwise(outcomes, statement, "a higher F1", worth, 1.0)


def _pairwise(outcomes: Outcomes, statement: str, better: str, worth: Worth, same: float) -> Verdict:
    """Compare each method with its hybrid on every problem."""
    won: list[str] = []
    lost: list[str] = []
    level: list[str] = []
    for data, regulariser in _problems(outcomes):
        for name in PAIRS:
            alone, hybrid = outcomes.method(name), outcomes.method(f"H {name}")
            if alone is None or hybrid is None:
                continue
            a, h = (worth(data, regulariser, method) for method in (alone, hybrid))
            place = f"{_name(data, regulariser)}/{name}"
            if max(abs(a), abs(h)) <= same * min(abs(a), abs(h)) or a == h:
                level.append(place)
            else:
                (won if h > a else lost).append(place)
    count = len(won) + len(lost) + len(level)
    if not count:
        return Verdict(statement, None, NO_RUNS)
    counts = f"the hybrid has {better} in {len(won)} of {count} cells"
    if level:
        counts += f", the same in {len(level)}"
    if lost:
        counts += f", and not in {len(lost)}: {listed(lost)}"
    return Verdict(statement, not lost, counts)


def hybrid_inversion_is_best(outcomes: Outcomes) -> Verdict:
    """Fig. (fig:optimality): HYBRID MM INVERSION overcomes all others."""
    statement = "HYBRID MM INVERSION ends with the lowest Φ on every problem"
    lost, sample, count = [], "", 0
    for data, regulariser in _problems(outcomes):
        count += 1
        gap = {m.name: float(np.mean(outcomes.gaps(data, regulariser, m))) for m in outcomes.study.methods}
        best = min(gap, key=lambda name: gap[name])
        if gap["H MMI"] > SAME * gap[best]:
            lost.append(_name(data, regulariser))
            sample = sample or f"on {lost[0]} {best} ends at {gap[best]:.1e}, H MMI at {gap['H MMI']:.1e}"
    if not count:
        return Verdict(statement, None, NO_RUNS)
    if not lost:
        return Verdict(statement, True, f"its gap is the lowest in all {count} problems")
    return Verdict(
        statement, False, f"another method is below it in {len(lost)} of {count} problems; {sample}"
    )


def hundred_iterations_are_enough(outcomes: Outcomes) -> Verdict:
    """The remark on the setting of hyperparameters: 100 iterations appeared enough for all methods."""
    statement = f"{outcomes.study.iterations} iterations are enough for all methods"
    gaps = {
        f"{method.name} on {_name(data, regulariser)}": float(
            np.mean(outcomes.gaps(data, regulariser, method))
        )
        for data, regulariser in _problems(outcomes)
        for method in outcomes.study.methods
    }
    if not gaps:
        return Verdict(statement, None, NO_RUNS)
    far = [name for name, gap in gaps.items() if gap > 1e-2]
    worst = max(gaps, key=lambda name: gaps[name])
    reason = (
        f"{len(far)} of {len(gaps)} runs end more than 1 % above the minimum; the worst is {worst}, "
        f"{100 * gaps[worst]:.0f} % above"
    )
    return Verdict(statement, not far, reason)


def inversion_is_unstable(outcomes: Outcomes) -> Verdict:
    """The caption of fig. (fig:optimality): panel (d), w8a with ℓ2."""
    statement = "MM INVERSION is unstable on w8a with ℓ2"
    data, method = outcomes.data_set("w8a"), outcomes.method("MMI")
    regulariser = next((one for one in outcomes.study.regularisers if one.potential == "none"), None)
    if data is None or method is None or regulariser is None:
        return Verdict(statement, None, "w8a is not there")
    found = outcomes.cells(data, regulariser, method)
    if not found:
        return Verdict(statement, None, NO_RUNS)
    rises = sum(bool(np.any(np.diff(record["phi"]) > 1e-12 * record["phi"][0])) for record in found)
    accuracy = outcomes.spread(found, "accuracy").mean
    theirs = printed.SCORES["w8a"]["accuracy", "ℓ2", "MMI"]
    reason = (
        f"Φ rises in {rises} of {len(found)} runs, and the accuracy is {accuracy:.4f} where the paper has "
        f"{theirs}: with eigenvalues that rounding cannot make negative the method is as stable as its "
        "theory says"
    )
    return Verdict(statement, rises > 0, reason)


def sparse_penalties_score_higher(outcomes: Outcomes) -> Verdict:
    """The text about the tables: sparse penalties score higher on a1a and w8a."""
    statement = "On a1a and w8a a sparse penalty has the best F1"
    reasons, holds = [], True
    for name in ("a1a", "w8a"):
        data = outcomes.data_set(name)
        if data is None:
            continue
        best: dict[str, float] = {}
        for regulariser in outcomes.study.regularisers:
            found = [outcomes.cells(data, regulariser, method) for method in outcomes.study.methods]
            if all(found):
                best[regulariser.name] = max(outcomes.spread(records, "F1").mean for records in found)
        if len(best) == len(outcomes.study.regularisers):
            sparse = max(value for key, value in best.items() if key != "ℓ2")
            holds = holds and sparse > best["ℓ2"]
            reasons.append(
                f"{name}: {sparse:.4f} with a sparse penalty, {best['ℓ2']:.4f} with ℓ2, at the best method"
            )
    if not reasons:
        return Verdict(statement, None, NO_RUNS)
    return Verdict(statement, holds, "; ".join(reasons))


def scaling_decides_on_cina0(outcomes: Outcomes) -> Verdict:
    """Not a claim of the paper, which does not say how it scaled cina0."""
    statement = "On cina0 Adam is the best warm-up and lowers Φ, whether the features are scaled or not"
    words, holds = [], True
    for name in ("cina0", "cina0 standardised"):
        data = outcomes.data_set(name)
        if data is None:
            continue
        won, total, best = 0, 0, set()
        for regulariser in outcomes.study.regularisers:
            phi = _warm_phi(outcomes, data, regulariser)
            best.add(min(phi, key=lambda solver: phi[solver]))
            for pair in PAIRS:
                both = (outcomes.method(pair), outcomes.method(f"H {pair}"))
                found = [outcomes.gaps(data, regulariser, m) for m in both if m is not None]
                if len(found) == 2 and all(len(gap) for gap in found):
                    total += 1
                    won += float(np.mean(found[1])) < float(np.mean(found[0]))
        if total:
            holds = holds and won == total and best == {"adam"}
            kind = "standardised" if data.standardised else "raw"
            words.append(
                f"{kind}, the hybrid has a lower Φ in {won} of {total} cells, and the best warm-up is by "
                + " or ".join(sorted(best))
            )
    if len(words) < 2:
        return Verdict(statement, None, NO_RUNS)
    return Verdict(statement, holds, "; ".join(words))


def fast_methods(outcomes: Outcomes) -> Verdict:
    """The text about tab:time: FG, H MMI, H MM and SUB are the fast ones."""
    statement = "FG, H MMI, H MM and SUB are faster than MMI, MM and H SUB"
    wrong, count = [], 0
    for data, regulariser in _problems(outcomes):
        seconds = {
            m.name: outcomes.spread(outcomes.cells(data, regulariser, m), "seconds").mean
            for m in outcomes.study.methods
        }
        count += 1
        if max(seconds[name] for name in ("FG", "H MMI", "H MM", "SUB")) > min(
            seconds[name] for name in ("MMI", "MM", "H SUB")
        ):
            wrong.append(_name(data, regulariser))
    if not count:
        return Verdict(statement, None, NO_RUNS)
    reason = (
        f"it is otherwise on {len(wrong)} of {count} problems: a hybrid does what its deterministic version "
        "does and stochastic epochs besides"
        if wrong
        else f"it is so on all {count} problems"
    )
    return Verdict(statement, not wrong, reason)


def _zeros(outcomes: Outcomes, data: DataSet) -> tuple[list[float], list[float]] | None:
    """Zeros by rising λ, after the paper's iterations and converged."""
    plan = outcomes.plan
    stopped, converged = [], []
    for lam in sorted(outcomes.study.lambdas):
        first = outcomes.cells(data, plan.stronger(lam), plan.sparsity_method())
        last = outcomes.references(data, plan.stronger(lam))
        if not first or not last:
            return None
        stopped.append(float(np.mean([record["zeros"][-1] for record in first])))
        converged.append(float(np.mean([record["zeros"][-1] for record in last])))
    return stopped, converged


def sparsity_grows(outcomes: Outcomes) -> Verdict:
    """The text about sparsity:a1a to sparsity:w8a."""
    statement = "The number of zeros grows with λ"
    words, holds = [], True
    for data in outcomes.study.data:
        found = None if data.standardised else _zeros(outcomes, data)
        if found is None:
            continue
        stopped, converged = found
        holds = holds and _rises(stopped) and _rises(converged)
        words.append(
            f"{data.name}: {_steps(stopped)} zeros after {outcomes.study.iterations} iterations, "
            f"{_steps(converged)} converged"
        )
    if not words:
        return Verdict(statement, None, NO_RUNS)
    return Verdict(statement, holds, f"from the smallest λ to the largest, {'; '.join(words)}")


def _rises(values: list[float]) -> bool:
    return bool(np.all(np.diff(values) >= 0)) and values[-1] > values[0]


def _steps(values: list[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def middle_strength_is_best(outcomes: Outcomes) -> Verdict:
    """The text about sparsity:*: the best scores are at a λ in between, on a1a and w8a in particular."""
    statement = "The best F1 is at a λ in between, on a1a and w8a"
    words, holds = [], True
    lambdas = sorted(outcomes.study.lambdas)
    for name in ("a1a", "w8a"):
        data = outcomes.data_set(name)
        if data is None:
            continue
        runs = [outcomes.references(data, outcomes.plan.stronger(lam)) for lam in lambdas]
        if not all(runs):
            continue
        f1 = [outcomes.spread(records, "F1").mean for records in runs]
        best = max(range(len(f1)), key=lambda k: f1[k])
        inside = 0 < best < len(f1) - 1 and f1[best] > max(f1[0], f1[-1])
        holds = holds and inside
        words.append(f"{name}, converged: F1 {', '.join(f'{value:.4f}' for value in f1)} by rising λ")
    if not words:
        return Verdict(statement, None, NO_RUNS)
    return Verdict(statement, holds, "; ".join(words))
