"""Parquet and Arrow files, by pyarrow: the extra `tables`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content, Fingerprint
from majorant.datasets.labels import labels_from_array
from majorant.datasets.options import (
    ReadOptions,
    ReadResult,
    choose_columns,
    fill_in,
    for_text,
    listed,
    optional_columns,
    reason,
    table_result,
)
from majorant.datasets.preprocessing import (
    Preprocessing,
    TableColumns,
    category,
    make_features,
    unknown_categories,
)
from majorant.datasets.sources.blocks import KnownBlocks
from majorant.errors import DataFileError, MajorantError
from majorant.rows.sources import RawBlock, Tally

__all__ = ["ParquetSource", "read_arrow_table", "read_table"]

# What preprocessing learns, it learns from columns that take at most the bytes of this many blocks.
LEARNING_BLOCKS = 8


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
    y, _ = columns.labels(table)
    found = columns.values(table, columns.features)
    return table_result(found, y, columns.label, options, content.path, columns.notes)


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
        self._columns, self._options = _Columns(schema, options, path), options
        self.label, self.notes = self._columns.label, self._columns.notes
        with _errors_of_pyarrow("parquet", path):
            self.preprocessing = self._learned(options, sum(group_rows), LEARNING_BLOCKS * block_bytes)
        names = self._columns.features
        if self.preprocessing is not None:
            names = self.preprocessing.names(names)
        self.feature_names = names if options.columns is None else tuple(options.columns)
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

    def _learned(self, options: ReadOptions, n_rows: int, n_bytes: int) -> Preprocessing | None:
        """The preprocessing, fitted: to as many columns at a time as fit into `n_bytes`, at least one."""
        preprocessing, columns = options.preprocessing, self._columns.features
        if preprocessing is None:
            return None
        texts = tuple(name for name in columns if name in options.one_hot)
        if preprocessing.is_fitted:
            found = [make_features(part, preprocessing).unknown for part in self._parts(texts)]
            self.notes += unknown_categories(found)
            return preprocessing
        numbers = [name for name in columns if name not in texts] if options.imputes else []
        at_once = max(1, n_bytes // (8 * max(1, n_rows)))
        groups = [tuple(numbers[k : k + at_once]) for k in range(0, len(numbers), at_once)]
        return preprocessing.fitted(chain(self._parts(texts), map(self._all_rows, groups)))

    def _parts(self, names: tuple[str, ...]) -> Iterator[TableColumns]:
        """Some columns, one row group after the other."""
        with self._open() as file:
            for k in range(file.num_row_groups if names else 0):
                yield self._columns.values(file.read_row_group(k, list(names), use_threads=False), names)

    def _all_rows(self, names: tuple[str, ...]) -> TableColumns:
        """Some columns with all of their rows."""
        with self._open() as file:
            return self._columns.values(file.read(list(names), use_threads=False), names)

    def load(self, i: int) -> RawBlock:
        table = self._read(i, self._columns.features)
        found = self._columns.values(table, self._columns.features)
        X = make_features(found, self.preprocessing, self._options.columns).X
        return RawBlock(X, *self._columns.labels(table))

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
        label, features, self.notes = choose_columns(names, options, path, None)
        self.options, self.optional = options, optional_columns(options)
        self.features = tuple(names[j] for j in features)
        self._check_types(schema)
        self.label = None if label is None or options.labelled is False else names[label]
        self.others = [name for name in (self.label, self.weight) if name is not None]

    def _check_types(self, schema: Any) -> None:
        """Refuse columns of features whose type has no numbers, all of them at once."""
        found = {}
        for name in self.features:
            kind = schema.field(name).type
            if name not in self.options.one_hot and not _has_numbers(kind):
                found[name] = kind
        found = {name: kind for name, kind in found.items() if name not in self.optional}
        what_to_do = for_text(list(found), self.options)
        if len(found) == 1:
            ((name, kind),) = found.items()
            raise DataFileError(
                f"the column {name!r} has values of type {kind}, which are no numbers: {what_to_do}",
                self.path,
            )
        if found:
            raise DataFileError(
                f"the columns {listed(found)} have values that are no numbers: {what_to_do}", self.path
            )

    def values(self, table: Any, names: tuple[str, ...]) -> TableColumns:
        """Some columns of features as numbers, and the texts of categories."""
        X = np.empty((table.num_rows, len(names)))
        texts = {}
        for j, name in enumerate(names):
            if name in self.options.one_hot:
                X[:, j], texts[name] = _categories(table.column(name))
            else:
                X[:, j] = self._numbers(table, name)
        return TableColumns(names, X, texts)

    def labels(self, table: Any) -> tuple[Any, NDArray[np.float64] | None]:
        """The labels and weights, where the table has them."""
        y = None if self.label is None else self._classes(table, self.label)
        return y, None if self.weight is None else self._numbers(table, self.weight)

    def _numbers(self, table: Any, name: str) -> NDArray[np.float64]:
        """A column of features, which must be finite numbers."""
        import pyarrow

        column, optional = _decoded(table.column(name)), name in self.optional
        if optional and not _has_numbers(column.type):
            return np.full(table.num_rows, np.nan)
        may_be_missing = optional or self.options.imputes
        if column.null_count and not may_be_missing:
            raise DataFileError(
                f"a missing value in the column {name!r}, row {_first_missing(column)}: "
                f"{fill_in(self.options)}", self.path,
            )  # fmt: skip
        if column.null_count or pyarrow.types.is_decimal(column.type) or pyarrow.types.is_null(column.type):
            column = column.cast(pyarrow.float64())
        numbers: NDArray[np.float64] = column.to_numpy().astype(np.float64)
        wrong = np.flatnonzero(np.isinf(numbers) if may_be_missing else ~np.isfinite(numbers))
        if wrong.size and optional:
            numbers[wrong] = np.nan
        elif wrong.size:
            missing = np.isnan(numbers[wrong[0]])
            what_to_do = fill_in(self.options) if missing else "replace infinite values first"
            raise DataFileError(
                f"{numbers[wrong[0]]} in the column {name!r}, row {wrong[0] + 1}: {what_to_do}", self.path
            )
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


def _has_numbers(kind: Any) -> bool:
    """Whether values of a type can be numbers."""
    import pyarrow

    kinds = pyarrow.types
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    return any(test(kind) for test in tests)


def _categories(column: Any) -> tuple[NDArray[np.intp], list[str]]:
    """A number for each row, and the texts that these stand for; that of a missing value is empty."""
    encoded = _decoded(column).dictionary_encode().combine_chunks()
    values = [*encoded.dictionary.to_pylist(), None]  # a missing value is the last of them
    of_rows = encoded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
    used, numbers = np.unique(of_rows, return_inverse=True)
    codes: dict[str, int] = {}
    places = np.array([codes.setdefault(_text(values[k]), len(codes)) for k in used.tolist()], dtype=np.intp)
    return places[numbers], list(codes)


def _text(value: Any) -> str:
    return "" if value is None or value != value else category(str(value))


def _first_missing(column: Any) -> int:
    """The first row without a value, counted from 1."""
    return int(np.argmax(column.is_null().to_numpy())) + 1


def _decoded(column: Any) -> Any:
    """The values themselves, where the file has categories."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column
