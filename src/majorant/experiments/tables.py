"""Every table of the paper: our numbers, the paper's, the difference."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from majorant.experiments import paper
from majorant.experiments.study import STOCHASTIC, DataSet
from majorant.experiments.study_results import MeanOverSplits, StudyResults, matching_iterations

OURS, PAPER, DIFFERENCE = "ours", "paper", "difference"
Row = tuple[str, ...]
TEXTS = tomllib.loads((files(__package__) / "tables.toml").read_text(encoding="utf-8"))


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


def _table(
    kind: str,
    results: StudyResults,
    rows: Sequence[Row],
    notes: Sequence[str] = (),
    data: DataSet | None = None,
    **values: Any,
) -> Table:
    """A table of this kind: its fixed text stands in tables.toml."""
    text, methods = TEXTS[kind], [method.name for method in results.study.methods]

    def filled(line: str) -> str:
        return line.format(study=results.study, data=data, **values)

    header = [name for head in text["header"] for name in (methods if head == "{methods}" else [head])]
    notes = [*map(filled, text["notes"]), *notes]
    return Table(filled(text["label"]), filled(text["title"]), tuple(header), rows, notes, text["names"])


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
            differences = (f"{o - t:+d}" if o != t else "0" for o, t in zip(ours, theirs, strict=True))
            rows.append((data.name, DIFFERENCE, *differences))
    return _table("data", results, rows)


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
            rows.append((measure, regulariser, OURS, *(value.text() for value in ours)))
            if all((measure, regulariser, method) in printed for method in methods):
                theirs = [printed[measure, regulariser, method] for method in methods]
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
    return _table("scores", results, rows, notes, data)


def matching_table(results: StudyResults, data: DataSet) -> Table:
    """The iterations at which our runs have the paper's scores: how far the paper's runs had come."""
    rows: list[Row] = []
    for problem in results.on(data.name):
        regulariser = problem.regulariser.name
        if problem.complete and all(("F1", regulariser, m) in paper.SCORES[data.name] for m in problem.runs):
            rows.append((regulariser, *(_ranges(matching_iterations(problem, m)) for m in problem.runs)))
    return _table("matching", results, rows, data=data)


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
            ratios = (f"{t / o:.1f}" for o, t in zip(ours, theirs, strict=True))
            rows.append((problem.data.name, regulariser, "paper / ours", *ratios))
    return _table("times", results, rows)


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
    notes = _misprints(f"sparsity:{data.source}")
    if equal:
        notes.append("To find as many zeros as the paper, count those below " + ", ".join(equal) + ".")
    return _table("sparsity", results, rows, notes, data)


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
    return _table("gaps", results, rows)


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
    return _table(
        "rates", results, rows, seeds=len(study.search_seeds), lowest=min(study.rates),
        highest=max(study.rates), refinements=", ".join(f"{factor:g}" for factor in study.refinements),
    )  # fmt: skip


def minimum_table(results: StudyResults) -> Table:
    """The minima that gaps are measured from, with their certificates."""
    rows: list[Row] = []
    for problem in results.problems:
        for record in problem.reference[:1]:
            gap = record["gap"]
            bound = f"stationarity {record['stationarity']:.1e}" if gap is None else f"duality gap {gap:.1e}"
            iterations, seconds = str(len(record["phi"]) - 1), f"{record['seconds']:.3f}"
            found = (f"{record['objective']:.6f}", bound, iterations, seconds)
            lowest = f"{results.minimum(problem):.6f}"
            rows.append((problem.data.name, problem.regulariser.name, *found, lowest))
    return _table("minima", results, rows)


def _misprints(label: str) -> list[str]:
    return [f"Misprint in {slip.place}: {slip}" for slip in paper.MISPRINTS if slip.label == label]


def _digits(values: Iterable[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]


def _differences(ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    differences = (round(o, 4) - t for o, t in zip(ours, theirs, strict=True))
    return ["0" if abs(difference) < 5e-5 else f"{difference:+.4f}" for difference in differences]
