"""`majorant convert SOURCE TARGET`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.arguments import DataOptions, Force
from majorant.cli.grouped import grouped
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import read_data
from majorant.cli.writing import check_output
from majorant.errors import MajorantError

MODELS, DATA = ("majorant", "liblinear", "onnx"), ("libsvm",)


@grouped
def convert(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A model or data file.", show_default=False)
    ],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write.", show_default=False)],
    *,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Models: majorant, liblinear, onnx. Data: libsvm. Else the one that makes sense.",
        ),
    ] = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Convert a model: ours, LIBLINEAR's, ONNX; or data, to LIBSVM."""
    from majorant.persistence import kind_of

    if to is not None and to not in MODELS + DATA:
        raise typer.BadParameter(f"{to!r} is none of {', '.join(MODELS + DATA)}", param_hint="--to")
    output = Output(answering)
    check_output(target, source, force=force)
    kind = kind_of(Path(source)) if Path(source).is_file() else None
    if to is None:
        to = _likely(kind, target)
    if (to in DATA) != (kind is None):
        what = "no model" if kind is None else "a model"
        raise MajorantError(f"{source} is {what}, and cannot become {to}")
    if kind is None and target.suffix in (".csv", ".tsv", ".parquet", ".arrow", ".npz", ".mat"):
        raise MajorantError(f"data become LIBSVM text only, and {target} is named otherwise")
    if kind is None:
        from majorant.datasets import write_libsvm

        rows = read_data(source, reading, output)
        assert rows.y is not None
        write_libsvm(target, rows.X, rows.y, overwrite=force)
    else:
        _write_model(Model.read(Path(source)), target, to, force=force)
    output.say(f"Written to {target} ({to})")
    output.finish(target=str(target), format=to)


def _likely(kind: str | None, target: Path) -> str:
    if kind is None:
        return "libsvm"
    if target.suffix == ".onnx":
        return "onnx"
    return "liblinear" if kind == "majorant" else "majorant"


def _write_model(model: Model, target: Path, to: str, *, force: bool) -> None:
    from majorant.persistence import save_model, to_liblinear, to_onnx

    if to == "majorant":
        save_model(model.named, target, provenance=model.origin, overwrite=force)
    elif to == "liblinear":
        to_liblinear(model.named, target, overwrite=force)
    else:
        to_onnx(model.named, target, overwrite=force)
