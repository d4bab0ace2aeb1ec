"""Data for a command: from a file, from stdin, or from the registry by name."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.output import Output
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.datasets import Data

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM text, CSV, TSV, Parquet, Arrow, .npz or .mat, also compressed; - for stdin; or the name "
        "of a known data set.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class DataOptions:
    """How a data file is to be read."""

    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the labels, if it is a table.")
    ] = None
    drop: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A column to leave out; can be given again.")
    ] = field(default_factory=list)
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="libsvm, csv, tsv, parquet, arrow, npz or mat; else by its name."
        ),
    ] = None
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header", help="A CSV or TSV file has no names: its columns are 0, 1, …, or -1 for the last."
        ),
    ] = False
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="The first feature of LIBSVM text is 0, not 1.")
    ] = False

    def column(self, word: str | None) -> Any:
        """A column by its name; where there are no names, by its position: 0 is the first, -1 the last."""
        numbered = self.no_header and word is not None and re.fullmatch(r"-?\d+", word)
        return int(word) if numbered else word  # type: ignore[arg-type]


def read_data(
    source: str, options: DataOptions, output: Output, *, labelled: bool | None = True, what: str = "data"
) -> Data:
    """Read, and say what was read."""
    from majorant.datasets import Data, available, load, read

    known = source in {info.name for info in available()}
    with output.waiting(f"reading {source}"):
        if known and not Path(source).exists():
            data = load(source)
        else:
            data = read(
                source, label=options.column(options.label), drop=list(map(options.column, options.drop)),
                format=options.format, zero_based=options.zero_based, labelled=labelled,
                header=not options.no_header,
            )  # fmt: skip
    assert isinstance(data, Data)
    output.facts[what] = {
        "source": data.source,
        "sha256": data.sha256,
        "rows": data.X.shape[0],
        "features": data.X.shape[1],
    }
    output.say(f"{source}: {data.X.shape[0]:,} rows × {data.X.shape[1]:,} features{_classes(data)}")
    return data


def _classes(data: Data) -> str:
    if data.y is None:
        return ", no labels"
    import numpy as np

    labels, counts = np.unique(data.y, return_counts=True)
    if len(labels) > 6:
        return f", {len(labels)} classes"
    return ", " + ", ".join(
        f"{count:,} of class {label}" for label, count in zip(labels, counts, strict=True)
    )


def matching(data: Data, model: Any, output: Output) -> Any:
    """The columns of the data that the model knows, in its order.

    By name if both have names. Otherwise by position: features that LIBSVM text has beyond those of the model
    were zero in all rows that it was trained on, and features that it lacks are zero in all of its rows.
    """
    import scipy.sparse as sp

    X, wanted = data.X, int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    if names is not None and data.feature_names is not None:
        position = {name: j for j, name in enumerate(data.feature_names)}
        missing = [name for name in names if name not in position]
        if missing:
            raise MajorantError(
                f"{data.source} has no column {missing[0]!r}"
                + (f", nor {len(missing) - 1} other features" if len(missing) > 1 else "")
                + " of the model"
            )
        extra = len(position) - len(names)
        if extra:
            output.say(f"{extra} column{'s' if extra > 1 else ''} unknown to the model left out")
        columns = [position[name] for name in names]
        return X if columns == list(range(X.shape[1])) else X[:, columns]
    if X.shape[1] == wanted:
        return X
    if not sp.issparse(X):
        raise MajorantError(
            f"{data.source} has {X.shape[1]} features, and the model was trained with {wanted}"
        )
    if X.shape[1] > wanted:
        output.say(f"{X.shape[1] - wanted:,} features unknown to the model left out")
        return X[:, :wanted]
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], wanted))


def keep_names(model: Any, data: Data) -> None:
    """Let the model know the names of its features, as if it had been trained on a data frame."""
    if data.feature_names is not None:
        import numpy as np

        model.feature_names_in_ = np.array(data.feature_names, dtype=object)


def names_of(model: Any) -> list[str]:
    """What the features are called: without names of their own x1, x2, …, as LIBSVM text counts them."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j + 1}" for j in range(model.n_features_in_)] if names is None else list(map(str, names))


def predicted(model: Any, X: Any, method: str = "predict") -> Any:
    """What the model says of rows that `matching` has put in order (scikit-learn would miss their names)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return getattr(model, method)(X)
