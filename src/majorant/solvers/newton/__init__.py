"""`newton`: the exact curvature of the active rows, in the engine that fits the shape of the problem.

    rows        potential      condition              engine
    in memory   quadratic (1)  n ≤ N, n ≤ 2,500       the cheapest of dual_newton.py, newton_cg.py and, if
                                                      N ≤ 1,000, gram.py
                kinked (2)     n ≤ 2N, N > 50         cd.py           coordinate descent along columns
                kinked         dense, N ≤ 1,000 (3)   gram.py         the Gram matrix of the active rows; or
                                                      working_set.py  of the features that matter (4)
                kinked         sparse, N ≤ 1,000 (3)  the cheaper of gram.py and cd.py
                quadratic      N ≤ 1,000 (3)          the cheaper of gram.py and newton_cg.py
                other          N ≤ 1,000 (3)          gram.py
                kinked         N > 1,000              cd.py
                smooth         N > 1,000              newton_cg.py    products with the active rows
    elsewhere   any            N ≤ 3,000 (3)          out_of_core.py  a pass over the rows for every step
                kinked (5)     N > 3,000              out_of_core.py  the same, with H of those that may move
                smooth         N > 3,000              out_of_core.py  a pass for every product with H

n rows, N features. `costs.py` says what is cheaper, in flops and bytes. In memory, cd.py and newton_cg.py
have a budget. When it is spent, an engine takes over that factorises a matrix: dual_newton.py, with as many
unknowns as rows, where it applies, or gram.py, if N ≤ 3,000 and the matrix is not singular.

(1) Any quadratic penalty that leaves no feature out, one class.
(2) With a penalty on every feature; features without one have gram.py.
(3) Of one class; of several, as many as make Gram matrices of the same number of entries.
(4) From 200 features on, or from a rough start, which tells which features matter; but not if the run
    goes on from another one.
(5) Or with a kink that is rounded: ℓ1 and hyperbolic. What is not convex is left to `mm-subspace`.

Some potentials are approached over surrogates (`solvers/continuation.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.base import Solver
from majorant.solvers.continuation import Continuation, stronger_penalties
from majorant.solvers.interior import or_interior_point
from majorant.solvers.newton import costs, tuning
from majorant.solvers.newton.cd import cd_iterates
from majorant.solvers.newton.dual_newton import dual_newton_applies, dual_newton_iterates
from majorant.solvers.newton.gram import carried_start, gram_iterates
from majorant.solvers.newton.newton_cg import dual_start, newton_cg_iterates
from majorant.solvers.newton.proximal_start import proximal_start
from majorant.solvers.newton.subsample_start import iterates_out_of_core
from majorant.solvers.newton.working_set import working_set_iterates
from majorant.solvers.reweighted import minimised, reweighted_iterates, spread
from majorant.solvers.support_search import promising
from majorant.status import Evaluated, Iterate, Vector

Engine = Callable[..., Iterator[Iterate]]
"""(objective, rows of every class, θ) ↦ iterates; of the engines without a Gram matrix, also a budget."""


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
    continuation: ClassVar[bool] = True
    """Whether a fit of a non-convex potential from zero begins with easier potentials."""
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
            cold = self.continuation and not objective.lengths(theta).any()
            settled = not cold and not promising(objective, start, spread(objective.rows))
            yield replace(start, candidate=settled)
            yield from reweighted_iterates(
                objective, start, self._minimised_by_class, self.descend, cold=cold
            )
            return
        way = Continuation(objective, start, self.descend, _approaches)
        yield way.end
        yield from way.over_surrogates()
        yield from self.descend(objective, way.end)

    def descend(self, objective: Objective, start: Evaluated) -> Iterator[Iterate]:
        """Newton's iterates after the start; from zero, by way of a rough start, if that lowers Φ."""
        warm = bool(objective.lengths(start.theta).any())
        rough = None if warm else self._rough_start(objective, start.theta)
        if rough is not None:
            iterates = self.engine(objective, rough)
            first = next(iterates)
            if isinstance(first, Evaluated) and first.value < start.value:
                yield first
                yield from iterates
                return
        iterates = self.engine(objective, start, warm=warm)
        next(iterates)
        yield from iterates

    def _minimised_by_class(self, problem: Objective, theta: Vector, proximal: float, fall: float) -> Vector:
        """The minimiser of a problem whose penalty is a ridge, which does not tie the classes."""
        pairs = zip(problem.classes, problem.matrix(theta), strict=True)
        return np.concatenate(
            [minimised(problem.on([rows]), row, fall=fall, descend=self.descend) for rows, row in pairs]
        )

    def _rough_start(self, objective: Objective, zero: Vector) -> Evaluated | None:
        """A point to begin at instead of zero, where a rough one costs little.

        For the Gram matrix, a few steps on every 16th row, if these are many: most rows then never enter the
        matrix. (Solving the sample accurately would fit its noise, and takes longer in all.) If dense rows
        are too few for that and many features are in play, some proximal gradient steps. For conjugate
        gradients, an epoch of dual coordinate descent. The value at the point is not known, and the gradient
        only roughly.
        """
        classes, engine = objective.in_memory or (), self.choose_engine(objective, zero)
        if engine is newton_cg_iterates:
            usable = objective.potential.quadratic and objective.penalised and not classes[0].dense
            return Evaluated(dual_start(objective, classes), math.nan, zero) if usable else None
        if engine not in (gram_iterates, working_set_iterates):
            return None
        least = tuning.SUBSAMPLE_STEP * max(tuning.SUBSAMPLE_ROWS, objective.width)
        if objective.rows.n_samples < least:
            usable = engine is working_set_iterates and len(classes) == 1
            pays = usable and costs.proximal_start_pays(objective, classes[0])
            return proximal_start(objective) if pays else None
        sample = [rows.every(tuning.SUBSAMPLE_STEP) for rows in classes]
        iterates = gram_iterates(objective.on(sample), sample, zero)
        *_, last = islice(iterates, tuning.SUBSAMPLE_NEWTON_STEPS + 1)
        return replace(last, value=math.nan)

    def engine(self, objective: Objective, start: Evaluated, *, warm: bool = False) -> Iterator[Iterate]:
        """Newton's iterates by the engine for the shape of the problem; by two, if the first was too slow."""
        classes, engine = objective.in_memory or (), self.choose_engine(objective, start.theta, warm=warm)
        if engine is working_set_iterates:
            yield from working_set_iterates(objective, classes, start)
            return
        if engine not in (cd_iterates, newton_cg_iterates):
            yield from engine(objective, classes, start.theta)
            return
        second, cost = self._direct_engine(objective, classes, tuning.HAND_OVER_RATIO * self.gram_features)
        last = start.theta
        for at in engine(objective, classes, last, tuning.HAND_OVER_SHARE * cost):
            yield at
            last = at.theta
        yield from islice(second(objective, classes, last), 1, None)

    def _direct_engine(
        self, objective: Objective, classes: Sequence[MemoryRows], gram_features: int
    ) -> tuple[Engine, float]:
        """The cheaper of the engines that factorise a matrix, and its cost: infinite, if neither applies."""
        rows = classes[0]
        dual = costs.dual_ns(classes) if dual_newton_applies(objective, rows) else math.inf
        possible = rows.n_features <= gram_features / math.sqrt(len(classes))
        if not possible or (not objective.potential.smooth and _singular(objective, rows)):
            return dual_newton_iterates, dual
        gram = costs.gram_ns(objective, classes)
        return (dual_newton_iterates, dual) if dual <= gram else (gram_iterates, gram)

    def choose_engine(self, objective: Objective, theta: Vector, *, warm: bool = False) -> Engine:
        """The rule that the table at the top of this file shows; `warm`: the run goes on from another."""
        classes, potential = objective.in_memory or (), objective.potential
        rows, kinked = classes[0], not objective.potential.smooth
        direct, cost = self._direct_engine(objective, classes, self.gram_features)
        other = math.inf
        if kinked and not rows.dense and objective.penalised:
            other = costs.cd_ns(classes)
        elif potential.quadratic and objective.penalised:
            other = tuning.CG_PRODUCTS * costs.product_ns(objective, classes)
        if math.isinf(cost) or other < cost:
            return cd_iterates if kinked else newton_cg_iterates
        # From zero, few features are chosen by their pull alone. Runs one after the other, as along a path,
        # share the Gram matrix of all features: paths of cina0 take 0.73 of the time.
        many = rows.n_features >= tuning.WORKING_SET_FEATURES or bool(objective.lengths(theta).any())
        choose = rows.dense and kinked and many and not warm and ActiveQuadratic not in rows.warm_cache
        return working_set_iterates if choose else direct

    @classmethod
    def examples(cls) -> tuple[Newton, ...]:
        return cls(), cls(gram_features=0)


@dataclass(frozen=True)
class NewtonFromStart(Newton):
    """Newton's method that goes on from zero as from any other start, also for a non-convex potential."""

    continuation = False


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
