"""`majorant report DATA MODEL [OUT]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, ModelToRead, Test
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import matching, read_data
from majorant.cli.writing import check_output, write_report


@grouped
def report(
    data: DataArgument,
    model: ModelToRead,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="The HTML file to write.  [default: MODEL.html, here]", show_default=False
        ),
    ] = None,
    *,
    test: Test = None,
    title: Annotated[str | None, typer.Option(help="What stands on top of it.")] = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Write an HTML report of a model on a data file."""
    output = Output(answering)
    out = Path(f"{model.name}.html") if out is None else out
    check_output(out, data, model, force=force)
    known = Model.read(model)
    rows = read_data(data, reading, output, model=known)
    X, X_test, y_test = matching(rows, known, output), None, None
    if test is not None:
        others = read_data(test, reading, output, what="test_data", model=known)
        X_test, y_test = matching(others, known, output), known.as_labels(others)
    write_report(
        known,
        X,
        known.as_labels(rows),
        out,
        output,
        force=force,
        title=title,
        X_test=X_test,
        y_test=y_test,
        trained_on=known.trained_on(rows),
    )
    output.finish()
