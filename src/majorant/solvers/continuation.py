"""Continuation: warm-start Newton's method through easier surrogate problems, never upwards in Φ.

A potential names its surrogates (`Potential.surrogates`). The hyperbolic one is first solved as ℓ1, which
finds out quickly which coefficients matter; from there a few Newton steps are enough, where from zero they
are dozens. With a small δ, such as the default, no further step is needed: the certificate of Φ itself is
within the tolerance at the solution of ℓ1, so the iterates of ℓ1 that lower Φ are shown as iterates of Φ. A
non-convex potential starts wide and is narrowed. A faint penalty with a kink is approached from stronger
ones, so that supports stay small. Every iterate has a Φ no larger than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import numpy as np

from majorant.objective import Objective
from majorant.potentials import L2, Potential
from majorant.status import Evaluated, Iterate, Provisional, Vector

# The certificate at which a surrogate is left for the next, and its most steps; and the certificate at which
# a stronger penalty is left for the next.
SURROGATE_TOLERANCE = 1e-4
SURROGATE_STEPS = 100
APPROACH_TOLERANCE = 1e-2
# The share of Φ that rounding a kink makes, Σ c_i φ(0), up to which the kink counts as sharp; and the
# certificate at which the surrogate with the sharp kink is then left. (Zeros cost a tenth of that share on
# leukemia. With 1e-7, its path of 100 strengths took 10 s and 2,027 steps; with 1e-5, 1 s and 180.)
SHARP = 1e-5
SHARP_TOLERANCE = 1e-10

# The relative fall of a surrogate's Φ in one iteration below which it is solved as far as rounding allows.
SETTLED = 1e-14

# The gap of a start up to which Newton's steps on Φ itself are fewer than those on surrogates before it.
NEAR = 0.3

# The strength of a ridge, relative to the curvature of the loss, whose solution tells the size of the
# coefficients with next to no penalty, and the steps to that solution. FAINT_RIDGE stands for a convex
# potential that is weak: its largest slope is at most WEAK times the largest gradient of the loss at zero.
RIDGE = 1e-3
RIDGE_STEPS = 6
FAINT_RIDGE = 1e-6
WEAK = 1e-4

# By which factor penalties that are too strong fall to the one asked for, at a time.
FALL = 10.0


def stronger_penalties(objective: Objective, limits: Vector, least: float) -> Iterator[Objective]:
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


class Continuation:
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
        objective: Objective,
        start: Evaluated,
        descend: Callable[[Objective, Evaluated], Iterator[Iterate]],
        approaches: Callable[[Objective, Evaluated], Iterator[Objective]] = lambda objective, start: iter(()),
    ) -> None:
        self.objective = objective
        self.end = start
        self.descend, self.approaches = descend, approaches

    def over_surrogates(self) -> Iterator[Iterate]:
        """Solve one surrogate after the other, roughly; end at the lowest point found."""
        objective, potential = self.objective, self.objective.potential
        here, scale = self.end, 1.0
        started = bool(objective.lengths(self.end.theta).any())
        sharp = potential.smooth and any(map(self._is_sharp, potential.surrogates(scale)))
        near = not sharp and objective.estimate(here).error <= NEAR
        if started and (not potential.convex or near):
            return  # a non-convex fit goes on from where the user says, a convex one if that is near
        if (potential.smooth and not potential.convex) or (self._next_to_no_penalty() and not started):
            strength = (FAINT_RIDGE if potential.convex else RIDGE) * objective.mean_curvature
            ridge = replace(objective, potential=L2(strength))
            here = yield from self._solve(ridge, here, RIDGE_STEPS, SURROGATE_TOLERANCE)
            scale = float(np.max(objective.lengths(here.theta), initial=0.0))
        surrogates = potential.surrogates(scale)
        for surrogate in surrogates:
            easier = replace(objective, potential=surrogate)
            here = yield from self._approach(easier, here)
            tolerance = SHARP_TOLERANCE if sharp else SURROGATE_TOLERANCE
            here = yield from self._solve(easier, here, SURROGATE_STEPS, tolerance, shown=sharp)
        if potential.smooth and surrogates and not surrogates[-1].smooth:
            self._keep_if_lower(objective.evaluate(objective.smoothed_start(here)))
        elif not surrogates:
            yield from self._approach(objective, here)

    def _is_sharp(self, surrogate: Potential) -> bool:
        """Whether the surrogate has a kink that the potential hardly rounds: both have all but the same Φ."""
        return not surrogate.smooth and self.objective.constant <= SHARP * self.end.value

    def _next_to_no_penalty(self) -> bool:
        """Whether a potential with surrogates is so weak that a little ridge does nearly as well."""
        potential = self.objective.potential
        if not potential.surrogates(1.0):
            return False
        return potential.max_slope < WEAK * float(np.max(self.objective.pulls_at_zero, initial=0.0))

    def _approach(self, easier: Objective, here: Evaluated) -> Generator[Iterate, None, Evaluated]:
        for stronger in self.approaches(easier, here):
            here = yield from self._solve(stronger, here, SURROGATE_STEPS, APPROACH_TOLERANCE)
        return here

    def _solve(
        self, easier: Objective, start: Evaluated, steps: int, tolerance: float, *, shown: bool = False
    ) -> Generator[Iterate, None, Evaluated]:
        """The iterates of an easier problem. If `shown`, each that lowers Φ is an iterate of Φ as well."""
        here = easier.evaluate(start.theta)
        for n, at in enumerate(self.descend(easier, here)):
            done = lower = False
            if isinstance(at, Evaluated):
                settled = at.value > (1.0 - SETTLED) * here.value
                done = settled or n >= steps or easier.estimate(at).error <= tolerance
                here = at
                # The loss is the same, so Φ is known as well.
                value = at.value - easier.penalty(at.theta) + self.objective.penalty(at.theta)
                lower = self._keep_if_lower(Evaluated(at.theta, value, at.loss_gradient, carried=True))
            yield self.end if shown and lower else Provisional(self.end.theta, self.end.value)
            if done:
                break
        return here

    def _keep_if_lower(self, at: Evaluated) -> bool:
        lower = at.value < self.end.value
        if lower:
            self.end = at
        return lower
