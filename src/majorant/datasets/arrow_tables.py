"""Parquet and Arrow files, by pyarrow: the extra `tables`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content, Fingerprint
from majorant.datasets.labels import labels_from_array
from majorant.datasets.options import ReadOptions, ReadResult, choose_columns, leave_out, listed, reason
from majorant.datasets.sources.blocks import KnownBlocks
from majorant.errors import DataFileError, MajorantError
from majorant.rows.sources import RawBlock, Tally

__all__ = ["ParquetSource", "read_arrow_table", "read_table"]


def read_table(content: Content, kind: str) -> Any:
    """The table of pyarrow."""
    with _errors_of_pyarrow(kind, content.path):
        table = _read_table(content.readall(), kind)
        table.validate(full=True)
    return table


def read_arrow_table(content: Content, options: ReadOptions, kind: str) -> ReadResult:
    """The columns as a dense array, the labels, the names."""
    table = read_table(content, kind)
    columns = _Columns(table.schema, options, content.path)
    if not table.num_rows:
        raise DataFileError("there are no rows in this file", content.path)
    X, y, _ = columns.block(table)
    return ReadResult(X, y, columns.features, columns.label)


def _read_table(data: bytes, kind: str) -> Any:
    from pyarrow import BufferReader, feather, ipc, parquet

    buffer = BufferReader(data)
    if kind == "parquet":
        return parquet.ParquetFile(buffer).read()
    if data.startswith(b"ARROW1"):
        return ipc.open_file(buffer).read_all()
    if data.startswith(b"FEA1"):  # the first version of feather
        return feather.read_table(buffer)
    return ipc.open_stream(buffer).read_all()


class ParquetSource(KnownBlocks):
    """Blocks of one row group, or of as many small ones as make up a block."""

    def __init__(self, path: str, options: ReadOptions, block_bytes: int) -> None:
        self.name, self._fingerprint = path, Fingerprint.of(path)
        with self._open() as file:
            schema = file.schema_arrow
            group_rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        self._columns = _Columns(schema, options, path)
        self.feature_names, self.label = self._columns.features, self._columns.label
        row_bytes = 8 * len(self.feature_names) + 16
        self._groups: list[list[int]] = []
        rows: list[int] = []
        for k, count in enumerate(group_rows):
            if count and rows and (rows[-1] + count) * row_bytes <= block_bytes:
                self._groups[-1].append(k)
                rows[-1] += count
            elif count:
                self._groups.append([k])
                rows.append(count)
        self._set_blocks(
            rows, len(self.feature_names), has_labels=self.label is not None,
            sizes=[row_bytes * count for count in rows],
        )  # fmt: skip

    def load(self, i: int) -> RawBlock:
        return self._columns.block(self._read(i, self._columns.features))

    def _tally(self, i: int) -> Tally:
        return Tally.of(*self._columns.labels(self._read(i)))

    def _read(self, i: int, features: Sequence[str] = ()) -> Any:
        self._fingerprint.check()
        with self._open() as file, _errors_of_pyarrow("parquet", self.name):
            # One thread: another is busy with the block before.
            return file.read_row_groups(
                self._groups[i], columns=[*features, *self._columns.others], use_threads=False
            )

    def _open(self) -> Any:
        with _errors_of_pyarrow("parquet", self.name):
            from pyarrow import parquet

            return parquet.ParquetFile(self.name)


@contextmanager
def _errors_of_pyarrow(kind: str, path: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise MajorantError(
            f'{path}: to read {kind} files, install pyarrow: pip install "majorant[tables]"'
        ) from None
    except DataFileError:
        raise
    except Exception as error:  # what pyarrow raises for a damaged file has many names
        raise DataFileError(f"not a readable {kind} file ({reason(error)})", path) from error


class _Columns:
    """The columns of a table that are read: features, labels, weights."""

    def __init__(self, schema: Any, options: ReadOptions, path: str) -> None:
        self.path, self.weight, names = path, options.weight, schema.names
        if self.weight is not None:
            if self.weight not in names:
                raise DataFileError(f"no column {self.weight!r} for the weights", path)
            options = replace(options, drop=(*options.drop, self.weight))
        label, features = choose_columns(names, options, path, None)
        self.features = tuple(names[j] for j in features)
        self._check_types(schema)
        self.label = None if label is None or options.labelled is False else names[label]
        self.others = [name for name in (self.label, self.weight) if name is not None]

    def _check_types(self, schema: Any) -> None:
        """Refuse columns of features whose type has no numbers, all of them at once."""
        import pyarrow

        kinds = pyarrow.types
        tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
        found = {}
        for name in self.features:
            kind = schema.field(name).type
            kind = kind.value_type if kinds.is_dictionary(kind) else kind
            if not any(test(kind) for test in tests):
                found[name] = kind
        if len(found) == 1:
            ((name, kind),) = found.items()
            raise DataFileError(
                f"the column {name!r} has values of type {kind}, which are no numbers: encode them as "
                f"numbers, or leave the column out with {leave_out([name])}", self.path,
            )  # fmt: skip
        if found:
            raise DataFileError(
                f"the columns {listed(found)} have values that are no numbers: encode them as numbers, or "
                f"leave the columns out with {leave_out(list(found))}", self.path,
            )  # fmt: skip

    def block(self, table: Any) -> RawBlock:
        X = np.empty((table.num_rows, len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = self._numbers(table, name)
        return RawBlock(X, *self.labels(table))

    def labels(self, table: Any) -> tuple[Any, NDArray[np.float64] | None]:
        """The labels and weights, where the table has them."""
        y = None if self.label is None else self._classes(table, self.label)
        return y, None if self.weight is None else self._numbers(table, self.weight)

    def _numbers(self, table: Any, name: str) -> NDArray[np.float64]:
        """A column of features, which must be finite numbers."""
        import pyarrow

        column, kinds = _decoded(table.column(name)), pyarrow.types
        if name.startswith("__index_level_"):
            raise DataFileError(
                f"the column {name!r} is the row index of a data frame: leave it out with "
                f"{leave_out([name])}", self.path,
            )  # fmt: skip
        if column.null_count:
            raise DataFileError(
                f"a missing value in the column {name!r}, row {_first_missing(column)}: fill in missing "
                "values first", self.path,
            )  # fmt: skip
        if kinds.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        numbers: NDArray[np.float64] = column.to_numpy().astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise DataFileError(
                f"{numbers[wrong[0]]} in the column {name!r}, row {wrong[0] + 1}: replace missing and "
                "infinite values first", self.path,
            )  # fmt: skip
        return numbers

    def _classes(self, table: Any, name: str) -> NDArray[Any]:
        """A column of labels, none of them missing."""
        column = _decoded(table.column(name))
        if column.null_count:
            raise DataFileError(
                f"the label (column {name!r}) of row {_first_missing(column)} is missing", self.path
            )
        values = column.to_numpy()
        if str(column.type) in ("string", "large_string", "string_view"):
            values = values.astype(str)
        return labels_from_array(values, self.path, name)


def _first_missing(column: Any) -> int:
    """The first row without a value, counted from 1."""
    return int(np.argmax(column.is_null().to_numpy())) + 1


def _decoded(column: Any) -> Any:
    """The values themselves, where the file has categories."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
