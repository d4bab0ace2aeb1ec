"""Arrays with names: .npz of numpy or of scipy.sparse, and MATLAB's .mat up to version 7.

Nothing is unpickled.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.labels import labels_from_array
from majorant.datasets.mat_files import Other, load_mat
from majorant.datasets.options import ReadOptions, ReadResult, reason, refuse_preprocessing
from majorant.errors import DataFileError
from majorant.rows.sparse import corruption

__all__ = ["read_arrays"]

MATRIX_NAMES = ("X", "A", "data", "features")
PYTHON_OBJECTS = "array of Python objects"
AGAIN = {"matrix": "X.astype(float)", "labels": "y.astype(str)"}
LABEL_NAMES = ("y", "b", "label", "labels", "target")


def read_arrays(content: Content, options: ReadOptions, kind: str) -> ReadResult:
    """A matrix X and labels y, or what `scipy.sparse.save_npz` wrote (y may stand beside it)."""
    if options.drop:
        raise DataFileError("the columns of an array have no names: drop is for tables", content.path)
    refuse_preprocessing(options, content.path)
    data = content.readall()
    try:
        X, y = _choose((_load_npz if kind == "npz" else _load_mat)(data), options)
        X = _matrix(X)
        if y is None or options.labelled is False:
            return ReadResult(X, None)
        return ReadResult(X, _labels(y, X.shape[0]))
    except DataFileError as error:
        raise DataFileError(str(error), content.path) from None
    except Exception as error:  # what the libraries raise for a damaged file has many names
        raise DataFileError(f"not a readable .{kind} file ({reason(error)})", content.path) from error


def _load_npz(data: bytes) -> Mapping[str, Any]:
    import scipy.sparse as sp

    if data.startswith(b"\x93NUMPY"):
        raise DataFileError(
            "one array without a name: save the matrix as X and the labels as y, by numpy.savez"
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if {"format", "shape"} <= set(file.files):
            parts = {"X": sp.load_npz(io.BytesIO(data))}
            return parts | {name: _array(file, name) for name in file.files if name in LABEL_NAMES}
        return {name: _array(file, name) for name in file.files}


def _array(file: Any, name: str) -> Any:
    """An array of an .npz file, unless it holds objects, which only pickle could bring back."""
    if f"{name}.npy" in file.zip.namelist():
        with file.zip.open(f"{name}.npy") as head:
            shape, _, dtype = read_npy_header(head)
        if dtype.hasobject:
            return Other(PYTHON_OBJECTS, shape)
    return file[name]


def read_npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, the order (by columns or by rows) and the type of an array in an .npy file."""
    kind = np.lib.format
    first_version = kind.read_magic(file) == (1, 0)
    read = kind.read_array_header_1_0 if first_version else kind.read_array_header_2_0
    return read(file)


def _load_mat(data: bytes) -> Mapping[str, Any]:
    if b"HDF" in data[:8] or b"HDF" in data[512:520]:
        raise DataFileError("a MATLAB file of version 7.3: save it again with save(..., '-v7')")
    return load_mat(data)


def _choose(arrays: Mapping[str, Any], options: ReadOptions) -> tuple[Any, Any]:
    """The matrix, and the labels if there are any."""
    there = ", ".join(f"{name} {_shape(array)}" for name, array in arrays.items()) or "nothing"
    matrices = [name for name in arrays if name in MATRIX_NAMES]
    if len(matrices) != 1:
        problem = "no matrix" if not matrices else "more than one matrix"
        raise DataFileError(
            f"{problem} with one of the names {', '.join(MATRIX_NAMES)}; in the file is {there}"
        )
    if options.label is not None:
        labels = [name for name in arrays if name == options.label and name != matrices[0]]
    else:
        labels = [name for name in arrays if name in LABEL_NAMES]
    if len(labels) > 1 or (options.labelled and not labels):
        problem = "no labels" if not labels else "more than one array that may be the labels"
        names = options.label or ", ".join(LABEL_NAMES)
        raise DataFileError(
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
        raise DataFileError(f"the matrix must have numbers, not {X.dtype}")
    if X.ndim != 2 or 0 in X.shape:
        raise DataFileError(f"the matrix has the shape {X.shape}: it needs rows and columns")
    if sp.issparse(X):
        X = sp.csr_array(X.astype(np.float64))
        X.sum_duplicates()
        kind = np.int32 if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max else np.int64
        X.indices, X.indptr = X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False)
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
    if not np.all(np.isfinite(X.data if sp.issparse(X) else X)):
        raise DataFileError("the matrix has missing (NaN) or infinite values: replace them first")
    return X


def _labels(y: Any, rows: int) -> NDArray[Any]:
    import scipy.sparse as sp

    _check_array(y, "labels")
    y = (y.toarray() if sp.issparse(y) else y).ravel()
    if len(y) != rows:
        raise DataFileError(f"{rows} rows and {len(y)} labels")
    return labels_from_array(y)


def _check_array(array: Any, role: str) -> None:
    import scipy.sparse as sp

    if not (isinstance(array, np.ndarray) or sp.issparse(array)):
        found = array.kind if isinstance(array, Other) else "something else"
        if found == PYTHON_OBJECTS:
            raise DataFileError(
                f"the {role} must not be an {found}, which are not unpickled: save it again after "
                f"{AGAIN[role]}"
            )
        raise DataFileError(f"the {role} must be an array of numbers, and is a {found}")
    if sp.issparse(array) and (wrong := corruption(array)):
        raise ValueError(f"the {role}: {wrong}")
