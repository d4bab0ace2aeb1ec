"""`newton`: the exact curvature of the active rows, with an engine that suits the shape of the problem.

    rows        potential      condition              engine
    in memory   quadratic (1)  n ≤ N, n ≤ 2,500       the cheapest of dual_newton.py, newton_cg.py and, if
                                                      N ≤ 1,000, gram.py
                kinked (2)     n ≤ 2N, N > 50         cd.py           coordinate descent along columns
                kinked         dense, N ≤ 1,000 (3)   gram.py         the Gram matrix of the active rows; or
                                                      working_set.py  of some features (4)
                kinked         sparse, N ≤ 1,000 (3)  the cheaper of gram.py and cd.py
                quadratic      N ≤ 1,000 (3)          the cheaper of gram.py and newton_cg.py
                other          N ≤ 1,000 (3)          gram.py
                kinked         N > 1,000              cd.py
                smooth         N > 1,000              newton_cg.py    products with the active rows
    on a disk   any            N ≤ 3,000 (3)          out_of_core.py  a pass over the rows for every step
    or cluster  kinked (5)     N > 3,000              out_of_core.py  the same, with H of some features
                smooth         N > 3,000              out_of_core.py  a pass for every product with H

n rows, N features. `costs.py` estimates which engine is cheaper, in flops and bytes. In memory, cd.py and
newton_cg.py have a budget. When it is spent, an engine that factorises a matrix continues: dual_newton.py,
with as many unknowns as rows, if it applies, or gram.py, if N ≤ 3,000 and the matrix is not singular.

(1) Any quadratic penalty on all features, for one class.
(2) With a penalty on every feature; gram.py handles features without a penalty.
(3) For one class; for C classes these limits are divided by √C.
(4) From 200 features on, or from a rough start, which shows the features in use; but not if the run starts
    where another one has ended.
(5) Or with a rounded kink: ℓ1 and hyperbolic. Non-convex problems of this size are left to `mm-subspace`.

Some potentials are approached by surrogates (`solvers/continuation.py`).
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
"""(objective, rows of every class, θ) ↦ iterates; cd.py and newton_cg.py also take a budget."""


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method for the piecewise quadratic loss, safeguarded so that Φ never increases.

    Parameters
    ----------
    gram_features : int, default=1000
        The largest number of features for which the Gram matrix of all of them is formed.
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
        out_of_core = objective.in_memory is None and not objective.other_classes
        if out_of_core and objective.size - 1 > tuning.PASS_FEATURES and not potential.convex:
            # By surrogates it would be possible, with 2,558 passes over a text of 47,236 features.
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
        continuation = Continuation(objective, start, self.descend, _approaches)
        yield continuation.end
        yield from continuation.over_surrogates()
        yield from self.descend(objective, continuation.end)

    def descend(self, objective: Objective, start: Evaluated) -> Iterator[Iterate]:
        """Newton's iterates after the start; from zero, by way of a rough start if that has a lower Φ."""
        warm = bool(objective.lengths(start.theta).any())
        chosen = self.choose_engine(objective, start.theta, warm=warm)
        rough = None if warm else self._rough_start(objective, start.theta, chosen)
        if rough is not None:
            # Where a rough start tells which features matter, a working set may take the place of all.
            again = self.choose_engine(objective, rough.theta) if chosen is gram_iterates else chosen
            iterates = self.engine(objective, rough, again)
            first = next(iterates)
            if isinstance(first, Evaluated) and first.value < start.value:
                yield first
                yield from iterates
                return
        iterates = self.engine(objective, start, chosen)
        next(iterates)
        yield from iterates

    def _minimised_by_class(self, problem: Objective, theta: Vector, proximal: float, fall: float) -> Vector:
        """The minimiser of a problem whose penalty is a ridge: each class by itself."""
        pairs = zip(problem.classes, problem.matrix(theta), strict=True)
        return np.concatenate(
            [minimised(problem.on([rows]), row, fall=fall, descend=self.descend) for rows, row in pairs]
        )

    def _rough_start(self, objective: Objective, zero: Vector, engine: Engine) -> Evaluated | None:
        """A starting point better than zero, if computing one costs little.

        Before the Gram matrix, a few steps on every 16th row, if these are enough rows: most rows then never
        enter the matrix. (Solving the sample accurately would fit its noise, and takes longer in total.) If
        there are too few dense rows for that and many features may be used, some proximal gradient steps.
        Before conjugate gradients, an epoch of dual coordinate descent. Φ at the point is not computed, and
        the gradient is approximate.
        """
        classes = objective.in_memory or ()
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

    def engine(self, objective: Objective, start: Evaluated, engine: Engine) -> Iterator[Iterate]:
        """Newton's iterates by an engine, and by a second one that factorises if the first is too slow."""
        classes = objective.in_memory or ()
        if engine is working_set_iterates:
            yield from working_set_iterates(objective, classes, start)
            return
        if engine not in (cd_iterates, newton_cg_iterates):
            yield from engine(objective, classes, start.theta)
            return
        second, cost = self._direct_engine(objective, classes, tuning.HAND_OVER_RATIO * self.gram_features)
        last = start.theta
        for at in engine(objective, classes, last, costs.Budget.beside(cost)):
            yield at
            last = at.theta
        yield from islice(second(objective, classes, last), 1, None)

    def _direct_engine(
        self, objective: Objective, classes: Sequence[MemoryRows], gram_features: int
    ) -> tuple[Engine, costs.Cost]:
        """The cheaper engine that factorises a matrix, and its cost, which is infinite if none applies."""
        rows = classes[0]
        dual = costs.dual_cost(classes) if dual_newton_applies(objective, rows) else costs.NOT_POSSIBLE
        possible = rows.n_features <= gram_features / math.sqrt(len(classes))
        if not possible or (not objective.potential.smooth and _singular(objective, rows)):
            return dual_newton_iterates, dual
        gram = costs.gram_cost(objective, classes)
        return (dual_newton_iterates, dual) if dual.total <= gram.total else (gram_iterates, gram)

    def choose_engine(self, objective: Objective, theta: Vector, *, warm: bool = False) -> Engine:
        """The engine of the table at the top of this file; `warm`: the run starts where another has ended."""
        classes, potential = objective.in_memory or (), objective.potential
        rows, kinked = classes[0], not objective.potential.smooth
        direct, cost = self._direct_engine(objective, classes, self.gram_features)
        other = costs.NOT_POSSIBLE
        if kinked and not rows.dense and objective.penalised:
            other = costs.cd_cost(classes)
        elif potential.quadratic and objective.penalised:
            other = costs.cg_cost(objective, classes, cost)
        if cost is costs.NOT_POSSIBLE or other.total < cost.total:
            return cd_iterates if kinked else newton_cg_iterates
        # At zero only the gradient shows which features matter, which pays with many features. The runs of a
        # path share the Gram matrix of all features: paths of cina0 take 0.73 of the time.
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
    """Problems with stronger penalties to solve first, if there are few rows or the penalty is weak.

    So supports stay small. (Directly from zero, the support soon has more features than there are rows, and
    Φ is nearly the same for many supports.)
    """
    if objective.potential.smooth or objective.lengths(here.theta).any():
        return
    least, rows = tuning.STRONGER_PENALTY_RATIO_JOINT, objective.rows
    if not objective.other_classes:
        wide = tuning.SINGULAR_ROWS_PER_FEATURE * rows.n_features
        few = rows.n_samples <= min(tuning.STRONGER_PENALTY_ROWS, wide)
        least = 0.0 if few else tuning.STRONGER_PENALTY_RATIO
    yield from stronger_penalties(objective, objective.kink_slopes[:-1], least)


def _singular(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the Gram matrix is singular, or nearly so, and so large that this costs much."""
    few = rows.n_samples <= tuning.SINGULAR_ROWS_PER_FEATURE * rows.n_features
    return few and rows.n_features > tuning.SINGULAR_FEATURES and objective.penalised
