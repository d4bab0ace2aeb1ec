"""A pipeline of scalers and a classifier as one classifier for the unscaled features."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from majorant.errors import ModelFileError
from majorant.estimators import SparseSVC, SparseSVCCV
from majorant.estimators.fitted import ANY, FITTED, get_fitted, set_fitted
from majorant.estimators.parameters import ProblemParameters, declared


def folded(pipeline: Pipeline) -> SparseSVC | SparseSVCCV:
    """The last step of a pipeline, with coefficients that include the scalers before it.

    A `StandardScaler` is equivalent to ``standardize=True`` if there is an intercept: all attributes of the
    model remain true. With other scalers only the predictions do, since the penalty was in other units.
    """
    check_is_fitted(pipeline)
    *scalers, model = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    if not isinstance(model, SparseSVC | SparseSVCCV):
        raise ModelFileError(
            f"a model file holds a SparseSVC or a SparseSVCCV, and the last step of this Pipeline is a "
            f"{type(model).__name__}"
        )
    slopes = np.ones(model.n_features_in_)
    shifts = np.zeros(model.n_features_in_)
    for scaler in scalers:
        slope, shift = _affine(scaler)
        slopes, shifts = slope * slopes, slope * shifts + shift
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    state = get_fitted(model) | {
        "coef_": coef * slopes,
        "intercept_": model.intercept_ + coef @ shifts,
    }
    plain = len(scalers) == 1 and type(scalers[0]) is StandardScaler and not getattr(model, "standardize", 0)
    whole: SparseSVC | SparseSVCCV = copy(model)
    if plain and (model.fit_intercept or not shifts.any()):
        whole.standardize = True
        state["scale_"] = 1.0 / slopes
    elif scalers:
        parameters = {name: getattr(model, name) for name in declared(ProblemParameters)}
        whole = SparseSVC(lam=model.lam_, **parameters)
        state = {name: value for name, value in state.items() if FITTED[name].origins == ANY}
    names = getattr(pipeline, "feature_names_in_", None)
    if names is not None:
        state["feature_names_in_"] = names
    set_fitted(whole, state)
    return whole.sparsify() if sp.issparse(model.coef_) else whole


def _affine(scaler: Any) -> tuple[NDArray[np.float64] | float, NDArray[np.float64] | float]:
    """The factor of every feature, and the number that is added to the product."""
    if type(scaler) is MinMaxScaler and not scaler.clip:
        return scaler.scale_, scaler.min_
    centre = {StandardScaler: "mean_", MaxAbsScaler: "", RobustScaler: "center_"}
    if type(scaler) not in centre or getattr(scaler, "clip", False):
        raise ModelFileError(
            f"this Pipeline has a step {type(scaler).__name__}, which cannot be taken into the coefficients: "
            "save its last step, model[-1]"
        )
    slope = 1.0 if scaler.scale_ is None else 1.0 / scaler.scale_
    # A StandardScaler that does not centre has a mean as well.
    centred = getattr(scaler, "with_mean", getattr(scaler, "with_centering", False))
    return slope, (-slope * getattr(scaler, centre[type(scaler)]) if centred else 0.0)
