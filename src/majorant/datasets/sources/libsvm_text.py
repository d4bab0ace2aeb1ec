"""LIBSVM text in blocks: cut at line ends, at places that are looked for once and remembered.

The first time, the whole text is parsed, which finds every error in it, the number of features, and the
labels. Where the blocks begin is kept in the user's cache, and holds as long as the file has the same size
and time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.labels import labels_from_array
from majorant.datasets.libsvm import Parser, refuse_columns, whole_lines
from majorant.datasets.stamps import Stamp
from majorant.datasets.wanted import Wanted
from majorant.errors import DataFileError, MajorantError
from majorant.files import atomic_write
from majorant.rows.sources import RawBlock, Source, Tally

__all__ = ["LibsvmSource"]

PIECE = 2**20
"""Bytes of text that are parsed at a time."""

# Bytes in memory: an entry is a number and an index, a row has a pointer, a label and a weight.
ENTRY, ROW = 12, 20


@dataclass(frozen=True, eq=False)
class Index:
    """Where the blocks of a text begin, and what there is in them."""

    starts: NDArray[np.int64]
    """The byte where each block begins, and the end."""
    lines: NDArray[np.int64]
    """The number of lines before each block."""
    rows: NDArray[np.int64]
    entries: NDArray[np.int64]
    labels: NDArray[np.float64]
    """The labels of the first block, each once, then those of the second, …"""
    label_rows: NDArray[np.int64]
    label_stops: NDArray[np.int64]
    widest: NDArray[np.int64]
    """One number: the features, as far as they occur."""
    labelled: NDArray[np.bool_]
    """Whether lines begin with a label."""
    sha256: NDArray[np.str_]
    """Of the text."""


class LibsvmSource(Source):
    """LIBSVM text in blocks that take about `block_bytes` bytes in memory."""

    def __init__(self, path: str, wanted: Wanted, block_bytes: int) -> None:
        refuse_columns(path, wanted)
        self.name, self._wanted = path, wanted
        self._stamp = Stamp.of(path)
        self._index = _remembered(self._stamp, wanted, block_bytes)
        self.sha256 = str(self._index.sha256)
        self._n_features = wanted.features or int(self._index.widest[0])
        if not len(self._index.rows):
            raise DataFileError("there are no rows in this file", path)
        if not self._n_features:
            raise DataFileError("no row has a feature", path)
        if self._index.widest[0] > self._n_features:
            raise DataFileError(
                f"the index {self._index.widest[0]} is beyond the {self._n_features} features that are "
                "expected",
                path,
            )

    @property
    def n_blocks(self) -> int:
        return len(self._index.rows)

    @property
    def n_features(self) -> int:
        return self._n_features

    def widen(self, n_features: int) -> None:
        """Let it have as many features as other files that belong to it."""
        self._n_features = max(self._n_features, n_features)

    def load(self, i: int) -> RawBlock:
        self._stamp.check()
        start, stop = self._index.starts[i : i + 2].tolist()
        wanted = Wanted(
            labelled=self._wanted.labelled, features=self.n_features, zero_based=self._wanted.zero_based
        )
        parser = Parser(
            self.name, wanted, lines=int(self._index.lines[i]), labelled=bool(self._index.labelled)
        )
        for text in whole_lines(_pieces(self.name, start, stop, PIECE)):
            parser.feed(text)
        found = parser.finish()
        return RawBlock(found.X, found.y)

    def tally(self, i: int) -> Tally:
        if not self._index.labelled:
            raise DataFileError("there are no labels in this file", self.name)
        begin = int(self._index.label_stops[i - 1]) if i else 0
        part = slice(begin, int(self._index.label_stops[i]))
        rows = self._index.label_rows[part]
        return Tally(labels_from_array(self._index.labels[part]), rows, rows.astype(np.float64))

    @property
    def has_labels(self) -> bool:
        return bool(self._index.labelled) and self._wanted.labelled is not False

    def n_rows(self, i: int) -> int:
        return int(self._index.rows[i])

    def size(self, i: int) -> int:
        return int(ENTRY * self._index.entries[i] + ROW * self._index.rows[i])


def _remembered(stamp: Stamp, wanted: Wanted, block_bytes: int) -> Index:
    """The index from the cache if it is there and of this very file, else made and put there."""
    place = _cache_file(stamp, wanted, block_bytes)
    state = np.array([stamp.size, stamp.changed], dtype=np.int64)
    try:
        with np.load(place, allow_pickle=False) as file:
            if np.array_equal(file["stamp"], state):
                return Index(**{field.name: file[field.name] for field in fields(Index)})
    except Exception:  # not there, or not whole: it can be made again
        pass
    index = _make_index(stamp.path, wanted, block_bytes)
    stamp.check()
    arrays: dict[str, Any] = {field.name: getattr(index, field.name) for field in fields(Index)}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(place) as output:
            np.savez(output, stamp=state, **arrays)
    except (OSError, MajorantError):
        pass  # a cache that cannot be written is no reason not to train
    return index


def _cache_file(stamp: Stamp, wanted: Wanted, block_bytes: int) -> Path:
    import pooch

    key = repr((os.path.realpath(stamp.path), wanted.labelled, wanted.zero_based, block_bytes))
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return Path(pooch.os_cache("majorant")) / "blocks" / f"{name}.npz"


def _make_index(path: str, wanted: Wanted, block_bytes: int) -> Index:
    """Parse everything, and cut where enough has come together."""
    parser = Parser(path, Wanted(labelled=wanted.labelled, zero_based=wanted.zero_based))
    size = os.path.getsize(path)
    starts, lines, rows, entries = [0], [0], [0], [0]
    labels: list[list[NDArray[np.float64]]] = [[]]
    piece = max(256, min(PIECE, block_bytes // 8))
    end, digest = 0, hashlib.sha256()
    for text in whole_lines(_hashed(_pieces(path, 0, size, piece), digest)):
        if ENTRY * entries[-1] + ROW * rows[-1] >= block_bytes:
            starts.append(end)
            lines.append(parser.lines)
            rows.append(0)
            entries.append(0)
            labels.append([])
        parser.feed(text)
        found, new_rows, new_entries = parser.drain()
        labels[-1].append(found)
        rows[-1] += new_rows
        entries[-1] += new_entries
        end = min(end + len(text), size)
    if not rows[-1]:  # nothing but comments after the last row
        for block in (starts, lines, rows, entries, labels):
            block.pop()
    counts = [np.unique(np.concatenate(block), return_counts=True) for block in labels]
    return Index(
        starts=np.array([*starts, size], dtype=np.int64),
        lines=np.array(lines, dtype=np.int64),
        rows=np.array(rows, dtype=np.int64),
        entries=np.array(entries, dtype=np.int64),
        labels=np.concatenate([np.zeros(0), *(values for values, _ in counts)]),
        label_rows=np.concatenate([np.zeros(0, np.int64), *(number for _, number in counts)]),
        label_stops=np.cumsum([len(values) for values, _ in counts], dtype=np.int64),
        widest=np.array([parser.widest], dtype=np.int64),
        labelled=np.array(parser.labelled is not False),
        sha256=np.array(digest.hexdigest()),
    )


def _hashed(pieces: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _pieces(path: str, start: int, stop: int, piece: int) -> Iterator[bytes]:
    """The bytes from start to stop, some at a time."""
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < stop:
            text = file.read(min(piece, stop - start))
            if not text:
                raise DataFileError("a part of the file is missing", path)
            start += len(text)
            yield text
