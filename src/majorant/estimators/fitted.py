"""The fitted attributes, each declared once in `FITTED`, and `set_fitted`, which alone sets them.

Which attributes a model has depends on its origin (`Origin`). `SparseSVCCV` takes those of the model that is
fitted on all rows, and adds its own. Model files (`majorant.persistence.fitted`) hold the declared
attributes, in the order below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.potentials import Potential
from majorant.solvers import Descent
from majorant.status import Matrix


class Origin(Enum):
    """How a model came to its coefficients."""

    FITTED = "fitted"
    """All rows at once, with a certificate."""
    STREAM = "stream"
    """By `partial_fit`: rows are counted, nothing is certain."""
    IMPORTED = "imported"
    """From the file of another program, which tells nothing about it."""


ANY, LEARNED, FIT = tuple(Origin), (Origin.FITTED, Origin.STREAM), (Origin.FITTED,)


def origin_of(model: Any) -> Origin:
    """How a model came to its coefficients, as its attributes tell."""
    if hasattr(model, "status_"):
        return Origin.FITTED
    return Origin.STREAM if hasattr(model, "solver_") else Origin.IMPORTED


@dataclass(frozen=True)
class Attribute:
    """A fitted attribute.

    Parameters
    ----------
    name : str
    origins : sequence of Origin
        The models that have the attribute. None: `majorant train` sets it on fitted models if asked to.
    form : str, optional
        How a model file holds the value: a key of `majorant.persistence.fitted.FORMS`. None: not at all.
    follows : (str, function), optional
        The attribute that the value follows from, and how, if a model file does not hold the value.
    required : bool, default=False
        Whether every model file has the attribute; a model may lack the others.
    cv : bool, default=False
        Whether only `SparseSVCCV` has the attribute.
    instead : str, optional
        The attribute in whose presence a model has none of this name, though it is required.
    validated : bool, default=False
        Whether scikit-learn's validation of X sets the attribute.
    summary : bool, default=False
        Whether the command line tells programs of the attribute (``--json``).
    since : int, default=1
        The first version of the model files that has the attribute.
    """

    name: str
    origins: Sequence[Origin]
    form: str | None = None
    follows: tuple[str, Callable[[Any], Any]] | None = None
    required: bool = False
    cv: bool = False
    instead: str | None = None
    validated: bool = False
    summary: bool = False
    since: int = 1


def support_of(coef: Any) -> NDArray[np.intp]:
    """The indices of the features with a coefficient that is not zero."""
    if sp.issparse(coef):
        return np.unique(coef.indices[coef.data != 0.0]).astype(np.intp)
    return np.flatnonzero(coef.any(axis=0))


FITTED: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        Attribute("classes_", ANY, "labels", required=True),
        Attribute("n_features_in_", ANY, "size", required=True, validated=True),
        Attribute("lam_", ANY, "number"),
        Attribute("objective_", FIT, "number", summary=True),
        Attribute("gap_", FIT, "number", summary=True),
        Attribute("lower_bound_", FIT, "number", summary=True),
        Attribute("stationarity_", FIT, "number", summary=True),
        Attribute("lam_best_", FIT, "number", required=True, cv=True, instead="sizes_"),
        Attribute("lam_1se_", FIT, "number", required=True, cv=True, instead="sizes_"),
        Attribute("n_features_", FIT, "count", cv=True, since=3),
        Attribute("n_features_best_", FIT, "count", cv=True, since=3),
        Attribute("n_features_1se_", FIT, "count", cv=True, since=3),
        Attribute("best_score_", FIT, "number", required=True, cv=True),
        Attribute("n_iter_", LEARNED, "count", summary=True),
        Attribute("t_", ANY, "count"),
        Attribute("status_", FIT, "status"),
        Attribute("solver_", LEARNED, "solver"),
        Attribute("intercept_", ANY, "intercept", required=True),
        Attribute("coef_", ANY, "coefficients", required=True),
        Attribute("feature_names_in_", ANY, "names", validated=True),
        Attribute("lambdas_", FIT, "strengths", required=True, cv=True, instead="sizes_"),
        Attribute("sizes_", FIT, "sizes", cv=True, since=3),
        Attribute("selection_frequency_", FIT, "shares", required=True, cv=True),
        Attribute("cv_results_", FIT, "scores", required=True, cv=True),
        Attribute("history_", FIT, "history"),
        Attribute("scale_", FIT, "deviations", since=2),
        Attribute("calibration_", (), "calibration", since=2),
        Attribute("preprocessing_", (), "preprocessing", since=3),
        Attribute("support_", ANY, follows=("coef_", support_of)),
        Attribute("converged_", FIT, follows=("status_", lambda status: status.converged), summary=True),
    )
}


def set_fitted(model: Any, state: Mapping[str, Any]) -> None:
    """Replace the fitted attributes. What is not given is removed, unless the validation of X has set it."""
    attributes = model.__dict__
    for name, attribute in FITTED.items():
        if name in attributes and name not in state and not attribute.validated:
            del attributes[name]
    attributes.update(state)


def get_fitted(model: Any) -> dict[str, Any]:
    """The fitted attributes that a model has."""
    return {name: value for name, value in vars(model).items() if name in FITTED}


def coefficient_state(classes: NDArray[Any], theta: Matrix, dtype: np.dtype[Any]) -> dict[str, Any]:
    """What a model predicts with, for θ = (W, β), a row per class."""
    if not np.all(np.abs(theta) <= np.finfo(dtype).max):
        dtype = np.dtype(np.float64)  # coefficients of very small features are beyond single precision
    coef = theta[:, :-1].astype(dtype)
    return {
        "classes_": classes,
        "coef_": coef,
        "intercept_": theta[:, -1].astype(dtype),
        "support_": support_of(coef),
    }


def model_state(
    classes: NDArray[Any],
    theta: Matrix,
    dtype: np.dtype[Any],
    potential: Potential | None = None,
    n_rows: int = 0,
    stream: Sequence[Descent] | None = None,
) -> dict[str, Any]:
    """What every `SparseSVC` has, whatever its origin.

    Parameters
    ----------
    classes, theta, dtype
        As for `coefficient_state`.
    potential : Potential, optional
        The penalty of the coefficients, if that is known.
    n_rows : int, default=0
        The number of rows learned from.
    stream : sequence of Descent, optional
        What `partial_fit` goes on from, a descent per problem; by default the coefficients.
    """
    return {
        **coefficient_state(classes, theta, dtype),
        "lam_": float(getattr(potential, "lam", math.nan)),
        "t_": n_rows,
        "_stream": stream,
    }
