"""Models in LIBLINEAR's text format, which its programs and its libraries in many languages read.

    solver_type L1R_L2LOSS_SVC      how it was trained
    nr_class 2
    label 1 -1                      of two classes, the first is that of positive decisions
    nr_feature 3
    bias 1                          the value of one more feature, whose weights come last; negative: none
    w                               a row per feature, a column per class (one, if there are two)
    0.25
    …

LIBLINEAR predicts the second label for a decision of exactly zero, and the first of several equal largest
decisions. So does majorant with `classes_` reversed (two classes) or as they are: writing keeps every
prediction. A file may have its labels in another order, but `classes_` are always sorted, since
scikit-learn's metrics rely on it. This would change ties, and there are many: every row without a feature
that the model uses, if there is no bias, or several classes have the same. So if intercepts are equal, those
that LIBLINEAR prefers are increased by the smallest possible step.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from majorant.errors import ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.from_coef import imported_classifier
from majorant.files import atomic_write
from majorant.persistence.store import LIBLINEAR_HEAD, naming, read_limited, refuse_preprocessing
from majorant.persistence.strict import shown
from majorant.status import Matrix, Vector
from majorant.text import DECIMAL, INTEGER

# LIBLINEAR's classifiers, with the most similar penalty.
PENALTIES = {
    "L1R_L2LOSS_SVC": "l1",
    "L2R_L2LOSS_SVC": "l2",
    "L2R_L2LOSS_SVC_DUAL": "l2",
    "L2R_L1LOSS_SVC_DUAL": "l2",
    "MCSVM_CS": "l2",
    "L2R_LR": "l2",
    "L2R_LR_DUAL": "l2",
    "L1R_LR": "l1",
}
WITHOUT_ZEROS = ("l2", "none")
HEADER = ("solver_type", "nr_class", "label", "nr_feature", "bias")
TINY = float(np.finfo(np.float64).tiny)
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def to_liblinear(
    model: SparseSVC | SparseSVCCV,
    path: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = True,
) -> str:
    """The model as the text of a LIBLINEAR model file, which predicts the same.

    Parameters
    ----------
    model : SparseSVC or SparseSVCCV
        Fitted, with labels that are integers (LIBLINEAR knows no others).
    path : path, optional
        A file to write the text to.
    overwrite : bool, default=True
        Whether an existing file may be replaced.

    Returns
    -------
    str
    """
    check_is_fitted(model)
    refuse_preprocessing(model, "LIBLINEAR's text")
    labels = _integer_labels(model.classes_)
    coef = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    weights = coef.astype(np.float64).T
    if model.intercept_.any():
        weights = np.vstack([weights, model.intercept_.astype(np.float64)])
    if not np.isfinite(weights).all():
        raise ModelFileError("coef_ or intercept_ has values that are not finite")
    penalty = model.penalty if isinstance(model.penalty, str) else getattr(model.penalty, "name", "")
    lines = [
        f"solver_type {'L2R_L2LOSS_SVC' if penalty in WITHOUT_ZEROS else 'L1R_L2LOSS_SVC'}",
        f"nr_class {len(labels)}",
        f"label {' '.join(map(str, labels[::-1] if len(labels) == 2 else labels))}",
        f"nr_feature {coef.shape[1]}",
        f"bias {1 if model.intercept_.any() else -1}",
        "w",
        *(" ".join(f"{weight:.17g}" for weight in row) + " " for row in weights.tolist()),
    ]
    text = "\n".join(lines) + "\n"
    if path is not None:
        with atomic_write(path, overwrite=overwrite) as file:
            file.write(text.encode("ascii"))
    return text


def _integer_labels(classes: NDArray[Any]) -> list[int]:
    labels = classes.tolist()
    for label in labels:
        whole = isinstance(label, int | float) and not isinstance(label, bool) and float(label).is_integer()
        if not whole or not INT_MIN <= label <= INT_MAX:
            raise ModelFileError(
                f"LIBLINEAR's labels are integers of 32 bits, and this model has the label {shown(label)}: "
                "train it on numbers, e.g. by sklearn.preprocessing.LabelEncoder, or let `majorant convert` "
                "number its classes"
            )
    return [int(label) for label in labels]


def from_liblinear(source: str | os.PathLike[str]) -> SparseSVC:
    """The classifier of a LIBLINEAR model file, as a fitted `SparseSVC` that predicts the same.

    Parameters
    ----------
    source : path or str
        A file, or its text (a string with a line break in it).

    Returns
    -------
    SparseSVC
        With `penalty` "l1" or "l2" by the solver type, and `fit_intercept` by the bias. The file contains
        neither the strength (`lam_` is nan) nor a measure of convergence. LIBLINEAR's other classifiers
        (logistic regression, …) can be read as well: `predict` is theirs, `fit` would train a `SparseSVC`.
    """
    if isinstance(source, str) and "\n" in source:
        with naming("the LIBLINEAR model"):
            return _parse(source)
    with naming(source):
        return model_from_bytes(read_limited(source))


def model_from_bytes(data: bytes) -> SparseSVC:
    """The model of the content of a file."""
    try:
        return _parse(data.decode("ascii"))
    except UnicodeDecodeError:
        raise ModelFileError("it is not a LIBLINEAR model, which is plain text") from None


def _parse(text: str) -> SparseSVC:
    head, mark, body = text.partition("\nw\n")
    if not text.startswith(LIBLINEAR_HEAD.decode()) or not mark:
        raise ModelFileError("it is not a LIBLINEAR model, which begins with solver_type and has a line w")
    header = _header(head)
    solver_type = header["solver_type"]
    if solver_type not in PENALTIES:
        raise ModelFileError(
            f"a model of the type {shown(solver_type)} is no classifier that majorant knows: it reads "
            f"{', '.join(PENALTIES)}"
        )
    n_classes, n_features = (_integer(header[key], key) for key in ("nr_class", "nr_feature"))
    labels = [_integer(label, "label") for label in header["label"].split()]
    bias = _number(header["bias"])
    if n_classes < 2 or len(labels) != n_classes or len(set(labels)) < n_classes:
        raise ModelFileError(f"it must have two different labels or more, as many as nr_class {n_classes}")
    if n_classes == 2 and solver_type == "MCSVM_CS":
        raise ModelFileError(
            "it is of MCSVM_CS with two classes, whose decisions are not those of one vector"
        )
    if n_features < 1:
        raise ModelFileError("it has no features")
    columns = 1 if n_classes == 2 else n_classes
    weights = _weights(body, n_features + (bias >= 0.0), columns)
    beta = weights[n_features] * bias if bias >= 0.0 else np.zeros(columns)
    return _fitted(solver_type, labels, weights[:n_features], beta, bias >= 0.0)


def _header(head: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in head.split("\n"):
        key, _, value = line.partition(" ")
        if key not in HEADER or key in header:
            raise ModelFileError(f"its line {shown(line)} is unknown or is there twice")
        header[key] = value.strip()
    if missing := [key for key in HEADER if key not in header]:
        raise ModelFileError(f"it has no line {missing[0]}")
    return header


def _integer(text: str, key: str) -> int:
    if not INTEGER.fullmatch(text) or not INT_MIN <= int(text) <= INT_MAX:
        raise ModelFileError(f"{key} must be an integer, got {shown(text)}")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if DECIMAL.fullmatch(text) else np.nan
    if not np.isfinite(value):
        raise ModelFileError(f"it has {shown(text)} where a finite number must be")
    return value


def _weights(body: str, rows: int, columns: int) -> Matrix:
    numbers = body.split()
    if len(numbers) != rows * columns:
        raise ModelFileError(
            f"it must have {rows} × {columns} weights and has {len(numbers)}: it was cut short, or damaged"
        )
    # All at once: this format contains zeros, so there may be millions of numbers.
    if all(map(DECIMAL.fullmatch, numbers)):
        weights = np.array(list(map(float, numbers)))
        if np.isfinite(weights).all():
            return weights.reshape(rows, columns)
    # This raises an error about the first invalid number.
    return np.array([_number(number) for number in numbers]).reshape(rows, columns)


def _fitted(solver_type: str, labels: list[int], weights: Matrix, bias: Vector, intercept: bool) -> SparseSVC:
    theta = np.column_stack([weights.T, bias])
    order = np.argsort(labels)
    if len(labels) > 2:
        theta = theta[order]
        theta[:, -1] = _ordered(theta[:, -1], order)
    elif labels[0] < labels[1]:
        theta = 0.0 - theta
        theta[0, -1] = theta[0, -1] or TINY
    classes, dtype = np.array(labels)[order], np.dtype(np.float64)
    return imported_classifier(PENALTIES[solver_type], classes, theta, dtype, intercept)


def _ordered(beta: Vector, places: NDArray[np.intp]) -> Vector:
    """The intercepts, with tiny differences between equal ones: the first one in the file is the largest."""
    ordered = beta.copy()
    for value in np.unique(beta):
        group = np.flatnonzero(beta == value)
        if np.any(np.diff(places[group]) < 0):
            later = np.sum(places[group][:, np.newaxis] < places[group], axis=1)
            ordered[group] += later * (np.spacing(abs(value)) if value else TINY)
    return ordered
