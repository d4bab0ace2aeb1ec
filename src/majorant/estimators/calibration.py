"""Probabilities from values of the decision function, as `CalibratedClassifierCV(ensemble=False)` has them.

A margin is not a probability. A calibration is fitted on decision values of rows that the model which made
them has not seen, against the classes of these rows; with more than two classes, each class against the rest.
scikit-learn fits the curves; here they are a few numbers, which a model file can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from majorant.status import Vector

METHODS = ("sigmoid", "isotonic")


@dataclass(frozen=True, eq=False)
class Calibration:
    """How probabilities follow from values of the decision function.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"}
    folds : int
        The number of folds whose held-out rows the curves were fitted on.
    curves : sequence of pairs of arrays
        One pair for two classes, else a pair for each class. "sigmoid": the numbers a and b of the
        probability 1 / (1 + exp(a f + b)) at the value f, as arrays of one number. "isotonic": values and
        their probabilities; between two values it is linear, beyond the first and the last it is constant.
    """

    method: str
    folds: int
    curves: Sequence[tuple[Vector, Vector]]

    @classmethod
    def fit(
        cls, method: str, folds: int, decision: NDArray[Any], y: NDArray[Any], classes: NDArray[Any]
    ) -> Self:
        """Fit the curves to decision values of held-out rows with the labels y."""
        decision = np.asarray(decision, dtype=np.float64)
        if decision.ndim == 1:
            return cls(method, folds, [_fitted(method, decision, y == classes[1])])
        columns = zip(decision.T, classes, strict=True)
        return cls(method, folds, [_fitted(method, column, y == label) for column, label in columns])

    def probabilities(self, decision: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of every class, in columns, for values of the decision function."""
        columns = np.asarray(decision, dtype=np.float64).reshape(len(decision), -1).T
        of_class = np.column_stack(
            [self._curve(values, *curve) for values, curve in zip(columns, self.curves, strict=True)]
        )
        if decision.ndim == 1:
            return np.column_stack([1.0 - of_class, of_class])
        total = of_class.sum(axis=1, keepdims=True)
        uniform = np.full_like(of_class, 1.0 / of_class.shape[1])
        return np.asarray(np.divide(of_class, total, out=uniform, where=total != 0.0))

    def _curve(self, values: Vector, first: Vector, second: Vector) -> Vector:
        if self.method == "sigmoid":
            return np.asarray(expit(-(first[0] * values + second[0])))
        return np.interp(values, first, second)


def _fitted(method: str, values: Vector, positive: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    if method == "sigmoid":
        from sklearn.calibration import _SigmoidCalibration

        curve = _SigmoidCalibration().fit(values, positive.astype(np.int64))
        return np.array([curve.a_], dtype=np.float64), np.array([curve.b_], dtype=np.float64)
    from sklearn.isotonic import IsotonicRegression

    steps = IsotonicRegression(out_of_bounds="clip").fit(values, positive.astype(np.float64))
    return np.asarray(steps.X_thresholds_, np.float64), np.asarray(steps.y_thresholds_, np.float64)


def is_calibrated(model: Any) -> bool:
    """Whether a model has probabilities."""
    return hasattr(model, "calibration_")
