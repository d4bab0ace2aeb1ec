"""Comma- or tab-separated tables: a line of names, then numbers, and labels of any kind in one column.

CSV that has no comma in its first line, but semicolons or tabs, is separated by these, as spreadsheets write
it where numbers have a decimal comma. Here they have a point nevertheless: 1,234 may be meant in two ways.
Fields may be in quotation marks, as RFC 4180 has them. The text is UTF-8, with or without a byte-order mark
(spreadsheets write one). Empty lines are skipped, unless there is one column only.
"""

from __future__ import annotations

import csv
import io
import math
import re
from array import array
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from operator import itemgetter
from typing import NoReturn

import numpy as np

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_text
from majorant.datasets.options import ReadOptions, ReadResult, choose_columns, leave_out, listed
from majorant.errors import DataFileError
from majorant.text import DECIMAL

__all__ = ["read_records", "read_text_table"]

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
LOOK_AHEAD = 1000
"""Rows after the first one with text instead of a number in which other columns with text are found."""
_MISSING = ("", "na", "nan", "null", "none", "n/a", "?")


def read_text_table(content: Content, options: ReadOptions, separator: str) -> ReadResult:
    """The columns as a dense array, the labels, the names."""
    records = _Records(content, separator)
    try:
        return _read(records, options)
    except csv.Error as error:
        message = str(error)
        if "unexpected end" in message:
            message = "a quotation mark is opened and not closed"
        raise DataFileError(f"not a well-formed table: {message}", records.path, records.line) from None


def read_records(content: Content, header: bool, separator: str) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the columns, and the fields of each row that `read_text_table` returns."""
    records = _Records(content, separator)
    first = next(records, None)
    if first is None:
        raise DataFileError("there are no rows in this file", records.path)
    names = _names(first, records, ReadOptions(label=0, header=header))
    rows = records if header else chain([first], records)
    return names, (row or [""] for row in rows if len(row) == len(names) or len(names) == 1)


def _read(records: _Records, options: ReadOptions) -> ReadResult:
    first = next(records, None)
    if first is None:
        raise DataFileError("there are no rows in this file", records.path)
    names = _names(first, records, options)
    label, features = choose_columns(names, options, records.path, records.line if options.header else None)
    pick = itemgetter(*features) if len(features) > 1 else lambda row: (row[features[0]],)
    values, labels = array("d"), []
    for row in records if options.header else chain([first], records):
        if len(row) != len(names):
            if not row and len(names) > 1:
                continue
            if row or len(names) > 1:
                records.fail(f"{len(row)} fields, where the first line has {len(names)}", None)
            row = [""]
        try:
            numbers = list(map(float, pick(row)))
        except ValueError:
            numbers = []
        # `float` takes more than decimals: look again where there may be such.
        if not (numbers and math.isfinite(sum(numbers)) and records.plain):
            _check_numbers(row, features, names, records)
        values.extend(numbers)
        if label is not None:
            labels.append(row[label].strip())
            if labels[-1].lower() in _MISSING[:3]:
                records.fail(f"the label (column {names[label]!r}) is missing", label)
    if not values:
        raise DataFileError("there are no rows in this file", records.path)
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, len(features))
    feature_names = tuple(names[j] for j in features) if options.header else None
    if label is None or options.labelled is False:
        return ReadResult(X, None, feature_names)
    label_name = names[label] if options.header else None
    return ReadResult(X, labels_from_text(labels, records.path), feature_names, label_name)


def _names(first: list[str], records: _Records, options: ReadOptions) -> list[str]:
    if not options.header:
        if isinstance(options.label, str) or (options.label is None and options.labelled):
            raise DataFileError(
                "without a header, label= (--label) must be the number of the label's column: 0 is the "
                "first, -1 the last", records.path,
            )  # fmt: skip
        return [str(j) for j in range(len(first))]
    names = [name.strip() for name in first]
    if any(names) and all(DECIMAL.fullmatch(name) for name in names):
        raise DataFileError(
            "the first line has only numbers: add a line with names of the columns, or say header=False "
            "(--no-header)", records.path, records.line,
        )  # fmt: skip
    return names


def _check_numbers(row: list[str], features: list[int], names: list[str], records: _Records) -> None:
    """Find the field that is no finite decimal number, if there is one."""
    for j in features:
        text = row[j].strip()
        shown = f"{text[:40]!r} in the column {names[j]!r}"
        if text.lower() in _MISSING:
            found = f"{shown} is a missing value" if text else f"a missing value in the column {names[j]!r}"
            records.fail(f"{found}: fill in missing values first", j)
        if not DECIMAL.fullmatch(text):
            if _COMMA.fullmatch(text):
                records.fail(f"{shown} has a decimal comma: write numbers with a decimal point", j)
            if ";" in text and records.separator == ",":
                records.fail(
                    f"{shown} is not a number: if semicolons separate the fields, there must be no comma in "
                    "the first line, and a decimal point in numbers", j,
                )  # fmt: skip
            _fail_for_text(row, j, features, names, records, shown)
        if not math.isfinite(float(text)):
            records.fail(f"{shown} is too large for a float64", j)


def _fail_for_text(
    row: list[str], first: int, features: list[int], names: list[str], records: _Records, shown: str
) -> NoReturn:
    """Name all columns with text in place of numbers, in this row and some that follow."""
    place = records.place_of(first)
    found = {first}
    with suppress(csv.Error, DataFileError):
        for later in chain([row], islice(records, LOOK_AHEAD)):
            found |= {j for j in features if j < len(later) and _is_text(later[j].strip())}
    others = [names[j] for j in features if j in found and j != first]
    if others:
        what = f", nor are values of {listed(others)}: encode these columns as numbers, or leave them out"
    else:
        what = ": encode the column as numbers, or leave it out"
    columns = [names[j] for j in features if j in found]
    raise DataFileError(f"{shown} is not a number{what} with {leave_out(columns)}", records.path, *place)


def _is_text(field: str) -> bool:
    return field.lower() not in _MISSING and not DECIMAL.fullmatch(field) and not _COMMA.fullmatch(field)


class _Records(Iterator[list[str]]):
    """The records of a table, and where the last one stands in the file."""

    def __init__(self, content: Content, separator: str) -> None:
        self.path = content.path
        # A byte that is not UTF-8 comes through as a lone surrogate, to be refused with its line.
        self._text = io.TextIOWrapper(
            io.BufferedReader(content, 1 << 20), "utf-8-sig", errors="surrogateescape", newline=""
        )
        self._first = self._text.readline()
        self.separator = _separator_of(self._first) if separator == "," else separator
        self._lines: list[str] = []
        self._reader = csv.reader(self._read_lines(), delimiter=self.separator, strict=True)
        self.line = 0
        """Where the last record begins."""
        self.plain = True
        """Whether all that `float` takes in it are decimals, NaN and infinity."""

    def __next__(self) -> list[str]:
        self.line = self._reader.line_num + 1
        self._lines.clear()
        self.plain = True
        return next(self._reader)

    def _read_lines(self) -> Iterator[str]:
        for line in chain(filter(None, [self._first]), self._text):
            self._lines.append(line)
            if "_" in line:
                self.plain = False
            if not line.isascii():
                self.plain = False
                try:
                    line.encode()
                except UnicodeEncodeError as error:
                    self._refuse(line, error.start, "not UTF-8 text: save the file in this encoding")
            if "\0" in line:
                self._refuse(line, line.index("\0"), "a NUL byte: this is no text, or not in UTF-8")
            yield line

    def _refuse(self, line: str, position: int, message: str) -> NoReturn:
        raise DataFileError(message, self.path, self.line + len(self._lines) - 1, _bytes(line[:position]) + 1)

    def fail(self, message: str, field: int | None) -> NoReturn:
        """Raise an error about a field of the last record, or all of it."""
        if field is None:
            raise DataFileError(message, self.path, self.line)
        raise DataFileError(message, self.path, *self.place_of(field))

    def place_of(self, field: int) -> tuple[int, int]:
        """Line and column of a field of the last record."""
        before = _before_field("".join(self._lines), field, self.separator)
        *ended, within = re.split("\r\n|\r|\n", before)
        return self.line + len(ended), _bytes(within) + 1


def _separator_of(line: str) -> str:
    """What separates the fields of a line: commas, unless there are none but others."""
    unquoted = re.sub('"[^"]*"', "", line)
    return next((mark for mark in ",;\t" if mark in unquoted), ",")


def _before_field(record: str, field: int, separator: str) -> str:
    """The text of a record before a field; a quotation mark inside of a field is written twice."""
    quoted = False
    for position, character in enumerate(record):
        if field == 0:
            return record[:position]
        if character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            field -= 1
    return record


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogateescape"))
