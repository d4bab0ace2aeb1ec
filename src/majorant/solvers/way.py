"""The way to where Newton's method on Φ itself begins: over problems that are easier, never upwards in Φ.

Some potentials are approached over stepping stones (`Potential.stepping_stones`): the hyperbolic one is
first solved as ℓ1, which finds out quickly which coefficients matter; from there a few Newton steps are
enough, where from zero they are dozens. A non-convex one starts wide and is narrowed. Whatever the way, every
iterate yielded has a Φ no larger than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from majorant.joint import JointObjective
from majorant.objective import Objective
from majorant.potentials import L2
from majorant.status import Evaluated, Iterate, Underway, Vector

# How far a stepping stone is solved before the next, and for how many steps at most; and a stronger penalty
# on the way to one.
STONE_TOLERANCE = 1e-4
STONE_STEPS = 100
APPROACH_TOLERANCE = 1e-2
# The share of Φ that rounding a kink makes at most, Σ c_i φ(0), for it to count as sharp; and how far the
# stone with the sharp kink is then solved.
SHARP = 1e-7
SHARP_TOLERANCE = 1e-10

# From a start whose gap is no larger, Newton steps on Φ itself are fewer than those on stones before it.
NEAR = 0.3

# A ridge of this size, relative to the curvature of the loss, solved for so many steps, tells the size of the
# coefficients with next to no penalty; a fainter one is near a convex potential that is weak: whose slopes
# are at most so steep compared to the pull of the loss.
RIDGE = 1e-3
RIDGE_STEPS = 6
FAINT_RIDGE = 1e-6
WEAK = 1e-4

# By which factor penalties that are too strong fall to the one asked for, at a time.
FALL = 10.0

Problem = TypeVar("Problem", Objective, JointObjective)


def stronger_penalties(objective: Problem, limits: Vector, least: float) -> Iterator[Problem]:
    """The problem with stronger penalties, one weaker than the other, if the pull at zero is so strong.

    `limits` are the pulls that zeros can hold. The last strength is at least twice the one asked for.
    """
    held = limits > 0.0
    strongest = float(np.max(objective.pulls_at_zero[held] / limits[held], initial=1.0))
    if strongest <= least:
        return
    count = max(0, math.floor(math.log(strongest / 2.0, FALL)))
    for factor in strongest / FALL ** np.arange(1, count + 1):
        yield replace(objective, penalty_factor=factor * objective.factor)


class Way(Generic[Problem]):
    """The way, and the lowest point on it so far: `end`.

    What is tried on the way is not shown, since its Φ may be larger: while it lasts, the best point so far is
    yielded, as a point underway, once for every step, so that budgets and callbacks see the time pass.

    Parameters
    ----------
    objective, start
        What is to be minimised in the end, and where the way begins.
    descend : function
        (easier problem, start) ↦ the iterates of the solver on it.
    approaches : function
        (easier problem, start) ↦ problems to be solved roughly before that one, if any.
    """

    def __init__(
        self,
        objective: Problem,
        start: Evaluated,
        descend: Callable[[Problem, Evaluated], Iterator[Iterate]],
        approaches: Callable[[Problem, Evaluated], Iterator[Problem]] = lambda objective, start: iter(()),
    ) -> None:
        self.objective: Problem = objective
        self.end = start
        self.descend: Callable[[Problem, Evaluated], Iterator[Iterate]] = descend
        self.approaches: Callable[[Problem, Evaluated], Iterator[Problem]] = approaches

    def over_stepping_stones(self) -> Iterator[Iterate]:
        """Solve one stone after the other, roughly; end at the lowest point found."""
        objective, potential = self.objective, self.objective.potential
        here, scale = self.end, 1.0
        started = bool(objective.lengths(self.end.theta).any())
        if started and (not potential.convex or objective.estimate(here).error <= NEAR):
            return  # a non-convex fit goes on from where the user says, a convex one if that is near
        if not potential.convex or (self._next_to_no_penalty() and not started):
            strength = (FAINT_RIDGE if potential.convex else RIDGE) * objective.mean_curvature
            ridge = replace(objective, potential=L2(strength))
            here = yield from self._solve(ridge, here, RIDGE_STEPS, STONE_TOLERANCE)
            scale = float(np.max(objective.lengths(here.theta), initial=0.0))
        stones = potential.stepping_stones(scale)
        for stone in stones:
            easier = replace(objective, potential=stone)
            here = yield from self._approach(easier, here)
            # A kink that is hardly rounded is solved as if it were sharp, and all but done.
            sharp = not stone.smooth and objective.constant <= SHARP * here.value
            tolerance = SHARP_TOLERANCE if sharp else STONE_TOLERANCE
            here = yield from self._solve(easier, here, STONE_STEPS, tolerance)
        if stones and not stones[-1].smooth:
            self._keep_if_lower(objective.evaluate(objective.blurred(here)))
        elif not stones:
            yield from self._approach(objective, here)

    def _next_to_no_penalty(self) -> bool:
        """Whether a potential with stones is so weak that a little ridge does nearly as well."""
        potential = self.objective.potential
        pull = float(np.max(self.objective.pulls_at_zero, initial=0.0))
        return bool(potential.stepping_stones(1.0)) and potential.steepest < WEAK * pull

    def _approach(self, easier: Problem, here: Evaluated) -> Generator[Iterate, None, Evaluated]:
        for stronger in self.approaches(easier, here):
            here = yield from self._solve(stronger, here, STONE_STEPS, APPROACH_TOLERANCE)
        return here

    def _solve(
        self, easier: Problem, start: Evaluated, steps: int, tolerance: float
    ) -> Generator[Iterate, None, Evaluated]:
        here = easier.evaluate(start.theta)
        for n, at in enumerate(self.descend(easier, here)):
            if isinstance(at, Evaluated):
                here = at
                # The loss is the same, so Φ is known as well.
                value = at.value - easier.penalty(at.theta) + self.objective.penalty(at.theta)
                self._keep_if_lower(Evaluated(at.theta, value, at.loss_gradient, carried=True))
                if n >= steps or easier.estimate(at).error <= tolerance:
                    break
            yield Underway(self.end.theta, self.end.value)
        return here

    def _keep_if_lower(self, at: Evaluated) -> None:
        if at.value < self.end.value:
            self.end = at
