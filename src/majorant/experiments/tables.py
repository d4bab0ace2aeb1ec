"""Every table of the paper: our figures, the paper's, the difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from majorant.experiments import printed
from majorant.experiments.outcomes import Outcomes, Spread, passages, scores_of
from majorant.experiments.plan import mean_phi
from majorant.experiments.protocol import STOCHASTIC, DataSet

__all__ = ["Table", "all_tables"]

OURS, PAPER, DIFFERENCE = "ours", "paper", "difference"


@dataclass(frozen=True)
class Table:
    """Rows of text under a head."""

    label: str
    """The paper's label of the table, or a name of ours."""
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    names: int = 1
    """How many columns, from the left, are names and not numbers."""


def all_tables(outcomes: Outcomes) -> list[Table]:
    """All tables for which there are results.

    Parameters
    ----------
    outcomes : Outcomes

    Returns
    -------
    list of Table
        The paper's, in its order; then the learning rates, the minima, and the gaps behind its figures.
    """
    tables = [data_table(outcomes)]
    tables += [score_table(outcomes, data) for data in outcomes.study.data]
    # Only there the test rows are the paper's, and its runs in the same units.
    tables += [passage_table(outcomes, data) for data in outcomes.study.data if data.name == "a1a"]
    tables.append(time_table(outcomes))
    tables += [sparsity_table(outcomes, data) for data in outcomes.study.data if not data.standardised]
    tables += [gap_table(outcomes), rate_table(outcomes), minimum_table(outcomes)]
    chosen = outcomes.study.labels
    return [table for table in tables if table.rows and (not chosen or table.label in (*chosen, "rates"))]


def data_table(outcomes: Outcomes) -> Table:
    """tab:data."""
    rows: list[tuple[str, ...]] = []
    for data in outcomes.study.data:
        found = next((r for t, r in outcomes.results.of(outcomes.tasks) if t.data == data), None)
        if found is None or data.standardised:
            continue
        sizes = (found["n_features"] + 1, found["n_train"], found["n_test"])
        rows.append((data.name, OURS, *map(str, sizes), str(found["test_positives"])))
        if data.source in printed.DATA:
            theirs = printed.DATA[data.source]
            implied = printed.TEST_POSITIVES[data.source]
            rows.append((data.name, PAPER, *map(str, theirs), f"{implied} (implied)"))
            differences = np.subtract(sizes, theirs)
            rows.append(
                (data.name, DIFFERENCE, *map(_whole, differences), _whole(found["test_positives"] - implied))
            )
    notes = (
        "The number of test positives is not printed: it is what the fractions in the paper's tables imply.",
        "w8a: the file has all its positives in one run of rows, and the order that the paper divides is "
        "unknown; ours are divided at random, each class in proportion.",
    )
    header = ("data set", "", "N + 1", "training rows", "test rows", "test positives")
    return Table("tab:data", "Data sets", header, tuple(rows), notes, names=2)


def score_table(outcomes: Outcomes, data: DataSet) -> Table:
    """tab:a1a, tab:w8a, tab:cina0."""
    theirs = printed.SCORES.get(data.source, {})
    rows: list[tuple[str, ...]] = []
    for measure in printed.MEASURES:
        for regulariser in outcomes.study.regularisers:
            found = [outcomes.cells(data, regulariser, method) for method in outcomes.study.methods]
            converged = outcomes.references(data, regulariser)
            if not all(found) or not converged:
                continue
            ours = [outcomes.spread(records, measure) for records in (*found, converged)]
            names = (measure, regulariser.name)
            rows.append((*names, OURS, *(spread.text() for spread in ours)))
            keys = [(measure, regulariser.name, method.name) for method in outcomes.study.methods]
            if all(key in theirs for key in keys):
                figures = [theirs[key] for key in keys]
                rows.append((*names, PAPER, *(f"{figure:.4f}" for figure in figures), ""))
                pairs = zip(ours, figures, strict=False)
                rows.append((*names, DIFFERENCE, *(_difference(o.mean, p) for o, p in pairs), ""))
    label = f"tab:{data.name}"
    header = ("measure", "regulariser", "", *(m.name for m in outcomes.study.methods), "converged")
    notes = list(_misprint_notes(f"tab:{data.source}"))
    if f"tab:{data.source}" in printed.LABELS_SWAPPED:
        notes.insert(
            0, "The paper's rows Recall and Precision are swapped; here they have their right names."
        )
    if data.splits > 1:
        notes.append(f"Ours: mean ± standard deviation over {data.splits} splits at random.")
    title = f"Scores on the test rows of {data.name} after {outcomes.study.iterations} iterations"
    return Table(label, title, header, tuple(rows), tuple(notes), names=3)


def _misprint_notes(label: str) -> Iterator[str]:
    for slip in printed.MISPRINTS:
        if slip.label == label:
            yield (
                f"Misprint in {slip.place}: {slip.measure} {slip.printed:g} is very likely {slip.right:.4f} "
                f"({slip.because})."
            )


def passage_table(outcomes: Outcomes, data: DataSet) -> Table:
    """Where our runs pass through the paper's scores: how far its runs had come, as it were."""
    rows: list[tuple[str, ...]] = []
    methods = outcomes.study.methods
    for regulariser in outcomes.study.regularisers:
        found = [outcomes.cells(data, regulariser, method) for method in methods]
        keys = [("F1", regulariser.name, method.name) for method in methods]
        if all(found) and all(key in printed.SCORES.get(data.name, {}) for key in keys):
            figures = [printed.put_right(data.name, regulariser.name, method.name) for method in methods]
            cells = (passages(records[0], four) for records, four in zip(found, figures, strict=True))
            rows.append((regulariser.name, *map(_spans, cells)))
    notes = (
        "At these iterations all four scores are the paper's (misprints put right); —: at none. A run "
        "that has "
        "them earlier than the paper is further on after as many iterations.",
    )
    header = ("regulariser", *(method.name for method in methods))
    title = f"Where our runs on {data.name} have the paper's scores"
    return Table(f"passages:{data.name}", title, header, tuple(rows), notes)


def _spans(numbers: list[int], most: int = 3) -> str:
    """1, 2, 3, 7 as 1–3, 7; of many spans the last ones."""
    spans: list[list[int]] = []
    for n in numbers:
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    words = [str(a) if a == b else f"{a}–{b}" for a, b in spans]
    return ", ".join(["…"] * (len(words) > most) + words[-most:]) or "—"


def time_table(outcomes: Outcomes) -> Table:
    """tab:time."""
    rows: list[tuple[str, ...]] = []
    methods = outcomes.study.methods
    for data in outcomes.study.data:
        for regulariser in outcomes.study.regularisers:
            found = [outcomes.cells(data, regulariser, method) for method in methods]
            if data.standardised or not all(found):
                continue
            ours = [outcomes.spread(records, "seconds").mean for records in found]
            names = (data.name, regulariser.name)
            rows.append((*names, OURS, *(f"{seconds:.4f}" for seconds in ours)))
            keys = [(data.source, regulariser.name, method.name) for method in methods]
            if all(key in printed.TIMES for key in keys):
                theirs = [printed.TIMES[key] for key in keys]
                rows.append((*names, PAPER, *(f"{seconds:.4f}" for seconds in theirs)))
                ratios = (p / o for o, p in zip(ours, theirs, strict=True))
                rows.append((*names, "paper / ours", *(f"{ratio:.1f}" for ratio in ratios)))
    notes = (
        "Seconds of processor time on one core, of the first split; evaluation for the trace is not counted. "
        f"Each iteration counts as in the fastest of up to {outcomes.study.repeats} repeats, which all take "
        "the same way: others on the machine disturb the rest. The paper's machine has an i7-7700HQ.",
        "The paper's last row of a1a is as large as its rows of cina0, and cannot be that of a1a.",
        "In the paper MMI and MM take about eight times as long as H MMI and H MM, though the hybrids only "
        "add epochs of Adam, and H SUB takes as much longer than SUB: the heads of the columns MMI and H "
        "MMI, MM and H MM are very likely exchanged.",
    )
    header = ("data set", "regulariser", "", *(method.name for method in methods))
    return Table("tab:time", "Time of the training in seconds", header, tuple(rows), notes, names=3)


def sparsity_table(outcomes: Outcomes, data: DataSet) -> Table:
    """sparsity:a1a, sparsity:cina0, sparsity:w8a."""
    study, plan = outcomes.study, outcomes.plan
    theirs = printed.SPARSITY.get(data.source, {})
    rows: list[tuple[str, ...]] = []
    equal: list[str] = []
    for lam in study.lambdas:
        regulariser = plan.stronger(lam)
        stopped = outcomes.cells(data, regulariser, plan.sparsity_method())
        converged = outcomes.references(data, regulariser)
        if not stopped or not converged:
            continue
        name = f"{lam:g}"
        rows.append((name, f"{OURS}, {study.iterations} iterations", *_sparsity_row(stopped)))
        if lam in theirs:
            row = theirs[lam]
            scores = (row.accuracy, row.precision, row.recall, row.F1)
            rows.append((name, PAPER, str(row.zeros), *(f"{score:.4f}" for score in scores)))
            means = [outcomes.spread(stopped, measure).mean for measure in printed.MEASURES]
            zeros = float(np.mean([record["zeros"][-1] for record in stopped]))
            apart = (_difference(o, p) for o, p in zip(means, scores, strict=True))
            rows.append((name, DIFFERENCE, f"{zeros - row.zeros:+.4g}", *apart))
            equal.append(f"{_width_for(stopped, row.zeros):.2g} at λ = {lam:g}")
        rows.append((name, f"{OURS}, converged", *_sparsity_row(converged)))
    notes = [
        f"Zeros are coefficients of at most {study.zero_below:g} in size; the paper does not say what it "
        f"counts. The method is {study.sparsity_of}, the one whose scores on a1a are the paper's.",
        *_misprint_notes(f"sparsity:{data.source}"),
    ]
    if equal:
        notes.append("To find as many zeros as the paper, count those below " + ", ".join(equal) + ".")
    header = ("λ", "", "zeros", *printed.MEASURES)
    title = f"Zeros and scores on {data.name} by λ, hyperbolic"
    return Table(f"sparsity:{data.name}", title, header, tuple(rows), tuple(notes), names=2)


def _sparsity_row(records: Sequence[dict[str, Any]]) -> list[str]:
    zeros = Spread.of([record["zeros"][-1] for record in records])
    text = f"{zeros.mean:.0f}" if zeros.count == 1 else f"{zeros.mean:.1f} ± {zeros.deviation:.1f}"
    scores = [scores_of(record) for record in records]
    return [text, *(Spread.of([one[measure] for one in scores]).text() for measure in printed.MEASURES)]


def _width_for(records: Sequence[dict[str, Any]], zeros: int) -> float:
    """The size below which our runs have `zeros` coefficients."""
    if zeros == 0:
        return 0.0
    return float(np.mean([np.sort(np.abs(record["theta"][:-1]))[zeros - 1] for record in records]))


def gap_table(outcomes: Outcomes) -> Table:
    """The last points of the paper's fig:optimality, in numbers."""
    rows: list[tuple[str, ...]] = []
    for data, regulariser in outcomes.problems():
        gaps = [outcomes.gaps(data, regulariser, method) for method in outcomes.study.methods]
        rows.append((data.name, regulariser.name, *(f"{float(np.mean(gap)):.1e}" for gap in gaps)))
    notes = ("(Φ − Φ*)/Φ*; over several splits, the mean.",)
    header = ("data set", "regulariser", *(method.name for method in outcomes.study.methods))
    title = f"Gap after {outcomes.study.iterations} iterations"
    return Table("fig:optimality", title, header, tuple(rows), notes, names=2)


def rate_table(outcomes: Outcomes) -> Table:
    """The outcome of the search for learning rates."""
    study, results, rates = outcomes.study, outcomes.results, outcomes.plan.rates
    rows: list[tuple[str, ...]] = []
    for data in study.data:
        for regulariser in study.regularisers:
            row = [data.name, regulariser.name]
            for solver in STOCHASTIC:
                rate = rates[data, regulariser, solver]
                phi = mean_phi(study, data, regulariser, solver, rate, results)
                row += [f"{rate:g}", f"{phi:.2f}"]
            if all(math.isfinite(float(cell)) for cell in row[3::2]):
                rows.append(tuple(row))
    header = ("data set", "regulariser", *(part for s in STOCHASTIC for part in (s, f"Φ by {s}")))
    notes = (
        f"The lowest Φ after {study.warmup} epochs, on average over {len(study.search_seeds)} seed(s), on "
        f"the first split; tried: {min(study.rates):g} to {max(study.rates):g} by decades, then the best "
        f"times {', '.join(f'{factor:g}' for factor in study.refinements)}.",
        f"Steps are constant, batches have {study.methods[0].batch_size} rows, and the penalty is weighed as "
        "in the paper, where it counts as often as there are rows.",
    )
    return Table("rates", "Learning rates", header, tuple(rows), notes, names=2)


def minimum_table(outcomes: Outcomes) -> Table:
    """The minima that gaps are measured from, with their certificates."""
    rows: list[tuple[str, ...]] = []
    for data in outcomes.study.data:
        for regulariser in outcomes.study.regularisers:
            found = outcomes.references(data, regulariser)[:1]
            for record in found:
                gap = record["gap"]
                proof = (
                    f"stationarity {record['stationarity']:.1e}" if gap is None else f"duality gap {gap:.1e}"
                )
                lowest = outcomes.minimum(data, regulariser)
                iterations = str(len(record["phi"]) - 1)
                figures = (f"{record['objective']:.6f}", proof, iterations, f"{record['seconds']:.3f}")
                rows.append((data.name, regulariser.name, *figures, f"{lowest:.6f}"))
    header = (
        "data set",
        "regulariser",
        "Φ by auto",
        "certificate",
        "iterations",
        "seconds",
        "lowest Φ of all runs",
    )
    notes = (
        "Of the first split. A duality gap, relative to Φ, bounds how far Φ is above its minimum. Welsch's "
        "potential is not convex: nothing bounds Φ from below, and another run may end in a better minimum.",
    )
    return Table("minima", "Minima", header, tuple(rows), notes, names=2)


def _difference(ours: float, theirs: float) -> str:
    apart = round(ours, 4) - theirs
    return "0" if abs(apart) < 5e-5 else f"{apart:+.4f}"


def _whole(difference: float) -> str:
    return "0" if difference == 0 else f"{int(difference):+d}"
