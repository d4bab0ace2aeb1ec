r"""`mm-subspace` and `mm-gradient`: quadratic MM within a few directions, Eq. (eq:subMM).

    θ(n+1) = θ(n) - D (DᵀA(θ(n))D)† Dᵀ∇Φ(θ(n))

The columns of D span the subspace; a function chooses them from the gradient and the past steps:

    memory_gradient     D = [-∇Φ(θ(n)) | θ(n) - θ(n-1)]     Eq. (eq:3MG), the 3MG algorithm
    gradient_direction  D = -∇Φ(θ(n))                       Eq. (eq:gradientMM)

An iteration needs one pass over the rows for Φ and ∇Φ. If the matrix LᵀSL is too large, it needs one more
pass for each column of D to get DᵀLᵀSLD, an m × m matrix. So the number of features is not limited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.linalg import pinvh

from majorant.linsolve import unit_diagonal
from majorant.majorants import HalfQuadratic
from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.status import Iterate, Matrix, Vector

Subspace: TypeAlias = Callable[[Vector, Sequence[Vector]], Matrix]
"""∇Φ(θ(n)) and the past steps θ(n) - θ(n-1), θ(n-1) - θ(n-2), …, newest first ↦ D (p × m)."""


def memory_gradient(gradient: Vector, steps: Sequence[Vector]) -> Matrix:
    """The gradient and the last step, Eq. (eq:3MG); the gradient alone at the first iteration."""
    return np.column_stack([-gradient, *steps[:1]])


def gradient_direction(gradient: Vector, steps: Sequence[Vector]) -> Matrix:
    """The gradient alone: gradient descent with the step that minimises the majorant."""
    return -gradient[:, np.newaxis]


@dataclass(frozen=True)
class MMSubspace(Solver):
    """Quadratic MM in the subspace that a function chooses; 3MG by default.

    Parameters
    ----------
    subspace : function (gradient, past steps) -> array (p, m)
        The directions of an iteration. Φ falls for any directions; the iterates are known to converge if the
        gradient is one of the directions.
    memory : int, default=1
        The number of past steps that the function is given.
    """

    subspace: Subspace = field(default=memory_gradient, repr=False)
    memory: int = 1

    name = "mm-subspace"

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        majorant = HalfQuadratic(objective)
        steps: deque[Vector] = deque(maxlen=self.memory)
        at = objective.evaluate(theta)
        while True:
            yield at
            gradient = objective.gradient(at)
            D = self.subspace(gradient, list(steps))
            step = D @ _minimise_quadratic(majorant.along(at.theta, D), D.T @ gradient)
            steps.appendleft(step)
            at = objective.evaluate(at.theta + step)


@dataclass(frozen=True)
class MMGradient(Solver):
    """Gradient descent with the step length of the half-quadratic majorant, Eq. (eq:gradientMM)."""

    name = "mm-gradient"

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return MMSubspace(gradient_direction).iterates(objective, theta, seed)


def _minimise_quadratic(B: Matrix, g: Vector) -> Vector:
    """-B†g: the minimiser of gᵀu + uᵀBu/2, of smallest norm after the directions are scaled.

    B is scaled to a unit diagonal first: beside a direction of length 1e4, a pseudo-inverse would take one of
    length 1e-6 for rounding.
    """
    if not np.all(np.isfinite(B)):
        return np.full(len(g), np.nan)  # the driver ends a run that overflows
    scaled, scale = unit_diagonal(B)
    return np.asarray(-scale * (pinvh(scaled, atol=1e-12, rtol=0.0) @ (scale * g)))
