"""Blocks of arrays in .npy files: a dense matrix, or the three arrays of a CSR matrix.

The files are read and not mapped: pages of a mapped file count as memory of the process for as long as they
are there, and the system alone decides how long that is.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.arrays import read_npy_header
from majorant.datasets.content import Fingerprint
from majorant.datasets.labels import labels_from_array
from majorant.datasets.options import ReadOptions, reason, refuse_preprocessing
from majorant.datasets.sources import BlockSize
from majorant.datasets.sources.blocks import KnownBlocks
from majorant.errors import DataFileError
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["open_arrays"]


@dataclass(frozen=True)
class NpyFile:
    """An array in an .npy file, of which rows are read when they are asked for."""

    fingerprint: Fingerprint
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> NpyFile:
        """Read the head of the file."""
        fingerprint = Fingerprint.of(path)
        try:
            with open(path, "rb") as file:
                shape, by_columns, dtype = read_npy_header(file)
                offset = file.tell()
        except OSError as error:
            raise DataFileError(f"cannot be read ({error.strerror})", fingerprint.path) from None
        except Exception as error:  # what numpy raises for another file has many names
            raise DataFileError(f"not a readable .npy file ({reason(error)})", fingerprint.path) from error
        if dtype.hasobject:
            raise DataFileError("the array holds Python objects, which are not unpickled", fingerprint.path)
        if by_columns and len(shape) > 1:
            raise DataFileError(
                "the array is stored column by column: save it again by "
                "numpy.save(path, numpy.ascontiguousarray(X))",
                fingerprint.path,
            )
        if offset + prod(shape) * dtype.itemsize > fingerprint.size:
            raise DataFileError("a part of the file is missing", fingerprint.path)
        return cls(fingerprint, offset, shape, dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """The bytes of one row."""
        return prod(self.shape[1:]) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Some rows."""
        self.fingerprint.check()
        shape = (stop - start, *self.shape[1:])
        first = self.offset + start * self.row_bytes
        rows = np.fromfile(self.fingerprint.path, self.dtype, prod(shape), offset=first)
        if rows.size < prod(shape):
            raise DataFileError("a part of the file is missing", self.fingerprint.path)
        return rows.reshape(shape)


def open_arrays(path: Path, options: ReadOptions, block_size: BlockSize) -> Source:
    """The rows of X.npy or of a directory with such files, and their labels and weights."""
    if options.drop:
        raise DataFileError("the columns of an array have no names: drop is for tables", path)
    refuse_preprocessing(options, str(path))
    if (path / "indptr.npy").exists():
        return CsrFilesSource(path, options, block_size)
    return NpySource(path / "X.npy" if path.is_dir() else path, options, block_size)


class _ArraySource(KnownBlocks):
    """What both kinds share: labels and weights in files of their own."""

    _cuts: list[int]

    def __init__(self, path: Path, options: ReadOptions, block_size: BlockSize) -> None:
        self.name = str(path)
        labels = None if options.labelled is False else _labels_file(path, options)
        self._y, self._weight = (
            None if file is None else NpyFile.open(file) for file in (labels, options.weight)
        )
        X, n_features = self._open_matrix(path, options.features, block_size)
        n_rows = self._cuts[-1]
        for other in (self._y, self._weight):
            if other is not None and other.shape != (n_rows,):
                raise DataFileError(
                    f"the array has the shape {other.shape}, where one entry for each of the {n_rows} rows "
                    "belongs", other.fingerprint.path,
                )  # fmt: skip
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self._set_blocks(np.diff(self._cuts).tolist(), n_features, has_labels=self._y is not None)

    @abstractmethod
    def _open_matrix(self, path: Path, features: int | None, block_size: BlockSize) -> tuple[NpyFile, int]:
        """Set `_cuts`, the first row of each block and the end; the file of the entries, the features."""

    def _tally(self, i: int) -> Tally:
        y, weight = self._labels(i)
        assert y is not None
        return Tally.of(y, weight)

    def _labels(self, i: int) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        if self._y is None:
            return None, None
        start, stop = self._cuts[i : i + 2]
        y = labels_from_array(self._y.read(start, stop), self._y.fingerprint.path)
        return y, None if self._weight is None else self._weight.read(start, stop)


def _labels_file(path: Path, options: ReadOptions) -> Path | None:
    if options.label is not None:
        return Path(str(options.label))
    beside = (path if path.is_dir() else path.parent) / "y.npy"
    if options.labelled and not beside.exists():
        raise DataFileError("where are the labels? There is no y.npy beside it: say label='file.npy'", path)
    return beside if beside.exists() else None


class NpySource(_ArraySource):
    """A matrix X.npy, with labels y.npy and perhaps weights, in blocks of the same number of rows."""

    def _open_matrix(self, path: Path, features: int | None, block_size: BlockSize) -> tuple[NpyFile, int]:
        self.X = X = NpyFile.open(path)
        if len(X.shape) != 2 or X.dtype.kind not in "biuf":
            raise DataFileError(
                f"a matrix of numbers belongs here, not an array of shape {X.shape}, type {X.dtype}", path
            )
        n_rows, n_features = X.shape
        if features not in (None, n_features):
            raise DataFileError(f"{n_features} features, where {features} are expected", path)
        rows = block_size.dense_rows(X.row_bytes + 16, n_features)
        self._cuts = [*range(0, n_rows, rows), n_rows]
        return X, n_features

    def load(self, i: int) -> RawBlock:
        return RawBlock(self.X.read(*self._cuts[i : i + 2]), *self._labels(i))

    def size(self, i: int) -> int:
        return self.n_rows(i) * (self.n_features * self.dtype.itemsize + 16)


class CsrFilesSource(_ArraySource):
    """A CSR matrix as data.npy, indices.npy and indptr.npy, with y.npy, in blocks of about the same size."""

    def _open_matrix(self, path: Path, features: int | None, block_size: BlockSize) -> tuple[NpyFile, int]:
        self.data, self.indices, self.pointers = (
            NpyFile.open(path / f"{name}.npy") for name in ("data", "indices", "indptr")
        )
        for file in (self.indices, self.pointers):
            if file.dtype.kind not in "iu" or len(file.shape) != 1:
                raise DataFileError("a row of integers belongs here", file.fingerprint.path)
        pointers = self.pointers.read(0, len(self.pointers)).astype(np.int64)
        entries = min(len(self.data), len(self.indices))
        if not len(pointers) or pointers[0] != 0 or np.any(np.diff(pointers) < 0) or pointers[-1] > entries:
            raise DataFileError("the index pointers are not in order", self.pointers.fingerprint.path)
        n_rows = len(pointers) - 1
        self._cuts = (
            [*range(0, n_rows, block_size.rows), n_rows]
            if block_size.rows
            else _even_cuts(pointers, block_size.bytes, self.data.row_bytes + self.indices.row_bytes)
        )
        self._ends = pointers[self._cuts].tolist()
        return self.data, features or self._stored_width(path) or self._widest()

    def load(self, i: int) -> RawBlock:
        import scipy.sparse as sp

        (start, stop), (first, last) = self._cuts[i : i + 2], self._ends[i : i + 2]
        pointers = self.pointers.read(start, stop + 1).astype(np.int64) - first
        X = sp.csr_array(
            (self.data.read(first, last), self.indices.read(first, last), pointers),
            shape=(stop - start, self.n_features),
        )
        return RawBlock(X, *self._labels(i))

    def _stored_width(self, directory: Path) -> int | None:
        path = directory / "shape.npy"
        return int(np.load(path, allow_pickle=False)[1]) if path.exists() else None

    def _widest(self) -> int:
        parts = (self.indices.read(*ends) for ends in pairwise(self._ends))
        return 1 + max((int(part.max(initial=-1)) for part in parts), default=-1)


def _even_cuts(pointers: NDArray[np.int64], block_bytes: int, entry_bytes: int) -> list[int]:
    """Row numbers where blocks of about `block_bytes` bytes begin, and the end."""
    sizes = pointers * entry_bytes + 24 * np.arange(len(pointers))
    count = max(1, round(int(sizes[-1]) / block_bytes))
    cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, count) / count)
    return sorted({0, *cuts.tolist(), len(pointers) - 1})
