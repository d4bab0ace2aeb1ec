"""A model as a document of JSON's own types, and back: schema version 1.

A change that an older majorant would not understand, or that this one must tell apart, makes a new version.
Every version that was ever written is read: a file of each is kept in tests/models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from majorant import __version__
from majorant.errors import ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.streams import keep_stream, kept_stream
from majorant.persistence import strict
from majorant.persistence.fitted import CV, fitted_node, read_fitted
from majorant.persistence.parameters import Unavailable, parameter_node, read_parameter
from majorant.persistence.provenance import Provenance, provenance_node, read_provenance
from majorant.persistence.streams import read_stream, stream_node

FORMAT = "majorant model"
VERSION = 1
KEYS = ("format", "version", "sha256", "majorant", "estimator", "provenance", "params", "fitted", "stream")

# The parameters of version 1, by estimator: written out, since the estimators may get more.
SHARED = (
    "penalty", "delta", "eta", "penalty_factor", "solver", "fit_intercept", "class_weight", "multi_class",
    "tol", "max_iter", "zero_tol", "random_state", "n_jobs", "verbose",
)  # fmt: skip
PARAMETERS: dict[str, tuple[str, ...]] = {
    "SparseSVC": (*SHARED, "lam", "warmup", "warmup_solver", "max_features", "warm_start"),
    "SparseSVCCV": (*SHARED, "lambdas", "ratio", "cv", "scoring", "selection"),
}
# With the attributes that each of them always has.
ESTIMATORS: dict[str, tuple[type[SparseSVC] | type[SparseSVCCV], tuple[str, ...]]] = {
    "SparseSVC": (SparseSVC, ()),
    "SparseSVCCV": (SparseSVCCV, CV),
}


def document_of(
    model: SparseSVC | SparseSVCCV, provenance: Provenance | Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that there is to write."""
    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not ESTIMATORS[name][0]:
        advice = ": save its last step, model[-1]" if name == "Pipeline" else ""
        raise ModelFileError(f"a model file holds a SparseSVC or a SparseSVCCV, and this is a {name}{advice}")
    check_is_fitted(model)
    _check_parameters(model, "set it right before saving")
    content: dict[str, Any] = {
        "majorant": __version__,
        "estimator": name,
        "provenance": provenance_node(provenance),
        "params": {key: parameter_node(value) for key, value in model.get_params(deep=False).items()},
        "fitted": fitted_node(model, ESTIMATORS[name][1]),
        "stream": stream_node(kept_stream(model)),
    }
    head = {"format": FORMAT, "version": VERSION}
    return {**head, "sha256": checksum({**head, **content}), **content}


def checksum(document: dict[str, Any]) -> str:
    """Of everything but the checksum itself: a changed digit is noticed (on purpose, it can be forged)."""
    content = {key: node for key, node in document.items() if key != "sha256"}
    return hashlib.sha256(strict.canonical(content)).hexdigest()


def check_document(node: Any) -> dict[str, Any]:
    """The document, if it is a whole one of a version that is known."""
    if type(node) is not dict or node.get("format") != FORMAT:
        raise ModelFileError(f'it is JSON, but not a model file of majorant (which has "format": "{FORMAT}")')
    version = strict.integer(node.get("version"), "version", 1)
    if version != VERSION:
        raise ModelFileError(
            f"it is of version {version}, and majorant {__version__} reads version {VERSION} alone: "
            "pip install -U majorant"
        )
    document = strict.keys(node, "the file", KEYS)
    if document["sha256"] != checksum(document):
        raise ModelFileError("its checksum does not fit: it was damaged, or edited by hand")
    return document


def model_of(node: Any) -> SparseSVC | SparseSVCCV:
    """The fitted estimator that a document describes."""
    return described_model_of(node)[0]


def described_model_of(node: Any) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """The fitted estimator that a document describes, and where it comes from."""
    document = check_document(node)
    strict.text(document["majorant"], "majorant")
    provenance = read_provenance(document["provenance"])
    name = strict.one_of(document["estimator"], "estimator", list(ESTIMATORS))
    kind, required = ESTIMATORS[name]
    params = strict.keys(document["params"], "params", PARAMETERS[name])
    model = kind(**{key: read_parameter(params[key], f"params.{key}") for key in PARAMETERS[name]})
    _check_parameters(model, "nothing was loaded")
    fitted = read_fitted(document["fitted"], required)
    for attribute, value in fitted.items():
        setattr(model, attribute, value)
    if isinstance(model, SparseSVC):
        size = (len(fitted["intercept_"]), fitted["n_features_in_"] + 1)
        keep_stream(model, read_stream(document["stream"], fitted.get("solver_"), *size))
    elif document["stream"] is not None:
        raise ModelFileError("stream must be null for a SparseSVCCV")
    return model, provenance


def _check_parameters(model: SparseSVC | SparseSVCCV, otherwise: str) -> None:
    """What `fit` would say of the parameters, but for those that are known by name only."""
    params = {
        key: value
        for key, value in model.get_params(deep=False).items()
        if not isinstance(value, Unavailable)
    }
    scoring = params.pop("scoring", None)  # which names there are is scikit-learn's, and changes
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ModelFileError(f"scoring must be a name, got {strict.shown(scoring)}: {otherwise}")
    try:
        with np.errstate(all="ignore"):
            validate_parameter_constraints(model._parameter_constraints, params, type(model).__name__)
    except InvalidParameterError as error:
        raise ModelFileError(f"{error} ({otherwise})") from None
