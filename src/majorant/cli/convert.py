"""`majorant convert SOURCE TARGET`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions
from majorant.cli.predict import is_liblinear, load_any, origin_of
from majorant.cli.reading import DataOptions, read_data
from majorant.cli.train import Force, check_output
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
    if to is not None and to not in MODELS + DATA:
        raise typer.BadParameter(f"{to!r} is none of {', '.join(MODELS + DATA)}", param_hint="--to")
    output = Output(answering)
    check_output(target, force=force)
    kind = _kind(source)
    if to is None:
        to = _likely(kind, target)
    if (to in DATA) != (kind == "data"):
        what = "a data file" if kind == "data" else "a model"
        raise MajorantError(f"{source} is {what}, which cannot become {to}")
    if kind == "data":
        from majorant.datasets import write_libsvm

        rows = read_data(source, reading, output)
        assert rows.y is not None
        write_libsvm(target, rows.X, rows.y, overwrite=force)
    else:
        _write_model(Path(source), target, to, force=force)
    output.say(f"Written to {target} ({to})")
    output.finish(target=str(target), format=to)


def _kind(source: str) -> str:
    """What a file is by its first bytes: "majorant", "liblinear" or "data"."""
    if source == "-" or not Path(source).is_file():
        return "data"
    if is_liblinear(Path(source)):
        return "liblinear"
    with open(source, "rb") as file:
        return "majorant" if file.read(64).lstrip().startswith(b"{") else "data"


def _likely(kind: str, target: Path) -> str:
    if kind == "data":
        return "libsvm"
    if target.suffix == ".onnx":
        return "onnx"
    return "liblinear" if kind == "majorant" else "majorant"


def _write_model(source: Path, target: Path, to: str, *, force: bool) -> None:
    from majorant.persistence import save_model, to_liblinear, to_onnx

    model = load_any(source)
    if to == "majorant":
        save_model(model, target, provenance=origin_of(source), overwrite=force)
    elif to == "liblinear":
        to_liblinear(model, target, overwrite=force)
    else:
        to_onnx(model, target, overwrite=force)
