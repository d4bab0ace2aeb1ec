"""Coordinate descent along columns, and Newton's method on its support: many features, few of them in use.

A round computes the gradient of all features and chooses those to watch. Coordinate descent on the watched
features, with some thousand numbers per step, quickly finds which are zero and which sign the others have;
but it converges slowly to their values if features are correlated. Extrapolation helps; Newton's method on
the support finds the values at once, at the cost of a factorisation. Both methods get the same time: a
Newton step is due when the sweeps since the last one have cost as much as it would.

With several classes at once, a feature is a group of coefficients: zero for all classes or for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.block import Block
from majorant.rows.columns import Columns
from majorant.rows.memory import same_rows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.line_search import step_towards
from majorant.solvers.newton import tuning
from majorant.solvers.newton.costs import NO_LIMIT, Budget
from majorant.solvers.newton.newton_equations import newton_direction
from majorant.solvers.newton.quadratic_subproblem import minimise_on_support
from majorant.solvers.newton.working_set import features_to_watch
from majorant.status import Evaluated, Iterate, Provisional, Vector


def cd_iterates(
    objective: Objective, classes: Sequence[MemoryRows], theta: Vector, budget: Budget = NO_LIMIT
) -> Iterator[Iterate]:
    """Rounds of descent on the watched features; between rounds, all features are checked for violations.

    The goals of the rounds decrease geometrically. (With goals that depend only on the violations of other
    features, convergence is slow.) The iterates end when the budget is spent.
    """
    rows = classes[0]
    state: _State | None = rows.warm_cache.pop(_State, None)
    if state is None or not same_rows(state.made_for, classes):
        state = _State(classes)
    state.objective, state.classes = objective, classes
    try:
        yield from _rounds(objective, state, objective.evaluate(theta), budget)
    finally:
        # The rows refer to the state. If it referred to the rows, X would stay until a garbage collection.
        del state.objective, state.classes, state.problem
        rows.warm_cache[_State] = state


def _rounds(objective: Objective, state: _State, at: Evaluated, budget: Budget) -> Iterator[Iterate]:
    goal = np.inf
    begin = before = state.worked
    while True:
        yield at
        if budget.is_spent(state.worked - begin, state.worked - before):
            return
        before = state.worked
        violations = objective.violations(at)
        per_violation, fall = tuning.CD_GOALS_IF_FEW if state.watches_few else tuning.CD_GOALS
        goal = min(per_violation * float(np.max(violations)), fall * goal)
        state.begin(at, violations[:-1], goal)
        shown = state.worked
        for _ in range(tuning.CD_ROUNDS):
            check()
            met = state.descend(goal) <= goal
            if met or budget.is_spent(state.worked - begin, state.worked - before):
                break
            if state.newton_is_due():
                state.newton()
            if state.worked - shown > tuning.SHOWN_NS:
                shown = state.worked
                yield Provisional(state.theta(), state.value)
        at = objective.evaluate(state.theta())


def _slacks(theta: Vector, block: Block) -> Vector:
    root = np.sqrt(block.s)
    return np.asarray(root * (1.0 - block.matvec(theta))) if theta.any() else root


class _State:
    """The watched features and the slacks u = S^½(1 - v) of the rows, with coordinate and Newton descent.

    All other features are zero, and cost nothing in a round. The rows keep the state for the next run.
    `objective`, `classes` and `problem`, which has the penalty of the watched features, are set during a run.
    """

    objective: Objective
    classes: Sequence[MemoryRows]
    problem: Objective

    def __init__(self, classes: Sequence[MemoryRows]) -> None:
        from majorant.solvers.newton import cd_kernels

        self.kernels, self.made_for = cd_kernels, [ref(rows) for rows in classes]
        blocks = classes[0].blocks
        y, s = classes[0].labels_and_weights
        self.counts = classes[0].column_counts
        # Whether the first watched features will have few of all entries, whichever these features are.
        place = max(0, len(self.counts) - tuning.CD_FIRST)
        most = float(np.partition(self.counts, place)[place:].sum()) if len(self.counts) else 0.0
        self.watches_few = most <= tuning.CD_FEW * float(self.counts.sum())
        self.watched = np.zeros(0, dtype=np.intp)
        # The coefficients of the watched features and the intercepts; and θ where the last run has ended.
        self.part, self.last = np.zeros(0), np.zeros(0)
        self.codes: NDArray[np.intp] | None = None
        self.intercept = np.sqrt(s) * blocks[0].b
        self._unlabelled: MemoryRows | None = None
        if len(classes) == 1:
            self.intercept *= y
        else:
            self.codes = np.argmax([rows.labels_and_weights[0] for rows in classes], axis=0)
            self._unlabelled = classes[0].relabelled(np.ones(len(y)), s)
        # Estimated nanoseconds: of all work, and of the sweeps since the last Newton step.
        self.worked = self.spent = 0.0

    @property
    def source(self) -> MemoryRows:
        """The rows whose columns are watched; for several classes, with the label 1 for every row."""
        return self.classes[0] if self._unlabelled is None else self._unlabelled

    def begin(self, at: Evaluated, violations: Vector, goal: float) -> None:
        """Start at θ; choose the watched features again if others violate the optimality conditions."""
        whole = self.objective
        # The carried slacks are kept, unless their rounding errors show.
        here = np.array_equal(self.last, at.theta)
        if not here or abs(self._loss + whole.penalty(at.theta) - at.value) > 1e-11 * at.value:
            pairs = zip(self.classes, whole.matrix(at.theta), strict=True)
            self._set_slacks([np.concatenate(rows.map_blocks(partial(_slacks, row))) for rows, row in pairs])
        outside = np.ones(len(violations), dtype=np.bool_)
        outside[self.watched] = False
        unseen = whole.lengths(at.theta)[outside].any()
        if np.any(violations[outside] > goal) or unseen or not len(self.watched):
            self.watched = features_to_watch(whole, at, tuning.CD_FIRST, tuning.CD_GROWTH)
            self.columns = Columns.of(self.source, self.watched)
            self.workspace = self.kernels.workspace(len(self.watched), len(self.intercept), len(self.classes))
            self.scale = whole.violation_scale[self.watched]
        self.problem = whole.on(self.classes, whole.factor[self.watched])
        self.part = whole.matrix(at.theta)[:, self._where].ravel()

    @property
    def _where(self) -> NDArray[np.intp]:
        """The places of the watched features and of the intercept in a row of θ."""
        return np.append(self.watched, len(self.counts))

    def theta(self) -> Vector:
        """θ, of all features."""
        theta = np.zeros((len(self.classes), len(self.counts) + 1))
        theta[:, self._where] = self.problem.matrix(self.part)
        self.last = theta.ravel()
        return self.last

    def _set_slacks(self, by_class: Sequence[Vector]) -> None:
        self.u = np.stack(by_class, axis=1).ravel()

    @property
    def _loss(self) -> float:
        active = np.maximum(self.u, 0.0)
        return float(active @ active)

    @property
    def value(self) -> float:
        """Φ, from the carried slacks."""
        return self._loss + self.problem.penalty(self.part)

    # Coordinate descent ------------------------------------------------------------------------

    def descend(self, goal: float) -> float:
        """Sweep until the goal is met or a Newton step is due; returns the violation of a full sweep."""
        theta = np.array(self.problem.matrix(self.part).T, order="C")
        # The tangent of a concave potential changes with θ.
        rounds = tuning.CD_ROUNDS_PER_CALL if self.problem.potential.convex else 1
        columns, slopes = self.columns, self.problem.tangent_slopes(self.part)[:-1]
        first, visited = self.kernels.descend_along(
            columns.data, columns.indices, columns.starts, self.codes, self.intercept, self.u, theta, slopes,
            self.problem.eta, self.scale, *self.workspace, tuning.CD_INNER_ACCURACY, goal, self._budget(),
            rounds,
        )  # fmt: skip
        cost = tuning.SWEEP_NS * visited * len(self.classes)
        self.spent += cost
        self.worked += cost
        self.part = theta.T.ravel()
        return float(first)

    def _budget(self) -> float:
        """The number of entries that sweeps may visit before a Newton step is due."""
        support = self._support()
        price = self._price(support) - self.spent if len(support) else 0.0
        return min(price, tuning.CALL_NS) / (tuning.SWEEP_NS * len(self.classes))

    # Newton's method on the support ------------------------------------------------------------

    def _support(self) -> NDArray[np.intp]:
        """The places of the features in use among the watched features."""
        used = (self.problem.lengths(self.part) > 0.0) | (self.problem.factor == 0.0)
        return np.flatnonzero(used)

    def newton_is_due(self) -> bool:
        """Whether the sweeps since the last step have cost as much as one would."""
        support = self._support()
        possible = len(self.classes) > 1 or self._has_hessians(support)
        return len(support) > 0 and possible and self.spent >= self._price(support)

    def _price(self, support: NDArray[np.intp]) -> float:
        """The cost of Newton's method on the support."""
        entries = float(np.sum(self.columns.counts[support]))
        if not self._has_hessians(support):
            return tuning.STEP_NS + tuning.PASS_NS * 2.0 * entries * len(self.classes) * tuning.CD_CG_STEPS
        updates = 0.5 * entries**2 / self.source.n_samples
        flops = len(support) ** 3 / 3.0
        price = tuning.STEP_NS + tuning.PASS_NS * 3.0 * entries
        price += tuning.UPDATE_NS * updates + tuning.FLOP_NS * flops
        if len(support) > np.count_nonzero(self.u > 0.0):
            price *= tuning.SINGULAR_PRICE  # features will leave the support one by one
        return price * len(self.classes)

    def _has_hessians(self, support: NDArray[np.intp]) -> bool:
        return len(self.classes) * (len(support) + 1) ** 2 <= tuning.CD_HESSIAN_ENTRIES

    def newton(self) -> None:
        """Some Newton steps on the current support."""
        support = self._support()
        self.worked += self._price(support)
        classes = self._support_rows(support)
        objective = self.problem.on(classes, self.problem.factor[support])
        matrix = self.problem.matrix(self.part.copy())
        where = np.append(support, matrix.shape[1] - 1)
        theta = matrix[:, where].ravel()
        quadratic = ActiveQuadratic(classes, theta, gram=self._has_hessians(support))
        value = quadratic.loss + objective.penalty(theta)
        for _ in range(tuning.CD_NEWTON_STEPS):
            target, predicted = _newton_target(objective, quadratic, theta, value)
            theta, reached = step_towards(objective, quadratic, theta, value, target, predicted)
            done = value - reached <= 1e-8 * reached
            value = reached
            if done:
                break
        matrix[:, where] = objective.matrix(theta)
        self.part = matrix.ravel()
        self._set_slacks(
            [
                np.concatenate([np.sqrt(part.block.s) * (1.0 - part.v) for part in parts])
                for parts in quadratic.by_class
            ]
        )
        self.spent = 0.0

    def _support_rows(self, support: NDArray[np.intp]) -> list[MemoryRows]:
        first, *others = self.classes
        if first.dense or others:
            part = first.columns(self.watched[support])
        else:
            part = self.columns.rows(support, first)
        return [part, *(part.relabelled(*rows.labels_and_weights) for rows in others)]


def _newton_target(
    objective: Objective, quadratic: ActiveQuadratic, theta: Vector, value: float
) -> tuple[Vector, float]:
    """The end of a Newton step from θ on the support, and the predicted fall of Φ.

    For one class, signs may change; for several classes, the norms are smooth on the support.
    """
    if len(quadratic.by_class) == 1:
        at = Evaluated(theta, value, quadratic.gradient(theta), carried=True)
        return minimise_on_support(objective, quadratic.H[0], at)
    at = objective.evaluate(theta)
    gradient = objective.gradient(at)
    d = -newton_direction(objective, quadratic, theta, gradient, tuning.CD_CG_ACCURACY, tuning.CD_CG_STEPS)
    return theta + d, -float(gradient @ d)
