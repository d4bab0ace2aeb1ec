"""`majorant predict DATA MODEL [OUT]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import DataArgument, DataOptions, matching, predicted, read_data
from majorant.cli.train import Force, Memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file of majorant or LIBLINEAR.", show_default=False)
]


@grouped
def predict(
    data: DataArgument,
    model: ModelArgument,
    out: Annotated[
        str | None,
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
    import numpy as np

    from majorant.cli.train import check_output

    to_stdout = out == "-"
    if out is not None and not to_stdout:
        check_output(Path(out), force=force)
    output = Output(answering, to_stderr=True)
    known = load_any(model)
    if memory is not None:
        from majorant.cli.streaming import predict_by_blocks

        predict_by_blocks(data, known, out, memory, output, reading=reading, scores=scores, force=force)
        return
    rows = read_data(data, reading, output, labelled=None)
    if out is None and rows.y is None and not answering.json:
        out, to_stdout = "-", True
    X = matching(rows, known, output)
    labels = predicted(known, X)
    values = predicted(known, X, "decision_function") if scores else None
    if to_stdout and not answering.json:
        typer.echo("".join(lines(labels, values)), nl=False)
    elif out is not None and not to_stdout:
        from majorant.files import replacing

        with replacing(out, overwrite=force) as file:
            file.writelines(line.encode() for line in lines(labels, values))
        output.facts["predictions"] = out
    if answering.json and out in (None, "-"):
        output.facts["labels"] = labels
        output.facts |= {} if values is None else {"scores": values}
    if rows.y is not None:
        right = int(np.count_nonzero(same(labels, rows.y)))
        output.answer(
            f"Accuracy = {100.0 * right / len(labels):g}% ({right}/{len(labels)})", to_stderr=to_stdout
        )
        output.facts |= {"accuracy": right / len(labels), "right": right}
    output.finish(rows=len(labels))


def load_any(path: Path) -> Any:
    """A fitted model, from our file or LIBLINEAR's."""
    from majorant.persistence import from_liblinear, load_model

    return from_liblinear(path) if is_liblinear(path) else load_model(path)


def origin_of(path: Path) -> dict[str, Any]:
    """What a model file says of where it comes from."""
    from majorant.persistence import load_provenance

    known = None if is_liblinear(path) else load_provenance(path)
    return {name: value for name, value in (known or {}).items() if value is not None}


def is_liblinear(path: Path) -> bool:
    """Whether a file begins as LIBLINEAR's models do."""
    with open(path, "rb") as file:
        return file.read(12).startswith(b"solver_type")


def same(predicted: NDArray[Any], true: NDArray[Any]) -> NDArray[Any]:
    """Where the labels agree; a text 1 is the number 1, since files do not always say which is meant."""
    import numpy as np

    if predicted.dtype.kind in "OUST" or true.dtype.kind in "OUST":
        predicted, true = predicted.astype(str), true.astype(str)
    return np.asarray(predicted == true)


def lines(labels: NDArray[Any], values: NDArray[Any] | None) -> list[str]:
    """A line for every row: the label, and the scores if there are any."""
    if values is None:
        return [f"{label}\n" for label in labels.tolist()]
    return [
        f"{label} {' '.join(map(repr, row))}\n"
        for label, row in zip(labels.tolist(), values.reshape(len(labels), -1).tolist(), strict=True)
    ]
