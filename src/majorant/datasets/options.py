"""What a reader is asked for, what it answers, and which columns of a table are meant by it."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, NamedTuple

from numpy.typing import NDArray

from majorant.datasets.preprocessing import Preprocessing, TableColumns, make_features, unknown_categories
from majorant.errors import DataFileError, MajorantError
from majorant.text import did_you_mean, first_duplicate

__all__ = [
    "Chosen",
    "ReadOptions",
    "ReadResult",
    "choose_columns",
    "column_name",
    "fill_in",
    "find_column",
    "for_text",
    "leave_out",
    "listed",
    "optional_columns",
    "reason",
    "refuse_preprocessing",
    "table_result",
]

LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are labels unless told otherwise."""

# What pandas calls the index of a data frame: in Parquet, and in CSV that was read and written again.
_INDEX = re.compile(r"__index_level_[0-9]+__")
_FIRST_INDEX = re.compile(r"|Unnamed: [0-9]+(\.[0-9]+)*|" + _INDEX.pattern)


@dataclass(frozen=True)
class ReadOptions:
    """The options of `read`, which documents them."""

    label: str | int | None = None
    labelled: bool | None = True
    features: int | None = None
    drop: Sequence[str | int] = ()
    zero_based: bool = False
    header: bool = True
    columns: Sequence[str] | None = None
    preprocessing: Preprocessing | None = None
    weight: str | None = None
    """Of `open_source`, the column or the file of the sample weights."""
    optional: frozenset[str] = frozenset()
    """Features among `columns` that may be missing, in a row or as a column: nan then."""
    unnamed_columns: int | None = None
    """How many columns the training data had, if they had no names."""

    def __post_init__(self) -> None:
        if self.features is not None and self.features < 1:
            raise MajorantError(f"features={self.features!r} must be at least 1")
        object.__setattr__(self, "drop", _as_tuple(self.drop))
        if self.columns is None:
            return
        object.__setattr__(self, "columns", tuple(map(str, _as_tuple(self.columns))))
        if first_duplicate(self.columns) is not None:
            raise MajorantError("columns must be names of columns, each once")

    @property
    def table_columns(self) -> Sequence[str] | None:
        """The columns of a table that `columns` are made of."""
        if self.columns is None or self.preprocessing is None:
            return self.columns
        return self.preprocessing.columns_of(self.columns)

    @property
    def one_hot(self) -> Sequence[str]:
        """The columns of categories."""
        return () if self.preprocessing is None else self.preprocessing.one_hot

    @property
    def imputes(self) -> bool:
        """Whether missing numbers are filled in."""
        return self.preprocessing is not None and self.preprocessing.impute is not None


class ReadResult(NamedTuple):
    """What a reader has found in a file: see `Data`."""

    X: Any
    y: NDArray[Any] | None
    feature_names: tuple[str, ...] | None = None
    label: str | None = None
    preprocessing: Preprocessing | None = None
    unnamed_columns: int | None = None
    notes: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """Which columns of a table are read."""

    label: int | None
    features: list[int]
    notes: tuple[str, ...]
    """What to tell about columns that are left out."""


def column_name(j: int) -> str:
    """What a column without a name is called in a table without a header."""
    return f"column {j}"


def _as_tuple(names: Any) -> tuple[Any, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def reason(error: Exception) -> str:
    """What a library says about a file, on one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def choose_columns(names: Sequence[str], options: ReadOptions, path: str, line: int | None) -> Chosen:
    """Where the label is, if anywhere, and where the columns of features are.

    The label is left out of the features also where it is not wanted. The path and the line of the names are
    for errors.
    """
    try:
        if (twice := first_duplicate(filter(None, names))) is not None:
            raise DataFileError(f"two columns have the name {twice!r}: rename one of them")
        return _choose(names, options)
    except DataFileError as error:
        raise DataFileError(str(error), path, line) from None


def _choose(names: Sequence[str], options: ReadOptions) -> Chosen:
    places = {name: position for position, name in enumerate(names)}
    dropped = {j for column in options.drop for j in _positions(names, places, column)}
    label = _find_label(places, options)
    if options.columns is not None:
        return Chosen(label, _columns_by_name(options, places, label, dropped), ())
    if label in dropped:
        raise DataFileError(f"the column {names[label or 0]!r} is the label and cannot be dropped")
    features = [j for j in range(len(names)) if j != label and j not in dropped]
    index = _index_columns(names, features)
    features = [j for j in features if j not in index]
    if not features:
        raise DataFileError("there is no column of features")
    for j in features:
        if not names[j]:
            raise DataFileError(
                f"column {j + 1} has no name: give it one, or leave it out with drop=[{j}] (--drop '\"\"')"
            )
    for column in options.one_hot:
        if column not in places or places[column] not in features:
            raise DataFileError(
                f"no column {column!r} of features{_known(column, [names[j] for j in features])}"
            )
    return Chosen(label, features, tuple(_left_out(names[j], j) for j in index))


def _index_columns(names: Sequence[str], features: Sequence[int]) -> list[int]:
    """The columns that hold the row index of a data frame: first, without a name of their own."""
    first = takewhile(lambda j: _FIRST_INDEX.fullmatch(names[j]), features)
    leading = [j for k, j in enumerate(first) if j == k]
    return [*leading, *(j for j in features if j not in leading and _INDEX.fullmatch(names[j]))]


def _left_out(name: str, j: int) -> str:
    what = f"the column {name!r}" if name else f"column {j + 1}, which has no name,"
    return f"{what} is taken for the row index of a data frame, and left out"


def _columns_by_name(
    options: ReadOptions, places: Mapping[str, int], label: int | None, dropped: set[int]
) -> list[int]:
    """Where the columns are that were asked for by name, in their order."""
    columns = options.table_columns or ()
    missing = [name for name in columns if name not in places]
    optional = optional_columns(options)
    needed = [name for name in missing if name not in optional]
    if needed:
        others = f" (nor {len(needed) - 1} other{'s' if len(needed) > 2 else ''})" * (len(needed) > 1)
        raise DataFileError(
            f"there is no column {needed[0]!r}{others}, which is needed{_known(needed[0], places)}"
        )
    there = [name for name in columns if name in places]
    for name in there:
        if places[name] == label or places[name] in dropped:
            role = "the label" if places[name] == label else "dropped"
            raise DataFileError(f"the column {name!r} is needed as a feature, and cannot be {role}")
    return [places[name] for name in there]


def optional_columns(options: ReadOptions) -> set[str]:
    """The columns that no needed feature is made of."""
    if not options.optional:
        return set()
    needed = replace(
        options, columns=[name for name in options.columns or () if name not in options.optional]
    )
    return set(options.table_columns or ()) - set(needed.table_columns or ())


def _find_label(places: Mapping[str, int], options: ReadOptions) -> int | None:
    if options.label is not None:
        if isinstance(options.label, str) and options.label not in places and not options.labelled:
            return None
        return _position(places, options.label, " for the labels")
    taken = options.table_columns or ()
    candidates = [name for name in places if name.lower() in LABEL_NAMES and name not in taken]
    if len(candidates) > 1:
        raise DataFileError(
            f"the labels may be in any of the columns {listed(candidates)}: say which with label= (--label)"
        )
    if not candidates and options.labelled:
        raise DataFileError(
            f"which column has the labels? Say so with label= (--label); the columns are {listed(places)}"
        )
    return places[candidates[0]] if candidates else None


def _position(places: Mapping[str, int], column: str | int, purpose: str) -> int:
    """Where a column is; a number counts from 0, or from the last column, -1, backwards."""
    if isinstance(column, str):
        if column not in places:
            raise DataFileError(f"no column {column!r}{purpose}{_known(column, places)}")
        return places[column]
    count = max(places.values()) + 1
    if not -count <= column < count:
        raise DataFileError(f"there is no column {column}: they are numbered 0 to {count - 1}")
    return column % count


def _positions(names: Sequence[str], places: Mapping[str, int], column: str | int) -> list[int]:
    """Where the columns to drop are: several may have no name."""
    if column == "" and "" in places:
        return [j for j, name in enumerate(names) if not name]
    return [_position(places, column, " to drop")]


def find_column(names: Sequence[str], column: str | int, path: str) -> int:
    """Where a column is; an error if there is no such column."""
    try:
        return _position({name: j for j, name in enumerate(names)}, column, "")
    except DataFileError as error:
        raise DataFileError(str(error), path) from None


def table_result(
    columns: TableColumns,
    y: NDArray[Any] | None,
    label: str | None,
    options: ReadOptions,
    path: str,
    notes: tuple[str, ...],
    unnamed_columns: int | None = None,
) -> ReadResult:
    """What the columns of a table are, as features; what is to be learned of them is learned."""
    preprocessing = options.preprocessing
    try:
        if preprocessing is not None and not preprocessing.is_fitted:
            preprocessing = preprocessing.fitted([columns])
        names, X, unknown = make_features(columns, preprocessing, options.columns)
    except DataFileError as error:
        raise DataFileError(str(error), path) from None
    notes += unknown_categories([unknown])
    return ReadResult(X, y, names, label, preprocessing, unnamed_columns, notes)


def refuse_preprocessing(options: ReadOptions, path: str) -> None:
    """An error if columns were to be preprocessed where they have no names."""
    if options.preprocessing is not None:
        raise DataFileError(
            "preprocessing= (--impute, --one-hot) is for tables, which this file is not (format= says what a "
            "file is)", path,
        )  # fmt: skip


def fill_in(options: ReadOptions) -> str:
    """What to do about a missing value."""
    if options.columns is not None:
        return "fill in missing values first, or train the model with --impute median"
    return (
        "fill in missing values first, or say preprocessing=Preprocessing(impute='median') (--impute median)"
    )


def for_text(columns: Sequence[str], options: ReadOptions) -> str:
    """What to do about columns with text in the place of numbers."""
    them = "the column" if len(columns) == 1 else "the columns"
    if options.columns is not None:
        return f"encode {them} as numbers"
    return (
        f"make features of categories with preprocessing=Preprocessing(one_hot={list(columns)!r}) "
        f"(--one-hot {_as_word(columns)}), or leave {them} out with {leave_out(columns)}"
    )


def leave_out(names: Sequence[str]) -> str:
    """How to leave columns out: the argument of `read`, and in parentheses the option of commands."""
    return f"drop={list(names)!r} (--drop {_as_word(names)})"


def _as_word(names: Sequence[str]) -> str:
    """Names as one word of a command line."""
    words = io.StringIO()
    csv.writer(words, lineterminator="").writerow(names)
    return shlex.quote(words.getvalue())


def _known(column: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown column."""
    hint = did_you_mean(column, names)
    return f"{hint} The columns are {listed(names)}" if hint else f"; the columns are {listed(names)}"


def listed(names: Iterable[str]) -> str:
    """Names for a message, not too many of them."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
