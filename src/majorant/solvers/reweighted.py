r"""Smooth potentials that are not convex: majorization-minimization with every majorant minimised exactly.

The half-quadratic majorant of the penalty at θ (Prop. (prp:sHingeMM)) is a ridge with a weight for every
feature, c_i ψ(‖W_i‖)/2 ‖W_i‖². With the loss as it is, the majorant is convex, and Newton's method finds its
minimum to rounding in a few steps. Its minimiser is the next θ; Φ never rises.

From zero, every coefficient would be caught in the narrow well around it. So the way begins at a ridge
solution and leads over wider potentials (`Potential.stepping_stones`), some steps for each. In the end,
coefficients that zero holds, but whose release would lower Φ, are released one after the other.

Which minimum is found must not depend on rounding: not on how rows are ordered, repeated or cut, nor on the
machine. So the number of steps on each potential is fixed, every majorant is minimised to rounding, choices
are made with a margin, and a ridge of `UNIQUE`, relative to the curvature of the loss along each feature,
makes every minimiser unique where the loss is flat. (It moves Φ by its square only.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, Generic

import numpy as np

from majorant.joint import JointObjective
from majorant.potentials import L2
from majorant.rows import Rows
from majorant.solvers.way import Problem
from majorant.status import Evaluated, Iterate, Underway, Vector

# The ridge that the way begins with, and the one that makes minimisers unique, relative to the curvature of
# the loss along each feature.
FIRST_RIDGE = 1e-3
UNIQUE = 1e-8
# Majorants minimised for each stepping stone; and for the potential itself at most.
STONE_STEPS = 4
FINAL_STEPS = 200
# A change of the coefficients, relative to the largest in units of their features, that is taken for none;
# and Newton's steps to the minimum of a majorant at most.
SETTLED = 1e-11
INNER_STEPS = 60
# How many coefficients are released one by one, and how much lower, relatively, Φ must promise to be.
RELEASES = 30
PROMISE = 1e-3


def reweighted_iterates(
    objective: Problem, start: Evaluated, descend: Callable[[Problem, Evaluated], Iterator[Iterate]]
) -> Iterator[Iterate]:
    """The iterates after the start; `descend` yields those of a convex problem after its start."""
    return _Reweighted(objective, start, descend).iterates()


def spread(rows: Rows) -> Vector:
    """2 Σ s (x - x̄)², the curvature of the loss along each feature with all rows active."""
    survey = rows.survey
    squares = survey.squares[:-1]
    if survey.squares[-1] > 0.0:
        sums = 0.5 * (survey.negative.gradient[:-1] - survey.positive.gradient[:-1])
        centred = squares - sums**2 / survey.squares[-1]
        # What is left of a constant column is rounding.
        squares = np.where(centred > 1e-12 * squares, centred, 0.0)
    return np.asarray(2.0 * squares)


class _Reweighted(Generic[Problem]):
    def __init__(
        self,
        objective: Problem,
        start: Evaluated,
        descend: Callable[[Problem, Evaluated], Iterator[Iterate]],
    ) -> None:
        self.objective: Problem = objective
        self.best = start
        self.descend: Callable[[Problem, Evaluated], Iterator[Iterate]] = descend
        joint = isinstance(objective, JointObjective)
        self.spread = spread(objective.classes[0] if joint else objective.rows)
        # A feature without any spread has no business with the loss.
        self.unique = UNIQUE * np.where(self.spread > 0.0, self.spread, 1.0)

    def iterates(self) -> Iterator[Iterate]:
        objective, potential = self.objective, self.objective.potential
        theta = self.best.theta
        if not objective.lengths(theta).any():
            theta = yield from self._minimise(theta, FIRST_RIDGE * self.spread + self.unique)
            scale = float(np.max(objective.lengths(theta), initial=0.0))
            for stone in potential.stepping_stones(scale):
                for _ in range(STONE_STEPS):
                    theta = yield from self._minimise(theta, self._weights(theta, stone))
        theta = yield from self._settle(theta)
        yield from self._release(theta)
        while True:
            yield self.best

    def _weights(self, theta: Vector, potential: Any) -> Vector:
        """The ridge that majorises the penalty at θ, and makes the minimiser unique."""
        objective = self.objective
        weight = objective.factor * potential.weight(objective.lengths(theta))
        return np.asarray(weight + objective.eta + self.unique)

    def _minimise(self, theta: Vector, ridge: Vector) -> Generator[Iterate, None, Vector]:
        """The minimiser of the loss and that ridge, from θ."""
        yield Underway(self.best.theta, self.best.value)
        easier = replace(self.objective, potential=L2(1.0), eta=0.0, penalty_factor=ridge)
        here = easier.evaluate(theta)
        for n, at in enumerate(self.descend(easier, here)):
            if isinstance(at, Evaluated):
                settled = at.value >= here.value or self._change(here.theta, at.theta) <= SETTLED
                here = at if at.value < here.value else here
                if settled or n >= INNER_STEPS:
                    break
        return here.theta

    def _change(self, theta: Vector, moved: Vector) -> float:
        """How far the coefficients have moved, relative to the largest in units of their features."""
        unit, lengths = np.sqrt(self.spread), self.objective.lengths
        size = float(np.max(unit * lengths(moved), initial=0.0))
        return float(np.max(unit * lengths(moved - theta), initial=0.0)) / size if size > 0.0 else 0.0

    def _settle(self, theta: Vector) -> Generator[Iterate, None, Vector]:
        """Majorise and minimise until θ stays where it is; the points are shown if Φ falls."""
        for _ in range(FINAL_STEPS):
            moved = yield from self._minimise(theta, self._weights(theta, self.objective.potential))
            change, theta = self._change(theta, moved), moved
            yield self._shown(theta)
            if change <= SETTLED:
                break
        return theta

    def _shown(self, theta: Vector) -> Iterate:
        at = self.objective.evaluate(theta)
        if at.value < self.best.value:
            self.best = at
            return at
        return Underway(self.best.theta, self.best.value)

    def _release(self, theta: Vector) -> Iterator[Iterate]:
        """Let go, one by one, of coefficients that are better off outside the well around zero."""
        objective = self.objective
        limit = float(objective.potential.excess(np.array([1e100]))[0])
        if not math.isfinite(limit):
            return
        width = objective.potential.zero_width
        at = objective.evaluate(theta)
        for _ in range(RELEASES):
            inside = (objective.lengths(at.theta) <= width) & (self.spread > 0.0)
            pulls = objective.lengths(at.loss_gradient)
            gains = np.where(inside, 0.5 * pulls**2 / np.where(inside, self.spread, 1.0), 0.0)
            gains -= objective.factor * limit
            gains[~inside] = -math.inf
            chosen = int(np.argmax(gains)) if len(gains) else 0
            if not len(gains) or not gains[chosen] > PROMISE * at.value:
                return
            ridge = self._weights(at.theta, objective.potential)
            ridge[chosen] = objective.eta + self.unique[chosen]
            moved = yield from self._minimise(at.theta, ridge)
            moved = yield from self._settle(moved)
            there = objective.evaluate(moved)
            if not there.value < (1.0 - PROMISE) * at.value:
                return
            at = there
