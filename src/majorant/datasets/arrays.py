"""Arrays with names: .npz of numpy or of scipy.sparse, and MATLAB's .mat up to version 7.

Nothing is unpickled.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_array
from majorant.datasets.mat_files import Other, load_mat
from majorant.datasets.wanted import Found, Wanted, reason
from majorant.errors import DataFileError
from majorant.rows.sparse import corruption

__all__ = ["read_mat", "read_npz"]

MATRIX_NAMES = ("X", "A", "data", "features")
LABEL_NAMES = ("y", "b", "label", "labels", "target")


def read_npz(content: Content, wanted: Wanted) -> Found:
    """A matrix X and labels y, or what `scipy.sparse.save_npz` wrote (y may stand beside it)."""
    return _read(content, wanted, "npz", _load_npz)


def read_mat(content: Content, wanted: Wanted) -> Found:
    """A matrix and labels of a MATLAB file."""
    return _read(content, wanted, "mat", _load_mat)


def _read(content: Content, wanted: Wanted, kind: str, load: Callable[[bytes], Mapping[str, Any]]) -> Found:
    path = content.path
    if wanted.drop:
        raise DataFileError("the columns of an array have no names: drop is for tables", path)
    data = content.readall()
    try:
        arrays = load(data)
        X, y = _choose(arrays, wanted)
        X = _matrix(X)
        if y is not None and wanted.labelled is not False:
            return Found(X, _labels(y, X.shape[0]), None)
        return Found(X, None, None)
    except _UnsuitableError as error:
        raise DataFileError(str(error), path) from None
    except Exception as error:  # what the libraries raise for a damaged file has many names
        raise DataFileError(f"not a readable .{kind} file ({reason(error)})", path) from error


class _UnsuitableError(ValueError):
    """A sentence for the user about a file that is not damaged."""


def _load_npz(data: bytes) -> Mapping[str, Any]:
    import scipy.sparse as sp

    if data.startswith(b"\x93NUMPY"):
        raise _UnsuitableError(
            "one array without a name: save the matrix as X and the labels as y, by numpy.savez"
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if {"format", "shape"} <= set(file.files):
            parts = {"X": sp.load_npz(io.BytesIO(data))}
            return parts | {name: file[name] for name in file.files if name in LABEL_NAMES}
        return {name: file[name] for name in file.files}


def _load_mat(data: bytes) -> Mapping[str, Any]:
    if b"HDF" in data[:8] or b"HDF" in data[512:520]:
        raise _UnsuitableError("a MATLAB file of version 7.3: save it again with save(..., '-v7')")
    return load_mat(data)


def _choose(arrays: Mapping[str, Any], wanted: Wanted) -> tuple[Any, Any]:
    """The matrix, and the labels if there are any."""
    there = ", ".join(f"{name} {_shape(array)}" for name, array in arrays.items()) or "nothing"
    matrices = [name for name in arrays if name in MATRIX_NAMES]
    if len(matrices) != 1:
        problem = "no matrix" if not matrices else "more than one matrix"
        raise _UnsuitableError(
            f"{problem} with one of the names {', '.join(MATRIX_NAMES)}; in the file is {there}"
        )
    if wanted.label is not None:
        labels = [name for name in arrays if name == wanted.label and name != matrices[0]]
    else:
        labels = [name for name in arrays if name in LABEL_NAMES]
    if len(labels) > 1 or (wanted.labelled and not labels):
        problem = "no labels" if not labels else "more than one array that may be the labels"
        names = wanted.label or ", ".join(LABEL_NAMES)
        raise _UnsuitableError(
            f"{problem} (names: {names}): say which with label= (--label); in the file is {there}"
        )
    return arrays[matrices[0]], arrays[labels[0]] if labels else None


def _shape(array: Any) -> str:
    return " × ".join(map(str, getattr(array, "shape", ()))) or "(one value)"


def _matrix(X: Any) -> Any:
    """A float64 matrix, dense or CSR, of finite numbers."""
    import scipy.sparse as sp

    _check_array(X, "matrix")
    if X.dtype.kind not in "biuf":
        raise _UnsuitableError(f"the matrix must have numbers, not {X.dtype}")
    if X.ndim != 2 or 0 in X.shape:
        raise _UnsuitableError(f"the matrix has the shape {X.shape}: it needs rows and columns")
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=np.float64)
        _check_finite(X)
        return X
    X = sp.csr_array(X.astype(np.float64))
    X.sum_duplicates()
    _check_finite(X.data)
    kind = np.int32 if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max else np.int64
    X.indices, X.indptr = X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False)
    return X


def _labels(y: Any, rows: int) -> NDArray[Any]:
    import scipy.sparse as sp

    _check_array(y, "labels")
    y = (y.toarray() if sp.issparse(y) else y).ravel()
    if len(y) != rows:
        raise _UnsuitableError(f"{rows} rows and {len(y)} labels")
    try:
        return labels_from_array(y)
    except ValueError as error:
        raise _UnsuitableError(str(error)) from None


def _check_array(array: Any, role: str) -> None:
    import scipy.sparse as sp

    if not (isinstance(array, np.ndarray) or sp.issparse(array)):
        found = array.kind if isinstance(array, Other) else "something else"
        raise _UnsuitableError(f"the {role} must be an array of numbers, and is a {found}")
    if sp.issparse(array) and (wrong := corruption(array)):
        raise ValueError(f"the {role}: {wrong}")


def _check_finite(values: NDArray[np.float64]) -> None:
    if not np.all(np.isfinite(values)):
        raise _UnsuitableError("the matrix has missing (NaN) or infinite values: replace them first")
