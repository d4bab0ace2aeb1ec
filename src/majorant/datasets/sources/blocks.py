"""What the sources of files share; sources of one block; and several sources as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from majorant.datasets.content import Fingerprint
from majorant.datasets.options import ReadOptions
from majorant.datasets.readers import Data, read_file
from majorant.errors import DataFileError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["ChainSource", "DataSource", "FileSource", "KnownBlocks"]


class KnownBlocks(Source):
    """A source that knows the number of rows of each block, and gives their labels without X."""

    n_blocks = n_features = 0
    has_labels = False

    def _set_blocks(
        self, rows: Sequence[int], n_features: int, *, has_labels: bool, sizes: Sequence[int] | None = None
    ) -> None:
        """Take the number of rows of each block, and its bytes in memory if they are known."""
        if not sum(rows):
            raise DataFileError("there are no rows in this file", self.name)
        self._rows, self._sizes, self.n_blocks = rows, sizes, len(rows)
        self.n_features, self.has_labels = n_features, has_labels

    def n_rows(self, i: int) -> int:
        return self._rows[i]

    def size(self, i: int) -> int | None:
        return None if self._sizes is None else self._sizes[i]

    def tally(self, i: int) -> Tally:
        if not self.has_labels:
            raise DataFileError("there are no labels in this file", self.name)
        return self._tally(i)

    @abstractmethod
    def _tally(self, i: int) -> Tally:
        """The labels of block i."""


class DataSource(KnownBlocks):
    """Rows that `read` has returned, as one block."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self._describe(data)

    def _describe(self, data: Data) -> None:
        self.name, self.sha256 = data.source, data.sha256
        for name in ("feature_names", "label", "preprocessing", "unnamed_columns", "notes"):
            setattr(self, name, getattr(data, name))
        n_rows, n_features = data.X.shape
        self._set_blocks([n_rows], n_features, has_labels=data.y is not None)
        self._counts = None if data.y is None else Tally.of(data.y)

    def _tally(self, i: int) -> Tally:
        assert self._counts is not None
        return self._counts

    def load(self, i: int) -> RawBlock:
        return RawBlock(self.data.X, self.data.y)


class FileSource(DataSource):
    """A file of any format that `read` knows, as one block."""

    def __init__(self, path: str, format: str | None, options: ReadOptions) -> None:
        self._format, self._options, self._fingerprint = format, options, Fingerprint.of(path)
        data = self._read(path)  # read once, to see what there is; no row of it is kept
        self._options = replace(options, preprocessing=data.preprocessing)
        self._describe(data)

    def _read(self, path: str) -> Data:
        return read_file(path, self._format, self._options)

    def load(self, i: int) -> RawBlock:
        self._fingerprint.check()
        data = self._read(self.name)
        return RawBlock(data.X, data.y)


class ChainSource(Source):
    """The blocks of several sources, one source after the other."""

    n_blocks = n_features = 0
    has_labels = False

    def __init__(self, parts: Sequence[Source]) -> None:
        first = parts[0]
        self.name = f"{first.name} and {len(parts) - 1} more"
        self.feature_names, self.label = first.feature_names, first.label
        self.preprocessing, self.unnamed_columns = first.preprocessing, first.unnamed_columns
        self.notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        for part in parts:
            if part.n_features != first.n_features:
                raise DataFileError(
                    f"{part.n_features} features, where {first.name} has {first.n_features}", part.name
                )
            if part.feature_names != first.feature_names:
                raise DataFileError(f"the columns have other names than those of {first.name}", part.name)
        if all(part.dtype == first.dtype for part in parts):
            self.dtype = first.dtype
        self.n_features, self.has_labels = first.n_features, all(part.has_labels for part in parts)
        self._places = [(part, j) for part in parts for j in range(part.n_blocks)]
        self.n_blocks = len(self._places)

    def load(self, i: int) -> RawBlock:
        part, j = self._places[i]
        return part.load(j)

    def tally(self, i: int) -> Tally:
        part, j = self._places[i]
        return part.tally(j)

    def n_rows(self, i: int) -> int:
        part, j = self._places[i]
        return part.n_rows(j)

    def size(self, i: int) -> int | None:
        part, j = self._places[i]
        return part.size(j)
