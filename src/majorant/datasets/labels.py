"""Labels: integers where all of them are, else floats or strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.errors import DataFileError
from majorant.text import DECIMAL, INTEGER

__all__ = ["labels_from_array", "labels_from_text"]

# "01" is a code, of a district or a product, and not the number 1.
_CODE = re.compile(r"[+-]?0[0-9]")
# Up to here float64 tells every integer from its neighbours.
_LARGEST = 2.0**53 - 1.0
_LONGEST = 1000


def labels_from_array(
    labels: NDArray[Any], path: str | None = None, column: str | None = None
) -> NDArray[Any]:
    """Labels as `Data` has them. The path and the column that they come from are for errors."""
    where = "" if column is None else f"the column {column!r}: "
    kind = labels.dtype.kind
    if kind in "biu":
        if kind == "u" and labels.size and labels.max() > np.iinfo(np.int64).max:
            raise DataFileError(f"{where}integers beyond 2^63 cannot be labels", path)
        return labels.astype(np.int64)
    if kind == "f":
        if not np.all(np.isfinite(labels)):
            raise DataFileError(f"{where}a label is missing (NaN) or infinite", path)
        whole = np.all(labels == np.floor(labels)) and np.all(np.abs(labels) <= _LARGEST)
        return labels.astype(np.int64 if whole else np.float64)
    if kind == "U":
        return labels
    raise DataFileError(f"{where}labels must be numbers or text, not {labels.dtype}", path)


def labels_from_text(labels: Sequence[str], path: str) -> NDArray[Any]:
    """Labels of a table: numbers if every one of them is one, else text, as "01" beside "1" is."""
    distinct = {label: position for position, label in enumerate(dict.fromkeys(labels))}
    longest = max(distinct, key=len)
    if len(longest) > _LONGEST:
        raise DataFileError(
            f"the label {longest[:30]!r}… is too long for a label: is this the right column?", path
        )
    values: NDArray[Any]
    codes = any(_CODE.match(label) for label in distinct)
    if not codes and all(INTEGER.fullmatch(label) for label in distinct):
        values = np.array([int(label) for label in distinct], dtype=np.int64)
    elif not codes and all(DECIMAL.fullmatch(label) and abs(float(label)) <= _LARGEST for label in distinct):
        values = labels_from_array(np.array([float(label) for label in distinct]))
    else:
        values = np.array(list(distinct))
    return values[np.fromiter((distinct[label] for label in labels), dtype=np.intp, count=len(labels))]
