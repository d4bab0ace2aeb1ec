"""`majorant predict DATA MODEL [OUT]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, ModelToRead
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import matching, read_data
from majorant.cli.writing import check_output
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

STDOUT = Path("-")


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
    rows = read_data(data, reading, output, labelled=None)
    X = matching(rows, known, output)
    labels = known.predict(X)
    values = known.scores(X) if scores else None
    if answering.json and out in (None, STDOUT):
        output.facts |= {"labels": labels} | ({} if values is None else {"scores": values})
    elif out == STDOUT or (
        out is None and rows.y is None
    ):  # what else could be wanted of rows without labels
        out = STDOUT
        typer.echo("".join(_lines(labels, values)), nl=False)
    elif out is not None:
        from majorant.files import replacing

        with replacing(out, overwrite=force) as file:
            file.writelines(line.encode() for line in _lines(labels, values))
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


def _lines(labels: NDArray[Any], values: NDArray[Any] | None) -> list[str]:
    texts = [str(label) for label in labels.tolist()]
    for text in set(texts):
        if len(text.splitlines()) != 1:
            raise MajorantError(f"the label {text!r} does not fit on a line: --json can hold it")
    if values is None:
        return [f"{text}\n" for text in texts]
    return [
        f"{text} {' '.join(map(repr, row))}\n"
        for text, row in zip(texts, values.reshape(len(texts), -1).tolist(), strict=True)
    ]
