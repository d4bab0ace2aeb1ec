"""Fitted attributes in a model file, each under its own name, as `majorant.estimators.fitted` declares them.

Attributes that follow from others are not stored: `support_` follows from the zeros of `coef_`, `converged_`
from `status_`. So a file cannot contradict itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from majorant.datasets.preprocessing import STATISTICS, Preprocessing
from majorant.errors import ModelFileError
from majorant.estimators.calibration import METHODS, Calibration
from majorant.estimators.fitted import FITTED, Attribute
from majorant.persistence import strict
from majorant.persistence.arrays import (
    array_node,
    coef_node,
    float_array,
    pairs_node,
    read_array,
    read_coef,
    read_pairs,
    table,
)
from majorant.persistence.parameters import Unavailable, parameter_node, read_parameter
from majorant.persistence.strict import (
    BY_ANNOTATION,
    COUNT,
    FINITE,
    NUMBER,
    TEXT,
    Form,
    integer_between,
    list_of,
    mapping_of,
    record,
)
from majorant.solvers import Solver
from majorant.status import History, Record, Status

WHERE = "fitted"


class Size(NamedTuple):
    """The numbers from which the sizes of all attributes follow."""

    n_rows: int
    """Rows of `coef_`: one for two classes, else one per class."""
    n_features: int


def stored_attributes(*, cv: bool) -> list[Attribute]:
    """The attributes that a file may have, of `SparseSVCCV` or of `SparseSVC`."""
    return [attribute for attribute in FITTED.values() if attribute.form and cv >= attribute.cv]


def fitted_node(model: Any, *, cv: bool) -> dict[str, Any]:
    """The attributes of the model that a model file holds."""
    size = Size(len(model.intercept_), model.n_features_in_)
    if size.n_features > strict.MAX_ENTRIES:
        raise ModelFileError(f"a model of {size.n_features} features is too large for a file")
    return {
        attribute.name: _form(attribute, size).write(getattr(model, attribute.name))
        for attribute in stored_attributes(cv=cv)
        if (attribute.required and attribute.instead is None) or hasattr(model, attribute.name)
    }


def read_fitted(node: Any, *, cv: bool, version: int) -> dict[str, Any]:
    """The attributes in a file, and those that follow from them."""
    known = {one.name: one for one in stored_attributes(cv=cv) if one.since <= version}
    required = [
        name
        for name, attribute in known.items()
        if attribute.required and not (type(node) is dict and attribute.instead in node)
    ]
    nodes = strict.keys(node, WHERE, required, list(known))
    n_features = SIZE.read(nodes["n_features_in_"], f"{WHERE}.n_features_in_")
    classes = LABELS.read(nodes["classes_"], f"{WHERE}.classes_")
    size = Size(1 if len(classes) == 2 else len(classes), n_features)
    # `coef_` first, since its messages explain a wrong number of classes or features.
    values = {
        name: _form(known[name], size).read(nodes[name], f"{WHERE}.{name}")
        for name in sorted(nodes, key="coef_".__ne__)
    }
    for attribute in FITTED.values():
        if attribute.follows and attribute.follows[0] in values:
            source, rule = attribute.follows
            values[attribute.name] = rule(values[source])
    return values


def _form(attribute: Attribute, size: Size) -> Form:
    assert attribute.form is not None
    form = FORMS[attribute.form]
    return form if isinstance(form, Form) else form(size)


# Forms -----------------------------------------------------------------------------------------------------


def _read_labels(node: Any, where: str) -> NDArray[Any]:
    classes = read_array(node, where)
    labels = classes.tolist()
    if len(labels) < 2:
        raise ModelFileError(f"{where} must be two labels or more, got {len(labels)}")
    if not all(low < high for low, high in pairwise(labels)):
        raise ModelFileError(f"{where} must be in order, each label once")
    return classes


def _read_solver(node: Any, where: str) -> Any:
    solver = read_parameter(node, where)
    if not isinstance(solver, Solver | Unavailable):
        raise ModelFileError(f"{where} must be a solver, got {strict.shown(solver)}")
    return solver


def _coefficients(size: Size) -> Form:
    return Form(coef_node, lambda node, where: read_coef(node, where, *size))


def _names(size: Size) -> Form:
    return list_of(TEXT, size.n_features).converted(list, partial(np.array, dtype=object))


def _shares(size: Size) -> Form:
    """A number per feature, of which many are zero."""

    def write(shares: NDArray[Any]) -> Any:
        used = np.flatnonzero(shares)
        return pairs_node(used, shares[used])

    def read(node: Any, where: str) -> NDArray[np.float64]:
        indices, values = read_pairs(node, where, size.n_features)
        shares = np.zeros(size.n_features)
        shares[indices] = values
        return shares

    return Form(write, read)


def _scores_columns(first: str, count: int) -> dict[str, Form]:
    splits = [f"split{k}_test_score" for k in range(count - 5)]
    names = [first, *splits, "mean_test_score", "std_test_score", "rank_test_score", "mean_n_features"]
    return (
        dict.fromkeys(names, NUMBER) | {"rank_test_score": COUNT} | ({first: COUNT} if first != "lam" else {})
    )


def _score_arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    types: dict[str, Any] = {"rank_test_score": np.int64, "n_features": np.intp}
    return {name: np.array(column, types.get(name, np.float64)) for name, column in columns.items()}


STRENGTH_SCORES = table(partial(_scores_columns, "lam")).converted(dict, _score_arrays)
SIZE_SCORES = table(partial(_scores_columns, "n_features")).converted(dict, _score_arrays)


def _read_scores(node: Any, where: str) -> dict[str, NDArray[Any]]:
    columns = node.get("columns") if type(node) is dict else None
    by_size = type(columns) is list and columns[:1] == ["n_features"]
    scores: dict[str, NDArray[Any]] = (SIZE_SCORES if by_size else STRENGTH_SCORES).read(node, where)
    return scores


RECORD = {field.name: BY_ANNOTATION[str(field.type)] for field in fields(Record)}
TRACE = table(lambda count: RECORD).converted(
    lambda history: {name: history.column(name).tolist() for name in RECORD},
    lambda columns: History([Record(*row) for row in zip(*columns.values(), strict=True)]),
)


def _history(size: Size) -> Form:
    """One trace, or one per problem."""
    several = list_of(TRACE, size.n_rows)
    return Form(
        lambda history: (TRACE if isinstance(history, History) else several).write(history),
        lambda node, where: (several if type(node) is list else TRACE).read(node, where),
    )


CALIBRATION = {"method": TEXT, "folds": COUNT}


def _calibration(size: Size) -> Form:
    """The method, the number of folds, and a curve, a pair of lists, for each row of `coef_`."""
    numbers = list_of(FINITE)
    form = record(CALIBRATION | {"curves": list_of(list_of(numbers, 2), size.n_rows)})

    def write(calibration: Calibration) -> Any:
        return form.write(vars(calibration))

    def read(node: Any, where: str) -> Calibration:
        values = form.read(node, where)
        curves = [(np.array(first), np.array(second)) for first, second in values["curves"]]
        method = strict.one_of(values["method"], f"{where}.method", METHODS)
        for position, (first, second) in enumerate(curves):
            if len(first) != len(second) or not len(first) or (method == "sigmoid" and len(first) > 1):
                raise ModelFileError(f"{where}.curves[{position}] has lists of another length than {method}")
            steps = np.diff(first) > 0.0
            rates = np.diff(second, prepend=0.0, append=1.0) >= 0.0
            if method == "isotonic" and not (steps.all() and rates.all()):
                raise ModelFileError(f"{where}.curves[{position}] must rise, with probabilities from 0 to 1")
        return Calibration(method, values["folds"], curves)

    return Form(write, read)


PREPROCESSING = {"fill": mapping_of(FINITE), "categories": mapping_of(list_of(TEXT))}


def _preprocessing_node(preprocessing: Preprocessing) -> Any:
    return {"impute": preprocessing.impute} | {
        name: form.write(getattr(preprocessing, name)) for name, form in PREPROCESSING.items()
    }


def _read_preprocessing(node: Any, where: str) -> Preprocessing:
    node = strict.keys(node, where, ["impute", *PREPROCESSING])
    impute = node["impute"]
    if isinstance(impute, str):
        strict.one_of(impute, f"{where}.impute", list(STATISTICS))
    elif impute is not None:
        impute = strict.finite(impute, f"{where}.impute")
    fill, categories = (form.read(node[name], f"{where}.{name}") for name, form in PREPROCESSING.items())
    for name, texts in categories.items():
        if not all(low < high for low, high in pairwise(texts)):
            raise ModelFileError(f"{where}.categories.{strict.shown(name)} must be in order, each once")
    return Preprocessing(impute, tuple(categories), fill, categories)


LABELS = Form(partial(array_node, what="classes_"), _read_labels)
SIZE = integer_between(1, strict.MAX_ENTRIES)

FORMS: dict[str, Form | Callable[[Size], Form]] = {
    "labels": LABELS,
    "size": SIZE,
    "number": NUMBER,
    "count": COUNT,
    "status": Form(str, partial(strict.one_of, choices=list(Status.__members__))).converted(
        attrgetter("name"), Status.__getitem__
    ),
    "solver": Form(parameter_node, _read_solver),
    "intercept": lambda size: float_array("intercept_", size.n_rows, ("float64", "float32")),
    "calibration": _calibration,
    "preprocessing": Form(_preprocessing_node, _read_preprocessing),
    "coefficients": _coefficients,
    "names": _names,
    "strengths": float_array("lambdas_"),
    "deviations": lambda size: float_array("scale_", size.n_features),
    "shares": _shares,
    "scores": Form(
        lambda scores: (SIZE_SCORES if "n_features" in scores else STRENGTH_SCORES).write(scores),
        _read_scores,
    ),
    "sizes": list_of(COUNT).converted(lambda sizes: sizes.tolist(), partial(np.array, dtype=np.intp)),
    "history": _history,
}
