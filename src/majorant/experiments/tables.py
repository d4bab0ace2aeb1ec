"""Every table of the paper: our numbers, the paper's, the difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from majorant.experiments import paper
from majorant.experiments.study import STOCHASTIC, DataSet
from majorant.experiments.study_results import MeanOverSplits, StudyResults, matching_iterations

__all__ = ["Table", "all_tables"]

OURS, PAPER, DIFFERENCE = "ours", "paper", "difference"
Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    label: str
    """The paper's label of the table, or our own."""
    title: str
    header: Row
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    names: int = 1
    """The number of columns, from the left, that are names and not numbers."""


def all_tables(results: StudyResults) -> list[Table]:
    """All tables whose runs are done.

    Parameters
    ----------
    results : StudyResults

    Returns
    -------
    list of Table
        The paper's, in its order; then the learning rates, the minima, and the gaps behind its figures.
    """
    study = results.study
    tables = [data_table(results)]
    tables += [score_table(results, data) for data in study.data]
    # Only on a1a are the test rows the paper's and its runs in the same units.
    tables += [matching_table(results, data) for data in study.data if data.name == "a1a"]
    tables.append(time_table(results))
    tables += [sparsity_table(results, data) for data in study.data if not data.standardised]
    tables += [gap_table(results), rate_table(results), minimum_table(results)]
    return [t for t in tables if t.rows and (not study.labels or t.label in (*study.labels, "rates"))]


def data_table(results: StudyResults) -> Table:
    """tab:data."""
    rows: list[Row] = []
    for data in results.study.data:
        found = next((one for run, one in results.records.select(results.all_runs) if run.data == data), None)
        if found is None or data.standardised:
            continue
        ours = (found["n_features"] + 1, found["n_train"], found["n_test"], found["test_positives"])
        rows.append((data.name, OURS, *map(str, ours)))
        if data.source in paper.DATA:
            theirs = (*paper.DATA[data.source], paper.TEST_POSITIVES[data.source])
            rows.append((data.name, PAPER, *map(str, theirs[:3]), f"{theirs[3]} (implied)"))
            rows.append(
                (data.name, DIFFERENCE, *(f"{o - t:+d}" if o != t else "0" for o, t in _zip(ours, theirs)))
            )
    notes = (
        "The number of test positives is not printed: it is what the fractions in the paper's tables imply.",
        "w8a: the file has all its positives in one run of rows, and the order that the paper divides is "
        "unknown; ours are divided at random, each class in proportion.",
    )
    header = ("data set", "", "N + 1", "training rows", "test rows", "test positives")
    return Table("tab:data", "Data sets", header, rows, notes, names=2)


def score_table(results: StudyResults, data: DataSet) -> Table:
    """tab:a1a, tab:w8a, tab:cina0."""
    printed, methods = paper.SCORES.get(data.source, {}), [method.name for method in results.study.methods]
    problems = [one for one in results.on(data.name) if one.complete and one.reference]
    rows: list[Row] = []
    for measure in paper.MEASURES:
        for problem in problems:
            regulariser = problem.regulariser.name
            records = (*problem.runs.values(), problem.reference)
            ours = [MeanOverSplits.of_score(splits, measure) for splits in records]
            theirs = [
                printed[measure, regulariser, m] for m in methods if (measure, regulariser, m) in printed
            ]
            rows.append((measure, regulariser, OURS, *(value.text() for value in ours)))
            if len(theirs) == len(methods):
                rows.append((measure, regulariser, PAPER, *_digits(theirs), ""))
                means = [value.mean for value in ours[:-1]]
                rows.append((measure, regulariser, DIFFERENCE, *_differences(means, theirs), ""))
    notes = _misprints(f"tab:{data.source}")
    if f"tab:{data.source}" in paper.LABELS_SWAPPED:
        notes.insert(
            0, "The paper's rows Recall and Precision are swapped; here they have their right names."
        )
    if data.splits > 1:
        notes.append(f"Ours: mean ± standard deviation over {data.splits} splits at random.")
    title = f"Scores on the test rows of {data.name} after {results.study.iterations} iterations"
    header = ("measure", "regulariser", "", *methods, "converged")
    return Table(f"tab:{data.name}", title, header, rows, notes, names=3)


def matching_table(results: StudyResults, data: DataSet) -> Table:
    """The iterations at which our runs have the paper's scores: how far the paper's runs had come."""
    rows: list[Row] = []
    for problem in results.on(data.name):
        regulariser = problem.regulariser.name
        if problem.complete and all(("F1", regulariser, m) in paper.SCORES[data.name] for m in problem.runs):
            iterations = (
                matching_iterations(records[0], paper.corrected_scores(data.name, regulariser, method))
                for method, records in problem.runs.items()
            )
            rows.append((regulariser, *map(_ranges, iterations)))
    notes = (
        "At these iterations all four scores are the paper's (misprints put right); —: at none. A run that "
        "has "
        "them earlier than the paper is further on after as many iterations.",
    )
    header = ("regulariser", *(method.name for method in results.study.methods))
    title = f"Where our runs on {data.name} have the paper's scores"
    return Table(f"passages:{data.name}", title, header, rows, notes)


def _ranges(numbers: list[int], most: int = 3) -> str:
    """1, 2, 3, 7 as "1–3, 7"; the last `most` ranges."""
    ranges: list[list[int]] = []
    for n in numbers:
        if ranges and n == ranges[-1][1] + 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in ranges]
    return ", ".join(["…"] * (len(texts) > most) + texts[-most:]) or "—"


def time_table(results: StudyResults) -> Table:
    """tab:time."""
    rows: list[Row] = []
    for problem in results.complete(standardised=False):
        source, regulariser = problem.data.source, problem.regulariser.name
        ours = [problem.mean("seconds", method) for method in problem.runs]
        theirs = [paper.TIMES.get((source, regulariser, method), math.nan) for method in problem.runs]
        rows.append((problem.data.name, regulariser, OURS, *_digits(ours)))
        if not any(map(math.isnan, theirs)):
            rows.append((problem.data.name, regulariser, PAPER, *_digits(theirs)))
            ratios = (f"{t / o:.1f}" for o, t in _zip(ours, theirs))
            rows.append((problem.data.name, regulariser, "paper / ours", *ratios))
    notes = (
        "Seconds of processor time on one core, of the first split; evaluation for the trace is not counted. "
        f"Each iteration counts as in the fastest of up to {results.study.repeats} repeats, which all take "
        "the same way: others on the machine disturb the rest. The paper's machine has an i7-7700HQ.",
        "The paper's last row of a1a is as large as its rows of cina0, and cannot be that of a1a.",
        "In the paper MMI and MM take about eight times as long as H MMI and H MM, though the hybrids only "
        "add epochs of Adam, and H SUB takes as much longer than SUB: the heads of the columns MMI and H "
        "MMI, MM and H MM are very likely exchanged.",
    )
    header = ("data set", "regulariser", "", *(method.name for method in results.study.methods))
    return Table("tab:time", "Time of the training in seconds", header, rows, notes, names=3)


def sparsity_table(results: StudyResults, data: DataSet) -> Table:
    """sparsity:a1a, sparsity:cina0, sparsity:w8a."""
    study, printed = results.study, paper.SPARSITY.get(data.source, {})
    rows: list[Row] = []
    equal: list[str] = []
    for lam, problem in results.by_strength(data).items():
        stopped, converged, name = problem.runs.get(study.sparsity_of), problem.reference, f"{lam:g}"
        if not stopped or not converged:
            continue
        rows.append((name, f"{OURS}, {study.iterations} iterations", *_sparsity_row(stopped)))
        if lam in printed:
            theirs = [getattr(printed[lam], measure) for measure in paper.MEASURES]
            means = [problem.mean(measure, study.sparsity_of) for measure in paper.MEASURES]
            zeros = problem.mean("zeros", study.sparsity_of) - printed[lam].zeros
            rows.append((name, PAPER, str(printed[lam].zeros), *_digits(theirs)))
            rows.append((name, DIFFERENCE, f"{zeros:+.4g}", *_differences(means, theirs)))
            equal.append(f"{_zero_threshold(stopped, printed[lam].zeros):.2g} at λ = {lam:g}")
        rows.append((name, f"{OURS}, converged", *_sparsity_row(converged)))
    notes = [
        f"Zeros are coefficients of at most {study.zero_below:g} in size; the paper does not say what it "
        f"counts. The method is {study.sparsity_of}, the one whose scores on a1a are the paper's.",
        *_misprints(f"sparsity:{data.source}"),
    ]
    if equal:
        notes.append("To find as many zeros as the paper, count those below " + ", ".join(equal) + ".")
    title = f"Zeros and scores on {data.name} by λ, hyperbolic"
    return Table(f"sparsity:{data.name}", title, ("λ", "", "zeros", *paper.MEASURES), rows, notes, names=2)


def _sparsity_row(records: Sequence[dict[str, Any]]) -> list[str]:
    zeros = MeanOverSplits.of_score(records, "zeros")
    scores = [MeanOverSplits.of_score(records, measure).text() for measure in paper.MEASURES]
    return [zeros.text(int(zeros.count > 1)), *scores]


def _zero_threshold(records: Sequence[dict[str, Any]], zeros: int) -> float:
    """The size below which our runs have `zeros` coefficients."""
    if zeros == 0:
        return 0.0
    return float(np.mean([np.sort(np.abs(record["theta"][:-1]))[zeros - 1] for record in records]))


def gap_table(results: StudyResults) -> Table:
    """The last points of the paper's fig:optimality, in numbers."""
    rows = [
        (one.data.name, one.regulariser.name, *(f"{results.gap(one, method):.1e}" for method in one.runs))
        for one in results.complete()
    ]
    notes = ("(Φ − Φ*)/Φ*; over several splits, the mean.",)
    header = ("data set", "regulariser", *(method.name for method in results.study.methods))
    title = f"Gap after {results.study.iterations} iterations"
    return Table("fig:optimality", title, header, rows, notes, names=2)


def rate_table(results: StudyResults) -> Table:
    """The learning rates found by the search."""
    study, rates = results.study, results.plan.rates
    rows: list[Row] = []
    for problem in results.problems:
        key = (problem.data, problem.regulariser)
        found = [(rates[*key, s], results.search.mean_phi(*key, s, rates[*key, s])) for s in STOCHASTIC]
        if all(math.isfinite(phi) for _, phi in found):
            entries = (text for rate, phi in found for text in (f"{rate:g}", f"{phi:.2f}"))
            rows.append((problem.data.name, problem.regulariser.name, *entries))
    header = ("data set", "regulariser", *(part for s in STOCHASTIC for part in (s, f"Φ by {s}")))
    notes = (
        f"The lowest Φ after {study.warmup} epochs, on average over {len(study.search_seeds)} seed(s), on "
        f"the first split; tried: {min(study.rates):g} to {max(study.rates):g} by decades, then the best "
        f"times {', '.join(f'{factor:g}' for factor in study.refinements)}.",
        f"Steps are constant, batches have {study.methods[0].batch_size} rows, and the penalty is weighed as "
        "in the paper, where it counts as often as there are rows.",
    )
    return Table("rates", "Learning rates", header, rows, notes, names=2)


def minimum_table(results: StudyResults) -> Table:
    """The minima that gaps are measured from, with their certificates."""
    rows: list[Row] = []
    for problem in results.problems:
        for record in problem.reference[:1]:
            gap = record["gap"]
            bound = f"stationarity {record['stationarity']:.1e}" if gap is None else f"duality gap {gap:.1e}"
            found = (
                f"{record['objective']:.6f}",
                bound,
                str(len(record["phi"]) - 1),
                f"{record['seconds']:.3f}",
            )
            lowest = f"{results.minimum(problem):.6f}"
            rows.append((problem.data.name, problem.regulariser.name, *found, lowest))
    names = ("Φ by auto", "certificate", "iterations", "seconds", "lowest Φ of all runs")
    notes = (
        "Of the first split. A duality gap, relative to Φ, bounds how far Φ is above its minimum. Welsch's "
        "potential is not convex: nothing bounds Φ from below, and another run may end in a better minimum.",
    )
    return Table("minima", "Minima", ("data set", "regulariser", *names), rows, notes, names=2)


def _misprints(label: str) -> list[str]:
    return [f"Misprint in {slip.place}: {slip}" for slip in paper.MISPRINTS if slip.label == label]


def _zip(ours: Sequence[Any], theirs: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(ours, theirs, strict=True)


def _digits(values: Iterable[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]


def _differences(ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    differences = (round(o, 4) - t for o, t in _zip(ours, theirs))
    return ["0" if abs(difference) < 5e-5 else f"{difference:+.4f}" for difference in differences]
