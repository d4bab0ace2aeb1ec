"""`majorant predict DATA MODEL [OUT]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, Memory, ModelToRead
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import matching, read_data
from majorant.cli.writing import STDOUT, check_output, lines_of


@grouped
def predict(
    data: DataArgument,
    model: ModelToRead,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="The file for the labels, one a line; - is stdout.", show_default=False
        ),
    ] = None,
    *,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the values of the decision function after each label.")
    ] = False,
    memory: Memory = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Predict the labels of a data file."""
    if out not in (None, STDOUT):
        assert out is not None
        check_output(out, data, model, force=force)
    output = Output(answering, to_stderr=True)
    known = Model.read(model)
    if memory is not None:
        from majorant.cli.streaming import open_data, predict_by_blocks

        source = open_data(data, reading, memory, output, labelled=None, model=known)
        predict_by_blocks(source, known, out, output, scores=scores, force=force)
        return
    rows = read_data(data, reading, output, labelled=None, model=known)
    X = matching(rows, known, output)
    labels = known.predict(X)
    values = known.scores(X) if scores else None
    if answering.json and out in (None, STDOUT):
        output.facts |= {"labels": labels} | ({} if values is None else {"scores": values})
    elif out == STDOUT or (
        out is None and rows.y is None
    ):  # what else could be wanted of rows without labels
        out = STDOUT
        typer.echo("".join(lines_of(labels, values)), nl=False)
    elif out is not None:
        from majorant.files import atomic_write

        with atomic_write(out, overwrite=force) as file:
            file.writelines(line.encode() for line in lines_of(labels, values))
        output.facts["predictions"] = str(out)
        output.say(f"Labels written to {out}")
    if rows.y is not None:
        known.check_labels(rows, output)
        right = known.right(X, rows.y)
        output.answer(
            f"Accuracy = {100.0 * right / len(labels):g}% ({right}/{len(labels)})", to_stderr=out == STDOUT
        )
        output.facts |= {"accuracy": right / len(labels), "right": right}
    output.finish(rows=len(labels))
