"""`--memory SIZE`: training and predicting block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions
from majorant.cli.models import Model, same
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import matching, remembered
from majorant.cli.training import fit
from majorant.cli.writing import STDOUT, lines_of, write_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant import SparseSVC
    from majorant.callbacks import Checkpoint
    from majorant.datasets import Source
    from majorant.rows.between import Pass


@dataclass(frozen=True)
class Unhashed:
    """Where a model comes from, of data that nobody has read as a whole."""

    source: str
    feature_names: tuple[str, ...] | None
    label: str | None
    sha256: None = None


class PassTimes:
    """How long the passes over the rows took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, state: Pass) -> None:
        """Notice when one is over."""
        if state.done == state.blocks:
            self.seconds.append(state.seconds)


def open_data(
    path: str,
    options: DataOptions,
    memory: str,
    output: Output,
    *,
    labelled: bool | None = True,
    what: str = "data",
    model: Model | None = None,
) -> Source:
    """Open a file, or a data set by its name, and say what it is."""
    from majorant.datasets import REGISTRY, find, open_source

    known = path in REGISTRY and not Path(path).exists()
    with output.waiting(f"looking through {path}"):
        file = find(path, progress=output.options.talkative) if known else path
        known_columns = {} if known or model is None else remembered(model, path, options)
        source = open_source(file, memory=memory, labelled=labelled, **options.source_options | known_columns)
    output.facts[what] = {"source": path, "blocks": source.n_blocks, "n_features": source.n_features}
    output.say(f"{path}: {source.n_features:,} features, in {source.n_blocks:,} blocks")
    return source


def labels_of(source: Source) -> list[Any]:
    """The class labels of all blocks, each once."""
    import numpy as np

    tallies = [source.tally(i).labels for i in range(source.n_blocks)]
    labels: list[Any] = np.unique(np.concatenate(tallies)).tolist()
    return labels


def train_by_blocks(
    estimator: SparseSVC,
    source: Source,
    held_out: Source | None,
    target: Path,
    output: Output,
    *,
    force: bool,
    saving: Checkpoint | None,
) -> None:
    """`majorant train` for data that need not fit into memory."""
    from majorant.rows.between import between_blocks

    times = PassTimes()
    with between_blocks(times):
        interrupted = fit(estimator, source, None, output, saving)
    output.facts |= {"passes": len(times.seconds), "rows": int(estimator.t_)}
    if times.seconds:
        typical = output.facts["seconds_per_pass"] = sorted(times.seconds)[len(times.seconds) // 2]
        output.say(f"{estimator.t_:,} rows, {len(times.seconds)} passes over them, {typical:.2g} s each")
    model = Model(estimator)
    if not interrupted:
        _score(model, source, held_out, output)
    origin = Unhashed(source.name, source.feature_names, source.label)
    write_model(model, origin, target, output, standardized=False, force=force)
    output.finish(**model.summary)
    if interrupted:
        raise typer.Exit(130)
    if saving is not None:
        saving.remove()


def predict_by_blocks(
    source: Source, model: Model, out: Path | None, output: Output, *, scores: bool, force: bool
) -> None:
    """`majorant predict` for data that need not fit into memory: labels are written as they come."""
    unlabelled = source.load(0).y is None
    if out is None and unlabelled and not output.options.json:
        out = STDOUT
    if out is None or (out == STDOUT and output.options.json):
        told = _tell(source, model, output, None, scores=scores)
    elif out == STDOUT:
        told = _tell(source, model, output, lambda text: typer.echo(text, nl=False), scores=scores)
    else:
        from majorant.files import replacing

        with replacing(out, overwrite=force) as file:
            told = _tell(source, model, output, lambda text: file.write(text.encode()), scores=scores)
        output.facts["predictions"] = str(out)
        output.say(f"Labels written to {out}")
    if not unlabelled:
        share = told.right / told.rows
        output.answer(f"Accuracy = {100.0 * share:g}% ({told.right}/{told.rows})", to_stderr=out == STDOUT)
        output.facts |= {"accuracy": share, "right": told.right}
    output.finish(rows=told.rows)


@dataclass
class Told:
    """How many rows there were, and how many were predicted rightly."""

    rows: int = 0
    right: int = 0


def _tell(
    source: Source, model: Model, output: Output, write: Callable[[str], Any] | None, *, scores: bool
) -> Told:
    """Predict every block; write the labels, or let them be facts."""
    told = Told()
    collected: dict[str, list[Any]] = {"labels": [], "scores": []}
    for labels, values, y in _predictions(source, model, output, scores=scores):
        told.rows += len(labels)
        if y is not None:
            told.right += int(same(labels, y).sum())
        if write is not None:
            write("".join(lines_of(labels, values)))
        elif output.options.json:
            collected["labels"] += labels.tolist()
            collected["scores"] += [] if values is None else values.tolist()
    if write is None and output.options.json:
        output.facts |= {name: entries for name, entries in collected.items() if entries}
    return told


def _predictions(
    source: Source, model: Model, output: Output, *, scores: bool = False
) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]]:
    """What the model says of every block, with the decision function if asked for, and the true labels."""
    from majorant.datasets import Data
    from majorant.rows.stream import read_ahead

    saying = output
    for X, y, _ in read_ahead(source.load, range(source.n_blocks)):
        rows = matching(Data(X, y, source.feature_names, source.name, ""), model, saying)
        saying = Output(OutputOptions(quiet=True))  # once is enough
        yield model.predict(rows), model.scores(rows) if scores else None, y


def _score(model: Model, source: Source, held_out: Source | None, output: Output) -> None:
    """Accuracy on the training rows and on the test rows."""
    quiet = Output(OutputOptions(quiet=True))
    told = _tell(source, model, quiet, None, scores=False)
    output.facts["train_accuracy"] = told.right / told.rows
    said = f"Accuracy {told.right / told.rows:.2%} on the training rows"
    if held_out is not None:
        told = _tell(held_out, model, quiet, None, scores=False)
        output.facts["test_accuracy"] = told.right / told.rows
        said += f", {told.right / told.rows:.2%} on the test rows"
    output.say(said)
