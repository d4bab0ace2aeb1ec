"""Conversion of a model to a document of JSON's own types, and back.

The schema follows from the declared parameters (`majorant.estimators.parameters`) and fitted attributes
(`majorant.estimators.fitted`), each with the first version of the model files that has it. A new parameter or
attribute increases the version of the files of its estimator. All versions can be read;
tests/persistence/models has a file of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from majorant import __version__
from majorant.errors import ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.fitted import set_fitted
from majorant.estimators.parameters import declared, since
from majorant.persistence import strict
from majorant.persistence.fitted import fitted_node, read_fitted, stored_attributes
from majorant.persistence.parameters import Unavailable, parameter_node, read_parameter
from majorant.persistence.pipelines import folded
from majorant.persistence.provenance import Provenance, provenance_node, read_provenance
from majorant.persistence.streams import read_stream, stream_node

FORMAT = "majorant model"
KEYS = ("format", "version", "sha256", "majorant", "estimator", "provenance", "params", "fitted", "stream")
ESTIMATORS: dict[str, type[SparseSVC | SparseSVCCV]] = {
    kind.__name__: kind for kind in (SparseSVC, SparseSVCCV)
}


def version_of(kind: type) -> int:
    """The version of the files of an estimator: the largest `since` of its parameters and attributes."""
    attributes = stored_attributes(cv=_is_cv(kind))
    return max([*map(since, declared(kind).values()), *(one.since for one in attributes)])


def _is_cv(kind: type) -> bool:
    return issubclass(kind, SparseSVCCV)


def document_of(
    model: SparseSVC | SparseSVCCV | Pipeline, provenance: Provenance | Mapping[str, Any] | None
) -> dict[str, Any]:
    """The document of a fitted model."""
    if isinstance(model, Pipeline):
        model = folded(model)
    kind, name = type(model), type(model).__name__
    if ESTIMATORS.get(name) is not kind:
        raise ModelFileError(f"a model file holds a SparseSVC or a SparseSVCCV, and this is a {name}")
    check_is_fitted(model)
    _check_parameters(model, "set it right before saving")
    content: dict[str, Any] = {
        "majorant": __version__,
        "estimator": name,
        "provenance": provenance_node(provenance),
        "params": {key: parameter_node(value) for key, value in model.get_params(deep=False).items()},
        "fitted": fitted_node(model, cv=_is_cv(kind)),
        "stream": stream_node(getattr(model, "_stream", None)),
    }
    head = {"format": FORMAT, "version": version_of(kind)}
    return {**head, "sha256": checksum({**head, **content}), **content}


def checksum(document: dict[str, Any]) -> str:
    """The SHA-256 of the document without its checksum. It reveals damage, not forgery."""
    content = {key: node for key, node in document.items() if key != "sha256"}
    return hashlib.sha256(strict.canonical(content)).hexdigest()


def check_document(node: Any) -> dict[str, Any]:
    """The document, if it is undamaged, has all its keys, and is of a known version; else an error."""
    if type(node) is not dict or node.get("format") != FORMAT:
        raise ModelFileError(f'it is JSON, but not a model file of majorant (which has "format": "{FORMAT}")')
    version = strict.integer(node.get("version"), "version", 1)
    latest = max(map(version_of, ESTIMATORS.values()))
    if version > latest:
        known = "version 1 alone" if latest == 1 else f"versions 1 to {latest}"
        raise ModelFileError(
            f"it is of version {version}, and majorant {__version__} reads {known}: pip install -U majorant"
        )
    document = strict.keys(node, "the file", KEYS)
    if document["sha256"] != checksum(document):
        raise ModelFileError("its checksum does not fit: it was damaged, or edited by hand")
    return document


def model_of(node: Any) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """The fitted estimator that a document describes, and its provenance."""
    document = check_document(node)
    strict.text(document["majorant"], "majorant")
    provenance = read_provenance(document["provenance"])
    name = strict.one_of(document["estimator"], "estimator", list(ESTIMATORS))
    kind, version = ESTIMATORS[name], document["version"]
    names = [parameter for parameter, field in declared(kind).items() if since(field) <= version]
    params = strict.keys(document["params"], "params", names)
    model = kind(**{key: read_parameter(params[key], f"params.{key}") for key in names})
    _check_parameters(model, "nothing was loaded")
    state = read_fitted(document["fitted"], cv=_is_cv(kind), version=version)
    if isinstance(model, SparseSVC):
        size = (len(state["intercept_"]), state["n_features_in_"] + 1)
        state["_stream"] = read_stream(document["stream"], state.get("solver_"), *size)
    elif document["stream"] is not None:
        raise ModelFileError("stream must be null for a SparseSVCCV")
    set_fitted(model, state)
    return model, provenance


def _check_parameters(model: SparseSVC | SparseSVCCV, otherwise: str) -> None:
    """Validate the parameters as `fit` does, except those of which only the name is known."""
    params = {
        key: value
        for key, value in model.get_params(deep=False).items()
        if not isinstance(value, Unavailable)
    }
    scoring = params.pop("scoring", None)  # the names of scores depend on the version of scikit-learn
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ModelFileError(f"scoring must be a name, got {strict.shown(scoring)}: {otherwise}")
    try:
        with np.errstate(all="ignore"):
            validate_parameter_constraints(model._parameter_constraints, params, type(model).__name__)
    except InvalidParameterError as error:
        raise ModelFileError(f"{error} ({otherwise})") from None
