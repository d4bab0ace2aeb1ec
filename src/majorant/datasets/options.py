"""What a reader is asked for, what it answers, and which columns of a table are meant by it."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from majorant.errors import DataFileError, MajorantError
from majorant.text import did_you_mean, first_duplicate

__all__ = ["ReadOptions", "ReadResult", "choose_columns", "find_column", "leave_out", "listed", "reason"]

LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are labels unless told otherwise."""


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
    weight: str | None = None
    """Of `open_source`, the column or the file of the sample weights."""

    def __post_init__(self) -> None:
        if self.features is not None and self.features < 1:
            raise MajorantError(f"features={self.features!r} must be at least 1")
        object.__setattr__(self, "drop", _as_tuple(self.drop))
        if self.columns is None:
            return
        object.__setattr__(self, "columns", tuple(map(str, _as_tuple(self.columns))))
        if not self.columns or first_duplicate(self.columns) is not None:
            raise MajorantError("columns must be names of columns, each once, and one at least")


class ReadResult(NamedTuple):
    """What a reader has found in a file: see `Data`."""

    X: Any
    y: NDArray[Any] | None
    feature_names: tuple[str, ...] | None = None
    label: str | None = None


def _as_tuple(names: Any) -> tuple[Any, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def reason(error: Exception) -> str:
    """What a library says about a file, on one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def choose_columns(
    names: Sequence[str], options: ReadOptions, path: str, line: int | None
) -> tuple[int | None, list[int]]:
    """Where the label is, if anywhere, and where the features are.

    The label is left out of the features also where it is not wanted. The path and the line of the names are
    for errors.
    """
    try:
        if (twice := first_duplicate(names)) is not None:
            raise DataFileError(f"two columns have the name {twice!r}: rename one of them")
        return _choose({name: position for position, name in enumerate(names)}, options)
    except DataFileError as error:
        raise DataFileError(str(error), path, line) from None


def _choose(places: Mapping[str, int], options: ReadOptions) -> tuple[int | None, list[int]]:
    names = list(places)
    dropped = {_position(places, column, " to drop") for column in options.drop}
    label = _find_label(places, options)
    if options.columns is not None:
        return label, _columns_by_name(options.columns, places, label, dropped)
    features = [j for j in range(len(names)) if j != label and j not in dropped]
    if label in dropped:
        raise DataFileError(f"the column {names[label or 0]!r} is the label and cannot be dropped")
    if not features:
        raise DataFileError("there is no column of features")
    for j in features:
        if not names[j]:
            raise DataFileError(
                f"column {j + 1} has no name: give it one, or leave it out with drop=[{j}] (--drop '\"\"')"
            )
    return label, features


def _columns_by_name(
    columns: Sequence[str], places: Mapping[str, int], label: int | None, dropped: set[int]
) -> list[int]:
    """Where the columns are that were asked for by name, in their order."""
    missing = [name for name in columns if name not in places]
    if missing:
        others = f" (nor {len(missing) - 1} other{'s' if len(missing) > 2 else ''})" * (len(missing) > 1)
        raise DataFileError(
            f"there is no column {missing[0]!r}{others}, which is needed{_known(missing[0], places)}"
        )
    for name in columns:
        if places[name] == label or places[name] in dropped:
            role = "the label" if places[name] == label else "dropped"
            raise DataFileError(f"the column {name!r} is needed as a feature, and cannot be {role}")
    return [places[name] for name in columns]


def _find_label(places: Mapping[str, int], options: ReadOptions) -> int | None:
    if options.label is not None:
        if isinstance(options.label, str) and options.label not in places and not options.labelled:
            return None
        return _position(places, options.label, " for the labels")
    taken = options.columns or ()
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
    if not -len(places) <= column < len(places):
        raise DataFileError(f"there is no column {column}: they are numbered 0 to {len(places) - 1}")
    return column % len(places)


def find_column(names: Sequence[str], column: str | int, path: str) -> int:
    """Where a column is; an error if there is no such column."""
    try:
        return _position({name: j for j, name in enumerate(names)}, column, "")
    except DataFileError as error:
        raise DataFileError(str(error), path) from None


def leave_out(names: Sequence[str]) -> str:
    """How to leave columns out: the argument of `read`, and in parentheses the option of commands."""
    words = io.StringIO()
    csv.writer(words, lineterminator="").writerow(names)
    return f"drop={list(names)!r} (--drop {shlex.quote(words.getvalue())})"


def _known(column: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown column."""
    hint = did_you_mean(column, names)
    return f"{hint} The columns are {listed(names)}" if hint else f"; the columns are {listed(names)}"


def listed(names: Iterable[str]) -> str:
    """Names for a message, not too many of them."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
