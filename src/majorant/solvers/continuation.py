"""Continuation: warm-start Newton's method through easier surrogate problems, never upwards in Φ.

A potential names its surrogates (`Potential.surrogates`). A problem with the hyperbolic potential is first
solved with ℓ1, which quickly finds the coefficients that are not zero; then a few Newton steps suffice, where
from zero dozens are needed. With a small δ, such as the default, no further step is needed: at the solution
of ℓ1 the certificate of Φ is within the tolerance, so the iterates of ℓ1 that lower Φ are yielded as iterates
of Φ. A non-convex potential starts wide and becomes narrower. A weak penalty with a kink is approached from
stronger ones, so that supports stay small. Φ never increases from one iterate to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import numpy as np

from majorant.objective import Objective
from majorant.potentials import L2, Potential
from majorant.status import Evaluated, Iterate, Provisional, Vector

# The certificate at which a surrogate counts as solved, and its most steps; and the certificate at which a
# problem with a stronger penalty counts as solved.
SURROGATE_TOLERANCE = 1e-4
SURROGATE_STEPS = 100
APPROACH_TOLERANCE = 1e-2
# A rounded kink is sharp if the constant Σ c_i φ(0) is at most this share of Φ; SHARP_TOLERANCE is the
# certificate at which the surrogate with the kink then counts as solved. (On leukemia, zeros cost a tenth of
# that share. With 1e-7, its path of 100 strengths took 10 s and 2,027 steps; with 1e-5, 1 s and 180.)
SHARP = 1e-5
SHARP_TOLERANCE = 1e-10

# The relative fall of a surrogate's Φ in one iteration below which rounding allows no further progress.
SETTLED = 1e-14

# The gap of a start up to which Newton's method on Φ takes fewer steps than by way of the surrogates.
NEAR = 0.3

# The strength of a ridge, relative to the curvature of the loss. Its solution, after RIDGE_STEPS steps, has
# coefficients of the size that they have almost without penalty. FAINT_RIDGE is the ridge for a weak convex
# potential, whose largest slope is at most WEAK times the largest gradient of the loss at zero.
RIDGE = 1e-3
RIDGE_STEPS = 6
FAINT_RIDGE = 1e-6
WEAK = 1e-4

# The factor from one stronger penalty to the next.
STRENGTH_FACTOR = 10.0


def stronger_penalties(objective: Objective, limits: Vector, least: float) -> Iterator[Objective]:
    """The problem with stronger penalties, from the strongest to the weakest.

    `limits` are the gradients of the loss up to which coefficients stay zero. No problems unless λ_max is
    more than `least` times the given strength. The weakest has at least twice that strength.
    """
    limited = limits > 0.0
    strongest = float(np.max(objective.gradient_norms_at_zero[limited] / limits[limited], initial=1.0))
    if strongest <= least:
        return
    count = max(0, math.floor(math.log(strongest / 2.0, STRENGTH_FACTOR)))
    for factor in strongest / STRENGTH_FACTOR ** np.arange(1, count + 1):
        yield replace(objective, penalty_factor=factor * objective.factor)


class Continuation:
    """A sequence of easier problems, each started at the solution of the last one.

    `end` is the point with the lowest Φ so far. The points of easier problems may have a larger Φ, so they
    are not yielded: each step yields `end` as a `Provisional` iterate, so that budgets and callbacks are
    asked.

    Parameters
    ----------
    objective, start
        The problem to minimise, and the first point.
    descend : function
        (easier problem, start) ↦ the iterates of the solver.
    approaches : function
        (easier problem, start) ↦ problems to solve roughly before this one.
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
        """Solve the surrogates roughly, one after the other; `end` becomes the lowest point found."""
        objective, potential = self.objective, self.objective.potential
        here, scale = self.end, 1.0
        started = bool(objective.lengths(self.end.theta).any())
        sharp = potential.smooth and any(map(self._is_sharp, potential.surrogates(scale)))
        near = not sharp and objective.estimate(here).error <= NEAR
        if started and (not potential.convex or near):
            return  # a non-convex fit continues at the user's start, a convex one if that is near
        if (potential.smooth and not potential.convex) or (self._is_weak() and not started):
            curvature = float(np.mean(objective.rows.gram_diagonal))
            strength = (FAINT_RIDGE if potential.convex else RIDGE) * curvature
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
        """Whether the surrogate has a kink that the potential hardly rounds: both have nearly the same Φ."""
        return not surrogate.smooth and self.objective.constant <= SHARP * self.end.value

    def _is_weak(self) -> bool:
        """Whether a potential with surrogates is so weak that the solution of FAINT_RIDGE is near."""
        potential = self.objective.potential
        if not potential.surrogates(1.0):
            return False
        return potential.max_slope < WEAK * float(np.max(self.objective.gradient_norms_at_zero, initial=0.0))

    def _approach(self, easier: Objective, here: Evaluated) -> Generator[Iterate, None, Evaluated]:
        for stronger in self.approaches(easier, here):
            here = yield from self._solve(stronger, here, SURROGATE_STEPS, APPROACH_TOLERANCE)
        return here

    def _solve(
        self, easier: Objective, start: Evaluated, steps: int, tolerance: float, *, shown: bool = False
    ) -> Generator[Iterate, None, Evaluated]:
        """Solve an easier problem. If `shown`, each of its iterates that lowers Φ is yielded."""
        here = easier.evaluate(start.theta)
        for n, at in enumerate(self.descend(easier, here)):
            done = lower = False
            if isinstance(at, Evaluated):
                settled = at.value > (1.0 - SETTLED) * here.value
                done = settled or n >= steps or easier.estimate(at).error <= tolerance
                here = at
                # The loss is the same, so Φ follows without a pass.
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
