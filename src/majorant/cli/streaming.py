"""`--memory SIZE`: training and predicting block by block.

`prepare` is where `train` and `cv` part ways: a `Job` has its rows in memory, a `BlockJob` on the disk, and
what comes after is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions, ModelOptions
from majorant.cli.models import Model, same
from majorant.cli.output import Output, OutputOptions
from majorant.cli.reading import matching, remembered
from majorant.cli.training import Job, fit
from majorant.cli.writing import STDOUT, check_output, default_model, lines_of, write_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant.callbacks import Checkpoint
    from majorant.cli.models import Estimator
    from majorant.datasets import Source
    from majorant.rows.pass_hooks import Pass


@dataclass(frozen=True)
class Unhashed:
    """Where a model comes from, of data that were never read as a whole."""

    source: str
    feature_names: tuple[str, ...] | None
    label: str | None
    sha256: None = None


@dataclass
class PassTimes:
    """How long the passes over the rows took."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, state: Pass) -> None:
        """Notice when one is over."""
        if state.done == state.blocks:
            self.seconds.append(state.seconds)

    def tell(self, rows: int, output: Output) -> None:
        """Print the number of passes over the rows, and how long a pass took."""
        passes = len(self.seconds)
        output.facts |= {"passes": passes, "rows": rows}
        if passes:
            typical = output.facts["seconds_per_pass"] = sorted(self.seconds)[passes // 2]
            output.say(f"{rows:,} rows, {passes} passes over them, {typical:.2g} s each")


@contextmanager
def timed_passes() -> Iterator[PassTimes]:
    """Measure the passes that are made meanwhile."""
    from majorant.rows.pass_hooks import between_blocks

    times = PassTimes()
    with between_blocks(times):
        yield times


def refuse_with_memory(options: dict[str, bool]) -> None:
    """Say which of the options needs all rows in memory, if one was given."""
    for name, given in options.items():
        if given:
            raise typer.BadParameter(f"{name} needs all rows in memory: leave out --memory, or {name}")


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


def accuracies_by_blocks(models: Sequence[Model], source: Source) -> list[float]:
    """The share of the rows that each model, trained on these, predicts rightly: one pass for all of them."""
    from majorant.rows.stream import read_ahead

    rows, right = 0, [0] * len(models)
    for X, y, _ in read_ahead(source.load, range(source.n_blocks)):
        assert y is not None
        rows += len(y)
        right = [count + model.right(X, y) for count, model in zip(right, models, strict=True)]
    return [count / rows for count in right]


def prepare(
    data: str,
    target: Path | None,
    options: ModelOptions,
    reading: DataOptions,
    output: Output,
    *,
    standardize: bool,
    memory: str | None,
) -> Job | BlockJob:
    """What is to be trained on, in memory or block by block."""
    if memory is None:
        return Job.prepare(data, target, options, reading, output, standardize=standardize)
    refuse_with_memory(
        {"--standardize": standardize, "--report": options.report is not None, "DATA -": data == "-"}
    )
    return BlockJob.prepare(data, target, options, reading, output, memory=memory)


@dataclass(frozen=True)
class BlockJob:
    """A `Job` for data that need not fit into memory."""

    data: Source
    test: Source | None
    target: Path
    options: ModelOptions

    @classmethod
    def prepare(
        cls,
        data: str,
        target: Path | None,
        options: ModelOptions,
        reading: DataOptions,
        output: Output,
        *,
        memory: str,
    ) -> BlockJob:
        """Check the output, then open the data."""
        target = default_model(data) if target is None else target
        check_output(target, *filter(None, [data, options.test]), force=options.force)
        source, test = open_data(data, reading, memory, output), None
        if options.test is not None:
            test = open_data(options.test, reading, memory, output, what="test_data")
        return cls(source, test, target, options)

    @property
    def labels(self) -> list[Any]:
        """The class labels of the data, each once: all of them are looked through."""
        return labels_of(self.data)

    def fit(self, estimator: Estimator, output: Output, saving: Checkpoint | None = None) -> bool:
        """Train; whether Ctrl-C ended it with a model to keep."""
        with timed_passes() as times:
            interrupted = fit(estimator, self.data, None, output, saving)
        times.tell(int(estimator.t_), output)
        return interrupted

    def finish(self, estimator: Estimator, output: Output, *, interrupted: bool) -> None:
        """Score and write the model; after Ctrl-C the model alone."""
        model = Model(estimator)
        if not interrupted:
            _score(model, self.data, self.test, output)
        origin = Unhashed(self.data.name, self.data.feature_names, self.data.label)
        write_model(model, origin, self.target, output, standardized=False, force=self.options.force)
        output.finish(**model.summary)
        if interrupted:
            raise typer.Exit(130)


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
        from majorant.files import atomic_write

        with atomic_write(out, overwrite=force) as file:
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
