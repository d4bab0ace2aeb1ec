"""A reproduction as Markdown, as an HTML page with the style and the charts of reports, and as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from majorant import __version__
from majorant.experiments.claims import CLAIMS, Check, run_checks
from majorant.experiments.comparison import COMPARISONS
from majorant.experiments.figures import draw_gaps, draw_stochastic, draw_theory, draw_zeros
from majorant.experiments.paper import errata
from majorant.experiments.study_results import StudyResults
from majorant.experiments.tables import Table, all_tables
from majorant.reporting.page import render

__all__ = ["markdown", "markdown_table", "page", "plain_table"]


def markdown_table(table: Table) -> str:
    """The table with its notes."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    ruler = [":--" if k < table.names else "--:" for k in range(len(table.header))]
    notes = "".join(f"\n- {note}" for note in table.notes)
    rows = "\n".join(map(line, (table.header, ruler, *table.rows)))
    return f"### {table.title} (`{table.label}`)\n\n{rows}\n" + (f"{notes}\n" if notes else "")


def plain_table(table: Table) -> str:
    """The table in columns."""
    lines = [table.header, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [
        [
            cell.ljust(width) if k < table.names else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        for cells in lines
    ]
    text = [f"{table.title} ({table.label})", "", *("  ".join(cells).rstrip() for cells in aligned)]
    return "\n".join([*text, *(f"* {note}" for note in table.notes)])


def markdown(results: StudyResults, missing: Mapping[str, str] | None = None) -> str:
    """The whole reproduction as one Markdown document.

    Parameters
    ----------
    results : StudyResults
    missing : mapping, optional
        Data sets that are not available, and the file that each of them needs.
    """
    study = results.study
    parts = [
        "# The paper, reproduced\n",
        "Every table of *Majorization-Minimization for sparse SVMs* next to our own figures, and what the "
        "paper "
        f"claims, tested. Made by `majorant reproduce` ({study.name}, majorant {__version__}).\n",
    ]
    if missing:
        parts += ["## Data that were not there\n", "".join(f"- {line}\n" for line in missing.values())]
    if not study.labels:
        parts += [
            "## Does it agree?\n",
            "".join(map(_markdown_check, run_checks(COMPARISONS, results))),
            "## What the paper claims\n",
            "".join(map(_markdown_check, run_checks(CLAIMS, results))),
            "## What the paper prints wrongly\n",
            "".join(f"- {sentence}\n" for sentence in errata()),
        ]
    tables = map(markdown_table, all_tables(results))
    return "\n".join([*parts, "## Tables\n", *tables, _settings(results)])


def _markdown_check(check: Check) -> str:
    because = check.because
    if because.split(" ")[0].rstrip(":,") not in ("a1a", "w8a", "cina0"):  # names stay in lower case
        because = because[0].upper() + because[1:]
    return f"- **{check.statement}**: {check.outcome}{', since' if check.holds is None else '.'} {because}.\n"


def _settings(results: StudyResults) -> str:
    study = results.study
    regularisers = "; ".join(
        f"{one.name} (λ = {one.lam:g}, δ = {one.delta:g}, η = {one.eta:g})" for one in study.regularisers
    )
    order = {False: "in the order of the file", True: "at random, each class in proportion"}
    data = "; ".join(
        f"{one.name}: {order[one.shuffled]}{f', {one.splits} times' if one.splits > 1 else ''}"
        for one in study.data
    )
    return (
        "## How it was run\n\n"
        f"- {study.iterations} iterations (epochs) from θ = 0; hybrids begin with {study.warmup} epochs of "
        "Adam.\n"
        f"- {regularisers}. The loss is a sum over the rows, not a mean.\n"
        f"- 80 % of the rows train, 20 % test. {data}.\n"
        "- `converged` and `auto` are this package's own solver with no tolerance at all.\n"
    )


def page(results: StudyResults, missing: Mapping[str, str] | None = None) -> str:
    """Tables, checks and figures on one HTML page without external resources.

    Parameters
    ----------
    results : StudyResults
    missing : mapping, optional
        Data sets that are not available, and the file that each of them needs.
    """
    all_parts = not results.study.labels
    charts = [*draw_stochastic(results), *chain.from_iterable(draw_gaps(results)), *draw_zeros(results)]
    return render(
        "reproduction.html",
        {
            "summary": (
                "Every table and every figure of the paper next to our own, each difference with its reason; "
                f"and what it claims, tested. Study: {results.study.name}; majorant {__version__}."
            ),
            "missing": list((missing or {}).values()),
            "comparisons": run_checks(COMPARISONS, results) if all_parts else [],
            "claims": run_checks(CLAIMS, results) if all_parts else [],
            "errata": errata() if all_parts else [],
            "tables": all_tables(results),
            "charts": [*(draw_theory() if all_parts else []), *charts],
        },
        package="majorant.experiments",
        style="reproduction.css",
    )
