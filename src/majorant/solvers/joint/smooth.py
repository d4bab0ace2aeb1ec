"""A differentiable potential: Newton's method on all classes together.

The joint counterpart of `newton/conjugate.py`. The classes are coupled by the penalty alone, feature by
feature: by the exact Hessian where φ is convex; where it is not, by the half-quadratic ψ I, which majorises.
Newton's equations are solved by a factorisation where they are small, else by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from majorant.interrupts import check
from majorant.joint import JointObjective, lengths
from majorant.linsolve import FORCING, MAX_STEPS, conjugate_gradients, rounding_level, solve_positive
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.newton.models import FLOOR
from majorant.solvers.search import step_or_refresh
from majorant.status import Evaluated, Matrix, Vector

# Up to how many entries the Gram matrices of all classes may have, to be formed.
GRAM_ENTRIES = 2_000_000
# Up to how many unknowns, all classes together, their equations are solved by a factorisation.
DIRECT = 1200


def smooth_iterates(objective: JointObjective, theta: Vector) -> Iterator[Evaluated]:
    """Truncated Newton with the curvature of the active rows of every class."""
    at = objective.evaluate(theta)
    quadratic = JointQuadratic(objective, theta)
    while True:
        yield at
        gradient = objective.gradient(at)
        d = -newton_direction(objective, quadratic, at.theta, gradient)
        at = objective.evaluate(step_or_refresh(objective, quadratic, at, at.theta + d, -float(gradient @ d)))


def newton_direction(
    objective: JointObjective,
    quadratic: JointCurvature,
    theta: Vector,
    gradient: Vector,
    accuracy: float = FORCING,
    max_steps: int = MAX_STEPS,
) -> Vector:
    """The gradient over the curvature, the equations solved to that accuracy."""
    penalty = PenaltyCurvature(objective, theta)
    if quadratic.gram and not penalty.less.any():
        return quadratic.solve(penalty.across, gradient)
    if quadratic.gram and len(theta) <= DIRECT:
        return solve_positive(quadratic.matrix_with(penalty), gradient, quadratic.noise, FLOOR)
    return conjugate_gradients(
        lambda d: quadratic.product(d) + penalty.product(d),
        gradient,
        penalty.preconditioner(quadratic.diagonal),
        accuracy,
        max_steps,
    )


class PenaltyCurvature:
    """The Hessian of Σ c_i φ(‖W_·i‖) + η/2 ‖W‖²: one number across a feature's direction, one along it."""

    def __init__(self, objective: JointObjective, theta: Vector) -> None:
        W = objective.matrix(theta)[:, :-1]
        t = lengths(W)
        self.classes = len(W)
        self.across = objective.weights(theta)
        # A kink is far away, or there would be no Hessian; a tangent in ‖W_·i‖ has no curvature along W_·i.
        along = np.full_like(t, objective.eta)
        if objective.potential.smooth:
            # Of a potential that is not convex, `curvature` is ψ: the same in all directions.
            along += objective.factor * objective.potential.curvature(t)
        self.less = np.maximum(self.across - along, 0.0)
        self.direction = W / np.where(t > 0.0, t, 1.0)

    def product(self, d: Vector) -> Vector:
        D = d.reshape(self.classes, -1)
        product = np.zeros_like(D)
        projection = np.einsum("ci,ci->i", self.direction, D[:, :-1])
        product[:, :-1] = self.across * D[:, :-1] - self.direction * (self.less * projection)
        return product.ravel()

    def preconditioner(self, diagonal: Matrix) -> Vector:
        """The diagonal of the curvature, if the loss has this one, a row per class or one for all."""
        whole = np.tile(diagonal, (self.classes // len(diagonal), 1))
        whole[:, :-1] += self.across
        return np.where(whole > 0.0, whole, 1.0).ravel()


class JointCurvature:
    """The curvature of the loss at θ, which does not tie the classes: a matrix H for each.

    Parameters
    ----------
    matrices : sequence of arrays
        The H.
    noise : float
        The rounding of a gradient.
    """

    gram = True
    """Whether the matrices are there."""

    def __init__(self, matrices: Sequence[Matrix], noise: float) -> None:
        self._matrices, self.noise = matrices, noise

    @property
    def matrices(self) -> Sequence[Matrix]:
        """H, class by class."""
        return self._matrices

    @property
    def diagonal(self) -> Matrix:
        """The diagonals of the H, or bounds of them: a row per class, or one for all."""
        return np.stack([np.diagonal(H) for H in self.matrices])

    def product(self, d: Vector) -> Vector:
        """H d, class by class."""
        rows = d.reshape(len(self.matrices), -1)
        return np.concatenate([H @ row for H, row in zip(self.matrices, rows, strict=True)])

    def solve(self, diagonal: Vector, gradient: Vector) -> Vector:
        """Where the same diagonal is all that the penalty adds, the classes do not see each other."""
        solutions = []
        for H, row in zip(self.matrices, gradient.reshape(len(self.matrices), -1), strict=True):
            check()
            A = H.copy()
            A.flat[: -1 : len(A) + 1] += diagonal
            solutions.append(solve_positive(A, row, self.noise, FLOOR))
        return np.concatenate(solutions)

    def matrix_with(self, penalty: PenaltyCurvature) -> Matrix:
        """The Hessian: a block for each class, and the penalty's, which ties them feature by feature."""
        C, p = len(self.matrices), len(self.matrices[0])
        A = np.zeros((C, p, C, p))
        for c, H in enumerate(self.matrices):
            A[c, :, c, :] = H
        ties = np.einsum("cidi->cdi", A)[:, :, :-1]  # a view
        ties -= penalty.less * penalty.direction[:, np.newaxis] * penalty.direction
        for c in range(C):
            ties[c, c] += penalty.across
        return A.reshape(C * p, C * p)


class JointQuadratic(JointCurvature):
    """The quadratics of all classes as one, for the line search."""

    def __init__(self, objective: JointObjective, theta: Vector) -> None:
        assert objective.in_memory is not None
        single = objective.single
        super().__init__([], rounding_level(single.rows.loss_at_zero.value, single.size))
        self.matrix, self.theta, self.rows = objective.matrix, theta, single.rows
        self.gram = len(objective.classes) * single.size**2 <= GRAM_ENTRIES
        pairs = zip(objective.in_memory, self.matrix(theta), strict=True)
        self.parts = [ActiveQuadratic(rows, row, gram=self.gram) for rows, row in pairs]

    @property
    def matrices(self) -> Sequence[Matrix]:
        return [part.H for part in self.parts]

    @property
    def diagonal(self) -> Matrix:
        return 2.0 * self.rows.gram_diagonal[np.newaxis]

    def product(self, d: Vector) -> Vector:
        if self.gram:
            return super().product(d)
        pairs = zip(self.parts, self.matrix(d), strict=True)
        return np.concatenate([part.product(row) for part, row in pairs])

    def advance(self, d: Vector) -> float:
        return sum(part.advance(row) for part, row in zip(self.parts, self.matrix(d), strict=True))

    def loss_at(self, t: float) -> float:
        return sum(part.loss_at(t) for part in self.parts)

    def move(self, t: float) -> None:
        for part in self.parts:
            part.move(t)

    def settle(self, theta: Vector) -> None:
        self.theta = theta
        for part, row in zip(self.parts, self.matrix(theta), strict=True):
            part.settle(row)

    def refresh(self, theta: Vector) -> None:
        self.theta = theta
        for part, row in zip(self.parts, self.matrix(theta), strict=True):
            part.refresh(row)
