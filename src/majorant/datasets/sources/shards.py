"""Several sources as one, and files that are small enough to be one block each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from majorant.datasets.readers import read
from majorant.datasets.stamps import Stamp
from majorant.errors import DataFileError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["ChainSource", "FileSource"]


class FileSource(Source):
    """A file of any format that `read` knows, as one block."""

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self.name, self._options = path, options
        self._stamp = Stamp.of(path)
        # Read once, to see how many features there are; nothing of it is kept.
        data = read(path, **options)
        self._n_features = int(data.X.shape[1])
        self.feature_names, self.label = data.feature_names, data.label

    @property
    def n_blocks(self) -> int:
        return 1

    @property
    def n_features(self) -> int:
        return self._n_features

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

    def load(self, i: int) -> RawBlock:
        part, j = self._place(i)
        return part.load(j)

    def tally(self, i: int) -> Tally:
        part, j = self._place(i)
        return part.tally(j)

    def size(self, i: int) -> int | None:
        part, j = self._place(i)
        return part.size(j)

    def _place(self, i: int) -> tuple[Source, int]:
        k = bisect_right(self._ends, i)
        return self.parts[k], i - (self._ends[k - 1] if k else 0)
