"""`newton`: the exact curvature of the active rows, in the engine that fits the shape of the problem.

    features     potential  rows                     engine
    any          l2 (2)     ≤ features, ≤ 2,500      row_side.py     as many unknowns as rows
    > 50         kinked (4) ≤ 2 × features           columns.py      coordinate descent; Newton on the support
    ≤ 1,000      any        dense or crowded (1)     gram.py         the Gram matrix of the active rows
                 kinked     dense, after a start     working_set.py  gram.py on the features that matter
    otherwise    kinked     any                      columns.py
                 smooth     any                      conjugate.py    products with the active rows only
    ≤ 3,000      any        not in memory            passes.py       a pass over the rows for every step
    otherwise    kinked (3) not in memory            few_columns.py  the same, with H of those that may move
                 convex     not in memory            conjugate_passes.py    a pass for every product with H

(1) Sparse rows are crowded if they have at least N² entries for N features. With fewer it is the Gram matrix
that costs most, not the rows: for 10,000 rows × 1,000 features with 20 entries a row and ℓ2, 118 ms, not 22.
So are those with at most 100 features; and all rows count as crowded where the other engines are no match:
with a smooth penalty that is not quadratic, or with a feature that is not penalised.
(2) Any quadratic penalty that leaves no feature out.
(3) Or with a kink that is rounded: ℓ1 and hyperbolic. What is not convex is left to `mm-subspace`.
(4) With a penalty on every feature.

Some potentials are approached over stepping stones (`solvers/way.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.base import Solver
from majorant.solvers.interior import or_interior_point
from majorant.solvers.newton.columns import column_iterates
from majorant.solvers.newton.conjugate import conjugate_iterates
from majorant.solvers.newton.conjugate_passes import CONJUGATE
from majorant.solvers.newton.few_columns import FEW_COLUMNS
from majorant.solvers.newton.gram import carried_start, gram_iterates
from majorant.solvers.newton.passes import ALL_COLUMNS, MAX_FEATURES
from majorant.solvers.newton.row_side import row_side_iterates, suits
from majorant.solvers.newton.working_set import working_set_iterates
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.solvers.sample import Engine as PassEngine
from majorant.solvers.sample import iterates_in_passes
from majorant.solvers.way import Way, stronger_penalties
from majorant.status import Evaluated, Iterate, Vector

# With at most so many rows, or if the pull at zero is so many times what a penalty with a kink can hold, its
# strength falls to its own step by step.
FEW_ROWS = 1000
FAINT = 1e5

# Rows per feature up to which the Gram matrix of all features is singular, or nearly so, at faint penalties
# with a kink. Tuned on normal numbers: 300 × 900 at λ_max/10⁴ takes 45 s with the Gram matrix and 0.6 s by
# columns; at 4 rows per feature either wins by up to 4, at 10 the Gram matrix wins by up to 6.
ROWS_PER_FEATURE = 2
# Features up to which a singular Gram matrix costs little.
SMALL_GRAM = 50

# The sample that a cold start begins with: every so-manieth row, so many steps.
SAMPLE = 16
SAMPLE_STEPS = 2


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
    exact = True

    def objection(self, objective: Objective) -> str | None:
        potential = objective.potential
        if not (potential.smooth or potential.concave):
            return (
                "needs a potential that is differentiable or concave on [0, ∞[, and "
                f"{potential.name!r} is neither"
            )
        elsewhere = not isinstance(objective.rows, MemoryRows)
        if elsewhere and objective.size - 1 > MAX_FEATURES and not potential.convex:
            # Over stepping stones it would: in 2,558 passes over a text of 47,236 features.
            return (
                f"takes at most {MAX_FEATURES:,} features where the rows are not in memory and the penalty "
                "is not convex"
            )
        return None

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return or_interior_point(objective, theta, lambda start: self._iterates(objective, start, seed))

    def _iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        rows = objective.rows
        if not isinstance(rows, MemoryRows):
            yield from iterates_in_passes(
                objective,
                theta,
                self.choose_pass_engine(objective),
                lambda sample: self._iterates(sample, sample.start(), seed),
            )
            return
        descend = partial(self.descend, rows)
        start = carried_start(objective, rows, theta) or objective.evaluate(theta)
        if objective.potential.smooth and not objective.potential.convex:
            yield replace(start, candidate=bool(objective.lengths(theta).any()))
            yield from reweighted_iterates(objective, start, partial(minimised, descend=descend))
            return
        way = Way(objective, start, descend, partial(self._approaches, rows))
        yield way.end
        yield from way.over_stepping_stones()
        yield from descend(objective, way.end)

    def descend(self, rows: MemoryRows, objective: Objective, start: Evaluated) -> Iterator[Iterate]:
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

    def _approaches(self, rows: MemoryRows, objective: Objective, here: Evaluated) -> Iterator[Objective]:
        """With few rows, or a faint penalty, from strong ones to that asked for: small supports all along.

        (Straight from zero, the support is soon larger than the number of rows, and the many ways to fit
        them all have to be told from each other.)
        """
        few = rows.n_samples <= min(FEW_ROWS, ROWS_PER_FEATURE * rows.n_features)
        if objective.potential.smooth or here.theta[:-1].any():
            return
        yield from stronger_penalties(objective, objective.kink_slopes[:-1], least=0.0 if few else FAINT)

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
        if suits(objective, rows):
            return row_side_iterates
        gram = rows.n_features <= self.gram_features and (dense or _crowded(objective, rows))
        if gram and not (kinked and _singular(objective, rows)):
            # From zero, nobody knows yet which features matter; and a Gram matrix that is there is used.
            choose = dense and kinked and theta[:-1].any() and ActiveQuadratic not in rows.kept
            return working_set_iterates if choose else gram_iterates
        return column_iterates if kinked else conjugate_iterates

    @staticmethod
    def choose_pass_engine(objective: Objective) -> PassEngine[Objective]:
        """The rule for rows that are not in memory."""
        potential = objective.potential
        if objective.size - 1 <= MAX_FEATURES:
            return ALL_COLUMNS
        # Few features matter if zero can hold a pull: at a kink, or at one that is rounded.
        kinked = any(not each.smooth for each in (potential, *potential.stepping_stones(1.0)))
        return FEW_COLUMNS if kinked else CONJUGATE

    @classmethod
    def examples(cls) -> tuple[Newton, ...]:
        return cls(), cls(gram_features=0)


def _singular(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix would be singular, or nearly so, and large enough for that to cost much."""
    few = rows.n_samples <= ROWS_PER_FEATURE * rows.n_features
    return few and rows.n_features > SMALL_GRAM and objective.penalised


def _crowded(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix of sparse rows costs less than they do, or there is no good way without it."""
    N, potential = rows.n_features, objective.potential
    entries = sum(block.sparse_entries for block in rows.blocks)
    match = not potential.smooth or potential.quadratic
    return entries >= N**2 or N <= 100 or not match or not objective.penalised
