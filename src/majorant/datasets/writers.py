"""LIBSVM text, written so that reading it gives the same bits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from majorant.datasets.content import COMPRESSIONS
from majorant.errors import MajorantError
from majorant.files import atomic_write

__all__ = ["write_libsvm"]

_ROWS_AT_ONCE = 1000


def write_libsvm(path: str | os.PathLike[str], X: Any, y: ArrayLike, *, overwrite: bool = True) -> None:
    r"""Write rows and labels as LIBSVM text; `read` returns the same bits.

    Numbers have as many digits as it takes to tell them from all other float64 numbers. Sparse entries that
    are zero are written, zeros of a dense array are not. The file does not say how many features there are:
    `read(path, features=X.shape[1])` does not depend on whether the last ones occur.

    Parameters
    ----------
    path : path
        Where to; compressed if the name ends with .gz, .bz2 or .xz.
    X : array or sparse matrix (n_rows, n_features)
        Finite numbers.
    y : array (n_rows,)
        Labels, which must be numbers.
    overwrite : bool, default=True
        Whether a file that is there already may be replaced; it is replaced whole or not at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "two.txt"
    ...     write_libsvm(path, [[0.1, 0.0], [1.0, 2.5]], [1, -1])
    ...     path.read_text()
    '1 1:0.1\n-1 1:1 2:2.5\n'
    """
    X, y = _entries(X), _numeric_labels(y)
    if X.shape[0] != len(y) or not len(y):
        raise MajorantError(f"{X.shape[0]} rows and {len(y)} labels: there must be as many, and at least one")
    compress = COMPRESSIONS.get(PurePath(path).suffix.lower())
    with (
        atomic_write(path, overwrite=overwrite) as file,
        compress(file, "wb") if compress else nullcontext(file) as stream,
    ):
        stream.writelines(_texts(X, y))


def _entries(X: Any) -> Any:
    """CSR with sorted indices, each once; of a dense array, all that is not +0."""
    import scipy.sparse as sp

    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
    else:
        dense = np.asarray(X, dtype=np.float64)
        if dense.ndim != 2:
            raise MajorantError(f"X must have rows and columns, not the shape {dense.shape}")
        rows, columns = np.nonzero((dense != 0.0) | np.signbit(dense))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
        X = sp.csr_array((dense[rows, columns], columns, starts), shape=dense.shape)
    if not np.all(np.isfinite(X.data)):
        raise MajorantError("X has missing (NaN) or infinite values, which LIBSVM text does not have")
    return X


def _numeric_labels(y: ArrayLike) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        raise MajorantError(
            f"y must be a number per row, not {labels.dtype} of shape {labels.shape}: number the classes"
        )
    labels = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
    if not np.all(np.isfinite(labels)) or np.any(np.abs(labels.astype(np.float64)) >= 2.0**53):
        raise MajorantError("y has labels that are not finite or beyond 2^53")
    return labels


def _texts(X: Any, y: NDArray[Any]) -> Iterator[bytes]:
    """The lines, many at a time."""
    for first in range(0, len(y), _ROWS_AT_ONCE):
        stops = X.indptr[first : first + _ROWS_AT_ONCE + 1].tolist()
        begin, end = stops[0], stops[-1]
        pairs = [
            f" {column + 1}:{_shortest(value)}"
            for column, value in zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True)
        ]
        labels = [_shortest(label) for label in y[first : first + _ROWS_AT_ONCE].tolist()]
        lines = [
            f"{label}{''.join(pairs[start - begin : stop - begin])}\n"
            for label, start, stop in zip(labels, stops[:-1], stops[1:], strict=True)
        ]
        yield "".join(lines).encode()


def _shortest(number: float) -> str:
    return repr(number).removesuffix(".0")
