"""A reproduction as Markdown, as an HTML page with the style and the charts of reports, and as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from majorant import __version__
from majorant.experiments.checks import CLAIMS, COMPARISONS, run_checks
from majorant.experiments.figures import draw_gaps, draw_stochastic, draw_theory, draw_zeros
from majorant.experiments.paper import errata
from majorant.experiments.study_results import StudyResults
from majorant.experiments.tables import Table, all_tables
from majorant.reporting.page import render


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
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("majorant.experiments"), undefined=StrictUndefined, autoescape=False,
        trim_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    template = environment.get_template("reproduction.md")
    return template.render(_content(results, missing), markdown_table=markdown_table)


def page(results: StudyResults, missing: Mapping[str, str] | None = None) -> str:
    """Tables, checks and figures on one HTML page without external resources; arguments as for `markdown`."""
    theory = [] if results.study.labels else draw_theory()
    gaps = chain.from_iterable(draw_gaps(results))
    charts = [*theory, *draw_stochastic(results), *gaps, *draw_zeros(results)]
    return render(
        "reproduction.html", _content(results, missing) | {"charts": charts},
        package="majorant.experiments", style="reproduction.css",
    )  # fmt: skip


def _content(results: StudyResults, missing: Mapping[str, str] | None) -> dict[str, Any]:
    """The values of the templates, by name; without checks if only some tables were asked for."""
    some = results.study.labels
    return {
        "study": results.study,
        "version": __version__,
        "missing": list((missing or {}).values()),
        "comparisons": [] if some else run_checks(COMPARISONS, results),
        "claims": [] if some else run_checks(CLAIMS, results),
        "errata": [] if some else errata(),
        "tables": all_tables(results),
    }
