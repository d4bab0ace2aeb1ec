"""Tables and verdicts as Markdown, and as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from majorant import __version__
from majorant.experiments.agreement import all_agreements
from majorant.experiments.claims import all_claims
from majorant.experiments.errata import errata
from majorant.experiments.outcomes import Outcomes
from majorant.experiments.tables import Table, all_tables
from majorant.experiments.verdicts import Verdict

__all__ = ["markdown", "markdown_table", "plain_table"]


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
    text = [f"{table.title} ({table.label})", ""]
    for cells in lines:
        padded = (
            cell.ljust(width) if k < table.names else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        text.append("  ".join(padded).rstrip())
    return "\n".join([*text, *(f"* {note}" for note in table.notes)])


def markdown(outcomes: Outcomes, missing: Mapping[str, str] | None = None) -> str:
    """The whole reproduction as one Markdown document.

    Parameters
    ----------
    outcomes : Outcomes
        What was run.
    missing : mapping, optional
        Data sets that were not there, and what to put where.
    """
    study = outcomes.study
    parts = [
        "# The paper, reproduced\n",
        "Every table of *Majorization-Minimization for sparse SVMs* next to our own figures, and what the "
        "paper "
        f"claims, tested. Made by `majorant reproduce` ({study.name}, majorant {__version__}).\n",
        _missing_part(missing or {}),
    ]
    if not study.labels:
        parts += [
            "## Does it agree?\n",
            _verdicts(all_agreements(outcomes)),
            "## What the paper claims\n",
            _verdicts(all_claims(outcomes)),
            "## What the paper prints wrongly\n",
            "".join(f"- {sentence}\n" for sentence in errata()),
        ]
    parts += ["## Tables\n", *(markdown_table(table) for table in all_tables(outcomes)), _protocol(outcomes)]
    return "\n".join(part for part in parts if part)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    return "".join(
        f"- **{verdict.statement}**: {verdict.word}{', since' if verdict.holds is None else '.'} "
        f"{_sentence(verdict.because)}\n"
        for verdict in verdicts
    )


def _sentence(text: str) -> str:
    """With a capital, unless it begins with the name of a data set."""
    name = text.split(" ")[0].rstrip(":,")
    return (text if name in ("a1a", "w8a", "cina0") else text[0].upper() + text[1:]) + "."


def _missing_part(missing: Mapping[str, str]) -> str:
    if not missing:
        return ""
    lines = "".join(f"- {sentence}\n" for sentence in missing.values())
    return f"## Data that were not there\n\n{lines}"


def _protocol(outcomes: Outcomes) -> str:
    study = outcomes.study
    regularisers = "; ".join(
        f"{one.name} (λ = {one.lam:g}, δ = {one.delta:g}, η = {one.eta:g})" for one in study.regularisers
    )
    divided = {False: "in the order of the file", True: "at random, each class in proportion"}
    data = "; ".join(
        f"{one.name}: {divided[one.shuffled]}{f', {one.splits} times' if one.splits > 1 else ''}"
        for one in study.data
    )
    return (
        "## How it was run\n\n"
        f"- {study.iterations} iterations (epochs) from θ = 0; hybrids begin with {study.warmup} epochs "
        "of Adam.\n"
        f"- {regularisers}. The loss is a sum over the rows, not a mean.\n"
        f"- 80 % of the rows train, 20 % test. {data}.\n"
        "- `converged` and `auto` are this package's own solver with no tolerance at all.\n"
    )
