"""`majorant convert SOURCE TARGET`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.arguments import DataOptions, Force, PreprocessingOptions
from majorant.cli.choices import one_of
from majorant.cli.data import open_data
from majorant.cli.grouped import grouped
from majorant.cli.help import CLASSES, OUTPUT
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.writing import check_output
from majorant.errors import MajorantError
from majorant.text import did_you_mean

if TYPE_CHECKING:
    from majorant.cli.models import Estimator
    from majorant.persistence.store import Kind

MODELS, DATA = ("majorant", "liblinear", "onnx"), ("libsvm",)


@grouped
def convert(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A model or data file; - for stdin.", show_default=False)
    ],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write.", show_default=False)],
    *,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="Models: majorant, liblinear, onnx. Data: libsvm. Else the one that makes sense.",
            callback=one_of(MODELS + DATA),
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    number: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=INTEGER",
            help="For liblinear and libsvm, the number of a label that is text; can be given again.  "
            "[default: 0, 1, … in order]",
            show_default=False,
            rich_help_panel=CLASSES,
        ),
    ] = None,
    force: Force = False,
    reading: DataOptions,
    preparing: PreprocessingOptions,
    answering: OutputOptions,
) -> None:
    """Convert a model: ours, LIBLINEAR's, ONNX; or data, to LIBSVM.

    $ majorant convert a1a.model a1a.liblinear
    $ majorant convert patients.csv patients.svm --label outcome
    """
    output = Output(answering)
    check_output(target, source, force=force)
    from majorant.datasets.formats import FORMATS, format_by_name

    source, kind = _opened(source)
    if to is None:
        to = _likely(kind, target)
    if (to in DATA) != (kind is None):
        what = "no model" if kind is None else "a model"
        raise MajorantError(f"{source} is {what}, and cannot become {to}")
    if kind is None and format_by_name(target) != to:
        raise MajorantError(f"data become LIBSVM text only, and {target} is named otherwise")
    if number and to not in ("liblinear", "libsvm"):
        raise typer.BadParameter(f"{to} keeps the labels as they are", param_hint="--number")
    if kind is None:
        import numpy as np

        data = open_data(source, reading, output, preprocessing=preparing.preprocessing(reading))
        X, found, _ = data.training_rows
        y = np.asarray(found)
        if number or y.dtype.kind not in "biuf":
            labels, codes = np.unique(y, return_inverse=True)
            y = np.array(_numbered(labels.tolist(), number or (), output))[codes]
        FORMATS[to].write(target, X, y, overwrite=force)
        if data.preprocessing is not None and data.preprocessing.one_hot:
            output.warn(
                f"the {data.n_features:,} features of {target} are those of the categories in {source}: "
                "another file with other categories gets other features"
            )
    else:
        model = Model.read(Path(source))
        model.warn_if_interrupted(output)
        if model.calibration is not None and to != "majorant":
            output.warn(f"the calibration is left out: {to} keeps no probabilities")
        _write_model(model, target, to, number or (), output, force=force)
    output.say(f"Written to {target} ({to})")
    output.finish(target=str(target), format=to)


def _opened(source: str) -> tuple[str, Kind | None]:
    """What to read, and of which kind it is if it is a model.

    A pipe can be read once only. Its first bytes are looked at and left for the reader, which takes them from
    standard input.
    """
    from majorant.persistence.store import kind_of, kind_of_bytes

    if Path(source).is_fifo():
        source, sys.stdin = "-", open(source)  # noqa: SIM115
    if source == "-":
        return source, kind_of_bytes(sys.stdin.buffer.peek())  # type: ignore[union-attr]
    return source, kind_of(source) if Path(source).is_file() else None


def _likely(kind: str | None, target: Path) -> str:
    if kind is None:
        return "libsvm"
    if target.suffix == ".onnx":
        return "onnx"
    return "liblinear" if kind == "majorant" else "majorant"


def _numbered(labels: list[Any], words: Sequence[str], output: Output) -> list[int]:
    """An integer for each label, as asked for, else 0, 1, … in order; says which."""
    numbers: dict[str, int] = {}
    for word in words:
        name, _, digits = word.rpartition("=")
        if name not in map(str, labels):
            known = list(map(str, labels))
            raise typer.BadParameter(
                f"{word!r} is of no label ({', '.join(known[:20])}){did_you_mean(name, known)}",
                param_hint="--number",
            )
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", digits):
            raise typer.BadParameter(f"{word!r} is no LABEL=INTEGER", param_hint="--number")
        numbers[name] = int(digits)
    if not numbers:
        numbers = {str(label): k for k, label in enumerate(labels)}
    missing = [str(label) for label in labels if str(label) not in numbers]
    if missing:
        raise typer.BadParameter(f"the label {missing[0]!r} has no number", param_hint="--number")
    chosen = [numbers[str(label)] for label in labels]
    if len(set(chosen)) < len(chosen):
        raise typer.BadParameter("two labels have the same number", param_hint="--number")
    output.facts["label_numbers"] = [
        {"label": label, "number": k} for label, k in zip(labels, chosen, strict=True)
    ]
    if not words:
        again = " ".join(f"--number {shlex.quote(f'{label}={k}')}" for label, k in numbers.items())
        output.say(f"Labels must be numbers there, and become so; for other files the same way: {again}")
    output.table(["label", "number"], [[str(label), str(k)] for label, k in zip(labels, chosen, strict=True)])
    return chosen


def _write_model(
    model: Model, target: Path, to: str, words: Sequence[str], output: Output, *, force: bool
) -> None:
    from majorant.persistence import save_model, to_liblinear, to_onnx
    from majorant.persistence.store import refuse_preprocessing

    if to != "majorant":
        refuse_preprocessing(model.named, to)
    if to == "majorant":
        save_model(model.named, target, provenance=model.origin, overwrite=force)
    elif to == "liblinear":
        to_liblinear(_with_integers(model.named, words, output), target, overwrite=force)
    else:
        to_onnx(model.named, target, overwrite=force)


def _with_integers(estimator: Estimator, words: Sequence[str], output: Output) -> Estimator:
    """The model with labels that LIBLINEAR knows."""
    import numpy as np

    labels = estimator.classes_.tolist()
    if not words and not isinstance(labels[0], str | bool):  # of other numbers, `to_liblinear` says more
        return estimator
    twin = copy(estimator)
    twin.classes_ = np.array(_numbered(labels, words, output))
    return twin
