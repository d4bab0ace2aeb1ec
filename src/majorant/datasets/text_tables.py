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
from typing import Any, NoReturn

import numpy as np

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_text
from majorant.datasets.options import (
    ReadOptions,
    ReadResult,
    choose_columns,
    column_name,
    fill_in,
    for_text,
    listed,
    optional_columns,
    table_result,
)
from majorant.datasets.preprocessing import TableColumns, category
from majorant.errors import DataFileError
from majorant.text import DECIMAL

__all__ = ["read_records", "read_text_table"]

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
LOOK_AHEAD = 1000
"""Rows after the first one with text instead of a number in which other columns with text are found."""
_MISSING = ("", "na", "nan", "null", "none", "n/a", "?")
_TRUTH = {"true": 1.0, "false": 0.0}


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
    label, features, notes = choose_columns(
        names, options, records.path, records.line if options.header else None
    )
    fields = _FeatureFields(names, features, records, options)
    values, labels, n_rows = array("d"), [], 0
    for row in records if options.header else chain([first], records):
        if len(row) != len(names):
            if not row and len(names) > 1:
                continue
            if row or len(names) > 1:
                records.fail(f"{len(row)} fields, where the first line has {len(names)}", None)
            row = [""]
        values.extend(fields.numbers(row))
        n_rows += 1
        if label is not None:
            labels.append(row[label].strip())
            if labels[-1].lower() in _MISSING[:3]:
                records.fail(f"the label (column {names[label]!r}) is missing", label)
    if not n_rows:
        raise DataFileError("there are no rows in this file", records.path)
    X = np.frombuffer(values, dtype=np.float64).reshape(n_rows, len(features))
    columns = TableColumns(tuple(names[j] for j in features), X, fields.texts)
    with_label = label is not None and options.labelled is not False
    return table_result(
        columns, labels_from_text(labels, records.path) if with_label else None,
        names[label] if label is not None and with_label else None, options, records.path, notes,
        None if options.header else len(names) + (options.unnamed_columns == len(names) + 1),
    )  # fmt: skip


def _names(first: list[str], records: _Records, options: ReadOptions) -> list[str]:
    if not options.header:
        named = isinstance(options.label, str) and options.unnamed_columns is None
        if named or (options.label is None and options.labelled):
            raise DataFileError(
                "without a header, label= (--label) must be the number of the label's column: 0 is the "
                "first, -1 the last", records.path,
            )  # fmt: skip
        return _numbered_names(len(first), records, options)
    names = [name.strip() for name in first]
    if any(names) and all(DECIMAL.fullmatch(name) for name in names):
        raise DataFileError(
            "the first line has only numbers: add a line with names of the columns, or say header=False "
            "(--no-header)", records.path, records.line,
        )  # fmt: skip
    return names


def _numbered_names(count: int, records: _Records, options: ReadOptions) -> list[str]:
    """Names for columns that have none. Without the label, the others still have the numbers of training."""
    expected = options.unnamed_columns
    if expected in (None, count):
        return list(map(column_name, range(count)))
    assert expected is not None
    names = list(map(column_name, range(expected)))
    if count != expected - 1 or options.label not in names:
        raise DataFileError(
            f"{count} columns, where the training data had {expected} columns without names", records.path
        )
    names.remove(str(options.label))
    return names


class _FeatureFields:
    """The fields of features as numbers, and the texts of categories.

    Most fields are decimals, which `float` reads all at once. Columns where other words have been found are
    remembered, and looked at in every row.
    """

    def __init__(
        self, names: list[str], features: list[int], records: _Records, options: ReadOptions
    ) -> None:
        self.names, self.features, self.records, self.options = names, features, records, options
        self._pick: Any = (
            itemgetter(*features) if len(features) > 1 else lambda row: [row[j] for j in features]
        )
        self._codes: dict[int, dict[str, int]] = {
            k: {} for k, j in enumerate(features) if names[j] in options.one_hot
        }
        optional = optional_columns(options)
        self._optional = {k for k, j in enumerate(features) if names[j] in optional}
        self._words = _TRUTH | (dict.fromkeys(_MISSING, math.nan) if options.imputes else {})
        self._worded: list[int] = []
        """Columns in which words stand for numbers."""

    @property
    def texts(self) -> dict[str, list[str]]:
        """For each column of categories, the texts that its numbers stand for."""
        return {self.names[self.features[k]]: list(codes) for k, codes in self._codes.items()}

    def numbers(self, row: list[str]) -> list[float]:
        """The fields of a row: numbers, or numbers of texts."""
        fields: list[Any] = list(self._pick(row))
        for k, codes in self._codes.items():
            fields[k] = codes.setdefault(category(fields[k]), len(codes))
        missing = []
        for k in self._worded:
            fields[k] = self._words.get(fields[k].strip().lower(), fields[k])
            if fields[k] != fields[k]:
                fields[k] = 0.0
                missing.append(k)
        try:
            numbers = list(map(float, fields))
        except ValueError:
            numbers = []
        # `float` takes more than decimals: look again where there may be such.
        if len(numbers) < len(fields) or not (math.isfinite(sum(numbers)) and self.records.plain):
            return [self._number(row, k, field) for k, field in enumerate(fields)]
        for k in missing:
            numbers[k] = math.nan
        return numbers

    def _number(self, row: list[str], k: int, field: Any) -> float:
        """One field, with an error if it is no finite decimal number and no word for one."""
        if k in self._codes:
            return float(field)
        j = self.features[k]
        text = row[j].strip()
        if DECIMAL.fullmatch(text) and math.isfinite(number := float(text)):
            return number
        if (word := self._words.get(text.lower())) is not None:
            if k not in self._worded:
                self._worded.append(k)
            return word
        if k in self._optional:
            return math.nan
        self._fail(row, j, text)

    def _fail(self, row: list[str], j: int, text: str) -> NoReturn:
        records, name = self.records, self.names[j]
        shown = f"{text[:40]!r} in the column {name!r}"
        if text.lower() in _MISSING:
            found = f"{shown} is a missing value" if text else f"a missing value in the column {name!r}"
            records.fail(f"{found}: {fill_in(self.options)}", j)
        if DECIMAL.fullmatch(text):
            records.fail(f"{shown} is too large for a float64", j)
        if _COMMA.fullmatch(text):
            records.fail(f"{shown} has a decimal comma: write numbers with a decimal point", j)
        if ";" in text and records.separator == ",":
            records.fail(
                f"{shown} is not a number: if semicolons separate the fields, there must be no comma in the "
                "first line, and a decimal point in numbers", j,
            )  # fmt: skip
        self._fail_for_text(row, j, shown)

    def _fail_for_text(self, row: list[str], first: int, shown: str) -> NoReturn:
        """Name all columns with text in place of numbers, in this row and some that follow."""
        records, features = self.records, [self.features[k] for k in self._columns_of_numbers()]
        place = records.place_of(first)
        found = {first}
        with suppress(csv.Error, DataFileError):
            for later in chain([row], islice(records, LOOK_AHEAD)):
                found |= {j for j in features if j < len(later) and _is_text(later[j].strip())}
        columns = [self.names[j] for j in features if j in found]
        others = [self.names[j] for j in features if j in found and j != first]
        nor = f", nor are values of {listed(others)}" if others else ""
        raise DataFileError(
            f"{shown} is not a number{nor}: {for_text(columns, self.options)}", records.path, *place
        )

    def _columns_of_numbers(self) -> list[int]:
        return [k for k in range(len(self.features)) if k not in self._codes and k not in self._optional]


def _is_text(field: str) -> bool:
    known = field.lower() in _MISSING or field.lower() in _TRUTH
    return not known and not DECIMAL.fullmatch(field) and not _COMMA.fullmatch(field)


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
