"""`majorant report DATA MODEL [OUT]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, Memory, ModelToRead, Test
from majorant.cli.data import open_data
from majorant.cli.grouped import grouped
from majorant.cli.help import OUTPUT
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.scoring import Evaluation, show_metrics
from majorant.cli.writing import check_output, write_report


@grouped
def report(
    data: DataArgument,
    model: ModelToRead,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="The HTML file to write.  [default: MODEL.html, here; model.html for a pipe]",
            show_default=False,
        ),
    ] = None,
    *,
    test: Test = None,
    title: Annotated[
        str | None, typer.Option(help="What stands on top of it.", rich_help_panel=OUTPUT)
    ] = None,
    memory: Memory = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Write an HTML report of a model on a data file.

    $ majorant report a1a a1a.model a1a.html
    $ majorant report a1a a1a.model --test a1a.t --title "Incomes"
    """
    output = Output(answering)
    if out is None:
        out = Path(f"{model.name}.html" if model.is_file() else "model.html")
    check_output(out, data, model, force=force)
    known = Model.read(model, data, test)
    known.warn_if_interrupted(output)
    used = known if known.columns is None else known.narrowed()
    columns = None if known.columns is None else known.columns.needed(used.names)
    rows, others = open_data(data, reading, output, memory=memory, trained=columns), None
    X = rows.columns_of(known, output)
    if test is not None:
        others = open_data(test, reading, output, memory=memory, what="test_data", trained=columns)
        others = others.columns_of(known, output)
    with output.relayed_warnings():
        write_report(
            known, X, out, output, force=force, title=title, test=others, trained_on=known.trained_on(rows)
        )
        rows_are = "training rows" if known.trained_on(rows) else "rows"
        scored = {rows_are: Evaluation.of(used, X.features_of(used)).metrics()}
        if others is not None:
            scored["test rows"] = Evaluation.of(used, others.features_of(used)).metrics()
    output.facts |= dict(zip(("metrics", "test_metrics"), scored.values(), strict=False))
    show_metrics(output, scored)
    output.finish()
