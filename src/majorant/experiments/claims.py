"""The paper's claims, tested: a statement each, whether the results show it, and the numbers that decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps

import numpy as np

from majorant.experiments import paper
from majorant.experiments.study import STOCHASTIC, DataSet
from majorant.experiments.study_results import MeanOverSplits, Problem, StudyResults

__all__ = ["CLAIMS", "Check", "check", "join", "run_checks"]

PAIRS = ("MMI", "MM", "SUB")
# Gaps within this factor of each other count as equal.
EQUAL_FACTOR = 1.001
MISSING = "the runs that it needs are not there"


@dataclass(frozen=True)
class Check:
    """A statement and whether the results show it."""

    statement: str
    holds: bool | None
    """None: the results do not have the runs that decide."""
    because: str

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        if self.holds is None:
            return "not tested here"
        return "holds" if self.holds else "does not hold here"

    def __str__(self) -> str:
        link = "since" if self.holds is None else "because"
        return f"{self.statement}: {self.outcome}, {link} {self.because}"


Checks = list[Callable[[StudyResults], Check]]
Answer = tuple[bool | None, str] | None
CLAIMS: Checks = []


def check(
    group: Checks, statement: str
) -> Callable[[Callable[[StudyResults], Answer]], Callable[..., Check]]:
    """Add a function to a list of checks.

    The function returns whether the statement holds, and why; None: the runs that decide are missing.
    """

    def decorate(test: Callable[[StudyResults], Answer]) -> Callable[[StudyResults], Check]:
        @wraps(test)
        def checked(results: StudyResults) -> Check:
            holds, because = test(results) or (None, MISSING)
            return Check(statement.format(study=results.study), holds, because)

        group.append(checked)
        return checked

    return decorate


def run_checks(checks: Checks, results: StudyResults) -> list[Check]:
    """The outcomes of a list of checks."""
    return [one(results) for one in checks]


def join(items: Sequence[str], most: int = 4) -> str:
    """The first items of a list, in a sentence."""
    shown = list(items[:most])
    if rest := len(items) - len(shown):
        shown.append(f"{rest} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


@check(CLAIMS, "Adam is the best of the stochastic methods after {study.warmup} epochs")
def adam_is_the_best_warmup(results: StudyResults) -> Answer:
    """Fig. (fig:stochastic) and the text about it."""
    problems = [problem for problem in results.problems if not problem.data.standardised]
    phi = {problem.name: warmup_phi(results, problem) for problem in problems}
    phi = {name: values for name, values in phi.items() if all(map(math.isfinite, values.values()))}
    best = {name: min(values, key=values.__getitem__) for name, values in phi.items()}
    lost = [name for name in phi if best[name] != "adam"]
    if not phi:
        return None
    if not lost:
        return True, f"at its best learning rate it has the lowest Φ in all {len(phi)} problems"
    first = phi[lost[0]]
    return False, (
        f"another method has a lower Φ in {len(lost)} of {len(phi)} problems ({join(lost)}); {best[lost[0]]} "
        "has "
        f"Φ = {first[best[lost[0]]]:.1f} and adam {first['adam']:.1f} on {lost[0]}"
    )


def warmup_phi(results: StudyResults, problem: Problem) -> dict[str, float]:
    """Φ after the warm-up by each stochastic method at its best learning rate."""
    key = problem.data, problem.regulariser
    return {s: results.search.mean_phi(*key, s, results.plan.rates[*key, s]) for s in STOCHASTIC}


@check(CLAIMS, "Hybrids end with a lower Φ than their deterministic versions")
def hybrids_lower_the_gap(results: StudyResults) -> Answer:
    """Fig. (fig:optimality): hybrids against their deterministic versions."""
    return _compare_hybrids(
        results, "a lower gap", lambda problem, method: -results.gap(problem, method), EQUAL_FACTOR
    )


@check(CLAIMS, "HYBRID MM INVERSION ends with the lowest Φ on every problem")
def hybrid_inversion_is_best(results: StudyResults) -> Answer:
    """Fig. (fig:optimality): HYBRID MM INVERSION overcomes all others."""
    problems = results.complete(standardised=False)
    lost = []
    for problem in problems:
        gap = {method: results.gap(problem, method) for method in problem.runs}
        best = min(gap, key=gap.__getitem__)
        if gap["H MMI"] > EQUAL_FACTOR * gap[best]:
            lost.append(f"on {problem.name} {best} ends at {gap[best]:.1e}, H MMI at {gap['H MMI']:.1e}")
    if not problems:
        return None
    if not lost:
        return True, f"its gap is the lowest in all {len(problems)} problems"
    return False, f"another method is below it in {len(lost)} of {len(problems)} problems; {lost[0]}"


@check(CLAIMS, "{study.iterations} iterations are enough for all methods")
def hundred_iterations_are_enough(results: StudyResults) -> Answer:
    """The remark on the setting of hyperparameters: 100 iterations appeared enough for all methods."""
    gaps = {
        f"{method} on {problem.name}": results.gap(problem, method)
        for problem in results.complete(standardised=False)
        for method in problem.runs
    }
    if not gaps:
        return None
    far = sum(gap > 1e-2 for gap in gaps.values())
    worst = max(gaps, key=gaps.__getitem__)
    return far == 0, (
        f"{far} of {len(gaps)} runs end more than 1 % above the minimum; the worst is {worst}, "
        f"{100 * gaps[worst]:.0f} % above"
    )


@check(CLAIMS, "MM INVERSION is unstable on w8a with ℓ2")
def inversion_is_unstable(results: StudyResults) -> Answer:
    """The caption of fig. (fig:optimality): panel (d), w8a with ℓ2."""
    problem = next((one for one in results.on("w8a") if one.regulariser.potential == "none"), None)
    if problem is None:
        return None, "w8a is not there"
    if "MMI" not in problem.runs:
        return None
    phi = [record["phi"] for record in problem.runs["MMI"]]
    rises = sum(bool(np.any(np.diff(trace) > 1e-12 * trace[0])) for trace in phi)
    return rises > 0, (
        f"Φ rises in {rises} of {len(phi)} runs, and the accuracy is {problem.mean('accuracy', 'MMI'):.4f} "
        "where "
        f"the paper has {paper.SCORES['w8a']['accuracy', 'ℓ2', 'MMI']}: with eigenvalues that rounding "
        "cannot make "
        "negative the method is as stable as its theory says"
    )


@check(CLAIMS, "Hybrids have a higher F1 than their deterministic versions")
def hybrids_score_higher(results: StudyResults) -> Answer:
    """The text about tab:a1a to tab:cina0: hybrids have the better scores."""
    return _compare_hybrids(results, "a higher F1", lambda problem, method: problem.mean("F1", method), 1.0)


def _compare_hybrids(
    results: StudyResults, better: str, value: Callable[[Problem, str], float], equal_factor: float
) -> Answer:
    """Compare each method with its hybrid on every problem; a larger value is better."""
    won: list[str] = []
    equal: list[str] = []
    lost: list[str] = []
    for problem in results.complete(standardised=False):
        for name in PAIRS:
            if not {name, f"H {name}"} <= problem.runs.keys():
                continue
            alone, hybrid = value(problem, name), value(problem, f"H {name}")
            low, high = sorted((abs(alone), abs(hybrid)))
            same = high <= equal_factor * low or alone == hybrid
            (equal if same else won if hybrid > alone else lost).append(f"{problem.name}/{name}")
    count = len(won) + len(lost) + len(equal)
    if not count:
        return None
    because = f"the hybrid has {better} in {len(won)} of {count} cells"
    because += f", the same in {len(equal)}" if equal else ""
    because += f", and not in {len(lost)}: {join(lost)}" if lost else ""
    return not lost, because


@check(CLAIMS, "On a1a and w8a a sparse penalty has the best F1")
def sparse_penalties_score_higher(results: StudyResults) -> Answer:
    """The text about the tables: sparse penalties score higher on a1a and w8a."""
    reasons, holds = [], True
    for name in ("a1a", "w8a"):
        problems = results.on(name)
        if problems and all(problem.complete for problem in problems):
            best = {
                problem.regulariser.name: max(problem.mean("F1", method) for method in problem.runs)
                for problem in problems
            }
            sparse, ridge = max(value for key, value in best.items() if key != "ℓ2"), best["ℓ2"]
            holds = holds and sparse > ridge
            reasons.append(
                f"{name}: {sparse:.4f} with a sparse penalty, {ridge:.4f} with ℓ2, at the best method"
            )
    return (holds, "; ".join(reasons)) if reasons else None


@check(CLAIMS, "On cina0 Adam is the best warm-up and lowers Φ, whether the features are scaled or not")
def scaling_decides_on_cina0(results: StudyResults) -> Answer:
    """Not a claim of the paper, which does not state how cina0 was scaled."""
    reasons, holds = [], True
    for name, scaling in (("cina0", "raw"), ("cina0 standardised", "standardised")):
        problems = results.on(name)
        phi = [warmup_phi(results, problem) for problem in problems]
        best = {min(values, key=values.__getitem__) for values in phi}
        lower = [
            results.gap(problem, f"H {pair}") < results.gap(problem, pair)
            for problem in problems
            for pair in PAIRS
            if {pair, f"H {pair}"} <= problem.runs.keys()
        ]
        if lower:
            holds = holds and all(lower) and best == {"adam"}
            reasons.append(
                f"{scaling}, the hybrid has a lower Φ in {sum(lower)} of {len(lower)} cells, and the best "
                "warm-up "
                "is by " + " or ".join(sorted(best))
            )
    return (holds, "; ".join(reasons)) if len(reasons) == 2 else None


@check(CLAIMS, "FG, H MMI, H MM and SUB are faster than MMI, MM and H SUB")
def fast_methods(results: StudyResults) -> Answer:
    """The text about tab:time: FG, H MMI, H MM and SUB are the fast ones."""
    problems = results.complete(standardised=False)
    fast, slow = ("FG", "H MMI", "H MM", "SUB"), ("MMI", "MM", "H SUB")
    wrong = sum(
        max(problem.mean("seconds", name) for name in fast) > min(problem.mean("seconds", n) for n in slow)
        for problem in problems
    )
    if not problems:
        return None
    if not wrong:
        return True, f"it is so on all {len(problems)} problems"
    return False, (
        f"it is otherwise on {wrong} of {len(problems)} problems: a hybrid does what its deterministic "
        "version "
        "does and stochastic epochs besides"
    )


@check(CLAIMS, "The number of zeros grows with λ")
def sparsity_grows(results: StudyResults) -> Answer:
    """The text about sparsity:a1a to sparsity:w8a."""
    reasons, holds = [], True
    for data in results.study.data:
        stopped, converged = (
            [_mean_by_strength(results, data, "zeros", converged=last) for last in (False, True)]
            if not data.standardised
            else [None, None]
        )
        if stopped and converged:
            for zeros in (stopped, converged):
                holds = holds and bool(np.all(np.diff(zeros) >= 0)) and zeros[-1] > zeros[0]
            reasons.append(
                f"{data.name}: {_join_numbers(stopped, '.4g')} zeros after {results.study.iterations} "
                "iterations, "
                f"{_join_numbers(converged, '.4g')} converged"
            )
    return (holds, f"from the smallest λ to the largest, {'; '.join(reasons)}") if reasons else None


@check(CLAIMS, "The best F1 is at a λ in between, on a1a and w8a")
def middle_strength_is_best(results: StudyResults) -> Answer:
    """The text about sparsity:*: the best scores are at a λ in between, on a1a and w8a in particular."""
    reasons, holds = [], True
    for data in results.study.data:
        f1 = _mean_by_strength(results, data, "F1", converged=True) if data.name in ("a1a", "w8a") else None
        if f1:
            holds = holds and max(f1[1:-1], default=-math.inf) > max(f1[0], f1[-1])
            reasons.append(f"{data.name}, converged: F1 {_join_numbers(f1, '.4f')} by rising λ")
    return (holds, "; ".join(reasons)) if reasons else None


def _mean_by_strength(
    results: StudyResults, data: DataSet, score: str, *, converged: bool
) -> list[float] | None:
    """A score or the zeros by rising λ; None if a run is missing."""
    by_strength = sorted(results.by_strength(data).items())
    runs = [
        problem.reference if converged else problem.runs.get(results.study.sparsity_of, [])
        for _, problem in by_strength
    ]
    return [MeanOverSplits.of_score(records, score).mean for records in runs] if all(runs) else None


def _join_numbers(values: list[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in values)
