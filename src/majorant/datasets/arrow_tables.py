"""Parquet and Arrow files, by pyarrow: the extra `tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_array
from majorant.datasets.wanted import Found, Wanted, choose_columns, leave_out, listed, reason
from majorant.errors import DataFileError, MajorantError

__all__ = ["check_types", "labels_of", "numbers_of", "read_arrow_table", "read_table"]


def read_table(content: Content, kind: str) -> Any:
    """The table of pyarrow."""
    try:
        import pyarrow
    except ImportError:
        raise MajorantError(
            f'{content.path}: to read {kind} files, install pyarrow: pip install "majorant[tables]"'
        ) from None
    data = content.readall()
    try:
        table = _parquet(pyarrow, data) if kind == "parquet" else _arrow(pyarrow, data)
        table.validate(full=True)
    except Exception as error:  # what pyarrow raises for a damaged file has many names
        raise DataFileError(f"not a readable {kind} file ({reason(error)})", content.path) from error
    return table


def read_arrow_table(content: Content, wanted: Wanted, kind: str) -> Found:
    """The columns as a dense array, the labels, the names."""
    table = read_table(content, kind)
    names = table.column_names
    label, features = choose_columns(names, wanted, content.path, None)
    check_types(table.schema, [names[j] for j in features], content.path)
    if not table.num_rows:
        raise DataFileError("there are no rows in this file", content.path)
    X = np.empty((table.num_rows, len(features)))
    for place, j in enumerate(features):
        X[:, place] = numbers_of(table.column(j), names[j], content.path)
    feature_names = tuple(names[j] for j in features)
    if label is None or wanted.labelled is False:
        return Found(X, None, feature_names)
    y = labels_of(table.column(label), names[label], content.path)
    return Found(X, y, feature_names, names[label])


def _parquet(pyarrow: Any, data: bytes) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(pyarrow.BufferReader(data)).read()


def _arrow(pyarrow: Any, data: bytes) -> Any:
    from pyarrow import feather, ipc

    buffer = pyarrow.BufferReader(data)
    if data.startswith(b"ARROW1"):
        return ipc.open_file(buffer).read_all()
    if data.startswith(b"FEA1"):  # the first version of feather
        return feather.read_table(buffer)
    return ipc.open_stream(buffer).read_all()


def check_types(schema: Any, names: Sequence[str], path: str) -> None:
    """Refuse columns of features whose type has no numbers, all of them at once."""
    import pyarrow

    kinds = pyarrow.types
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    found = {}
    for name in names:
        kind = schema.field(name).type
        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        if not any(test(kind) for test in tests):
            found[name] = kind
    if not found:
        return
    if len(found) == 1:
        ((name, kind),) = found.items()
        raise DataFileError(
            f"the column {name!r} has values of type {kind}, which are no numbers: encode them as "
            f"numbers, or leave the column out with {leave_out([name])}", path,
        )  # fmt: skip
    raise DataFileError(
        f"the columns {listed(list(found))} have values that are no numbers: encode them as numbers, or "
        f"leave the columns out with {leave_out(list(found))}", path,
    )  # fmt: skip


def numbers_of(column: Any, name: str, path: str) -> NDArray[np.float64]:
    """A column of features, which must be finite numbers."""
    import pyarrow

    column = _decoded(pyarrow, column)
    kinds = pyarrow.types
    if name.startswith("__index_level_"):
        raise DataFileError(
            f"the column {name!r} is the row index of a data frame: leave it out with {leave_out([name])}",
            path,
        )
    if kinds.is_null(column.type) or column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataFileError(
            f"a missing value in the column {name!r}, row {row + 1}: fill in missing values first", path
        )
    if kinds.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    numbers: NDArray[np.float64] = column.to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if wrong.size:
        raise DataFileError(
            f"{numbers[wrong[0]]} in the column {name!r}, row {wrong[0] + 1}: replace missing and infinite "
            "values first", path,
        )  # fmt: skip
    return numbers


def labels_of(column: Any, name: str, path: str) -> NDArray[Any]:
    """A column of labels, none of them missing."""
    import pyarrow

    column = _decoded(pyarrow, column)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataFileError(f"the label (column {name!r}) of row {row + 1} is missing", path)
    kinds = pyarrow.types
    values = column.to_numpy()
    if kinds.is_string(column.type) or kinds.is_large_string(column.type) or _is_string_view(pyarrow, column):
        values = values.astype(str)
    try:
        return labels_from_array(values)
    except ValueError as error:
        raise DataFileError(f"the column {name!r}: {error}", path) from None


def _is_string_view(pyarrow: Any, column: Any) -> bool:
    test = getattr(pyarrow.types, "is_string_view", None)  # since pyarrow 16
    return test is not None and bool(test(column.type))


def _decoded(pyarrow: Any, column: Any) -> Any:
    """The values themselves, where the file has categories."""
    if pyarrow.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
