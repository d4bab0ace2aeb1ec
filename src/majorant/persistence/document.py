"""A model as a document of JSON's own types, and back.

The schema follows from the declared parameters (`majorant.estimators.parameters`) and fitted attributes
(`majorant.estimators.fitted`), each with the first version of the files that has it. A new one makes a new
version of the files of its estimator. Every version that was ever written is read: a file of each is kept in
tests/persistence/models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from typing import Any

import numpy as np
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
from majorant.persistence.provenance import Provenance, provenance_node, read_provenance
from majorant.persistence.streams import read_stream, stream_node

FORMAT = "majorant model"
KEYS = ("format", "version", "sha256", "majorant", "estimator", "provenance", "params", "fitted", "stream")
ESTIMATORS: dict[str, type[SparseSVC] | type[SparseSVCCV]] = {
    "SparseSVC": SparseSVC,
    "SparseSVCCV": SparseSVCCV,
}


def version_of(kind: type, fitted: Container[str] | None = None) -> int:
    """The version of the files of an estimator: that of its latest parameter or attribute.

    A file that holds only the attributes `fitted` is of the version of the latest of these, so that older
    versions of the package read it.
    """
    attributes = [one for one in stored_attributes(cv=_is_cv(kind)) if fitted is None or one.name in fitted]
    return max(
        [since(parameter) for parameter in declared(kind).values()] + [one.since for one in attributes]
    )


def _is_cv(kind: type) -> bool:
    return issubclass(kind, SparseSVCCV)


def document_of(
    model: SparseSVC | SparseSVCCV, provenance: Provenance | Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that there is to write."""
    kind, name = type(model), type(model).__name__
    if ESTIMATORS.get(name) is not kind:
        advice = ": save its last step, model[-1]" if name == "Pipeline" else ""
        raise ModelFileError(f"a model file holds a SparseSVC or a SparseSVCCV, and this is a {name}{advice}")
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
    head = {"format": FORMAT, "version": version_of(kind, content["fitted"])}
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


def model_of(node: Any) -> SparseSVC | SparseSVCCV:
    """The fitted estimator that a document describes."""
    return described_model_of(node)[0]


def described_model_of(node: Any) -> tuple[SparseSVC | SparseSVCCV, Provenance | None]:
    """The fitted estimator that a document describes, and where it comes from."""
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
