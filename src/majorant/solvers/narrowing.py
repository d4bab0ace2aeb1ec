"""Empty columns: their coefficients are zero, so a problem is solved without them.

Texts often have many empty columns: of the 47,236 features of rcv1_subset, 28,192 occur. Without the empty
columns all vectors of a run are shorter, and fits of rcv1_subset with ℓ2 take 0.7 to 0.9 of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from majorant.objective import Objective
from majorant.status import Evaluated, Vector

# The largest share of features that occur for which the others are left out. (Not tuned.)
OCCURRING_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Narrowing:
    """The problem without empty columns, and conversions between its θ and that of all features."""

    objective: Objective
    width: int
    where: NDArray[np.intp]
    """The places of the features that occur, and of the intercept, among all coefficients of a class."""

    @classmethod
    def of(cls, objective: Objective, theta: Vector) -> Narrowing | None:
        """The narrower problem; None unless X is sparse with many empty columns, which are zero in θ."""
        classes = objective.in_memory
        if not classes or classes[0].dense or not (objective.potential.convex and objective.penalised):
            return None
        occurs = objective.rows.gram_diagonal[:-1] > 0.0
        if np.count_nonzero(occurs) > OCCURRING_SHARE * len(occurs) or not occurs.any():
            return None
        if objective.lengths(theta)[~occurs].any():
            return None
        occurring = np.flatnonzero(occurs)
        part = objective.on(
            [rows.without_empty_columns(occurring) for rows in classes], objective.factor[occurring]
        )
        part.__dict__["constant"] = objective.constant  # which includes the features that are left out
        return cls(part, objective.width, np.append(occurring, objective.width - 1))

    def narrow(self, theta: Vector) -> Vector:
        """θ of the features that occur."""
        return np.ascontiguousarray(theta.reshape(-1, self.width)[:, self.where]).ravel()

    def widen(self, theta: Vector) -> Vector:
        """θ, or a gradient, of all features, with zeros for the empty columns."""
        whole = np.zeros((len(theta) // len(self.where), self.width))
        whole[:, self.where] = theta.reshape(len(whole), -1)
        return whole.ravel()

    def narrow_point(self, at: Evaluated) -> Evaluated:
        """A point of the problem as a point of the narrower problem."""
        return replace(at, theta=self.narrow(at.theta), loss_gradient=self.narrow(at.loss_gradient))

    def widen_point(self, at: Evaluated) -> Evaluated:
        """A point of the narrower problem as a point of the problem."""
        return replace(at, theta=self.widen(at.theta), loss_gradient=self.widen(at.loss_gradient))
