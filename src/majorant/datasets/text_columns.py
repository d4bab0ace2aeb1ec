"""One column of a table as text: names of rows, which are neither features nor labels."""

from __future__ import annotations

import os

from majorant.datasets.arrow_tables import read_table
from majorant.datasets.content import Content
from majorant.datasets.formats import FORMATS, checked_format, format_by_name
from majorant.datasets.options import find_column
from majorant.datasets.text_tables import read_records
from majorant.errors import DataFileError

__all__ = ["read_column"]


def read_column(
    source: str | os.PathLike[str], column: str | int, *, format: str | None = None, header: bool = True
) -> list[str]:
    """The texts of one column of a table, a text for each row that `read` returns.

    Parameters
    ----------
    source : path
        A CSV, TSV, Parquet or Arrow file.
    column : str or int
        By name or number (from 0; -1 is the last).
    format, header
        As in `read`.
    """
    kind = checked_format(format) or format_by_name(source)
    with Content(source) as content:
        if not FORMATS[kind].table:
            raise DataFileError(
                f"there is no column {column!r}: columns of {kind} have no names", content.path
            )
        if kind in ("parquet", "arrow"):
            table = read_table(content, kind)
            values = table.column(find_column(table.column_names, column, content.path)).to_pylist()
            return ["" if value is None else str(value) for value in values]
        names, rows = read_records(content, header, FORMATS[kind].reader[-1])
        j = find_column(names, column, content.path)
        return [row[j].strip() for row in rows]
