"""What makes `SelectFromModel(SparseSVC(...))` select the features that are not zero, by default.

scikit-learn's `SelectFromModel` takes a coefficient above 1e-5 for selected if the estimator's `penalty` is
"l1", and one above the *mean* for any other (scikit-learn#23537): with a hyperbolic penalty it would throw
away most of what was selected. There is no tag or method by which an estimator can say that its zeros are
zeros, so `penalty` says "l1" to that one module; everybody else reads what was set.
"""

from __future__ import annotations

import sys
from typing import Any

from majorant.errors import MajorantError
from majorant.potentials import make_potential

ASKING = "sklearn.feature_selection._from_model"


class PenaltyParameter:
    """The constructor parameter `penalty`, as an attribute of the class."""

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            return self
        try:
            penalty = vars(model)["penalty"]
        except KeyError:
            raise AttributeError("penalty") from None
        asked_by = sys._getframe(1).f_globals.get("__name__")
        return "l1" if asked_by == ASKING and _makes_zeros(penalty) else penalty

    def __set__(self, model: Any, penalty: Any) -> None:
        vars(model)["penalty"] = penalty


def _makes_zeros(penalty: Any) -> bool:
    """Whether there are coefficients that mean zero, and are zero in `coef_`."""
    try:
        potential = make_potential(penalty, lam=1.0, delta=1.0)
    except MajorantError:  # unknown: `fit` will say so
        return False
    return not potential.smooth or potential.zero_width > 0.0
