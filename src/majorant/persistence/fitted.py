"""Fitted attributes in a model file, each under its own name.

Those that follow from others are not stored: `support_` from the zeros of `coef_`, `converged_` from
`status_`. A file cannot contradict itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.arrays import (
    array_node,
    coef_node,
    pairs_node,
    read_array,
    read_coef,
    read_pairs,
    read_table,
    table_node,
)
from majorant.persistence.parameters import Unavailable, parameter_node, read_parameter
from majorant.solvers import Solver
from majorant.status import History, Record, Status

# What a model cannot predict without; what there is besides, after a fit or a stream; what cross-validation
# leaves.
REQUIRED = ("classes_", "n_features_in_", "intercept_", "coef_")
NUMBERS = ("lam_", "objective_", "gap_", "lower_bound_", "stationarity_")
COUNTS = ("n_iter_", "t_")
OPTIONAL = ("feature_names_in_", *NUMBERS, *COUNTS, "status_", "solver_", "history_")
CV_NUMBERS = ("lam_best_", "lam_1se_", "best_score_")
CV = ("lambdas_", *CV_NUMBERS, "selection_frequency_", "cv_results_")

RECORD = [field.name for field in fields(Record)]
RECORD_INTEGERS = ("iteration", "nonzeros")
CV_INTEGERS = ("rank_test_score",)


def fitted_node(model: Any, required: tuple[str, ...]) -> dict[str, Any]:
    """All attributes that a model file holds, of those that the model has."""
    names = [*REQUIRED, *required, *(name for name in OPTIONAL if hasattr(model, name))]
    if model.n_features_in_ > strict.MAX_ENTRIES:
        raise ModelFileError(f"a model of {model.n_features_in_} features is too large for a file")
    return {name: _written(name, getattr(model, name)) for name in sorted(names, key=ORDER.index)}


# The order in a file: what is short, and read first, first.
ORDER = [
    "classes_", "n_features_in_", *NUMBERS, *CV_NUMBERS, *COUNTS, "status_", "solver_", "intercept_", "coef_",
    "feature_names_in_", "lambdas_", "selection_frequency_", "cv_results_", "history_",
]  # fmt: skip


def _written(name: str, value: Any) -> Any:
    if name in (*NUMBERS, *CV_NUMBERS):
        return strict.number_node(value)
    if name in (*COUNTS, "n_features_in_"):
        return int(value)
    return WRITERS[name](value)


def _history_node(history: Any) -> Any:
    if not isinstance(history, History):
        return [_history_node(one) for one in history]
    return table_node({name: history.column(name).tolist() for name in RECORD}, RECORD_INTEGERS)


def _results_node(results: Any) -> Any:
    return table_node({name: column.tolist() for name, column in results.items()}, CV_INTEGERS)


def _frequency_node(share: Any) -> Any:
    used = np.flatnonzero(share)
    return pairs_node(used, share[used])


WRITERS: dict[str, Callable[[Any], Any]] = {
    "classes_": lambda classes: array_node(classes, "classes_"),
    "intercept_": lambda intercept: array_node(intercept, "intercept_"),
    "coef_": coef_node,
    "feature_names_in_": lambda names: [str(name) for name in names],
    "status_": lambda status: status.name,
    "solver_": parameter_node,
    "history_": _history_node,
    "lambdas_": lambda lambdas: array_node(lambdas, "lambdas_"),
    "selection_frequency_": _frequency_node,
    "cv_results_": _results_node,
}


# Reading ---------------------------------------------------------------------------------------------------


def read_fitted(node: Any, required: tuple[str, ...]) -> dict[str, Any]:
    """The attributes, with those that follow from them."""
    where = "fitted"
    record = strict.keys(node, where, (*REQUIRED, *required), OPTIONAL)
    n_features = strict.integer(record["n_features_in_"], f"{where}.n_features_in_", 1, strict.MAX_ENTRIES)
    classes = _read_classes(record["classes_"], f"{where}.classes_")
    n_rows = 1 if len(classes) == 2 else len(classes)
    coef, support = read_coef(record["coef_"], f"{where}.coef_", n_rows, n_features)
    values = {
        "n_features_in_": n_features,
        "classes_": classes,
        "coef_": coef,
        "intercept_": _read_intercept(record["intercept_"], f"{where}.intercept_", n_rows),
        "support_": support,
    }
    for name in record.keys() - values.keys():
        values[name] = _read(name, record[name], f"{where}.{name}", n_features, n_rows)
    if "status_" in values:
        values["converged_"] = values["status_"].converged
    return values


def _read_classes(node: Any, where: str) -> NDArray[Any]:
    classes = read_array(node, where)
    labels = classes.tolist()
    if len(labels) < 2:
        raise ModelFileError(f"{where} must be two labels or more, got {len(labels)}")
    if not all(low < high for low, high in pairwise(labels)):
        raise ModelFileError(f"{where} must be in order, each label once")
    return classes


def _read_intercept(node: Any, where: str, n_rows: int) -> NDArray[Any]:
    intercept = read_array(node, where, n_rows)
    if intercept.dtype not in (np.float64, np.float32) or not np.isfinite(intercept).all():
        raise ModelFileError(f"{where} must be finite numbers, float64 or float32")
    return intercept


def _read(name: str, node: Any, where: str, n_features: int, n_rows: int) -> Any:
    if name in (*NUMBERS, *CV_NUMBERS):
        return strict.number(node, where)
    if name in COUNTS:
        return strict.integer(node, where)
    if name == "status_":
        return Status[strict.one_of(node, where, list(Status.__members__))]
    if name == "solver_":
        return _read_solver(node, where)
    if name == "feature_names_in_":
        names = strict.each(strict.text, strict.items(node, where, n_features), where)
        return np.array(names, dtype=object)
    if name == "history_":
        return _read_history(node, where, n_rows)
    if name == "selection_frequency_":
        indices, shares = read_pairs(node, where, n_features)
        frequency = np.zeros(n_features)
        frequency[indices] = shares
        return frequency
    if name == "lambdas_":
        return _read_lambdas(node, where)
    columns = read_table(node, where, CV_INTEGERS, _results_columns)
    return {name: np.array(column, _column_type(name)) for name, column in columns.items()}


def _read_solver(node: Any, where: str) -> Any:
    solver = read_parameter(node, where)
    if not isinstance(solver, Solver | Unavailable):
        raise ModelFileError(f"{where} must be a solver, got {strict.shown(solver)}")
    return solver


def _read_lambdas(node: Any, where: str) -> NDArray[Any]:
    lambdas = read_array(node, where)
    if lambdas.dtype != np.float64:
        raise ModelFileError(f"{where} must be float64 numbers")
    return lambdas


def _column_type(name: str) -> Any:
    return np.int64 if name in CV_INTEGERS else np.float64


def _results_columns(count: int) -> list[str]:
    splits = [f"split{k}_test_score" for k in range(count - 5)]
    return ["lam", *splits, "mean_test_score", "std_test_score", "rank_test_score", "mean_n_features"]


def _read_history(node: Any, where: str, n_rows: int) -> Any:
    """One trace, or one per problem."""
    if type(node) is list:
        traces = strict.items(node, where, n_rows)
        return [_read_trace(trace, f"{where}[{k}]") for k, trace in enumerate(traces)]
    return _read_trace(node, where)


def _read_trace(node: Any, where: str) -> History:
    columns = read_table(node, where, RECORD_INTEGERS, lambda count: RECORD)
    return History([Record(*row) for row in zip(*(columns[name] for name in RECORD), strict=True)])
