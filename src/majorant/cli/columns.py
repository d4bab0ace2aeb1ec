"""What is known of the columns of a table from training: other tables are read by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from majorant.cli.arguments import DataOptions

if TYPE_CHECKING:
    from majorant.datasets import Preprocessing


@dataclass(frozen=True)
class TrainedColumns:
    """The columns of the table that a model was trained on.

    Parameters
    ----------
    features : tuple of str
        The features that are needed, in order.
    label : str, optional
        The column of the labels.
    preprocessing : Preprocessing, optional
        How columns become features.
    unnamed_columns : int, optional
        How many columns there were, if they had no names.
    optional : frozenset of str
        Features that may be missing, in a row or as a column.
    """

    features: tuple[str, ...]
    label: str | None = None
    preprocessing: Preprocessing | None = None
    unnamed_columns: int | None = None
    optional: frozenset[str] = frozenset()

    def are_in(self, source: str, options: DataOptions) -> bool:
        """Whether the columns of a file have names to find them by."""
        from majorant.datasets.formats import FORMATS, format_by_name

        is_table = FORMATS[options.format or format_by_name(source)].table
        return is_table and (self.unnamed_columns is not None or not options.no_header)

    def reading(self, options: DataOptions) -> DataOptions:
        """How a file with these columns is read: without a header, if it was so in training."""
        return replace(options, no_header=options.no_header or self.unnamed_columns is not None)

    @property
    def reader_options(self) -> dict[str, Any]:
        """The options of readers that follow from training."""
        known = {
            "columns": self.features,
            "preprocessing": self.preprocessing,
            "unnamed_columns": self.unnamed_columns,
            "optional": self.optional,
        }
        return known if self.label is None or self.label in self.features else known | {"label": self.label}

    def needed(self, features: tuple[str, ...]) -> Self:
        """The same where only some features are needed, and the others may be missing."""
        return replace(self, optional=frozenset(self.features) - set(features))
