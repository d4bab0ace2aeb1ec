"""Blocks of arrays in .npy files: a dense matrix, or the three arrays of a CSR matrix.

The files are read and not mapped: pages of a mapped file count as memory of the process for as long as they
are there, and the system alone decides how long that is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.labels import labels_from_array
from majorant.datasets.stamps import Stamp
from majorant.datasets.wanted import reason
from majorant.errors import DataFileError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["CsrFilesSource", "NpyFile", "NpySource"]


@dataclass(frozen=True)
class NpyFile:
    """An array in an .npy file, of which rows are read when they are asked for."""

    stamp: Stamp
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> NpyFile:
        """Read the head of the file."""
        stamp = Stamp.of(path)
        try:
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
                read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                    version, np.lib.format.read_array_header_2_0
                )
                shape, by_columns, dtype = read(file)
                offset = file.tell()
        except OSError as error:
            raise DataFileError(f"cannot be read ({error.strerror})", stamp.path) from None
        except Exception as error:  # what numpy raises for another file has many names
            raise DataFileError(f"not a readable .npy file ({reason(error)})", stamp.path) from error
        if dtype.hasobject:
            raise DataFileError("the array holds Python objects, which are not unpickled", stamp.path)
        if by_columns and len(shape) > 1:
            raise DataFileError(
                "the array is stored column by column: save it again by "
                "numpy.save(path, numpy.ascontiguousarray(X))",
                stamp.path,
            )
        if offset + prod(shape) * dtype.itemsize > stamp.size:
            raise DataFileError("a part of the file is missing", stamp.path)
        return cls(stamp, offset, shape, dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Some rows."""
        self.stamp.check()
        rows = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        with open(self.stamp.path, "rb", buffering=0) as file:
            file.seek(self.offset + start * self.row_bytes)
            left = rows.reshape(-1).view(np.uint8).data
            while left:
                count = file.readinto(left)
                if not count:
                    raise DataFileError("a part of the file is missing", self.stamp.path)
                left = left[count:]
        return rows


class _Labelled(Source):
    """What both kinds share: labels and weights in files of their own, and rows of equal number."""

    y: NpyFile | None
    weight: NpyFile | None
    _cuts: list[int]

    def _take_labels(self, n_rows: int, y: NpyFile | None, weight: NpyFile | None) -> None:
        for other in (y, weight):
            if other is not None and other.shape != (n_rows,):
                raise DataFileError(
                    f"the array has the shape {other.shape}, where one entry for each of the {n_rows} rows "
                    "belongs",
                    other.stamp.path,
                )
        if not n_rows:
            raise DataFileError("there are no rows in this file", self.name)
        self.y, self.weight = y, weight

    @property
    def n_blocks(self) -> int:
        return len(self._cuts) - 1

    @property
    def has_labels(self) -> bool:
        return self.y is not None

    def n_rows(self, i: int) -> int:
        return self._cuts[i + 1] - self._cuts[i]

    def _labels(self, i: int) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        if self.y is None:
            return None, None
        start, stop = self._cuts[i : i + 2]
        try:
            y = labels_from_array(self.y.read(start, stop))
        except ValueError as error:
            raise DataFileError(str(error), self.y.stamp.path) from None
        return y, None if self.weight is None else self.weight.read(start, stop)

    def tally(self, i: int) -> Tally:
        y, weight = self._labels(i)
        if y is None:
            raise DataFileError("there are no labels", self.name)
        return Tally.of(y, weight)


class NpySource(_Labelled):
    """A matrix X.npy, with labels y.npy and perhaps weights, in blocks of `rows_per_block` rows."""

    def __init__(self, X: NpyFile, y: NpyFile | None, weight: NpyFile | None, rows_per_block: int) -> None:
        self.name = X.stamp.path
        if len(X.shape) != 2 or X.dtype.kind not in "biuf":
            raise DataFileError(
                f"a matrix of numbers belongs here, not an array of shape {X.shape}, type {X.dtype}",
                self.name,
            )
        self.X = X
        self._take_labels(len(X), y, weight)
        self._cuts = [*range(0, len(X), rows_per_block), len(X)]
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def load(self, i: int) -> RawBlock:
        start, stop = self._cuts[i : i + 2]
        return RawBlock(self.X.read(start, stop), *self._labels(i))

    def size(self, i: int) -> int:
        start, stop = self._cuts[i : i + 2]
        return (stop - start) * (self.n_features * self.dtype.itemsize + 16)


class CsrFilesSource(_Labelled):
    """A CSR matrix as data.npy, indices.npy and indptr.npy, with y.npy, in blocks of about the same size."""

    def __init__(
        self,
        directory: Path,
        y: NpyFile | None,
        weight: NpyFile | None,
        *,
        features: int | None,
        block_bytes: int,
        rows_per_block: int | None,
    ) -> None:
        self.name = str(directory)
        self.data, self.indices = (NpyFile.open(directory / f"{name}.npy") for name in ("data", "indices"))
        self.pointers = NpyFile.open(directory / "indptr.npy")
        for file in (self.indices, self.pointers):
            if file.dtype.kind not in "iu" or len(file.shape) != 1:
                raise DataFileError("a row of integers belongs here", file.stamp.path)
        pointers = self.pointers.read(0, len(self.pointers)).astype(np.int64)
        entries = min(len(self.data), len(self.indices))
        if not len(pointers) or pointers[0] != 0 or np.any(np.diff(pointers) < 0) or pointers[-1] > entries:
            raise DataFileError("the index pointers are not in order", self.pointers.stamp.path)
        n_rows = len(pointers) - 1
        self._take_labels(n_rows, y, weight)
        self._cuts = (
            [*range(0, n_rows, rows_per_block), n_rows]
            if rows_per_block
            else _even_cuts(pointers, block_bytes, self.data.row_bytes + self.indices.row_bytes)
        )
        self._ends = pointers[self._cuts].tolist()
        self.dtype = np.dtype(np.float32 if self.data.dtype == np.float32 else np.float64)
        self._n_features = features or self._stored_width(directory) or self._widest()

    @property
    def n_features(self) -> int:
        return self._n_features

    def load(self, i: int) -> RawBlock:
        import scipy.sparse as sp

        (start, stop), (first, last) = self._cuts[i : i + 2], self._ends[i : i + 2]
        pointers = self.pointers.read(start, stop + 1).astype(np.int64) - first
        X = sp.csr_array(
            (self.data.read(first, last), self.indices.read(first, last), pointers),
            shape=(stop - start, self._n_features),
        )
        return RawBlock(X, *self._labels(i))

    def _stored_width(self, directory: Path) -> int | None:
        path = directory / "shape.npy"
        return int(np.load(path, allow_pickle=False)[1]) if path.exists() else None

    def _widest(self) -> int:
        parts = (self.indices.read(*self._ends[i : i + 2]) for i in range(self.n_blocks))
        return 1 + max(int(part.max(initial=-1)) for part in parts)


def _even_cuts(pointers: NDArray[np.int64], block_bytes: int, entry_bytes: int) -> list[int]:
    """Row numbers where blocks of about `block_bytes` bytes begin, and the end."""
    sizes = pointers * entry_bytes + 24 * np.arange(len(pointers))
    count = max(1, round(int(sizes[-1]) / block_bytes))
    cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, count) / count)
    return sorted({0, *cuts.tolist(), len(pointers) - 1})
