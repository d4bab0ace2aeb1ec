"""Coefficients from elsewhere, as a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.estimators.fitted import model_state, set_fitted
from majorant.estimators.svc import SparseSVC
from majorant.potentials import Potential
from majorant.status import Matrix


def imported_classifier(
    penalty: str | Potential, classes: NDArray[Any], theta: Matrix, dtype: np.dtype[Any], fit_intercept: bool
) -> SparseSVC:
    """A `SparseSVC` that predicts with these coefficients; how they were found is not known.

    It has none of the attributes that tell how a fit went (`status_`, `solver_`, `objective_`, …), `lam_` is
    nan, and it has learned from no row (`t_` is 0): `partial_fit` goes on from the coefficients.

    Parameters
    ----------
    penalty : str or Potential
        What `fit` would train with.
    classes : array (n_classes,)
        The labels, in order.
    theta : array (1 or n_classes, n_features + 1)
        The coefficients with the intercept last, a row per class; one row for two classes.
    dtype : dtype
        Of the coefficients of the model.
    fit_intercept : bool
        Whether `fit` would train an intercept.
    """
    model = SparseSVC(penalty, fit_intercept=fit_intercept)
    state = model_state(classes, theta, dtype)
    set_fitted(model, state | {"n_features_in_": theta.shape[1] - 1})
    return model
