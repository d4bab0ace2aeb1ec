"""Arrays in a model file: labels with their exact type, coefficients by their non-zeros, tables by rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.strict import Form

# Types of labels and parameters; "<" or ">" marks a byte order that is not native.
DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|object|[<>][iuf][248]|[<>]?U[1-9][0-9]{0,5}")
# The reader of an entry, by the kind of the array.
READERS: dict[str, Callable[..., Any]] = {
    "b": strict.boolean,
    "i": lambda node, where: strict.integer(node, where, -(2**63), 2**63 - 1),
    "u": lambda node, where: strict.integer(node, where, 0, 2**64 - 1),
    "f": strict.number,
    "U": strict.text,
    "O": strict.text,
}


def array_node(array: NDArray[Any], what: str) -> dict[str, Any]:
    """A one-dimensional array of numbers, truth values or strings, with its type."""
    values = array.tolist()
    kind = array.dtype.kind
    name = _dtype_name(array.dtype)
    plain = kind != "O" or all(isinstance(value, str) for value in values)
    plain = plain and array.nbytes <= strict.MAX_ARRAY_BYTES
    if array.ndim != 1 or kind not in READERS or not plain or not DTYPE.fullmatch(name):
        raise ModelFileError(f"{what} of type {array.dtype} and shape {array.shape} cannot be kept in a file")
    if kind == "f":
        values = [strict.number_node(value) for value in values]
    return {"dtype": name, "values": values}


def read_array(node: Any, where: str, length: int | None = None) -> NDArray[Any]:
    """The array that `array_node` wrote."""
    node = strict.keys(node, where, ["dtype", "values"])
    name = strict.text(node["dtype"], f"{where}.dtype")
    if not DTYPE.fullmatch(name):
        raise ModelFileError(f"{where}.dtype {strict.shown(name)} is unknown")
    dtype = np.dtype(name)
    nodes = strict.items(node["values"], f"{where}.values", length)
    values = strict.each(READERS[dtype.kind], nodes, f"{where}.values")
    if dtype.itemsize * len(values) > strict.MAX_ARRAY_BYTES:
        raise ModelFileError(f"{where}.dtype {name} is too wide")
    array = _exact(values, dtype)
    if array is None:
        raise ModelFileError(f"{where} has values that are not of its type {name}")
    return array


def float_array(what: str, length: int | None = None, dtypes: Sequence[str] = ("float64",)) -> Form:
    """An array of finite floating-point numbers."""

    def read(node: Any, where: str) -> NDArray[Any]:
        array = read_array(node, where, length)
        if array.dtype not in dtypes or not np.isfinite(array).all():
            raise ModelFileError(f"{where} must be finite {' or '.join(dtypes)} numbers")
        return array

    return Form(lambda array: array_node(array, what), read)


def _exact(values: list[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """The array, if the type holds all values exactly; None if one is out of range, cut off or rounded."""
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, dtype=dtype)
    except (OverflowError, ValueError):
        return None
    same = all(a == b or a != a for a, b in zip(array.tolist(), values, strict=True))
    return array if same else None


def _dtype_name(dtype: np.dtype[Any]) -> str:
    if not dtype.isnative:
        return dtype.str
    return dtype.str.lstrip("<>") if dtype.kind == "U" else dtype.name


# Coefficients ----------------------------------------------------------------------------------------------


def pairs_node(indices: NDArray[Any], values: NDArray[Any]) -> list[list[Any]]:
    """[index, value] for every entry that is not zero."""
    return [list(pair) for pair in zip(indices.tolist(), values.astype(np.float64).tolist(), strict=True)]


def read_pairs(node: Any, where: str, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The indices and values that `pairs_node` wrote: increasing, below the size, and finite."""
    nodes = strict.items(node, where)
    if len(nodes) > size:
        raise ModelFileError(f"{where} has {len(nodes)} entries of {size}")
    indices, values, last = [], [], -1
    for position, pair in enumerate(nodes):
        if type(pair) is not list or len(pair) != 2:
            raise ModelFileError(f"{where}[{position}] must be [index, value], got {strict.shown(pair)}")
        index, value = pair
        if type(index) is not int or not last < index < size:
            raise ModelFileError(
                f"{where}[{position}] must have an index above {last} and below {size}, got "
                f"{strict.shown(index)}"
            )
        # A call of `finite` for each of a million numbers would take too long.
        values.append(value if type(value) is float else strict.finite(value, f"{where}[{position}]"))
        indices.append(index)
        last = index
    return np.array(indices, dtype=np.int64), np.array(values, dtype=np.float64)


def coef_node(coef: Any) -> dict[str, Any]:
    """The type of the coefficients, whether they are sparse, and a row of pairs for each class."""
    dtype = np.dtype(coef.dtype)
    if dtype.name not in ("float64", "float32"):
        raise ModelFileError(f"coef_ must be float64 or float32, got {dtype}")
    sparse = sp.issparse(coef)
    if sparse:
        coef = sp.csr_matrix(coef)
        coef = coef if coef.has_canonical_format else coef.copy()
        coef.sum_duplicates()
        rows = [
            (coef.indices[begin:end], coef.data[begin:end])
            for begin, end in zip(coef.indptr[:-1], coef.indptr[1:], strict=True)
        ]
    else:
        if coef.size > strict.MAX_ENTRIES:
            raise ModelFileError("coef_ is too large for a file: call sparsify() first")
        # Negative zeros are kept, so that the loaded bits are the same.
        rows = [(kept := np.flatnonzero((row != 0.0) | np.signbit(row)), row[kept]) for row in coef]
    if not all(np.isfinite(values).all() for _, values in rows):
        raise ModelFileError("coef_ has values that are not finite")
    return {"dtype": dtype.name, "sparse": sparse, "rows": [pairs_node(*row) for row in rows]}


def read_coef(node: Any, where: str, n_rows: int, n_features: int) -> Any:
    """The coefficients that `coef_node` wrote."""
    node = strict.keys(node, where, ["dtype", "sparse", "rows"])
    dtype = np.dtype(strict.one_of(node["dtype"], f"{where}.dtype", ["float64", "float32"]))
    sparse = strict.boolean(node["sparse"], f"{where}.sparse")
    nodes = strict.items(node["rows"], f"{where}.rows", n_rows)
    rows = [read_pairs(row, f"{where}.rows[{k}]", n_features) for k, row in enumerate(nodes)]
    values = np.concatenate([values for _, values in rows])
    with np.errstate(over="ignore"):
        data = values.astype(dtype)
    if not np.array_equal(data, values):
        raise ModelFileError(f"{where} has values that are not {dtype.name}")
    indices = np.concatenate([indices for indices, _ in rows])
    pointers = np.cumsum([0, *(len(row) for row, _ in rows)])
    if sparse:
        small = (data, indices.astype(np.int32), pointers.astype(np.int32))
        return sp.csr_matrix(small, shape=(n_rows, n_features))
    if n_rows * n_features > strict.MAX_ENTRIES:
        raise ModelFileError(f"{where} would have {n_rows} × {n_features} entries")
    coef = np.zeros((n_rows, n_features), dtype=dtype)
    coef[np.repeat(np.arange(n_rows), np.diff(pointers)), indices] = data
    return coef


# Tables ----------------------------------------------------------------------------------------------------


def table(forms_of: Callable[[int], Mapping[str, Form]]) -> Form:
    """The form of a dict of columns of numbers, which is written row by row.

    `forms_of` maps the number of columns to their names and forms.
    """

    def write(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        forms = forms_of(len(columns))
        converted = [[form.write(value) for value in columns[name]] for name, form in forms.items()]
        return {"columns": list(forms), "rows": [list(row) for row in zip(*converted, strict=True)]}

    def read(node: Any, where: str) -> dict[str, list[Any]]:
        node = strict.keys(node, where, ["columns", "rows"])
        columns = strict.items(node["columns"], f"{where}.columns")
        forms = forms_of(len(columns))
        if columns != list(forms):
            raise ModelFileError(f"{where}.columns are not {', '.join(forms)}")
        rows = []
        for position, row in enumerate(strict.items(node["rows"], f"{where}.rows")):
            place = f"{where}.rows[{position}]"
            entries = strict.items(row, place, len(columns))
            rows.append(
                [form.read(entry, place) for form, entry in zip(forms.values(), entries, strict=True)]
            )
        return {name: [row[k] for row in rows] for k, name in enumerate(columns)}

    return Form(write, read)
