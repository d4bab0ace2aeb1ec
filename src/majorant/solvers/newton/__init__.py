"""`newton`: the exact curvature of the active rows, in the engine that fits the shape of the problem.

    features     potential  rows                     engine
    any          l2 (2)     ≤ features, ≤ 2,500      dual_newton.py  as many unknowns as rows
    > 50         kinked (4) ≤ 2 × features           cd.py           coordinate descent; Newton on the support
    ≤ 1,000 (5)  any        dense or crowded (1)     gram.py         the Gram matrix of the active rows
                 kinked     dense (6)                working_set.py  gram.py on the features that matter
    otherwise    kinked     any                      cd.py
                 smooth     any                      newton_cg.py    products with the active rows only
    ≤ 3,000 (5)  any        not in memory            out_of_core.py  a pass over the rows for every step
    otherwise    kinked (3) not in memory            out_of_core.py  the same, with H of those that may move
                 smooth     not in memory            out_of_core.py  a pass for every product with H

(1) Sparse rows are crowded if they have at least N² entries for N features. With fewer it is the Gram matrix
that costs most, not the rows: for 10,000 rows × 1,000 features with 20 entries a row and ℓ2, 118 ms, not 22.
So are those with at most 100 features; and all rows count as crowded where the other engines are no match:
with a smooth penalty that is not quadratic, or with a feature that is not penalised.
(2) Any quadratic penalty that leaves no feature out, one class.
(3) Or with a kink that is rounded: ℓ1 and hyperbolic. What is not convex is left to `mm-subspace`.
(4) With a penalty on every feature.
(5) Of one class; of several, as many as make Gram matrices of the same number of entries.
(6) With at least 200 features, or from a start that tells which of them matter.

Some potentials are approached over surrogates (`solvers/continuation.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.base import Solver
from majorant.solvers.continuation import Continuation, stronger_penalties
from majorant.solvers.interior import or_interior_point
from majorant.solvers.newton import tuning
from majorant.solvers.newton.cd import cd_iterates
from majorant.solvers.newton.dual_newton import dual_newton_applies, dual_newton_iterates
from majorant.solvers.newton.gram import carried_start, gram_iterates
from majorant.solvers.newton.newton_cg import dual_start, newton_cg_iterates
from majorant.solvers.newton.subsample_start import iterates_out_of_core
from majorant.solvers.newton.working_set import working_set_iterates
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.status import Evaluated, Iterate, Vector

Engine = Callable[[Objective, Sequence[MemoryRows], Vector], Iterator[Iterate]]


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method for the piecewise quadratic loss, safeguarded so that Φ never increases.

    Parameters
    ----------
    gram_features : int, default=1000
        Up to how many features the Gram matrix of all of them is formed.
    """

    gram_features: int = tuning.GRAM_FEATURES

    name = "newton"
    exact = True

    def objection(self, objective: Objective) -> str | None:
        potential = objective.potential
        if not (potential.smooth or potential.concave):
            return (
                "needs a potential that is differentiable or concave on [0, ∞[, and "
                f"{potential.name!r} is neither"
            )
        elsewhere = objective.in_memory is None and not objective.other_classes
        if elsewhere and objective.size - 1 > tuning.PASS_FEATURES and not potential.convex:
            # Over surrogates it would: in 2,558 passes over a text of 47,236 features.
            return (
                f"takes at most {tuning.PASS_FEATURES:,} features where the rows are not in memory and the "
                "penalty is not convex"
            )
        return None

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return or_interior_point(objective, theta, lambda start: self._iterates(objective, start, seed))

    def _iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        if objective.in_memory is None:
            yield from iterates_out_of_core(
                objective, theta, lambda sample: self._iterates(sample, sample.start(), seed)
            )
            return
        start = carried_start(objective, theta) or objective.evaluate(theta)
        if objective.potential.smooth and not objective.potential.convex:
            yield replace(start, candidate=bool(objective.lengths(theta).any()))
            yield from reweighted_iterates(objective, start, self._minimised_by_class)
            return
        way = Continuation(objective, start, self.descend, _approaches)
        yield way.end
        yield from way.over_surrogates()
        yield from self.descend(objective, way.end)

    def descend(self, objective: Objective, start: Evaluated) -> Iterator[Iterate]:
        """Newton's iterates after the start; from zero, by way of a sample of the rows."""
        rough = self._rough_start(objective, start.theta)
        iterates = self.engine(objective, rough)
        first = next(iterates)
        if not np.array_equal(rough, start.theta):
            if isinstance(first, Evaluated) and first.value < start.value:
                yield first
            else:
                iterates = self.engine(objective, start.theta)
                next(iterates)
        yield from iterates

    def _minimised_by_class(self, problem: Objective, theta: Vector, proximal: float) -> Vector:
        """The minimiser of a problem whose penalty is a ridge, which does not tie the classes."""
        pairs = zip(problem.classes, problem.matrix(theta), strict=True)
        return np.concatenate(
            [minimised(problem.on([rows]), row, descend=self.descend) for rows, row in pairs]
        )

    def _rough_start(self, objective: Objective, theta: Vector) -> Vector:
        """A point to begin at instead of zero, where a rough one costs little; else θ.

        For the Gram matrix, a few steps on every 16th row, if these are many: most rows then never enter the
        matrix. (Solving the sample accurately would fit its noise, and takes longer in all.) For conjugate
        gradients, an epoch of dual coordinate descent.
        """
        if objective.lengths(theta).any():
            return theta
        classes, engine = objective.in_memory or (), self.choose_engine(objective, theta)
        if engine is newton_cg_iterates:
            usable = objective.potential.quadratic and objective.penalised and not classes[0].dense
            return dual_start(objective, classes) if usable else theta
        least = tuning.SUBSAMPLE_STEP * max(tuning.SUBSAMPLE_ROWS, objective.width)
        if engine not in (gram_iterates, working_set_iterates) or objective.rows.n_samples < least:
            return theta
        sample = [rows.every(tuning.SUBSAMPLE_STEP) for rows in classes]
        iterates = gram_iterates(objective.on(sample), sample, theta)
        *_, last = islice(iterates, tuning.SUBSAMPLE_NEWTON_STEPS + 1)
        return last.theta

    def engine(self, objective: Objective, theta: Vector) -> Iterator[Iterate]:
        """Newton's iterates by the engine for the shape of the problem."""
        return self.choose_engine(objective, theta)(objective, objective.in_memory or (), theta)

    def choose_engine(self, objective: Objective, theta: Vector) -> Engine:
        """The rule that the table at the top of this file shows."""
        classes = objective.in_memory or ()
        rows = classes[0]
        kinked, dense = not objective.potential.smooth, rows.dense
        if dual_newton_applies(objective, rows):
            return dual_newton_iterates
        gram = rows.n_features <= self.gram_features / math.sqrt(len(classes))
        if gram and (dense or _crowded(objective, rows)) and not (kinked and _singular(objective, rows)):
            # From zero, few features are chosen by their pull alone; and a Gram matrix that is there is used.
            many = rows.n_features >= tuning.WORKING_SET_FEATURES or bool(objective.lengths(theta).any())
            choose = dense and kinked and many and ActiveQuadratic not in rows.kept
            return working_set_iterates if choose else gram_iterates
        return cd_iterates if kinked else newton_cg_iterates

    @classmethod
    def examples(cls) -> tuple[Newton, ...]:
        return cls(), cls(gram_features=0)


def _approaches(objective: Objective, here: Evaluated) -> Iterator[Objective]:
    """With few rows, or a faint penalty, from strong ones to that asked for: small supports all along.

    (Straight from zero, the support is soon larger than the number of rows, and the many ways to fit
    them all have to be told from each other.)
    """
    if objective.potential.smooth or objective.lengths(here.theta).any():
        return
    faint, rows = tuning.STRONGER_PENALTY_RATIO_JOINT, objective.rows
    if not objective.other_classes:
        wide = tuning.SINGULAR_ROWS_PER_FEATURE * rows.n_features
        few = rows.n_samples <= min(tuning.STRONGER_PENALTY_ROWS, wide)
        faint = 0.0 if few else tuning.STRONGER_PENALTY_RATIO
    yield from stronger_penalties(objective, objective.kink_slopes[:-1], least=faint)


def _singular(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix would be singular, or nearly so, and large enough for that to cost much."""
    few = rows.n_samples <= tuning.SINGULAR_ROWS_PER_FEATURE * rows.n_features
    return few and rows.n_features > tuning.SINGULAR_FEATURES and objective.penalised


def _crowded(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix of sparse rows costs less than they do, or there is no good way without it."""
    N, potential = rows.n_features, objective.potential
    entries = sum(block.sparse_entries for block in rows.blocks)
    match = not potential.smooth or potential.quadratic
    return entries >= N**2 or N <= tuning.SPARSE_GRAM_FEATURES or not match or not objective.penalised
