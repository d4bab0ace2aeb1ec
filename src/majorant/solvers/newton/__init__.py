"""`newton`: the exact curvature of the active rows, in the engine that fits the shape of the problem.

    potential      features          engine
    any            ≤ 1,000           gram.py         the Gram matrix of the active rows, updated
    with a kink    more              working_set.py  gram.py on the features that matter
    smooth         more              conjugate.py    products with the active rows only

Some potentials are approached over stepping stones (`Potential.stepping_stones`): the hyperbolic one is
first solved as ℓ1, which finds out quickly which coefficients matter; from there a few Newton steps are
enough, where from zero they are dozens. A non-convex one starts wide and is narrowed. Whatever the way, every
iterate yielded has a smaller Φ than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from majorant.objective import Objective
from majorant.potentials import L2, Potential
from majorant.rows import MemoryRows
from majorant.solvers.base import Solver
from majorant.solvers.newton.conjugate import conjugate_iterates
from majorant.solvers.newton.gram import gram_iterates
from majorant.solvers.newton.working_set import working_set_iterates
from majorant.status import Evaluated, Iterate, Vector

GRAM_FEATURES = 1000

# How far a stepping stone is solved before the next, and for how many steps at most.
STONE_TOLERANCE = 1e-4
STONE_STEPS = 100

# Enough to know the size of the coefficients with next to no penalty.
RIDGE_STEPS = 6


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method for the piecewise quadratic loss, safeguarded so that Φ never increases."""

    name = "newton"

    def objection(self, objective: Objective) -> str | None:
        potential = objective.potential
        if not (potential.smooth or potential.concave):
            return (
                "needs a potential that is differentiable or concave on [0, ∞[, and "
                f"{potential.name!r} is neither"
            )
        if not isinstance(objective.rows, MemoryRows):
            return "needs rows that are in memory"
        return None

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        rows = objective.rows
        assert isinstance(rows, MemoryRows)  # what `objection` has made sure of
        best = objective.evaluate(theta)
        yield best
        way = _Way(objective, rows, best)
        yield from way.over_stepping_stones()
        iterates = _engine(objective, rows, way.end.theta)
        next(iterates)  # the end of the way, already yielded
        yield from iterates


def _engine(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    if rows.n_features <= GRAM_FEATURES:
        return gram_iterates(objective, rows, theta)
    if objective.potential.smooth:
        return conjugate_iterates(objective, rows, theta)
    return working_set_iterates(objective, rows, theta)


class _Way:
    """The way from the start to where Newton's method on Φ itself begins: never upwards in Φ."""

    def __init__(self, objective: Objective, rows: MemoryRows, start: Evaluated) -> None:
        self.objective = objective
        self.rows = rows
        self.end = start

    def over_stepping_stones(self) -> Iterator[Evaluated]:
        theta = self.end.theta
        stones, theta = self._stones(theta)
        for stone in stones:
            easier = Objective(self.rows, stone, self.objective.eta, self.objective.factor)
            for n, at in enumerate(_engine(easier, self.rows, theta)):
                if n == STONE_STEPS or easier.stationarity(at) <= STONE_TOLERANCE:
                    break
            theta = at.theta
            yield from self._if_lower(theta)
        if stones and not stones[-1].smooth:
            yield from self._if_lower(_blur(self.objective, at))

    def _stones(self, theta: Vector) -> tuple[tuple[Potential, ...], Vector]:
        potential = self.objective.potential
        if potential.convex:
            return potential.stepping_stones(1.0), theta
        if theta[:-1].any():
            return (), theta  # a non-convex fit goes on from where the user says
        ridge = L2(1e-3 * float(np.mean(self.objective.gram_diagonal)))
        *_, at = islice(_engine(Objective(self.rows, ridge), self.rows, theta), RIDGE_STEPS)
        return potential.stepping_stones(float(np.max(np.abs(at.theta[:-1])))), at.theta

    def _if_lower(self, theta: Vector) -> Iterator[Evaluated]:
        at = self.objective.evaluate(theta)
        if at.value < self.end.value:
            self.end = at
            yield at


def _blur(objective: Objective, at: Evaluated) -> Vector:
    """Move the zeros of the sharp solution to where the smooth potential balances the pull of the loss."""
    theta = at.theta.copy()
    zero = (theta[:-1] == 0.0) & (objective.factor > 0.0)
    slope = -at.loss_gradient[:-1][zero] / objective.factor[zero]
    # At the largest slope itself the balance is at infinity.
    largest = 0.999 * float(
        objective.potential.derivative(np.array([1e6 * objective.potential.zero_width]))[0]
    )
    theta[:-1][zero] = objective.potential.at_slope(np.clip(slope, -largest, largest))
    return theta
