"""The checks of a reproduction: a statement each, whether the results show it, and the numbers that decide.

`CLAIMS` are what the paper claims. `COMPARISONS` are about our results beside the paper's numbers: whether
they agree, and the reason where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps

import numpy as np

from majorant.experiments import paper
from majorant.experiments.study import STOCHASTIC, DataSet
from majorant.experiments.study_results import (
    MeanOverSplits,
    Problem,
    StudyResults,
    matching_iterations,
    scores_of,
)

PAIRS = ("MMI", "MM", "SUB")
# Gaps within this factor of each other count as equal.
EQUAL_FACTOR = 1.001
# The distance, as a share (0.025: 2.5 points), that a score of a run before convergence may have from the
# paper's.
TOLERANCE = 0.025
CONVERGED_CINA0 = "0.9345 / 0.8679 / 0.8804 / 0.8741"
# Column headers of tab:time that are very likely exchanged: hybrids do more work than their deterministic
# versions.
EXCHANGED = {"MMI": "H MMI", "H MMI": "MMI", "MM": "H MM", "H MM": "MM"}
MISSING = "its runs are missing"


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
COMPARISONS: Checks = []


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
    """The first items of a list as text: a, b and 3 more."""
    shown = list(items[:most])
    if rest := len(items) - len(shown):
        shown.append(f"{rest} more")
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else "".join(shown)


def _by_cases(cases: Iterable[tuple[str, bool]], holds: str, fails: str = "{which}", most: int = 4) -> Answer:
    """The answer by cases, each with whether it is as stated; None without any.

    In the reasons, {count} is the number of cases, {lost} the number of cases that differ, {first} the first
    of these, and {which} the first `most`.
    """
    cases = list(cases)
    lost = [case for case, is_so in cases if not is_so]
    if not cases:
        return None
    if not lost:
        return True, holds.format(count=len(cases))
    return False, fails.format(count=len(cases), lost=len(lost), first=lost[0], which=join(lost, most))


def _by_all(answers: Sequence[tuple[bool, str]]) -> Answer:
    """The answer by several answers, which must all be positive; None without any."""
    return (all(holds for holds, _ in answers), "; ".join(why for _, why in answers)) if answers else None


# The paper's claims ----------------------------------------------------------------------------------------


@check(CLAIMS, "Adam is the best of the stochastic methods after {study.warmup} epochs")
def adam_is_the_best_warmup(results: StudyResults) -> Answer:
    """Fig. (fig:stochastic) and the text about it."""
    problems = [problem for problem in results.problems if not problem.data.standardised]
    phi = {problem.name: warmup_phi(results, problem) for problem in problems}
    phi = {name: values for name, values in phi.items() if all(map(math.isfinite, values.values()))}
    best = {name: min(values, key=values.__getitem__) for name, values in phi.items()}
    lost = [
        f"{best[name]} has Φ = {values[best[name]]:.1f} and adam {values['adam']:.1f} on {name}"
        for name, values in phi.items()
        if best[name] != "adam"
    ]
    return _by_cases(
        ((name, best[name] == "adam") for name in phi),
        "at its best learning rate it has the lowest Φ in all {count} problems",
        f"another method has a lower Φ in {{lost}} of {{count}} problems ({{which}}); {''.join(lost[:1])}",
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
    cases = []
    for problem in results.complete(standardised=False):
        gap = {method: results.gap(problem, method) for method in problem.runs}
        best = min(gap, key=gap.__getitem__)
        case = f"on {problem.name} {best} ends at {gap[best]:.1e}, H MMI at {gap['H MMI']:.1e}"
        cases.append((case, not gap["H MMI"] > EQUAL_FACTOR * gap[best]))
    return _by_cases(
        cases, "its gap is the lowest in all {count} problems",
        "another method is below it in {lost} of {count} problems; {first}",
    )  # fmt: skip


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
        return None, "w8a is missing"
    if "MMI" not in problem.runs:
        return None
    phi = [record["phi"] for record in problem.runs["MMI"]]
    rises = sum(bool(np.any(np.diff(trace) > 1e-12 * trace[0])) for trace in phi)
    return rises > 0, (
        f"Φ rises in {rises} of {len(phi)} runs, and the accuracy is {problem.mean('accuracy', 'MMI'):.4f} "
        f"where the paper has {paper.SCORES['w8a']['accuracy', 'ℓ2', 'MMI']}: with eigenvalues that rounding "
        "cannot make negative the method is as stable as its theory says"
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
        for name in _pairs_of(problem):
            alone, hybrid = value(problem, name), value(problem, f"H {name}")
            low, high = sorted((abs(alone), abs(hybrid)))
            same = high <= equal_factor * low or alone == hybrid
            (equal if same else won if hybrid > alone else lost).append(f"{problem.name}/{name}")
    count = len(won) + len(lost) + len(equal)
    because = f"the hybrid has {better} in {len(won)} of {count} cells"
    because += f", the same in {len(equal)}" if equal else ""
    because += f", and not in {len(lost)}: {join(lost)}" if lost else ""
    return (not lost, because) if count else None


def _pairs_of(problem: Problem) -> list[str]:
    """The methods that were run alone and as a hybrid."""
    return [name for name in PAIRS if {name, f"H {name}"} <= problem.runs.keys()]


@check(CLAIMS, "On a1a and w8a a sparse penalty has the best F1")
def sparse_penalties_score_higher(results: StudyResults) -> Answer:
    """The text about the tables: sparse penalties score higher on a1a and w8a."""
    answers = []
    for name in ("a1a", "w8a"):
        problems = results.on(name)
        if problems and all(problem.complete for problem in problems):
            best = {
                problem.regulariser.name: max(problem.mean("F1", method) for method in problem.runs)
                for problem in problems
            }
            ridge = best.pop("ℓ2")
            sparse = max(best.values())
            because = f"{name}: {sparse:.4f} with a sparse penalty, {ridge:.4f} with ℓ2, at the best method"
            answers.append((sparse > ridge, because))
    return _by_all(answers)


@check(CLAIMS, "On cina0 Adam is the best warm-up and lowers Φ, whether the features are scaled or not")
def scaling_decides_on_cina0(results: StudyResults) -> Answer:
    """Not a claim of the paper, which does not state how cina0 was scaled."""
    answers = []
    for name, scaling in (("cina0", "raw"), ("cina0 standardised", "standardised")):
        problems = results.on(name)
        phi = [warmup_phi(results, problem) for problem in problems]
        best = {min(values, key=values.__getitem__) for values in phi}
        lower = [
            results.gap(problem, f"H {pair}") < results.gap(problem, pair)
            for problem in problems
            for pair in _pairs_of(problem)
        ]
        because = (
            f"{scaling}, the hybrid has a lower Φ in {sum(lower)} of {len(lower)} cells, and the best "
            f"warm-up is by {' or '.join(sorted(best))}"
        )
        if not lower:
            return None
        answers.append((all(lower) and best == {"adam"}, because))
    return _by_all(answers)


@check(CLAIMS, "FG, H MMI, H MM and SUB are faster than MMI, MM and H SUB")
def fast_methods(results: StudyResults) -> Answer:
    """The text about tab:time: FG, H MMI, H MM and SUB are the fast ones."""
    cases = []
    for problem in results.complete(standardised=False):
        fast = max(problem.mean("seconds", method) for method in ("FG", "H MMI", "H MM", "SUB"))
        slow = min(problem.mean("seconds", method) for method in ("MMI", "MM", "H SUB"))
        cases.append((problem.name, fast <= slow))
    return _by_cases(
        cases, "it is so on all {count} problems",
        "it is otherwise on {lost} of {count} problems: a hybrid does what its deterministic version does "
        "and stochastic epochs besides",
    )  # fmt: skip


@check(CLAIMS, "The number of zeros grows with λ")
def sparsity_grows(results: StudyResults) -> Answer:
    """The text about sparsity:a1a to sparsity:w8a."""
    answers = []
    for data in results.study.data:
        traces = [_mean_by_strength(results, data, "zeros", converged=last) for last in (False, True)]
        if all(traces):
            grows = all(np.all(np.diff(zeros) >= 0) and zeros[-1] > zeros[0] for zeros in traces)
            stopped, converged = (_join_numbers(zeros, ".4g") for zeros in traces)
            because = f"{stopped} zeros after {results.study.iterations} iterations, {converged} converged"
            answers.append((grows, f"{data.name}: {because}"))
    found = _by_all(answers)
    return found and (found[0], f"from the smallest λ to the largest, {found[1]}")


@check(CLAIMS, "The best F1 is at a λ in between, on a1a and w8a")
def middle_strength_is_best(results: StudyResults) -> Answer:
    """The text about sparsity:*: the best scores are at a λ in between, on a1a and w8a in particular."""
    answers = []
    for data in results.study.data:
        if data.name in ("a1a", "w8a") and (f1 := _mean_by_strength(results, data, "F1", converged=True)):
            because = f"{data.name}, converged: F1 {_join_numbers(f1, '.4f')} by rising λ"
            answers.append((max(f1[1:-1], default=-math.inf) > max(f1[0], f1[-1]), because))
    return _by_all(answers)


def _mean_by_strength(results: StudyResults, data: DataSet, score: str, *, converged: bool) -> list[float]:
    """A score or the zeros by rising λ; none if a run is missing, or the features are standardised."""
    by_strength = sorted(results.by_strength(data).items())
    runs = [
        problem.reference if converged else problem.runs.get(results.study.sparsity_of, [])
        for _, problem in by_strength
    ]
    complete = all(runs) and not data.standardised
    return [MeanOverSplits.of_score(records, score).mean for records in runs] if complete else []


def _join_numbers(values: Sequence[float], form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in values)


# Our results beside the paper's ----------------------------------------------------------------------------


def _scores(results: StudyResults, name: str) -> Iterator[tuple[Problem, str, str, float, float]]:
    """(problem, method, measure, our score, the paper's) of a data set."""
    for problem in results.on(name):
        for method in problem.runs:
            for measure in paper.MEASURES:
                theirs = paper.SCORES[name].get((measure, problem.regulariser.name, method))
                if theirs is not None:
                    yield problem, method, measure, problem.mean(measure, method), theirs


@check(COMPARISONS, "a1a, MMI and H MMI, hyperbolic and ℓ2: the four scores are the paper's, digit by digit")
def four_digits(results: StudyResults) -> Answer:
    """The entries where the paper's runs had converged as far as ours."""
    cases = (
        (
            f"{measure} of {method}/{problem.regulariser.name} is {ours:.4f}, not {theirs:.4f}",
            abs(round(ours, 4) - theirs) <= 1e-9,
        )
        for problem, method, measure, ours, theirs in _scores(results, "a1a")
        if method in ("MMI", "H MMI") and problem.regulariser.name in ("hyperbolic", "ℓ2")
    )
    return _by_cases(cases, "all {count} figures are equal")


@check(COMPARISONS, "a1a at five strengths λ (sparsity:a1a): the scores are the paper's, digit by digit")
def strengths_agree(results: StudyResults) -> Answer:
    """The scores of sparsity:a1a, at five strengths."""
    printed, method = paper.SPARSITY["a1a"], results.study.sparsity_of
    cases = []
    for data in results.study.data:
        for lam, problem in results.by_strength(data).items() if data.name == "a1a" else ():
            if lam in printed and method in problem.runs:
                for measure, ours in scores_of(problem.runs[method][0]).items():
                    theirs = getattr(printed[lam], measure)
                    case = f"{measure} at λ = {lam:g} is {ours:.4f}, not {theirs:.4f}"
                    cases.append((case, abs(ours - theirs) <= 1e-4))
    return _by_cases(cases, "all {count} figures are equal, which also names the method")


@check(COMPARISONS, f"a1a: every other score is within {100 * TOLERANCE:g} points of the paper's")
def a1a_is_close(results: StudyResults) -> Answer:
    """All other entries of tab:a1a."""
    far: list[str] = []
    converged: list[str] = []
    scores = list(_scores(results, "a1a"))
    count = len(scores)
    for problem, method, measure, ours, theirs in scores:
        if abs(ours - theirs) > TOLERANCE:
            score = f"{measure} of {method}/{problem.regulariser.name} {ours:.4f} (paper {theirs:.4f})"
            reference = problem.reference
            at_minimum = MeanOverSplits.of_score(reference, measure).mean if reference else math.nan
            (converged if ours == at_minimum else far).append(score)
    reasons = []
    if converged:
        reasons.append(
            f"{len(converged)} of {count} scores are those of the minimum, which the paper's run had not "
            "reached: " + join(converged, 20)
        )
    if far:
        reasons.append(
            f"{len(far)} of {count} are of runs that are on their way, whose place after some iterations "
            "depends on steps that the paper does not print, and one test row is 1.1 points of recall: "
            + join(far, 20)
        )
    if reasons and (earlier := _matched_earlier(results)):
        reasons.append(f"our own runs pass through all four of the paper's scores earlier: {earlier}")
    return (not reasons, "; ".join(reasons) or f"all {count} are") if scores else None


def _matched_earlier(results: StudyResults) -> str:
    """The a1a runs that had the paper's scores at an earlier iteration."""
    found = []
    for problem in results.on("a1a"):
        for method in problem.runs:
            at = matching_iterations(problem, method)
            if at and at[-1] < results.study.iterations:
                found.append(f"{method}/{problem.regulariser.name} last at iteration {at[-1]}")
    return ", ".join(found)


@check(COMPARISONS, "cina0: every method's F1 is at least the paper's")
def cina0_is_as_good(results: StudyResults) -> Answer:
    """The entries of tab:cina0."""
    cases = (
        (f"{method}/{problem.regulariser.name} {ours:.4f} (paper {theirs:.4f})", ours >= theirs)
        for problem, method, measure, ours, theirs in _scores(results, "cina0")
        if measure == "F1"
    )
    return _by_cases(cases, "it is in all {count} cells")


@check(COMPARISONS, f"cina0: MM INVERSION after 100 iterations has the scores {CONVERGED_CINA0}")
def cina0_by_inversion(results: StudyResults) -> Answer:
    """The scores at the minimum, which the paper's runs did not reach."""
    answers = []
    for problem in results.on("cina0"):
        for name, records in (("", problem.runs.get("MMI")), (", converged", problem.reference)):
            if not records:
                return None
            scores = " / ".join(f"{value:.4f}" for value in scores_of(records[0]).values())
            judged = not name and problem.regulariser.potential != "welsch"
            because = f"{problem.regulariser.name}{name} {scores}"
            answers.append((scores == CONVERGED_CINA0 or not judged, because))
    return _by_all(answers)


@check(COMPARISONS, "w8a: the mean F1 of the converged models over the splits is at least 0.70")
def w8a_is_good(results: StudyResults) -> Answer:
    """w8a at the minimum."""
    f1 = {
        problem.regulariser.name: MeanOverSplits.of_score(problem.reference, "F1")
        for problem in results.on("w8a")
        if problem.reference
    }
    because = "it is " + ", ".join(f"{name} {value.text()}" for name, value in f1.items())
    return (min(value.mean for value in f1.values()) >= 0.70, because) if f1 else None


@check(COMPARISONS, "Every method but FG takes less time than the paper's table says")
def times_are_shorter(results: StudyResults) -> Answer:
    """tab:time on one core, without FG."""
    cases, slower_if_exchanged = [], 0
    for problem in results.problems:
        for method in problem.runs:
            row = (problem.data.source, problem.regulariser.name)
            if (*row, method) not in paper.TIMES or problem.data.standardised or method == "FG":
                continue
            ours, theirs = problem.mean("seconds", method), paper.TIMES[*row, method]
            slower_if_exchanged += ours >= paper.TIMES[*row, EXCHANGED.get(method, method)]
            case = f"{method} on {'/'.join(row)} {ours:.3f} s (paper {theirs:.3f} s)"
            cases.append((case, ours < theirs))
    return _by_cases(
        cases, "it does in all {count} cells", "{lost} of {count} cells take longer: {which}; with the heads "
        f"of the paper's columns put right (see tab:time), {slower_if_exchanged} of {{count}} do", 12,
    )  # fmt: skip
