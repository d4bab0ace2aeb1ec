"""LIBSVM text: a label and index:value pairs on every line.

    line   =  [ label { pair } ] [ "#" comment ]        separated by spaces or tabs
    pair   =  index ":" value                           indices from 1, increasing

Numbers are decimals and finite, also the labels: 01, 1, +1 and 1.0 are the same one. Lines end with LF or
CRLF; lines with nothing or only a comment are skipped. Whatever else there is, is an error with its line and
column. A file without labels has only pairs; a line with nothing at all is an error in it, since it may be
meant as a row without features.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_array
from majorant.datasets.options import ReadOptions, ReadResult, refuse_preprocessing
from majorant.errors import DataFileError

__all__ = ["Parser", "check_no_names", "read_libsvm"]

MOST_FEATURES = 2**31 - 1


def read_libsvm(content: Content, options: ReadOptions) -> ReadResult:
    """The rows as a CSR array with sorted indices, the labels."""
    check_no_names(options, content.path)
    return Parser(content.path, options).read(content.chunks())


def check_no_names(options: ReadOptions, path: str) -> None:
    """An error if columns are named: LIBSVM text has no names."""
    if options.label is not None or options.drop:
        raise DataFileError(
            "the columns of LIBSVM text have no names: label and drop are for tables (format= says what a "
            "file is)", path,
        )  # fmt: skip
    refuse_preprocessing(options, path)


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut at line ends; the last line gets one if it has none."""
    pending: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*pending, chunk[:end]])
            pending = []
        pending.append(chunk[end:])
    if rest := b"".join(pending):
        yield rest + b"\n"


class Piece(NamedTuple):
    """Some rows: row r has the entries stops[r - 1] to stops[r]."""

    labels: NDArray[np.float64]
    """None are there if the text has no labels."""
    stops: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]


class Parser:
    """Reads a text, a chunk at a time.

    `lines` are those before the text, and `labelled` says whether lines begin with labels, if that is known:
    for a text that is read from the middle.
    """

    def __init__(
        self, path: str, options: ReadOptions, *, lines: int = 0, labelled: bool | None = None
    ) -> None:
        from majorant.datasets import decimals, libsvm_kernels

        self._kernels, self._powers = libsvm_kernels, decimals.powers_of_five()
        self.path, self.options = path, options
        self.labelled: bool | None = True if options.labelled else labelled
        self.lines, self.bytes, self.widest = lines, 0, 0
        """How many lines and bytes have been read, and one more than the largest column."""
        self._room = 0

    def read(self, chunks: Iterable[bytes]) -> ReadResult:
        """All rows."""
        import scipy.sparse as sp

        labels, stops, columns, values = ([] for _ in range(4))
        n_rows = n_entries = 0
        for piece in self.pieces(chunks):
            labels.append(piece.labels)
            stops.append(piece.stops + n_entries)
            columns.append(piece.columns)
            values.append(piece.values)
            n_rows += len(piece.stops)
            n_entries += len(piece.values)
        if not n_rows:
            raise DataFileError("there are no rows in this file", self.path)
        features = self.options.features or self.widest
        if not features:
            raise DataFileError("no row has a feature", self.path)
        kind = np.int32 if n_entries <= np.iinfo(np.int32).max else np.int64
        starts = np.concatenate([[0], _joined(stops)]).astype(kind)
        indices = _joined(columns).astype(kind, copy=False)
        X = sp.csr_array((_joined(values), indices, starts), shape=(n_rows, features), copy=False)
        X.has_canonical_format = True
        if self.options.labelled is False or not self.labelled:
            return ReadResult(X, None)
        return ReadResult(X, labels_from_array(_joined(labels)))

    def pieces(self, chunks: Iterable[bytes]) -> Iterator[Piece]:
        """The rows, some at a time."""
        waiting: list[bytes] = []
        for text in _whole_lines(chunks):
            # Comments and empty lines wait for the first row, which says what to make of them.
            waiting.append(text)
            if self.labelled is None:
                self.labelled = _first_token_is_a_label(text)
            if self.labelled is not None:
                yield self._parse(b"".join(waiting))
                waiting.clear()
        if waiting:
            yield self._parse(b"".join(waiting))

    def _parse(self, text: bytes) -> Piece:
        k = self._kernels
        self._make_room(len(text))
        labels, stops, columns, values, hard = self._buffers
        base = 0 if self.options.zero_based else 1
        features = self.options.features or MOST_FEATURES
        error, place, n_rows, n_entries, n_hard, n_lines, widest = k.parse(
            np.frombuffer(text, dtype=np.uint8), self.labelled is not False, base, features, self._powers,
            labels, stops, columns, values, hard,
        )  # fmt: skip
        for entry, start, stop in hard[:n_hard].tolist():
            value = float(text[start:stop])
            if entry < 0:
                labels[-1 - entry] = value
                if abs(value) > k.LARGEST_LABEL:
                    self._fail(text, start, k.LABEL_SIZE)
            else:
                values[entry] = value
                if math.isinf(value):
                    self._fail(text, start, k.VALUE_SIZE)
        if error != k.FINE:
            self._fail(text, place, error)
        self.lines += n_lines
        self.bytes += len(text)
        self.widest = max(self.widest, widest)
        return Piece(
            labels[: 0 if self.labelled is False else n_rows].copy(), stops[:n_rows].copy(),
            columns[:n_entries].copy(), values[:n_entries].copy(),
        )  # fmt: skip

    def _make_room(self, size: int) -> None:
        """Buffers for whatever a text of this size may hold; the kernel says why this is enough."""
        if size > self._room:
            rows, entries, hards = size // 2 + 1, size // 4 + 1, size // 20 + 1
            self._buffers = (
                np.empty(rows), np.empty(rows, np.int64), np.empty(entries, np.int32), np.empty(entries),
                np.empty((hards, 3), np.int64),
            )  # fmt: skip
            self._room = size

    def _fail(self, text: bytes, place: int, error: int) -> NoReturn:
        line = self.lines + text.count(b"\n", 0, place) + 1
        column = place - (text.rfind(b"\n", 0, place) + 1) + 1
        raise DataFileError(
            self._explain(text[place : text.index(b"\n", place)], error), self.path, line, column
        )

    def _explain(self, rest: bytes, error: int) -> str:
        """One sentence about what stands at the beginning of the rest of a line."""
        k = self._kernels
        (token,) = re.match(rb"([^ \t\r#]*)", rest).groups()  # type: ignore[union-attr]
        shown = repr(token[:40].decode("ascii", "backslashreplace").replace("\\\\", "\\"))
        if error == k.BLANK:
            return (
                "an empty line in a file without labels may be a row without features: give every row a "
                "label, 0 if it is not known"
            )
        if error == k.RETURN:
            return "a carriage return within a line: end lines with LF or CRLF"
        if error == k.NUL or b"\0" in token:
            return "a NUL byte: this is no text, or not in UTF-8"
        if token.startswith(b"\xef\xbb\xbf"):
            return "the file begins with a byte-order mark: save it without"
        if not token.isascii():
            return f"{shown} is not ASCII: this is no LIBSVM text"
        if error in (k.LABEL, k.LABEL_SIZE):
            return _explain_label(token, shown, too_large=error == k.LABEL_SIZE)
        if error == k.VALUE and not token:
            return "the value is missing after the colon"
        if error == k.VALUE:
            return f"the value {shown} is not a number{_why(token)}"
        if error == k.VALUE_SIZE:
            return f"the value {shown} is too large for a float64"
        if error == k.PAIR:
            return f"{shown} is {'half of an' if token.isdigit() else 'no'} index:value pair"
        if error == k.INDEX and token.startswith(b"qid:"):
            return "query ids (qid:) are for ranking: remove them"
        if error == k.INDEX:
            return f"{shown} is no index:value pair: indices count from {0 if self.options.zero_based else 1}"
        return self._explain_index(token.partition(b":")[0].decode()[:40], too_large=error == k.INDEX_SIZE)

    def _explain_index(self, index: str, *, too_large: bool) -> str:
        if too_large and self.options.features is not None:
            return f"the index {index} is beyond the {self.options.features} features that are expected"
        if too_large:
            return f"the index {index} is too large: there can be at most {MOST_FEATURES} features"
        if int(index) == 0 and not self.options.zero_based:
            return (
                "the index 0, but indices count from 1: if those of this file count from 0, say "
                "zero_based=True (--zero-based)"
            )
        return f"the index {index} does not come after the one before it: indices must increase"


def _explain_label(token: bytes, shown: str, *, too_large: bool) -> str:
    if too_large:
        return f"the label {shown} is too large to be told from its neighbours"
    if re.match(rb"[0-9]+:", token):
        return f"the label is missing before {shown}"
    if b"," in token or b";" in token:
        marks = "commas" if b"," in token else "semicolons"
        return f"the label {shown} is not a number; for a table with {marks} say format='csv' (--format csv)"
    return f"the label {shown} is not a number{_why(token)}"


def _why(token: bytes) -> str:
    word = token.lstrip(b"+-").lower()
    if re.match(rb"nan|inf", word):
        return ": missing and infinite values must be replaced first"
    if re.fullmatch(rb"[0-9_.e+-]*_[0-9_.e+-]*", word):
        return ": numbers have no underscores"
    if word.startswith(b"0x"):
        return ": hexadecimal numbers are not read"
    return ""


def _first_token_is_a_label(text: bytes) -> bool | None:
    """Whether the first line with anything on it begins with a label; None if there is no such line."""
    token = re.search(rb"^[ \t]*([^ \t\r\n#]+)", text, re.MULTILINE)
    return None if token is None else b":" not in token[1]


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All of them in one array; the list is left empty, so that the parts live no longer than necessary."""
    joined = np.concatenate(parts)
    parts.clear()
    return joined
