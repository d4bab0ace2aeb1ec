"""LIBSVM text in blocks: cut at line ends, at places that are looked for once and remembered.

The first time, the whole text is parsed, which finds every error in it, the number of features, and the
labels. Where the blocks begin is kept in the user's cache, and holds as long as the file has the same size
and time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content, Fingerprint
from majorant.datasets.labels import labels_from_array
from majorant.datasets.libsvm import Parser, check_no_names
from majorant.datasets.options import ReadOptions
from majorant.datasets.sources.blocks import KnownBlocks
from majorant.errors import DataFileError, MajorantError
from majorant.files import atomic_write
from majorant.rows.sources import RawBlock, Tally

__all__ = ["LibsvmSource"]

PIECE = 2**20
"""Bytes of text that are parsed at a time."""

# Bytes in memory: an entry is a number and an index, a row has a pointer, a label and a weight.
ENTRY, ROW = 12, 20

BLOCK = np.dtype([(name, np.int64) for name in ("start", "stop", "line", "rows", "entries", "labels")])
"""A block of a text: its bytes, the number of lines before it, its rows and entries, and how many elements of
`Index.labels` there are for this block and those before it."""
LABEL = np.dtype([("label", np.float64), ("rows", np.int64)])


class Index(NamedTuple):
    """The blocks of a text, and what there is in them."""

    blocks: NDArray[Any]
    labels: NDArray[Any]
    """Every label of the first block, and its number of rows there; then those of the second block, …"""
    widest: NDArray[np.int64]
    """The features, as far as they occur."""
    labelled: NDArray[np.bool_]
    """Whether lines begin with a label."""
    sha256: NDArray[np.str_]
    """Of the text."""


class LibsvmSource(KnownBlocks):
    """LIBSVM text in blocks that take about `block_bytes` bytes in memory."""

    def __init__(self, path: str, options: ReadOptions, block_bytes: int) -> None:
        check_no_names(options, path)
        self.name, self._options = path, options
        self._fingerprint = Fingerprint.of(path)
        self._index = index = _remembered_index(self._fingerprint, options, block_bytes)
        self.sha256, widest = str(index.sha256), int(index.widest)
        blocks = index.blocks
        self._set_blocks(
            blocks["rows"].tolist(),
            options.features or widest,
            has_labels=bool(index.labelled) and options.labelled is not False,
            sizes=(ENTRY * blocks["entries"] + ROW * blocks["rows"]).tolist(),
        )
        if not self.n_features:
            raise DataFileError("no row has a feature", path)
        if widest > self.n_features:
            raise DataFileError(
                f"the index {widest} is beyond the {self.n_features} features that are expected", path
            )

    def load(self, i: int) -> RawBlock:
        self._fingerprint.check()
        start, stop, line, *_ = self._index.blocks[i].tolist()
        options = replace(self._options, features=self.n_features)
        parser = Parser(self.name, options, lines=line, labelled=bool(self._index.labelled))
        found = parser.read(_pieces(self.name, start, stop))
        return RawBlock(found.X, found.y)

    def _tally(self, i: int) -> Tally:
        begin, end = self._index.blocks["labels"][i - 1] if i else 0, self._index.blocks["labels"][i]
        labels = self._index.labels[begin:end]
        return Tally(labels_from_array(labels["label"]), labels["rows"], labels["rows"].astype(np.float64))


def _remembered_index(fingerprint: Fingerprint, options: ReadOptions, block_bytes: int) -> Index:
    """The index from the cache if it is there and of this very file, else made and put there."""
    place = _cache_file(fingerprint, options, block_bytes)
    state = np.array([fingerprint.size, fingerprint.changed], dtype=np.int64)
    try:
        with np.load(place, allow_pickle=False) as file:
            if np.array_equal(file["fingerprint"], state):
                return Index(**{name: file[name] for name in Index._fields})
    except Exception:  # not there, or not whole: it can be made again
        pass
    index = _make_index(fingerprint.path, options, block_bytes)
    fingerprint.check()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(place) as output:
            np.savez(output, fingerprint=state, **index._asdict())
    except (OSError, MajorantError):
        pass  # a cache that cannot be written is no reason not to train
    return index


def _cache_file(fingerprint: Fingerprint, options: ReadOptions, block_bytes: int) -> Path:
    import pooch

    key = repr((os.path.realpath(fingerprint.path), options.labelled, options.zero_based, block_bytes))
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return Path(pooch.os_cache("majorant")) / "blocks" / f"{name}.npz"


def _make_index(path: str, options: ReadOptions, block_bytes: int) -> Index:
    """Parse everything, and cut where enough has come together."""
    parser = Parser(path, replace(options, features=None))
    blocks: list[tuple[int, ...]] = []
    labels: list[NDArray[Any]] = []
    start = line = rows = entries = n_labels = 0
    found: list[NDArray[np.float64]] = []
    with Content(path) as content:
        size = os.path.getsize(path)
        for piece in parser.pieces(content.chunks(max(256, min(PIECE, block_bytes // 8)))):
            rows += len(piece.stops)
            entries += len(piece.values)
            found.append(piece.labels)
            stop = min(parser.bytes, size)  # the last line may have got an end
            if rows and (stop == size or ENTRY * entries + ROW * rows >= block_bytes):
                values, counts = np.unique(np.concatenate(found), return_counts=True)
                labels.append(np.rec.fromarrays([values, counts], dtype=LABEL))
                n_labels += len(values)
                blocks.append((start, stop, line, rows, entries, n_labels))
                start, line, rows, entries = stop, parser.lines, 0, 0
                found.clear()
    index = np.array(blocks, dtype=BLOCK)
    index["stop"][-1:] = size  # after the last row there may be comments
    return Index(
        index,
        np.concatenate([np.zeros(0, LABEL), *labels]),
        np.array(parser.widest),
        np.array(parser.labelled is not False),
        np.array(content.sha256),
    )


def _pieces(path: str, start: int, stop: int) -> Iterator[bytes]:
    """The bytes from start to stop, some at a time."""
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < stop:
            text = file.read(min(PIECE, stop - start))
            if not text:
                raise DataFileError("a part of the file is missing", path)
            start += len(text)
            yield text
