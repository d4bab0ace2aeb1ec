"""`majorant predict DATA MODEL [OUT]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from majorant.cli.arguments import DataArgument, DataOptions, Force, Memory, ModelToRead, in_quotation_marks
from majorant.cli.data import names_of_rows, open_data
from majorant.cli.grouped import grouped
from majorant.cli.help import OUTPUT
from majorant.cli.models import Model
from majorant.cli.output import Output, OutputOptions
from majorant.cli.scoring import Evaluation, show_metrics
from majorant.cli.writing import STDOUT, check_output, header_of_table, lines_of, lines_of_table
from majorant.errors import MajorantError


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
    csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="Write a table with a header: label, scores, probabilities of a calibrated model. "
            "Default if OUT ends in .csv.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="A column of DATA that names the rows; the first one of the table that is written.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Write the values of the decision function after each label.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    memory: Memory = None,
    force: Force = False,
    reading: DataOptions,
    answering: OutputOptions,
) -> None:
    """Predict the labels of a data file.

    $ majorant predict a1a.t a1a.model labels.txt
    $ majorant predict patients.csv patients.csv.model predicted.csv --id id
    """
    if out not in (None, STDOUT):
        assert out is not None
        check_output(out, data, model, force=force)
    as_table = csv or id is not None or (out is not None and out.suffix == ".csv")
    output = Output(answering, to_stderr=True)
    known = Model.read(model, data)
    known.warn_if_interrupted(output)
    trained = known.columns
    if trained is not None and trained.are_in(data, reading):
        known = known.narrowed()
        trained, reading = replace(trained, features=known.names), trained.reading(reading)
    elif id is not None:
        reading = replace(reading, drop=[*reading.drop, in_quotation_marks(id)])
    names = None if id is None else names_of_rows(data, id, reading)
    rows = open_data(data, reading, output, memory=memory, labelled=None, trained=trained)
    blocks = rows.columns_of(known, output)
    if names is not None and len(names) != rows.n_rows:
        raise MajorantError(f"{data} has {rows.n_rows} rows and {len(names)} names of rows: it has changed")
    if answering.json and out in (None, STDOUT):
        out = None
        output.facts |= {"labels": []} | ({"scores": []} if scores or as_table else {})
        if known.calibration is not None:
            output.facts["probabilities"] = []
        if names is not None:
            output.facts["ids"] = names
    elif out is None and (as_table or not rows.counts):
        out = STDOUT  # what else could be wanted of rows without labels
    import numpy as np

    evaluation, done = Evaluation(known.estimator.classes_.tolist()), 0
    with _written(out, force=force) as write, output.relayed_warnings():
        if out is not None and as_table:
            write(header_of_table(known, None if names is None else str(id)))
        for X, y, _ in blocks:
            values = known.scores(X)
            labels = known.decide(values)
            probabilities = None if known.calibration is None else known.calibration.probabilities(values)
            if y is not None:
                evaluation.add(y, values)
            if out is not None and as_table:
                columns = values if probabilities is None else np.column_stack([values, probabilities])
                ids = None if names is None else names[done : done + len(labels)]
                write(lines_of_table(labels, columns, ids))
            elif out is not None:
                write("".join(lines_of(labels, values if scores else None)))
            elif "labels" in output.facts:
                found: dict[str, Any] = {"labels": labels, "scores": values, "probabilities": probabilities}
                for name in output.facts.keys() & found.keys():
                    output.facts[name] += found[name].tolist()
            done += len(labels)
    if out not in (None, STDOUT):
        output.facts["predictions"] = str(out)
        output.say(f"Labels written to {out}")
    if rows.counts:
        known.check_labels(rows, output)
        metrics = evaluation.metrics()
        share, right = metrics["accuracy"], metrics["right"]
        output.answer(f"Accuracy = {100.0 * share:g}% ({right}/{rows.n_rows})", to_stderr=out == STDOUT)
        show_metrics(output, {"value": metrics})
        output.facts |= {"accuracy": share, "right": right, "metrics": metrics}
    output.finish(rows=rows.n_rows)


@contextmanager
def _written(out: Path | None, *, force: bool) -> Iterator[Callable[[str], Any]]:
    """What writes text to stdout, or to a file that is replaced as a whole."""
    if out in (None, STDOUT):
        yield lambda text: typer.echo(text, nl=False)
        return
    assert out is not None
    from majorant.files import atomic_write

    with atomic_write(out, overwrite=force) as file:
        yield lambda text: file.write(text.encode())
