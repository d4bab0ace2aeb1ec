"""Files that commands write: checked before the work begins, replaced only if that was asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from majorant.cli.models import Model
from majorant.cli.output import Output, command_line, command_words
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant.cli.arguments import ModelOptions
    from majorant.cli.data import CommandData

STDOUT = Path("-")


def check_output(path: Path, *inputs: str | Path, force: bool) -> None:
    """Refuse a file that cannot be written, exists and may not be replaced, or is an input of the command."""
    from majorant.errors import OutputError
    from majorant.files import check_writable

    if str(path) == "-":
        raise OutputError("this goes to a file, not to stdout: give it a name")
    for other in map(Path, inputs):
        if other == path or (path.exists() and other.exists() and path.samefile(other)):
            raise OutputError(f"{str(path)!r} cannot be both: give the output another name")
    try:
        check_writable(path, overwrite=force)
    except OutputError as error:
        hint = ": --force replaces it" if path.is_file() and not force else ""
        raise OutputError(f"{error}{hint}") from None


def checked_outputs(source: str, model: Path | None, options: ModelOptions) -> Path:
    """The file of the model to train; an error if this file or the report could not be written."""
    target = default_model(source) if model is None else model
    sources = [source] if options.test is None else [source, options.test]
    check_output(target, *sources, force=options.force)
    if options.report is not None:
        check_output(options.report, *sources, target, force=options.force)
    return target


def default_model(data: str) -> Path:
    """The model of DATA, where no other name is given: as LIBLINEAR calls it, here."""
    return Path(("stdin" if data == "-" else Path(data).name) + ".model")


def lines_of(labels: NDArray[Any], values: NDArray[Any] | None) -> list[str]:
    """A line for every row: the label, and the scores if there are any."""
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


def header_of_table(model: Model, id: str | None) -> str:
    """The first line of the predictions as CSV."""
    classes = model.estimator.classes_.tolist()
    scores = ["score"] if len(classes) == 2 else [f"score_{label}" for label in classes]
    if model.calibration is not None:
        scores += [f"probability_{label}" for label in classes]
    return csv_line([*([] if id is None else [id]), "label", *scores])


def lines_of_table(labels: NDArray[Any], values: NDArray[Any], ids: Sequence[str] | None) -> str:
    """A line of CSV for every row: its name, if rows have names, its label, its scores and probabilities."""
    rows = zip(labels.tolist(), values.reshape(len(labels), -1).tolist(), strict=True)
    return "".join(
        csv_line([*([] if ids is None else [ids[k]]), label, *scores])
        for k, (label, scores) in enumerate(rows)
    )


def csv_line(fields: Sequence[Any]) -> str:
    """A line of a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()


def write_or_rescue(path: Path, write: Callable[[Path], object]) -> None:
    """Write what was trained; if that fails, to a temporary file instead, which the error names."""
    from majorant.errors import OutputError

    try:
        write(path)
    except (OSError, OutputError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        rescued = _written_elsewhere(path.name, write)
        if rescued is None:
            raise
        raise OutputError(
            f"{str(path)!r} was not written ({reason}): what was trained is in {str(rescued)!r}"
        ) from None


def _written_elsewhere(name: str, write: Callable[[Path], object]) -> Path | None:
    import tempfile

    from majorant.errors import OutputError

    for directory in (None, Path.home(), Path.cwd()):  # None: the system's directory for temporary files
        with suppress(OSError, OutputError):
            path = Path(tempfile.mkdtemp(prefix="majorant-", dir=directory)) / name
            try:
                write(path)
                return path
            finally:
                if not path.exists():
                    path.parent.rmdir()
    return None


def write_model(model: Model, data: Any, path: Path, output: Output, *, force: bool) -> None:
    """The model to its file, with what it was trained on and how."""
    from majorant.persistence import Provenance, save_model

    model.origin = Provenance.of(model.named, data, command_words())
    write_or_rescue(path, partial(save_model, model.named, provenance=model.origin, overwrite=force))
    output.facts["model"] = str(path)
    output.say(f"{model.selected}. Model written to {path}")


def write_report(
    model: Model,
    data: CommandData,
    path: Path,
    output: Output,
    *,
    force: bool,
    test: CommandData | None = None,
    **contents: Any,
) -> None:
    """The report to its file, on data with the columns of the model; `contents` as in `majorant.report`."""
    from majorant import report

    if test is not None:
        contents |= {"X_test": test.training_rows[0], "y_test": test.labels_as(model)}
    report(
        model.estimator, data.training_rows[0], data.labels_as(model), path, feature_names=model.names,
        deviations=model.deviations, provenance=model.told, command=command_line(), overwrite=force,
        data_name=data.source, **contents,
    )  # fmt: skip
    output.facts["report"] = str(path)
    output.say(f"Report written to {path}")
