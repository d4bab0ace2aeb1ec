"""The constructor parameters of the estimators, each declared once, in the body of a dataclass.

`parameter` states the default, what `fit` accepts, and the first version of the model files that has the
parameter. The constructor, `get_params`, `_parameter_constraints` and the parameters of a model file follow
from the declaration. A file that is older than a parameter gives the parameter its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, Field, dataclass, field, fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from majorant.estimators.selection import PenaltyParameter
from majorant.potentials import Potential
from majorant.solvers import Solver

T = TypeVar("T", bound="ProblemParameters")

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 0, None, closed="left")
COUNT_FROM_1 = Interval(Integral, 1, None, closed="left")

# Parameters of other libraries, and what they are here.
_STRENGTH = "the strength of the penalty is lam; a larger lam selects fewer features"
FOREIGN = {
    "C": f"{_STRENGTH}. For 'l1' and 'l2', lam = 1/C in terms of sklearn.svm.LinearSVC.",
    "alpha": f"{_STRENGTH}. The loss is a sum over the rows, so for a loss that is a "
    "mean, lam = alpha times the sum of the weights.",
    "alphas": f"{_STRENGTH}; SparseSVCCV and sparse_svc_path take several as lambdas.",
    "l1_ratio": "an elastic net is penalty='l1' with the strength lam and a ridge of the strength eta.",
    "loss": "the loss is the squared hinge.",
}


def parameter(default: Any, *constraint: Any, since: int = 1) -> Any:
    """A constructor parameter.

    Parameters
    ----------
    default
        Its default.
    *constraint
        What values may be: any of these, in the language of scikit-learn's `_parameter_constraints`.
    since : int, default=1
        The first version of the model files that has the parameter.
    """
    return field(default=default, metadata={"constraint": list(constraint), "since": since})


def constrained(cls: type[T]) -> type[T]:
    """Give a dataclass of parameters the `_parameter_constraints` that follow from them."""
    cls._parameter_constraints = {name: one.metadata["constraint"] for name, one in declared(cls).items()}
    construct = cls.__init__

    @wraps(construct)
    def with_advice(self: T, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() & FOREIGN.keys():
            raise TypeError(f"{cls.__name__} has no parameter {name!r}: {FOREIGN[name]}")
        construct(self, *args, **kwargs)

    cls.__init__ = with_advice  # type: ignore[assignment,method-assign]
    return cls


def declared(cls: type) -> dict[str, Field[Any]]:
    """The parameters of an estimator, by name."""
    return {one.name: one for one in fields(cls)}


def since(one: Field[Any]) -> int:
    """The first version of the model files that has a parameter."""
    return int(one.metadata["since"])


@dataclass(repr=False, eq=False)
class ProblemParameters:
    """What `SparseSVCCV` hands on to `SparseSVC` as it is."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    penalty: str | Potential = parameter("hyperbolic", str, Potential)
    _: KW_ONLY
    delta: float | None = parameter(None, POSITIVE, None)
    eta: float = parameter(0.0, NOT_NEGATIVE)
    penalty_factor: ArrayLike | None = parameter(None, "array-like", None)
    refit: str | None = parameter(None, StrOptions({"l2"}), None, since=3)
    standardize: bool = parameter(False, "boolean", since=2)
    solver: str | Solver = parameter("auto", str, Solver)
    fit_intercept: bool = parameter(True, "boolean")
    class_weight: Mapping[Any, float] | str | None = parameter(None, dict, StrOptions({"balanced"}), None)
    multi_class: str = parameter("ovr", StrOptions({"ovr", "joint"}))
    tol: float = parameter(1e-6, NOT_NEGATIVE)
    max_iter: int = parameter(1000, COUNT_FROM_1)
    zero_tol: float | str = parameter("auto", StrOptions({"auto"}), NOT_NEGATIVE)
    random_state: int | np.random.RandomState | None = parameter(None, "random_state")


ProblemParameters.penalty = PenaltyParameter()  # type: ignore[assignment]
