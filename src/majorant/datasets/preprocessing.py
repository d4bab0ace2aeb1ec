"""How columns become features: missing values are filled in, categories become columns of 0 and 1.

    age  colour           age   colour=blue  colour=red
    31   red       ──►    31    0            1
         blue             29.5  1            0

What is filled in and which categories there are is learned from training rows. Other rows become the same
features by the same `Preprocessing`, which a model file keeps.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from majorant.errors import DataFileError, MajorantError
from majorant.status import Matrix
from majorant.text import first_duplicate

__all__ = ["Features", "Preprocessing", "TableColumns", "category", "make_features", "unknown_categories"]

STATISTICS: dict[str, Callable[[NDArray[np.float64]], Any]] = {"median": np.nanmedian, "mean": np.nanmean}
MOST_CATEGORIES = 1000
"""Each is a dense column of features. A column of names has more, and is no category."""

# Programs write integers so once a value of the column is missing.
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")


class TableColumns(NamedTuple):
    """Columns of a table as numbers, before they become features."""

    names: tuple[str, ...]
    X: Matrix
    """(n_rows, n_columns): nan where a value is missing; of a column of categories, numbers of texts."""
    texts: Mapping[str, Sequence[str]]
    """For each column of categories, the texts that its numbers stand for."""


class Features(NamedTuple):
    """What columns have become."""

    names: tuple[str, ...]
    X: Matrix
    unknown: dict[str, dict[str, int]]
    """For columns of categories, the texts that are none of the categories, and how many rows have each."""


def category(text: str) -> str:
    """A category as its text names it: "2.0" is "2", which is how programs write it beside missing values.

    >>> category(" red "), category("2.0"), category("02")
    ('red', '2', '02')
    """
    text = text.strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


@dataclass(frozen=True)
class Preprocessing:
    r"""How the columns of a table become features.

    Parameters
    ----------
    impute : "median", "mean" or float, optional
        What is taken for a missing number: a statistic of its column in the training rows, or this number. By
        default missing numbers are errors.
    one_hot : sequence of str, default=()
        Columns of categories. Each category is a feature, e.g. ``colour=red``, which is 1 or 0. An empty cell
        is a category of its own. Categories that the training rows do not have are 0 in all features.
    fill : mapping, optional
        Learned: what is taken for a missing number, by column.
    categories : mapping, optional
        Learned: the categories of the columns `one_hot`, in order.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from majorant.datasets import Preprocessing, read
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     train, test = pathlib.Path(directory) / "train.csv", pathlib.Path(directory) / "test.csv"
    ...     _ = train.write_text("age,colour,y\n31,red,1\n28,red,0\n,blue,1\n")
    ...     _ = test.write_text("colour,age\nblue,\n")
    ...     data = read(train, preprocessing=Preprocessing(impute="median", one_hot=["colour"]))
    ...     other = read(
    ...         test, columns=data.feature_names, preprocessing=data.preprocessing, labelled=False
    ...     )
    >>> data.feature_names
    ('age', 'colour=blue', 'colour=red')
    >>> data.X.tolist(), other.X.tolist()
    ([[31.0, 0.0, 1.0], [28.0, 0.0, 1.0], [29.5, 1.0, 0.0]], [[29.5, 1.0, 0.0]])
    """

    impute: str | float | None = None
    one_hot: Sequence[str] = ()
    fill: Mapping[str, float] | None = None
    categories: Mapping[str, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        known = self.impute in STATISTICS if isinstance(self.impute, str) else _is_finite(self.impute)
        if self.impute is not None and not known:
            raise MajorantError(
                f"impute={self.impute!r} is none of 'median', 'mean' and a finite number to fill in"
            )
        columns = (self.one_hot,) if isinstance(self.one_hot, str) else tuple(self.one_hot)
        object.__setattr__(self, "one_hot", columns)
        if self.impute is not None and not isinstance(self.impute, str):
            object.__setattr__(self, "impute", float(self.impute))

    @property
    def is_fitted(self) -> bool:
        """Whether the categories and numbers to fill in are known."""
        return self.categories is not None

    def fitted(self, parts: Iterable[TableColumns]) -> Self:
        """Learn from columns, all rows of which are in one of the parts; categories may be in several."""
        fill: dict[str, float] = {}
        categories: dict[str, set[str]] = {name: set() for name in self.one_hot}
        for part in parts:
            for name, values in zip(part.names, part.X.T, strict=True):
                if name in categories:
                    categories[name].update(part.texts[name])
                    _check_number(name, categories[name])
                elif self.impute is not None:
                    fill[name] = self._statistic(name, values)
        in_order = {name: sorted(texts) for name, texts in categories.items()}
        return replace(self, fill=fill, categories=in_order)

    def _statistic(self, name: str, values: NDArray[np.float64]) -> float:
        if not isinstance(self.impute, str):
            assert self.impute is not None
            return float(self.impute)
        if np.isnan(values).all():
            raise DataFileError(
                f"the column {name!r} has no value at all, and so no {self.impute} to fill in: leave it out "
                f"with drop=[{name!r}] (--drop {name})"
            )
        return float(STATISTICS[self.impute](values))

    def columns_of(self, features: Iterable[str]) -> tuple[str, ...]:
        """The columns that features are made of, each once."""
        made = {feature: name for name in self.categories or () for feature in self._features_of(name)}
        return tuple(dict.fromkeys(made.get(feature, feature) for feature in features))

    def names(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The features that are made of columns."""
        known = self.categories or {}
        names = [
            name
            for column in columns
            for name in (self._features_of(column) if column in known else [column])
        ]
        if (twice := first_duplicate(names)) is not None:
            raise DataFileError(f"two features would have the name {twice!r}: rename the column")
        return tuple(names)

    def features(self, columns: TableColumns) -> Features:
        """The features that are made of columns."""
        assert self.categories is not None
        filled = columns.X
        if self.fill:
            numbers = np.array([self.fill.get(name, math.nan) for name in columns.names])
            filled = np.where(np.isnan(filled), numbers, filled)
        parts, unknown, start = [], {}, 0
        for j, name in enumerate(columns.names):
            if name not in self.categories:
                continue
            numbers_of_rows = columns.X[:, j].astype(np.intp)
            known = {text: k for k, text in enumerate(self.categories[name])}
            places = np.array([known.get(text, -1) for text in columns.texts[name]], dtype=np.intp)
            one_hot = places[numbers_of_rows][:, np.newaxis] == np.arange(len(known))
            parts += [filled[:, start:j], one_hot.astype(np.float64)]
            start = j + 1
            rows = np.bincount(numbers_of_rows, minlength=len(places)).tolist()
            others = {
                text: count
                for text, count in zip(columns.texts[name], rows, strict=True)
                if count and text not in known
            }
            if others:
                unknown[name] = others
        X = np.column_stack([*parts, filled[:, start:]]) if parts else filled
        return Features(self.names(columns.names), X, unknown)

    def _features_of(self, column: str) -> list[str]:
        assert self.categories is not None
        return [f"{column}={text}" for text in self.categories[column]]

    def facts(self) -> dict[str, str]:
        """What is done, in words: the name of each fact, and the fact."""
        facts = {}
        if self.impute is not None:
            what = f"the {self.impute} of the column" if isinstance(self.impute, str) else f"{self.impute:g}"
            facts["Missing values"] = f"filled in with {what}"
        for column, texts in (self.categories or {}).items():
            shown = [text or "(empty)" for text in texts[:20]] + ["…"] * (len(texts) > 20)
            facts[f"Categories of {column}"] = ", ".join(shown)
        return facts


def make_features(
    columns: TableColumns, preprocessing: Preprocessing | None, wanted: Sequence[str] | None = None
) -> Features:
    """The features of columns; or those `wanted`, in their order, nan where a column is not there."""
    made = (
        Features(columns.names, columns.X, {}) if preprocessing is None else preprocessing.features(columns)
    )
    if wanted is None or made.names == tuple(wanted):
        return made
    place = {name: j for j, name in enumerate(made.names)}
    X = np.full((len(made.X), len(wanted)), np.nan)
    there = [k for k, name in enumerate(wanted) if name in place]
    X[:, there] = made.X[:, [place[wanted[k]] for k in there]]
    return Features(tuple(wanted), X, made.unknown)


def unknown_categories(found: Iterable[Mapping[str, Mapping[str, int]]]) -> tuple[str, ...]:
    """A sentence for each column with values that are none of its categories, of all parts of the rows."""
    texts_of: dict[str, Counter[str]] = {}
    for unknown in found:
        for name, texts in unknown.items():
            texts_of.setdefault(name, Counter()).update(texts)
    return tuple(_unknown_texts(name, texts) for name, texts in texts_of.items())


def _unknown_texts(name: str, texts: Counter[str]) -> str:
    shown = ", ".join(repr(text) for text, _ in texts.most_common(5)) + (", …" if len(texts) > 5 else "")
    rows = f"{texts.total():,} row{'s have' if texts.total() > 1 else ' has'}"
    return (
        f"{rows} a category of {name!r} that the model was not trained with ({shown}): all features of "
        f"{name!r} are 0 there"
    )


def _is_finite(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def _check_number(name: str, texts: set[str]) -> None:
    if len(texts) > MOST_CATEGORIES:
        raise DataFileError(
            f"the column {name!r} has more than {MOST_CATEGORIES:,} different values, too many for "
            f"categories: leave it out with drop=[{name!r}] (--drop {name})"
        )
