"""Row groups of a Parquet file, by pyarrow: the extra `tables`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from majorant.datasets.arrow_tables import check_types, labels_of, numbers_of
from majorant.datasets.stamps import Stamp
from majorant.datasets.wanted import Wanted, choose_columns, reason
from majorant.errors import DataFileError, MajorantError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["ParquetSource"]


class ParquetSource(Source):
    """Blocks of one row group, or of as many small ones as make up a block."""

    def __init__(self, path: str, wanted: Wanted, block_bytes: int) -> None:
        weight = wanted.weight
        self.name, self._stamp = path, Stamp.of(path)
        with self._file() as file:
            schema = file.schema_arrow
            rows = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        names = schema.names
        if weight is not None and weight not in names:
            raise DataFileError(f"no column {weight!r} for the weights", path)
        left_out = wanted.drop if weight is None else (*wanted.drop, weight)
        label, features = choose_columns(names, replace(wanted, drop=left_out), path, None)
        self._label = self.label = None if label is None or wanted.labelled is False else names[label]
        self._weight = weight
        self.feature_names = tuple(names[j] for j in features)
        check_types(schema, self.feature_names, path)
        if not sum(rows):
            raise DataFileError("there are no rows in this file", path)
        self._groups: list[list[int]] = []
        self._rows: list[int] = []
        for k, count in enumerate(rows):
            if count and self._rows and (self._rows[-1] + count) * self._row_bytes <= block_bytes:
                self._groups[-1].append(k)
                self._rows[-1] += count
            elif count:
                self._groups.append([k])
                self._rows.append(count)

    @property
    def _row_bytes(self) -> int:
        return 8 * self.n_features + 16

    @property
    def n_blocks(self) -> int:
        return len(self._groups)

    @property
    def n_features(self) -> int:
        return len(self.feature_names or ())

    def load(self, i: int) -> RawBlock:
        names = self.feature_names or ()
        table = self._read(i, [*names, *self._extra])
        X = np.empty((table.num_rows, len(names)))
        for place, name in enumerate(names):
            X[:, place] = numbers_of(table.column(name), name, self.name)
        return RawBlock(X, *self._labels(table))

    def tally(self, i: int) -> Tally:
        y, weight = self._labels(self._read(i, self._extra))
        if y is None:
            raise DataFileError("there is no column of labels", self.name)
        return Tally.of(y, weight)

    @property
    def has_labels(self) -> bool:
        return self._label is not None

    def n_rows(self, i: int) -> int:
        return self._rows[i]

    def size(self, i: int) -> int:
        return self._rows[i] * self._row_bytes

    @property
    def _extra(self) -> list[str]:
        return [name for name in (self._label, self._weight) if name is not None]

    def _labels(self, table: Any) -> tuple[Any, Any]:
        y = None if self._label is None else labels_of(table.column(self._label), self._label, self.name)
        if self._weight is None:
            return y, None
        return y, numbers_of(table.column(self._weight), self._weight, self.name)

    def _read(self, i: int, columns: list[str]) -> Any:
        self._stamp.check()
        try:
            with self._file() as file:
                # One thread: another is busy with the block before.
                return file.read_row_groups(self._groups[i], columns=columns, use_threads=False)
        except DataFileError:
            raise
        except Exception as error:  # what pyarrow raises for a damaged file has many names
            raise DataFileError(f"not a readable parquet file ({reason(error)})", self.name) from error

    def _file(self) -> Any:
        try:
            from pyarrow import parquet
        except ImportError:
            raise MajorantError(
                f'{self.name}: to read parquet files, install pyarrow: pip install "majorant[tables]"'
            ) from None
        try:
            return parquet.ParquetFile(self.name)
        except Exception as error:
            raise DataFileError(f"not a readable parquet file ({reason(error)})", self.name) from error
