"""`newton`: the exact curvature of the active rows, in the engine that fits the shape of the problem.

    features     potential  rows                     engine
    ≤ 1,000      any        dense or crowded (1)     gram.py         the Gram matrix of the active rows
                 kinked     dense, after a start     working_set.py  gram.py on the features that matter
    otherwise    l2 (2)     ≤ features, ≤ 2,500      row_side.py     as many unknowns as rows
                 kinked     any                      columns.py      coordinate descent; Newton on the support
                 smooth     any                      conjugate.py    products with the active rows only

(1) Sparse rows are crowded if they have at least N² entries for N features. With fewer it is the Gram matrix
that costs most, not the rows: for 10,000 rows × 1,000 features with 20 entries a row and ℓ2, 118 ms, not 22.
So are those with at most 100 features; and all rows count as crowded where the other engines are no match:
with a smooth penalty that is not quadratic, or with a feature that is not penalised.
(2) Any quadratic penalty that leaves no feature out.

Some potentials are approached over stepping stones (`Potential.stepping_stones`): the hyperbolic one is
first solved as ℓ1, which finds out quickly which coefficients matter; from there a few Newton steps are
enough, where from zero they are dozens. A non-convex one starts wide and is narrowed. Whatever the way, every
iterate yielded has a smaller Φ than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from majorant.objective import Objective
from majorant.potentials import L2
from majorant.rows import MemoryRows
from majorant.solvers.base import Solver
from majorant.solvers.newton.columns import column_iterates
from majorant.solvers.newton.conjugate import conjugate_iterates
from majorant.solvers.newton.gram import gram_iterates
from majorant.solvers.newton.row_side import row_side_iterates, suits
from majorant.solvers.newton.working_set import working_set_iterates
from majorant.status import Evaluated, Iterate, Underway, Vector

# How far a stepping stone is solved before the next, and for how many steps at most.
STONE_TOLERANCE = 1e-4
STONE_STEPS = 100

# With at most so many rows, the strength of a penalty with a kink falls to its own by this factor at a time,
# and each is solved so far.
FEW_ROWS = 1000
FALL = 10.0
APPROACH_TOLERANCE = 1e-2

# The sample that a cold start begins with: every so-manieth row, so many steps.
SAMPLE = 16
SAMPLE_STEPS = 2

# A ridge of this size, relative to the curvature of the loss, solved for so many steps, tells the size of the
# coefficients with next to no penalty; a fainter one is near a convex potential that is weak: whose slopes
# are at most so steep compared to the pull of the loss.
RIDGE = 1e-3
RIDGE_STEPS = 6
FAINT_RIDGE = 1e-6
WEAK = 1e-4


Engine = Callable[[Objective, MemoryRows, Vector], Iterator[Iterate]]


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method for the piecewise quadratic loss, safeguarded so that Φ never increases.

    Parameters
    ----------
    gram_features : int, default=1000
        Up to how many features the Gram matrix of all of them is formed.
    """

    gram_features: int = 1000

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
        way = _Way(self, objective, rows, objective.evaluate(theta))
        yield way.end
        yield from way.over_stepping_stones()
        yield from self.descend(objective, rows, way.end)

    def descend(self, objective: Objective, rows: MemoryRows, start: Evaluated) -> Iterator[Iterate]:
        """Newton's iterates after the start; from zero, by way of a sample of the rows."""
        rough = self._rough_start(objective, rows, start.theta)
        iterates = self.engine(objective, rows, rough)
        first = next(iterates)
        if not np.array_equal(rough, start.theta):
            if isinstance(first, Evaluated) and first.value < start.value:
                yield first
            else:
                iterates = self.engine(objective, rows, start.theta)
                next(iterates)
        yield from iterates

    def _rough_start(self, objective: Objective, rows: MemoryRows, theta: Vector) -> Vector:
        """A few steps on every 16th row, if these are many: most rows then never enter the Gram matrix.

        (Solving the sample accurately would fit its noise, and takes longer in all.)
        """
        enough = rows.n_samples >= SAMPLE * max(400, objective.size)
        if not enough or theta[:-1].any() or self.choose_engine(objective, rows, theta) is not gram_iterates:
            return theta
        sample = rows.every(SAMPLE)
        iterates = gram_iterates(replace(objective, rows=sample), sample, theta)
        *_, last = islice(iterates, SAMPLE_STEPS + 1)
        return last.theta

    def engine(self, objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Iterate]:
        """Newton's iterates by the engine for the shape of the problem."""
        return self.choose_engine(objective, rows, theta)(objective, rows, theta)

    def choose_engine(self, objective: Objective, rows: MemoryRows, theta: Vector) -> Engine:
        """The rule that the table at the top of this file shows."""
        kinked, dense = not objective.potential.smooth, rows.dense
        if rows.n_features <= self.gram_features and (dense or _crowded(objective, rows)):
            # From zero, nobody knows yet which features matter.
            return working_set_iterates if dense and kinked and theta[:-1].any() else gram_iterates
        if suits(objective, rows):
            return row_side_iterates
        return column_iterates if kinked else conjugate_iterates

    @classmethod
    def examples(cls) -> tuple[Newton, ...]:
        return cls(), cls(gram_features=0)


def _crowded(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix of sparse rows costs less than they do, or there is no good way without it."""
    N, potential = rows.n_features, objective.potential
    entries = sum(block.sparse_entries for block in rows.blocks)
    match = not potential.smooth or potential.quadratic
    return entries >= N**2 or N <= 100 or not match or not objective.penalised


class _Way:
    """The way from the start to where Newton's method on Φ itself begins: never upwards in Φ.

    What is tried on the way is not shown, since its Φ may be larger: while it lasts, the best point so far is
    yielded, as a point underway, once for every step, so that budgets and callbacks see the time pass.
    """

    def __init__(self, newton: Newton, objective: Objective, rows: MemoryRows, start: Evaluated) -> None:
        self.newton, self.objective, self.rows = newton, objective, rows
        self.end = start

    def over_stepping_stones(self) -> Iterator[Iterate]:
        """Solve one stone after the other, roughly; end at the lowest point found."""
        potential = self.objective.potential
        here, scale = self.end, 1.0
        started = bool(self.end.theta[:-1].any())
        if not potential.convex and started:
            return  # a non-convex fit goes on from where the user says
        if not potential.convex or (self._next_to_no_penalty() and not started):
            strength = (FAINT_RIDGE if potential.convex else RIDGE) * float(np.mean(self.rows.gram_diagonal))
            easier = replace(self.objective, potential=L2(strength))
            here = yield from self._solve(easier, here, RIDGE_STEPS, STONE_TOLERANCE)
            scale = float(np.max(np.abs(here.theta[:-1])))
        stones = potential.stepping_stones(scale)
        for stone in stones:
            easier = replace(self.objective, potential=stone)
            here = yield from self._approach(easier, here)
            here = yield from self._solve(easier, here, STONE_STEPS, STONE_TOLERANCE)
        if stones and not stones[-1].smooth:
            self._keep_if_lower(self.objective.evaluate(_blur(self.objective, here)))
        elif not stones:
            yield from self._approach(self.objective, here)

    def _next_to_no_penalty(self) -> bool:
        """Whether a potential with stones is so weak that a little ridge does nearly as well."""
        potential = self.objective.potential
        pull = float(np.max(np.abs(self.rows.loss_at_zero.gradient[:-1]), initial=0.0))
        return bool(potential.stepping_stones(1.0)) and potential.steepest < WEAK * pull

    def _approach(self, objective: Objective, here: Evaluated) -> Generator[Iterate, None, Evaluated]:
        """With few rows, from strong penalties to the one asked for: by way of small supports all along.

        (Straight from zero, the support is soon larger than the number of rows, and the many ways to fit
        them all have to be told from each other.)
        """
        few = self.rows.n_samples <= FEW_ROWS and self.rows.n_features > self.newton.gram_features
        if objective.potential.smooth or not few or here.theta[:-1].any():
            return here
        limits = objective.kink_slopes[:-1]
        pulls = np.abs(self.rows.loss_at_zero.gradient[:-1])
        strongest = float(np.max(pulls[limits > 0.0] / limits[limits > 0.0], initial=1.0))
        # The last of them is at least twice as strong as what is asked for.
        count = max(0, math.floor(math.log(strongest / 2.0, FALL)))
        for factor in strongest / FALL ** np.arange(1, count + 1):
            stronger = replace(objective, penalty_factor=factor * objective.factor)
            here = yield from self._solve(stronger, here, STONE_STEPS, APPROACH_TOLERANCE)
        return here

    def _solve(
        self, easier: Objective, start: Evaluated, steps: int, tolerance: float
    ) -> Generator[Iterate, None, Evaluated]:
        here = easier.evaluate(start.theta)
        for n, at in enumerate(self.newton.descend(easier, self.rows, here)):
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


def _blur(objective: Objective, at: Evaluated) -> Vector:
    """Move the zeros of the sharp solution to where the smooth potential balances the pull of the loss."""
    theta = at.theta.copy()
    zero = (theta[:-1] == 0.0) & (objective.factor > 0.0)
    slope = -at.loss_gradient[:-1][zero] / objective.factor[zero]
    largest = 0.999 * objective.potential.steepest  # at the largest itself the balance is at infinity
    theta[:-1][zero] = objective.potential.at_slope(np.clip(slope, -largest, largest))
    return theta
