"""Checks of the values of options, made while the command line is parsed, before anything is imported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from majorant.errors import DataFileError
from majorant.text import did_you_mean


def one_of(names: Iterable[str] | Callable[[], Iterable[str]]) -> Callable[[str | None], str | None]:
    """A callback of an option whose value must be one of these names.

    `names` may be a function, so that what knows the names is imported only if the option is given.
    """

    def check(word: str | None) -> str | None:
        known = [] if word is None else list(names() if callable(names) else names)
        if word is not None and word not in known:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(known)}{did_you_mean(word, known)}")
        return word

    return check


def strictly_between(low: float, high: float = math.inf) -> Callable[[float | None], float | None]:
    """A callback of an option whose value must lie between two numbers, which are excluded."""

    def check(value: float | None) -> float | None:
        if value is not None and not low < value < high:
            below = "a finite number" if high == math.inf else f"below {high:g}"
            raise typer.BadParameter(f"must be above {low:g} and {below}, got {value:g}")
        return value

    return check


def refuse_missing(path: str | Path, names: Iterable[str] = ()) -> None:
    """Raise an error if there is no such file; the error suggests a file beside it, or one of the names."""
    path = Path(path)
    if str(path) == "-" or path.exists():
        return
    files = path.parent.iterdir() if path.parent.is_dir() else ()
    hint = did_you_mean(str(path), [*names, *(str(file) for file in files if file.is_file())])
    raise DataFileError(f"there is no such file{hint}", path)


def not_zero(value: int | None) -> int | None:
    """A callback of an option whose value may be any whole number but 0."""
    if value == 0:
        raise typer.BadParameter("must not be 0")
    return value
