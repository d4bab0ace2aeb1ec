"""`n_features`: fits with a number of features instead of a penalty that selects them.

What shrinks the coefficients is then a ridge in units of standard deviations, λ/2 Σ c_i σ_i² w_i². So the
units of the features play no part, and weights are the same as repeated rows.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from majorant.potentials import L2, Potential, make_potential
from majorant.rows import Rows

if TYPE_CHECKING:
    from majorant.estimators.cv import SparseSVCCV
    from majorant.estimators.svc import SparseSVC

# λ of the ridge where none is given, as a share of the sum of the weights: it keeps coefficients of separable
# rows finite. (On the 15 simulated problems of `solvers/subset.py`, 1e-4 to 1e-2 found the true features
# equally well: mean F1 of 0.96 to 0.97 at the true size.)
LIGHT_RIDGE = 1e-3


def check_sizes(estimator: SparseSVC, potential: Potential) -> None:
    """Refuse parameters that a search for features has no use for."""
    chosen = f"n_features={estimator.n_features}"
    if estimator.max_features is not None:
        raise InvalidParameterError(
            f"{chosen} is the number of features, and max_features a limit for the features that a penalty "
            "selects: leave out one of them."
        )
    if not (isinstance(estimator.solver, str) and estimator.solver in ("auto", "newton")) or estimator.warmup:
        raise InvalidParameterError(
            f"{chosen} is a search with a solver of its own: leave solver='auto' and warmup=0 as they are."
        )
    default = isinstance(estimator.penalty, str) and estimator.penalty == "hyperbolic"
    if default and (estimator.lam != 1.0 or estimator.delta is not None):
        raise InvalidParameterError(
            f"{chosen} selects features by their number, so lam and delta of penalty='hyperbolic' have no "
            "use: leave them out, or take penalty='l2', whose lam is the strength of a ridge."
        )
    if not default and not potential.quadratic:
        raise InvalidParameterError(
            f"{chosen} selects features by their number, so there is no use for penalty={potential.name!r}, "
            "which selects them, too: leave the penalty out, or take 'l2', a ridge. (max_features limits "
            "the features that a penalty selects.)"
        )


def shrinkage(estimator: SparseSVC, potential: Potential, rows: Rows) -> Potential:
    """What shrinks the coefficients of the features that are found."""
    if potential.quadratic:
        return potential
    return L2(0.0 if estimator.eta > 0.0 else LIGHT_RIDGE * rows.loss_at_zero.value)


def sizes_for(n_features: Any, available: int) -> NDArray[np.intp]:
    """The sizes asked for, rising: 1 to a number, or those given; no more than there are features.

    Parameters
    ----------
    n_features : int or array of int
    available : int
        How many features there are.
    """
    if isinstance(n_features, Integral):
        if n_features < 1:
            raise ValueError(f"n_features={n_features!r}, the largest size of a path, must be at least 1.")
        return np.arange(1, min(int(n_features), available) + 1)
    sizes = np.asarray(n_features)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
        raise ValueError(
            "n_features must be the largest size of the path, or a list of sizes, whole numbers of 0 or "
            f"more, got {n_features!r}."
        )
    return np.unique(np.minimum(sizes, available)).astype(np.intp)


def fitted_potential(model: SparseSVC | SparseSVCCV) -> Potential:
    """The penalty of a fitted model, with the strength that was chosen: with `n_features`, a ridge."""
    if isinstance(model.penalty, Potential):
        return model.penalty
    lam = 0.0 if math.isnan(model.lam_) else model.lam_
    name = "l2" if model.n_features is not None and model.penalty == "hyperbolic" else model.penalty
    return make_potential(name, lam=lam, delta=model.delta)


def place_of(model: SparseSVC) -> str:
    """The place of a model on its path."""
    if model.n_features is not None:
        return f"n_features={model.n_features}"
    return f"lam={model.lam_:.3g}"
