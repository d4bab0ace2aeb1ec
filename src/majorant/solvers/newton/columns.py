"""Many features, few of them needed: coordinate descent along columns, Newton's method on what it selects.

A round looks at the gradient of all features and takes those that may matter. Coordinate descent on them,
some thousand numbers per step, finds out quickly which are zero and which sign the others have; but it crawls
to their values when features are correlated. Extrapolating its steps helps; Newton's method on the support
finds the values at once, for the price of a factorisation. As much effort goes into the one as into the
other: a Newton step is due when the sweeps since the last one have cost as much as it would.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.columns import Columns, intercept_column, slacks
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.newton.models import minimise_on_support, tangent_slopes
from majorant.solvers.search import step_towards
from majorant.status import Evaluated, Iterate, Underway, Vector

# So many features are taken from the start; afterwards, so many times those of the support.
FIRST_FEATURES = 500
GROWTH = 3
# How far the violation of those coordinates that are near to moving falls before all are visited again.
INNER_ACCURACY = 0.01
ROUNDS = 60
# The largest support whose curvature is factorised.
LARGEST_SUPPORT = 2500
NEWTON_STEPS = 2
# How much more a step costs if the support is larger than the number of active rows.
SINGULAR = 5.0
# Nanoseconds per entry of a column, per entry of the rows, per update of H, and per flop of a factorisation.
SWEEP_COST, PASS_COST, UPDATE_COST, FLOP_COST = 2.4, 1.0, 1.5, 0.04
# What Python takes for a step, whatever the size.
OVERHEAD = 1e6
# How much work is done, in nanoseconds, before a point underway is shown.
SHOW_EVERY = 2e6


def column_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Iterate]:
    """Descend on the features that may matter, look at all, take in the violators, repeat.

    The accuracy asked of a round shrinks geometrically: tied to the violation outside alone, rounds crawl.
    """
    features = rows.kept.pop(_Features, None) or _Features(rows)
    features.objective, features.rows = objective, rows
    try:
        yield from _rounds(objective, features, objective.evaluate(theta))
    finally:
        # The rows keep the features: not the other way round as well.
        del features.objective, features.rows
        rows.kept[_Features] = features


def _rounds(objective: Objective, features: _Features, at: Evaluated) -> Iterator[Iterate]:
    goal = np.inf
    while True:
        yield at
        violations = objective.violations(at)
        goal = min(0.2 * float(np.max(violations)), 0.3 * goal)
        features.begin(at, violations[:-1], goal)
        shown = features.worked
        for _ in range(ROUNDS):
            check()
            if features.descend(0.5 * goal) <= goal:
                break
            if features.newton_is_due():
                features.newton()
            if features.worked - shown > SHOW_EVERY:
                shown = features.worked
                yield Underway(features.theta, features.value)
        at = objective.evaluate(features.theta)


def worth_looking_at(
    needed: NDArray[np.bool_], pulls: Vector, limits: Vector, violations: Vector, first: int
) -> NDArray[np.intp]:
    """The features that are needed or pulled nearly as hard as zero can hold; if too many, the worst."""
    candidates = np.flatnonzero(needed | (pulls > 0.8 * limits))
    room = max(first, GROWTH * int(np.count_nonzero(needed)))
    if len(candidates) > room:
        priority = np.where(needed, np.inf, violations)[candidates]
        candidates = np.sort(candidates[np.argpartition(-priority, room)[:room]])
    return candidates


class _Features:
    """Some features, the slacks of the rows, and the two ways to lower Φ with them.

    Kept for the next run on these rows. Objective and rows are set while one is going on.
    """

    objective: Objective
    rows: MemoryRows

    def __init__(self, rows: MemoryRows) -> None:
        from majorant.solvers.newton import coordinate

        self.coordinate = coordinate
        self.intercept = intercept_column(rows)
        self.counts = np.sum([block.column_counts for block in rows.blocks], axis=0)
        self.chosen = np.zeros(0, dtype=np.intp)
        self.theta = np.zeros(0)
        # Nanoseconds, roughly: in all, and of sweeps since the last Newton step.
        self.worked = self.spent = 0.0

    def begin(self, at: Evaluated, violations: Vector, goal: float) -> None:
        """Start at θ, with other features if some that were not taken violate."""
        here = np.array_equal(self.theta, at.theta)
        self.theta = at.theta
        # What was carried is as good as new, unless rounding shows.
        if not here or abs(self.value - at.value) > 1e-11 * at.value:
            self.slacks = slacks(self.rows, at.theta)
        outside = np.ones(len(violations), dtype=np.bool_)
        outside[self.chosen] = False
        if np.any(violations[outside] > goal) or np.any(at.theta[:-1][outside]) or not len(self.chosen):
            self.chosen = self._choose(at, violations)
            self.columns = Columns.of(self.rows, self.chosen)
            self.scale = self.objective.violation_scale[self.chosen]

    def _choose(self, at: Evaluated, violations: Vector) -> NDArray[np.intp]:
        """Those that are not zero or may become so; the worst violators first if there are too many."""
        needed = (at.theta[:-1] != 0.0) | (self.objective.factor == 0.0)
        limit = self.objective.kink_slopes[:-1]
        return worth_looking_at(needed, np.abs(at.loss_gradient[:-1]), limit, violations, FIRST_FEATURES)

    @property
    def value(self) -> float:
        """Φ, from the slacks that were carried along."""
        return self._value(self.theta, self.slacks)

    def _value(self, theta: Vector, u: Vector) -> float:
        active = np.maximum(u, 0.0)
        return float(active @ active) + self.objective.penalty(theta)

    # Coordinate descent ------------------------------------------------------------------------

    def descend(self, goal: float) -> float:
        """A sweep over all, and some over those that are near to moving; the violation that the first met."""
        part = np.append(self.theta[:-1][self.chosen], self.theta[-1])
        first, visited = self.coordinate.descend_along(
            self.columns,
            self.intercept,
            self.slacks,
            part,
            tangent_slopes(self.objective, self.theta)[:-1][self.chosen],
            self.objective.eta,
            self.scale,
            INNER_ACCURACY,
            goal,
        )
        self.spent += SWEEP_COST * visited
        self.worked += SWEEP_COST * visited
        self.theta = np.zeros_like(self.theta)
        self.theta[self.chosen] = part[:-1]
        self.theta[-1] = part[-1]
        return first

    # Newton's method on the support ------------------------------------------------------------

    def _support(self) -> NDArray[np.intp]:
        return np.flatnonzero((self.theta[:-1] != 0.0) | (self.objective.factor == 0.0))

    def newton_is_due(self) -> bool:
        """Whether the sweeps since the last step have cost as much as one would."""
        support = self._support()
        return 0 < len(support) <= LARGEST_SUPPORT and self.spent >= self._price(support)

    def _price(self, support: NDArray[np.intp]) -> float:
        """What Newton's method on the support costs."""
        entries = float(np.sum(self.counts[support]))
        updates = 0.5 * entries**2 / self.rows.n_samples
        price = (
            OVERHEAD + PASS_COST * 3.0 * entries + UPDATE_COST * updates + FLOP_COST * len(support) ** 3 / 3.0
        )
        if len(support) > np.count_nonzero(self.slacks > 0.0):
            price *= SINGULAR  # features will have to be shed, one by one
        return price

    def newton(self) -> None:
        """Some steps with the exact curvature of the active rows, on the support as it is."""
        support = self._support()
        self.worked += self._price(support)
        where = np.append(support, len(self.theta) - 1)
        if self.rows.dense:
            part = self.rows.columns(support)
        else:
            part = self.columns.rows(np.searchsorted(self.chosen, support), self.rows)
        whole = self.objective
        objective = Objective(part, whole.potential, whole.eta, whole.factor[support])
        theta = self.theta[where]
        quadratic = ActiveQuadratic(part, theta)
        value = quadratic.loss + objective.penalty(theta)
        for _ in range(NEWTON_STEPS):
            at = Evaluated(theta, value, quadratic.gradient(theta), carried=True)
            slopes = tangent_slopes(objective, theta)
            target, predicted = minimise_on_support(objective, quadratic.H, quadratic.c, at, slopes)
            theta, value = step_towards(objective, quadratic, theta, value, target, predicted)
            if at.value - value <= 1e-8 * value:
                break
        self.theta = self.theta.copy()
        self.theta[where] = theta
        self.slacks = np.concatenate([np.sqrt(p.block.s) * (1.0 - p.v) for p in quadratic.parts])
        self.spent = 0.0
