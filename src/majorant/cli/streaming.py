"""`--memory SIZE`: training and predicting block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.fitting import PenaltyOptions
from majorant.cli.output import Output, OutputOptions
from majorant.cli.predict import lines, same
from majorant.cli.reading import DataOptions, column, matching, predicted
from majorant.cli.running import run
from majorant.cli.train import summary, write

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant.callbacks import Checkpoint
    from majorant.datasets import Source
    from majorant.rows.between import Pass


@dataclass(frozen=True)
class Origin:
    """Where a model comes from, of data that nobody has read as a whole."""

    source: str
    sha256: None = None


class PassTimes:
    """How long the passes over the rows took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, state: Pass) -> None:
        """Notice when one is over."""
        if state.done == state.blocks:
            self.seconds.append(state.seconds)


def train_by_blocks(
    data: str,
    target: Path,
    memory: str,
    parameters: dict[str, Any],
    output: Output,
    *,
    fitting: PenaltyOptions,
    reading: DataOptions,
    test: str | None,
    force: bool,
    saving: Checkpoint | None,
) -> None:
    """`majorant train` for data that need not fit into memory."""
    from majorant import SparseSVC
    from majorant.rows.between import between_blocks

    source = open_data(data, reading, memory, output)
    labels = labels_of(source) if any("=" in word for word in fitting.class_weight) else []
    estimator = SparseSVC(**parameters, **fitting.parameters(labels))
    times = PassTimes()
    with between_blocks(times):
        interrupted = run(estimator, lambda: estimator.fit(source, checkpoint=saving), lambda: None, output)
    output.facts["passes"], output.facts["rows"] = len(times.seconds), int(estimator.t_)
    if times.seconds:
        typical = output.facts["seconds_per_pass"] = sorted(times.seconds)[len(times.seconds) // 2]
        output.say(f"{estimator.t_:,} rows, {len(times.seconds)} passes over them, {typical:.2g} s each")
    scores = {} if interrupted else _scores(estimator, source, test, reading, memory, output)
    write(estimator, Origin(data), target, output, force=force)
    output.finish(**summary(estimator), **scores)
    if interrupted:
        raise KeyboardInterrupt
    if saving is not None:
        saving.remove()


def predict_by_blocks(
    data: str,
    model: Any,
    out: str | None,
    memory: str,
    output: Output,
    *,
    reading: DataOptions,
    scores: bool,
    force: bool,
) -> None:
    """`majorant predict` for data that need not fit into memory: labels are written as they come."""
    source = open_data(data, reading, memory, output, labelled=None)
    unlabelled = source.load(0).y is None
    if out is None and unlabelled and not output.options.json:
        out = "-"
    if out is None or (out == "-" and output.options.json):
        told = _tell(source, model, output, None, scores=scores)
    elif out == "-":
        told = _tell(source, model, output, lambda text: typer.echo(text, nl=False), scores=scores)
    else:
        from majorant.files import replacing

        with replacing(out, overwrite=force) as file:
            told = _tell(source, model, output, lambda text: file.write(text.encode()), scores=scores)
        output.facts["predictions"] = out
    if not unlabelled:
        share = told.right / told.rows
        output.answer(f"Accuracy = {100.0 * share:g}% ({told.right}/{told.rows})", to_stderr=out == "-")
        output.facts |= {"accuracy": share, "right": told.right}
    output.finish(rows=told.rows)


@dataclass
class Told:
    """How many rows there were, and how many were predicted rightly."""

    rows: int = 0
    right: int = 0


def _tell(source: Source, model: Any, output: Output, write: Any, *, scores: bool) -> Told:
    """Predict every block; write the labels, or let them be facts."""
    told = Told()
    collected: dict[str, list[Any]] = {"labels": [], "scores": []}
    for labels, values, y in predictions(source, model, output, scores=scores):
        told.rows += len(labels)
        if y is not None:
            told.right += int(same(labels, y).sum())
        if write is not None:
            write("".join(lines(labels, values)))
        elif output.options.json:
            collected["labels"] += labels.tolist()
            collected["scores"] += [] if values is None else values.tolist()
    if write is None and output.options.json:
        output.facts |= {name: entries for name, entries in collected.items() if entries}
    return told


def predictions(
    source: Source, model: Any, output: Output, *, scores: bool = False
) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]]:
    """What the model says of every block, with the decision function if asked for, and the true labels."""
    from majorant.datasets import Data
    from majorant.rows.stream import read_ahead

    saying = output
    for X, y, _ in read_ahead(source.load, range(source.n_blocks)):
        rows = matching(Data(X, y, source.feature_names, source.name, ""), model, saying)
        saying = Output(OutputOptions(quiet=True))  # once is enough
        yield predicted(model, rows), predicted(model, rows, "decision_function") if scores else None, y


def open_data(
    path: str,
    options: DataOptions,
    memory: str,
    output: Output,
    *,
    labelled: bool | None = True,
    what: str = "data",
) -> Source:
    """Open a file, or a data set by its name, and say what it is."""
    from majorant.datasets import available, find, open_source

    known = path in {info.name for info in available()} and not Path(path).exists()
    with output.waiting(f"looking through {path}"):
        source = open_source(
            find(path) if known else path, label=column(options.label), memory=memory, labelled=labelled,
            drop=[column(name) for name in options.drop], format=options.format,
            zero_based=options.zero_based,
        )  # fmt: skip
    output.facts[what] = {"source": path, "blocks": source.n_blocks, "features": source.n_features}
    output.say(f"{path}: {source.n_features:,} features, in {source.n_blocks:,} blocks")
    return source


def labels_of(source: Source) -> list[Any]:
    """The class labels of all blocks, each once."""
    import numpy as np

    tallies = [source.tally(i).labels for i in range(source.n_blocks)]
    labels: list[Any] = np.unique(np.concatenate(tallies)).tolist()
    return labels


def _scores(
    estimator: Any, source: Source, test: str | None, reading: DataOptions, memory: str, output: Output
) -> dict[str, Any]:
    """Accuracy on the training rows and on the test rows."""
    scores = {"train_accuracy": float(estimator.score(source))}
    said = f"Accuracy {scores['train_accuracy']:.2%} on the training rows"
    if test is not None:
        held_out = open_data(test, reading, memory, output, what="test_data")
        told = _tell(held_out, estimator, Output(OutputOptions(quiet=True)), None, scores=False)
        scores["test_accuracy"] = told.right / told.rows
        said += f", {scores['test_accuracy']:.2%} on the test rows"
    output.say(said)
    return scores
