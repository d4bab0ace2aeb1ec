"""Data for a command: from a file, from stdin, or from the registry by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from majorant.cli.arguments import DataOptions
from majorant.cli.output import Output
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.cli.models import Model
    from majorant.datasets import Data


def read_data(
    source: str,
    options: DataOptions,
    output: Output,
    *,
    labelled: bool | None = True,
    what: str = "data",
    model: Model | None = None,
) -> Data:
    """Read, and say what was read; for a model, the columns that it was trained with."""
    from majorant.datasets import REGISTRY, load, read

    named = source in REGISTRY and not Path(source).exists()
    if named and options != DataOptions():
        raise typer.BadParameter(
            f"{source!r} is a data set known by name, and it is known how to read it: leave out --label, "
            "--drop, --format, --no-header and --zero-based"
        )
    known_columns = {} if named or model is None else remembered(model, source, options)
    with output.waiting(f"reading {source}"):
        data = (
            load(source, progress=output.options.talkative)
            if named
            else read(source, labelled=labelled, **options.reader_options | known_columns)
        )
    output.facts[what] = {
        "source": data.source,
        "sha256": data.sha256,
        "rows": data.X.shape[0],
        "n_features": data.X.shape[1],
    }
    output.say(f"{source}: {data.X.shape[0]:,} rows × {data.X.shape[1]:,} features{_classes(data)}")
    return data


def remembered(model: Model, source: str, options: DataOptions) -> dict[str, Any]:
    """What a model knows of the columns of a table: which are features, and which was the label."""
    from majorant.datasets.readers import TABLES, format_by_name

    if model.feature_names is None or options.no_header:
        return {}
    if (options.format or format_by_name(source)) not in TABLES:
        return {}
    known: dict[str, Any] = {"columns": model.feature_names}
    label = None if model.origin is None else model.origin.label_column
    if options.label is None and label is not None and label not in model.feature_names:
        known["label"] = label
    return known


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


def labels_of(data: Data) -> list[Any]:
    """The class labels of the data, each once."""
    import numpy as np

    labels: list[Any] = np.unique(np.asarray(data.y)).tolist()
    return labels


def matching(data: Data, model: Model, output: Output) -> Any:
    """The columns of the data that the model knows, in its order.

    By name if both have names. Otherwise by position: features that LIBSVM text has beyond those of the model
    were zero in all rows that it was trained on, and features that it lacks are zero in all of its rows.
    """
    if data.feature_names is not None and model.feature_names is not None:
        return _by_name(data, data.feature_names, model.feature_names, output)
    if model.feature_names is not None and data.X.shape[1] != model.n_features:
        raise MajorantError(
            f"{data.source} has no names for its {data.X.shape[1]} features, and the model wants "
            f"{model.n_features} of certain names"
        )
    import scipy.sparse as sp

    X, known = data.X, model.n_features
    if X.shape[1] == known:
        return X
    if not sp.issparse(X):
        raise MajorantError(
            f"{data.source} has {X.shape[1]} features, and the model was trained with {known}"
        )
    if X.shape[1] > known:
        output.say(f"{X.shape[1] - known:,} features unknown to the model left out")
        return X[:, :known]
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], known))


def _by_name(data: Data, there: tuple[str, ...], wanted: tuple[str, ...], output: Output) -> Any:
    position = {name: j for j, name in enumerate(there)}
    missing = [name for name in wanted if name not in position]
    if missing:
        others = f" (and {len(missing) - 1} other features)" if len(missing) > 1 else ""
        raise MajorantError(f"{data.source} has no column {missing[0]!r}{others}, which the model uses")
    extra = len(there) - len(wanted)
    if extra:
        output.say(f"{extra} column{'s' if extra > 1 else ''} unknown to the model left out")
    columns = [position[name] for name in wanted]
    return data.X if columns == list(range(len(there))) else data.X[:, columns]
