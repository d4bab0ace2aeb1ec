r"""Smooth potentials that are not convex: majorization-minimization with every majorant minimised exactly.

The half-quadratic majorant of the penalty at θ (Prop. (prp:sHingeMM)) is a ridge with a weight for every
feature, c_i ψ(‖W_i‖)/2 ‖W_i‖². With the loss as it is, the majorant is convex, and Newton's method finds its
minimum to rounding in a few steps. Its minimiser is the next θ; Φ never rises.

From zero, every coefficient would be caught in the narrow well around it. So the way begins at a ridge
solution and leads over wider potentials (`Potential.surrogates`), some steps for each. In the end,
coefficients that zero holds, but whose release would lower Φ, are released one after the other.

Which minimum is found must not depend on rounding: not on how rows are ordered, repeated or cut, nor on the
machine. So the number of steps on each potential is fixed, every majorant is minimised to rounding, choices
are made with a margin, and a ridge of `UNIQUE`, relative to the curvature of the loss along each feature,
makes every minimiser unique where the loss is flat; in the end, a proximal term of this weight. Where
features are so nearly dependent that this term holds θ back, which shows in a majorant that falls clearly
without it, its weight is lowered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from majorant.interrupts import check
from majorant.objective import Objective
from majorant.potentials import L2
from majorant.rows import Rows
from majorant.solvers.dense import TINY, DenseRidge, small_enough
from majorant.status import Evaluated, Iterate, Provisional, Vector

# The ridge that the way begins with, and the one that makes minimisers unique, relative to the curvature of
# the loss along each feature.
FIRST_RIDGE = 1e-3
UNIQUE = 1e-8
# The weights of the proximal term that are tried in turn, in units of `UNIQUE`, and the relative fall of a
# majorant without the term above which the next weight is tried.
PROXIMAL = (1.0, 1e-2, 1e-4, 1e-6)
CLEAR_FALL = 1e-7
# Majorants minimised for each surrogate; and for the potential itself at most.
SURROGATE_STEPS = 4
FINAL_STEPS = 100
# A change of the coefficients, relative to the largest in units of their features, that is taken for none;
# and Newton's steps to the minimum of a majorant at most.
SETTLED = 1e-11
INNER_STEPS = 60
# The ratio of a step to the one before it above which the steps are extrapolated.
SLOW = 0.3
# How many coefficients are released one by one, and how much lower, relatively, Φ must promise to be.
RELEASES = 30
PROMISE = 1e-3


Minimise = Callable[[Any, Vector, float], Vector]
"""A problem with a ridge, where to begin, the weight of a proximal term there ↦ the minimiser."""


def reweighted_iterates(objective: Objective, start: Evaluated, minimise: Minimise) -> Iterator[Iterate]:
    """The iterates after the start."""
    if small_enough(objective):
        minimise = DenseRidge(objective).minimise
    return _Reweighted(objective, start, minimise).iterates()


def minimised(
    problem: Objective,
    theta: Vector,
    proximal: float = 0.0,
    *,
    descend: Callable[[Objective, Evaluated], Iterator[Iterate]],
) -> Vector:
    """The minimiser of a problem with a ridge, from θ, by the iterates of a solver on it.

    There is no proximal term: where the loss is flat, these iterates move as little as they can.
    """
    here = problem.evaluate(theta)
    unit = problem.column_lengths
    for n, at in enumerate(descend(problem, here)):
        check()
        if isinstance(at, Evaluated):
            settled = at.value >= here.value or change(problem, unit, here.theta, at.theta) <= SETTLED
            here = at if at.value < here.value else here
            if settled or n >= INNER_STEPS:
                break
    return here.theta


def change(objective: Objective, unit: Vector, theta: Vector, moved: Vector) -> float:
    """How far the coefficients have moved, relative to the largest in units of their features."""
    size = float(np.max(unit * objective.lengths(moved), initial=0.0))
    return float(np.max(unit * objective.lengths(moved - theta), initial=0.0)) / size if size > 0.0 else 0.0


def spread(rows: Rows) -> Vector:
    """2 Σ s (x - x̄)², the curvature of the loss along each feature with all rows active."""
    stats = rows.stats_at_zero
    squares = stats.squares[:-1]
    if stats.squares[-1] > 0.0:
        sums = 0.5 * (stats.negative.gradient[:-1] - stats.positive.gradient[:-1])
        centred = squares - sums**2 / stats.squares[-1]
        # What is left of a constant column is rounding.
        squares = np.where(centred > 1e-12 * squares, centred, 0.0)
    return np.asarray(2.0 * squares)


class _Reweighted:
    def __init__(self, objective: Objective, start: Evaluated, minimise: Minimise) -> None:
        self.objective, self.minimise = objective, minimise
        self.best = self.shown = start
        self.spread = spread(objective.classes[0])
        # A feature without any spread has no business with the loss.
        self.unique = UNIQUE * np.where(self.spread > 0.0, self.spread, 1.0)

    def iterates(self) -> Iterator[Iterate]:
        objective, potential = self.objective, self.objective.potential
        theta = self.best.theta
        if not objective.lengths(theta).any():
            theta = yield from self._minimise(theta, FIRST_RIDGE * self.spread + self.unique)
            scale = float(np.max(objective.lengths(theta), initial=0.0))
            for surrogate in potential.surrogates(scale):
                for _ in range(SURROGATE_STEPS):
                    theta = yield from self._minimise(theta, self._weights(theta, surrogate) + self.unique)
        start = self.best
        theta = yield from self._settle(theta)
        if self.best is start:  # the way has led nowhere: what is lower is near the start
            theta = yield from self._settle(start.theta)
        yield from self._release(theta)
        while True:
            yield self.best

    def _weights(self, theta: Vector, potential: Any) -> Vector:
        """The ridge that majorises the penalty at θ."""
        return replace(self.objective, potential=potential).half_quadratic_weights(theta)

    def _minimise(
        self, theta: Vector, ridge: Vector, proximal: float = 0.0
    ) -> Generator[Iterate, None, Vector]:
        """The minimiser of the loss and that ridge, from θ."""
        yield Provisional(self.best.theta, self.best.value)
        return self.minimise(self._with_ridge(ridge), theta, proximal)

    def _with_ridge(self, ridge: Vector) -> Objective:
        return replace(self.objective, potential=L2(1.0), eta=0.0, penalty_factor=ridge)

    def _settle(self, theta: Vector) -> Generator[Iterate, None, Vector]:
        """Majorise and minimise until θ stays where it is, also without a proximal term.

        The weight of that term falls step by step. The lowest point is kept in `best`, and shown.
        """
        objective = self.objective
        for share in PROXIMAL:
            theta = yield from self._repeat(theta, share * UNIQUE)
            ridge = self._weights(theta, objective.potential)
            majorant = self._with_ridge(ridge)
            moved = yield from self._minimise(theta, ridge)
            if not majorant.evaluate(moved).value < (1.0 - CLEAR_FALL) * majorant.evaluate(theta).value:
                break
            theta = moved
            self._keep_if_lower(theta)
        if self.best is not self.shown:  # the same point once more would end the run
            self.shown = self.best
            yield self.best
        return theta

    def _repeat(self, theta: Vector, proximal: float) -> Generator[Iterate, None, Vector]:
        """Majorise and minimise until θ stays where it is.

        Where a geometric series of such steps would lead, θ goes at once, if Φ is clearly lower there.
        """
        objective, unit = self.objective, np.sqrt(self.spread)
        step = np.zeros_like(theta)
        for _ in range(FINAL_STEPS):
            weights = self._weights(theta, objective.potential)
            moved = yield from self._minimise(theta, weights, proximal)
            settled = change(objective, unit, theta, moved) <= SETTLED
            before, step, theta = step, moved - theta, moved
            ratio = float(before @ step) / max(float(before @ before), TINY)
            if SLOW < ratio < 1.0:
                ahead = moved + ratio / (1.0 - ratio) * step
                if objective.evaluate(ahead).value < (1.0 - SETTLED) * objective.evaluate(moved).value:
                    step, theta = np.zeros_like(theta), ahead
            self._keep_if_lower(theta)
            if settled:
                break
        return theta

    def _keep_if_lower(self, theta: Vector) -> None:
        at = self.objective.evaluate(theta)
        if at.value < self.best.value:
            self.best = at

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
            gains = 0.5 * pulls**2 / np.where(inside, self.spread, 1.0) - objective.factor * limit
            gains[~inside] = -math.inf
            if not gains.max(initial=-math.inf) > PROMISE * at.value:
                return
            chosen = int(np.argmax(gains))
            ridge = self._weights(at.theta, objective.potential) + self.unique
            ridge[chosen] = objective.eta + self.unique[chosen]
            moved = yield from self._minimise(at.theta, ridge)
            moved = yield from self._settle(moved)
            before, at = at, objective.evaluate(moved)
            if not at.value < (1.0 - PROMISE) * before.value:
                return
