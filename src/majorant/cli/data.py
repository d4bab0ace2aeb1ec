"""Data for a command: from a file, from stdin, or by name; in memory, or block by block (`--memory`).

Either way the rows are the blocks of a source; those in memory are one block. Every figure that a command
tells is a sum over blocks (rows, labels, moments, accuracy) or a sequence of them (predictions). Only a fit
takes rows in memory as the arrays that they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions
from majorant.cli.choices import refuse_missing
from majorant.cli.columns import TrainedColumns
from majorant.cli.output import Output
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from majorant.cli.models import Model
    from majorant.datasets import Preprocessing, Source
    from majorant.rows import RawBlock
    from majorant.rows.sources import Tally


@dataclass(frozen=True)
class CommandData:
    """The rows that a command works on, and where they came from."""

    source: str
    """The file or the name, as the user gave it."""
    blocks: Source
    in_memory: bool
    """Whether the rows are one block, which is in memory."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns, where the file has names."""
        return self.blocks.feature_names

    @property
    def label(self) -> str | None:
        """The name of the column that the labels come from, where it has a name."""
        return self.blocks.label

    @property
    def preprocessing(self) -> Preprocessing | None:
        """How the columns of a table have become features, if that was asked for."""
        found: Preprocessing | None = self.blocks.preprocessing
        return found

    @property
    def unnamed_columns(self) -> int | None:
        """How many columns a table without a header has."""
        return self.blocks.unnamed_columns

    @property
    def columns(self) -> TrainedColumns | None:
        """The columns as a model that is trained on them will know them."""
        if self.feature_names is None:
            return None
        return TrainedColumns(self.feature_names, self.label, self.preprocessing, self.unnamed_columns)

    @property
    def sha256(self) -> str | None:
        """Of the content, where it was read as a whole."""
        return self.blocks.sha256

    @property
    def n_features(self) -> int:
        """The columns of X."""
        return self.blocks.n_features

    @cached_property
    def n_rows(self) -> int:
        """The rows of all blocks."""
        return sum(map(self.blocks.n_rows, range(self.blocks.n_blocks)))

    @cached_property
    def tallies(self) -> list[Tally]:
        """The labels of each block; none without labels."""
        from majorant.rows.stream import read_ahead

        n_blocks = self.blocks.n_blocks if self.blocks.has_labels else 0
        return list(read_ahead(self.blocks.tally, range(n_blocks)))

    @cached_property
    def counts(self) -> dict[Any, int]:
        """How many rows each class label has, in order; empty without labels."""
        counts: Counter[Any] = Counter()
        for tally in self.tallies:
            counts.update(dict(zip(tally.labels.tolist(), tally.rows.tolist(), strict=True)))
        return dict(sorted(counts.items()))

    @property
    def labels(self) -> list[Any]:
        """The class labels, each once."""
        return list(self.counts)

    def __iter__(self) -> Iterator[RawBlock]:
        """The blocks; each is read while the one before is worked on."""
        from majorant.rows.stream import read_blocks

        return read_blocks(self.blocks)

    @property
    def training_rows(self) -> tuple[Any, NDArray[Any] | None, NDArray[Any] | None]:
        """X, y and sample weights for `fit`; a source has labels and weights of its own."""
        return self.blocks.load(0) if self.in_memory else (self.blocks, None, None)

    def transformed(self, transform: Callable[[Any], Any], *shape: Any) -> CommandData:
        """The same rows with another X; `shape` are its number of features and their names."""
        from majorant.rows.sources import TransformedSource

        return replace(self, blocks=TransformedSource(self.blocks, transform, *shape))

    def right(self, models: Sequence[Model]) -> list[int]:
        """How many rows each of the models predicts as they are labelled: one pass for all of them."""
        right = [0] * len(models)
        for X, y, _ in self:
            assert y is not None
            right = [count + model.right(X, y) for count, model in zip(right, models, strict=True)]
        return right

    def labels_as(self, model: Model) -> NDArray[Any]:
        """The label of every row, in the type that the model has labels."""
        import numpy as np

        return np.concatenate([model.as_labels(y, self.source) for _, y, _ in self])

    def columns_of(self, model: Model, output: Output) -> CommandData:
        """The columns that the model knows, in its order.

        By name if both have names. Otherwise by position: features that LIBSVM text has beyond those of the
        model were zero in all rows that it was trained on, and features that it lacks are zero in all of its
        rows.
        """
        there, known = self.feature_names, model.feature_names
        if there is not None and known is not None:
            return self._columns_by_name(there, known, model, output)
        n_there, n_known = self.n_features, model.n_features
        if n_there == n_known:
            return self
        if known is not None:
            raise MajorantError(
                f"{self.source} has no names for its {n_there} features, and the model wants {n_known} of "
                "certain names"
            )
        import scipy.sparse as sp

        if not sp.issparse(self.blocks.load(0).X):
            raise MajorantError(
                f"{self.source} has {n_there} features, and the model was trained with {n_known}"
            )
        if n_there > n_known:
            output.say(f"{n_there - n_known:,} features unknown to the model left out")
            return self.transformed(lambda X: X[:, :n_known], n_known)
        return self.transformed(
            lambda X: sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_known)), n_known
        )

    def _columns_by_name(
        self, there: tuple[str, ...], known: tuple[str, ...], model: Model, output: Output
    ) -> CommandData:
        missing = sorted(set(known) - set(there), key=known.index)
        if missing:
            others = f" (and {len(missing) - 1} other features)" if len(missing) > 1 else ""
            raise MajorantError(f"{self.source} has no column {missing[0]!r}{others}, which the model uses")
        extra = len(there) - len(known)
        if extra:
            output.say(f"{extra} column{'s' if extra > 1 else ''} unknown to the model left out")
        return self.features_of(model)

    def features_of(self, model: Model) -> CommandData:
        """The features of a model by name, if these have names, which are all there."""
        there, known = self.feature_names, model.feature_names
        if there is None or known is None or there == known:
            return self
        position = {name: j for j, name in enumerate(there)}
        columns = [position[name] for name in known]
        return self.transformed(lambda X: X[:, columns], len(known), known)


def open_data(
    source: str,
    options: DataOptions,
    output: Output,
    *,
    memory: str | None = None,
    labelled: bool | None = True,
    what: str = "data",
    trained: TrainedColumns | None = None,
    preprocessing: Preprocessing | None = None,
) -> CommandData:
    """Open the data and say what they are; for a model, the columns that it was trained with.

    With `memory` they are read block by block, and no more than that is kept of them.
    """
    from majorant.datasets import REGISTRY

    named = source in REGISTRY and not Path(source).exists()
    if named and (options != DataOptions() or preprocessing is not None):
        raise typer.BadParameter(
            f"{source!r} is a data set known by name, and it is known how to read it: leave out --label, "
            "--drop, --format, --no-header, --zero-based, --impute and --one-hot"
        )
    if not named:
        refuse_missing(source, REGISTRY)
    with output.waiting(f"reading {source}"):
        if named:
            blocks = _known_by_name(source, memory, output)
        else:
            known: dict[str, Any] = {"preprocessing": preprocessing}
            if trained is not None and trained.are_in(source, options):
                options = trained.reading(options)
                known = trained.reader_options
                if options.label is not None:
                    known.pop("label", None)
            blocks = _opened(source, memory, options, {"labelled": labelled} | known)
        data = CommandData(source, blocks, in_memory=memory is None)
        n_rows, counts = data.n_rows, data.counts
    output.facts[what] = {
        "source": source,
        "sha256": data.sha256,
        "rows": n_rows,
        "n_features": data.n_features,
    }
    output.say(f"{source}: {n_rows:,} rows × {data.n_features:,} features, {_classes(counts)}")
    for note in blocks.notes:
        output.warn(f"{source}: {note}")
    if not data.in_memory:
        output.facts[what]["blocks"] = blocks.n_blocks
    return data


def _known_by_name(name: str, memory: str | None, output: Output) -> Source:
    from majorant.datasets import REGISTRY, find, load, open_source
    from majorant.datasets.sources.blocks import DataSource

    progress = output.options.talkative
    if memory is None:
        return DataSource(load(name, progress=progress))
    return open_source(find(name, progress=progress), features=REGISTRY[name].n_features, memory=memory)


def _opened(source: str, memory: str | None, options: DataOptions, known: dict[str, Any]) -> Source:
    from majorant.datasets.options import ReadOptions
    from majorant.datasets.readers import read_file
    from majorant.datasets.sources import BlockSize, open_files
    from majorant.datasets.sources.blocks import DataSource
    from majorant.rows.sources import n_bytes

    if memory is not None and Path(source).is_fifo():
        raise MajorantError(
            f"{source}: a pipe can be read only once, and with --memory every pass reads the data: write "
            "them to a file first, or pass them as standard input (-)"
        )
    reading = ReadOptions(**options.reader_options | known)
    if memory is None:
        return DataSource(read_file(source, options.format, reading))
    return open_files(source, options.format, reading, BlockSize(None, None, n_bytes(memory)))


def names_of_rows(source: str, column: str, options: DataOptions) -> list[str]:
    """The texts of a column of a table, in the order of the rows."""
    from majorant.datasets import REGISTRY
    from majorant.datasets.text_columns import read_column

    if source == "-" or Path(source).is_fifo():
        raise typer.BadParameter(
            "the data are read twice for it, and a pipe can be read once: write them to a file first",
            param_hint="--id",
        )
    if source in REGISTRY and not Path(source).exists():
        raise typer.BadParameter(f"{source} is no table: its columns have no names", param_hint="--id")
    refuse_missing(source, REGISTRY)
    name = options.column(column)
    assert name is not None
    return read_column(source, name, format=options.format, header=not options.no_header)


def _classes(counts: dict[Any, int]) -> str:
    if not counts:
        return "no labels"
    if len(counts) > 6:
        return f"{len(counts)} classes"
    return ", ".join(f"{count:,} of class {label}" for label, count in counts.items())
