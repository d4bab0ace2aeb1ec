"""What a reader is asked for, what it answers, and which columns of a table are meant by it."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from majorant.errors import DataFileError, MajorantError
from majorant.text import did_you_mean, first_duplicate

__all__ = ["Found", "Wanted", "choose_columns", "find_column", "leave_out", "listed", "reason"]

LABEL_NAMES = ("label", "target", "class", "y")
"""Columns that are labels unless told otherwise."""


@dataclass(frozen=True)
class Wanted:
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
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(map(str, _as_tuple(self.columns))))
        if self.columns is not None and (not self.columns or first_duplicate(self.columns) is not None):
            raise MajorantError("columns must be names of columns, each once, and one at least")

    @property
    def for_read(self) -> dict[str, Any]:
        """The options of `read`, which knows no weights."""
        return {name: value for name, value in vars(self).items() if name != "weight"}


class Found(NamedTuple):
    """What a file has to say: see `Data`."""

    X: Any
    y: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    label: str | None = None


def _as_tuple(names: Any) -> tuple[Any, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    shown = ", ".join(repr(name) for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def leave_out(names: Sequence[str]) -> str:
    """How to leave columns out: the argument of `read`, and in parentheses the option of commands."""
    words = io.StringIO()
    csv.writer(words, lineterminator="").writerow(names)
    return f"drop={list(names)!r} (--drop {shlex.quote(words.getvalue())})"


def _known(column: str | int, names: Sequence[str]) -> str:
    """The end of a message about an unknown column."""
    hint = did_you_mean(str(column), names)
    return f"{hint} The columns are {listed(names)}" if hint else f"; the columns are {listed(names)}"


def reason(error: Exception) -> str:
    """What a library says about a file, on one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def choose_columns(
    names: Sequence[str], wanted: Wanted, path: str, line: int | None
) -> tuple[int | None, list[int]]:
    """Where the label is, if anywhere, and where the features are.

    The label is left out of the features also where it is not wanted.
    """
    if (twice := first_duplicate(names)) is not None:
        raise DataFileError(f"two columns have the name {twice!r}: rename one of them", path, line)
    places = {name: position for position, name in enumerate(names)}
    dropped = set()
    for column in wanted.drop:
        position = _position(places, column, path, line)
        if position is None:
            raise DataFileError(f"no column {column!r} to drop{_known(column, names)}", path, line)
        dropped.add(position)
    label = _find_label(names, places, wanted, path, line)
    if wanted.columns is not None:
        return label, _asked_for(wanted.columns, places, label, dropped, path, line)
    features = [j for j in range(len(names)) if j != label and j not in dropped]
    if label in dropped:
        raise DataFileError(
            f"the column {names[label or 0]!r} is the label and cannot be dropped", path, line
        )
    if not features:
        raise DataFileError("there is no column of features", path, line)
    for j in features:
        if not names[j]:
            raise DataFileError(
                f"column {j + 1} has no name: give it one, or leave it out with drop=[{j}] (--drop '\"\"')",
                path,
                line,
            )
    return label, features


def find_column(names: Sequence[str], column: str | int, path: str) -> int:
    """Where a column is; an error if there is no such column."""
    position = _position({name: j for j, name in enumerate(names)}, column, path, None)
    if position is None:
        raise DataFileError(f"no column {column!r}{_known(column, names)}", path)
    return position


def _asked_for(
    columns: Sequence[str],
    places: Mapping[str, int],
    label: int | None,
    dropped: set[int],
    path: str,
    line: int | None,
) -> list[int]:
    """Where the columns are that were asked for by name, in their order."""
    missing = [name for name in columns if name not in places]
    if missing:
        others = f" (nor {len(missing) - 1} other{'s' if len(missing) > 2 else ''})" * (len(missing) > 1)
        raise DataFileError(
            f"there is no column {missing[0]!r}{others}, which is needed{_known(missing[0], list(places))}",
            path, line,
        )  # fmt: skip
    features = [places[name] for name in columns]
    for j, what in [(label, "the label"), *((j, "dropped") for j in dropped)]:
        if j in features:
            name = list(places)[j or 0]
            raise DataFileError(
                f"the column {name!r} is needed as a feature, and cannot be {what}", path, line
            )
    return features


def _find_label(
    names: Sequence[str], places: Mapping[str, int], wanted: Wanted, path: str, line: int | None
) -> int | None:
    if wanted.label is not None:
        label = _position(places, wanted.label, path, line)
        if label is None and wanted.labelled:
            raise DataFileError(
                f"no column {wanted.label!r} for the labels{_known(wanted.label, names)}", path, line
            )
        return label
    taken = wanted.columns or ()
    candidates = [j for j, name in enumerate(names) if name.lower() in LABEL_NAMES and name not in taken]
    if len(candidates) > 1:
        raise DataFileError(
            f"the labels may be in any of the columns {listed([names[j] for j in candidates])}: "
            "say which with label= (--label)", path, line,
        )  # fmt: skip
    if not candidates and wanted.labelled:
        raise DataFileError(
            f"which column has the labels? Say so with label= (--label); the columns are {listed(names)}",
            path, line,
        )  # fmt: skip
    return candidates[0] if candidates else None


def _position(places: Mapping[str, int], column: str | int, path: str, line: int | None) -> int | None:
    """Where a column is; a number counts from 0, or from the last column, -1, backwards."""
    if isinstance(column, str):
        return places.get(column)
    if not -len(places) <= column < len(places):
        raise DataFileError(
            f"there is no column {column}: they are numbered 0 to {len(places) - 1}", path, line
        )
    return column % len(places)
