"""`majorant report MODEL DATA OUT`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions, command_line
from majorant.cli.predict import ModelArgument, load_any, origin_of
from majorant.cli.reading import DataArgument, DataOptions, matching, names_of, read_data
from majorant.cli.train import Force, Test, check_output


@grouped
def report(
    model: ModelArgument,
    data: DataArgument,
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
    from majorant import report as make_report

    output = Output(answering)
    out = Path(f"{model.name}.html") if out is None else out
    check_output(out, force=force)
    known = load_any(model)
    rows = read_data(data, reading, output)
    X_test = y_test = None
    if test is not None:
        others = read_data(test, reading, output, what="test_data")
        X_test, y_test = matching(others, known, output), others.y
    make_report(
        known, matching(rows, known, output), rows.y, out, title=title, X_test=X_test, y_test=y_test,
        feature_names=names_of(known), command=command_line(), overwrite=force,
        provenance=origin_of(model),
    )  # fmt: skip
    output.say(f"Report written to {out}")
    output.finish(report=str(out))
