"""What every reader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Data:
    """A table of features, its labels if it has any, and where it came from."""

    X: Any
    """A float64 array or `scipy.sparse.csr_array` (n_rows, n_features)."""
    y: NDArray[Any] | None
    """Labels: integers where all of them are, else floats or strings; None if the file has none."""
    feature_names: tuple[str, ...] | None
    """The names of the columns, where the file has names."""
    source: str
    """The file or name that was read, as the user gave it."""
    sha256: str
    """Of the content, uncompressed."""
    label: str | None = None
    """The name of the column that the labels come from, where it has a name."""
