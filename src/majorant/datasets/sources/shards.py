"""Several sources as one, and rows that are one block: those in memory, and files that are small enough."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from majorant.datasets.data import Data
from majorant.datasets.readers import read
from majorant.datasets.stamps import Stamp
from majorant.errors import DataFileError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["ChainSource", "DataSource", "FileSource"]


class DataSource(Source):
    """Rows that `read` has returned, as one block."""

    n_blocks = 1
    n_features = 0

    def __init__(self, data: Data) -> None:
        self._describe(data)
        self.data = data

    def _describe(self, data: Data) -> None:
        self.name, self.sha256, self.n_features = data.source, data.sha256, int(data.X.shape[1])
        self.feature_names, self.label = data.feature_names, data.label
        self._n_rows = int(data.X.shape[0])
        self._tally = None if data.y is None else Tally.of(data.y)

    @property
    def has_labels(self) -> bool:
        return self._tally is not None

    def load(self, i: int) -> RawBlock:
        return RawBlock(self.data.X, self.data.y)

    def tally(self, i: int) -> Tally:
        if self._tally is None:
            raise DataFileError("there are no labels in this file", self.name)
        return self._tally

    def n_rows(self, i: int) -> int:
        return self._n_rows


class FileSource(DataSource):
    """A file of any format that `read` knows, as one block."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self._options, self._stamp = options, Stamp.of(path)
        # Read once, to see what there is; no row of it is kept.
        self._describe(read(path, **options))

    def load(self, i: int) -> RawBlock:
        self._stamp.check()
        data = read(self.name, **self._options)
        return RawBlock(data.X, data.y)


class ChainSource(Source):
    """The blocks of several sources, one source after the other."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self.parts = tuple(parts)
        first = self.parts[0]
        self.name = f"{first.name} and {len(parts) - 1} more"
        self.feature_names, self.label = first.feature_names, first.label
        for part in self.parts:
            if part.n_features != first.n_features:
                raise DataFileError(
                    f"{part.n_features} features, where {first.name} has {first.n_features}", part.name
                )
            if part.feature_names != first.feature_names:
                raise DataFileError(f"the columns have other names than those of {first.name}", part.name)
        if all(part.dtype == first.dtype for part in self.parts):
            self.dtype = first.dtype
        self._ends = list(accumulate(part.n_blocks for part in self.parts))

    @property
    def n_blocks(self) -> int:
        return self._ends[-1]

    @property
    def n_features(self) -> int:
        return self.parts[0].n_features

    @property
    def has_labels(self) -> bool:
        return all(part.has_labels for part in self.parts)

    def load(self, i: int) -> RawBlock:
        part, j = self._place(i)
        return part.load(j)

    def tally(self, i: int) -> Tally:
        part, j = self._place(i)
        return part.tally(j)

    def n_rows(self, i: int) -> int:
        part, j = self._place(i)
        return part.n_rows(j)

    def size(self, i: int) -> int | None:
        part, j = self._place(i)
        return part.size(j)

    def _place(self, i: int) -> tuple[Source, int]:
        k = bisect_right(self._ends, i)
        return self.parts[k], i - (self._ends[k - 1] if k else 0)
