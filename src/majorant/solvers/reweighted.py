r"""Smooth potentials that are not convex: majorization-minimization with every majorant minimised exactly.

The half-quadratic majorant of the penalty at θ (Prop. (prp:sHingeMM)) is a ridge with a weight for every
feature, c_i ψ(‖W_i‖)/2 ‖W_i‖². With the loss as it is, the majorant is convex, and Newton's method finds its
minimum to rounding in a few steps. Its minimiser is the next θ; Φ never rises.

From zero, every coefficient would be caught in the narrow well around it. So the way begins at a ridge
solution and leads over wider potentials (`Potential.surrogates`), some steps for each. Their widths are in
units of each feature's spread, so that the way does not depend on the units of X. In the end,
coefficients that zero holds, but whose release would lower Φ, are released one after the other.

Which minimum is found must not depend on rounding: not on how rows are ordered, repeated or cut, nor on the
machine. So the number of steps on each potential is fixed, every majorant is minimised to rounding, choices
are made with a margin, and a ridge of `UNIQUE`, relative to the curvature of the loss along each feature,
makes every minimiser unique where the loss is flat; in the end, a proximal term of this weight. Where
features are so nearly dependent that this term holds θ back, which shows in a majorant that falls clearly
without it, its weight is lowered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from majorant.interrupts import check
from majorant.objective import Objective
from majorant.potentials import L2, Potential
from majorant.rows import Rows
from majorant.solvers.dense import INFINITE, TINY
from majorant.solvers.screening import Descend, Part, first_part
from majorant.solvers.support_search import PROMISE, bounded, gains_of_change, gains_of_release
from majorant.status import Evaluated, Iterate, Provisional, Vector

# The ridge that the way begins with, and the one that makes minimisers unique, relative to the curvature of
# the loss along each feature.
FIRST_RIDGE = 1e-3
UNIQUE = 1e-8
# The weights of the proximal term that are tried in turn, in units of `UNIQUE`, and the relative fall of a
# majorant without the term above which the next weight is tried.
PROXIMAL = (1.0, 1e-2, 1e-4, 1e-6)
CLEAR_FALL = 1e-7
# Majorants minimised for each surrogate at most, the change that is taken for none there, and the relative
# fall of Φ that ends Newton's steps there; and the majorants of the potential itself at most. (With a fall of
# 1e-5, paths take 0.7 of the time, but where the loss is flat, rounding decides where in it θ ends.)
SURROGATE_STEPS = 4
STILL = 1e-6
SURROGATE_FALL = 1e-12
FINAL_STEPS = 100
# On the way over surrogates: the weight, relative to the curvature of the loss along the feature, from which
# on a coefficient is zero and stays so; the difference of weights that changes nothing; and the share by
# which the weight of the last feature exceeds that of the first. (Of equal features, rounding would choose.)
HOPELESS = 1e4
SAME_WEIGHT = 1e-6
TILT = 1e-3
# A change of the coefficients, relative to the largest in units of their features, that is taken for none;
# and Newton's steps to the minimum of a majorant at most.
SETTLED = 1e-11
INNER_STEPS = 60
# The ratio of a step to the one before it above which the steps are extrapolated.
SLOW = 0.3
# How many features are let go or taken away one by one, and how many attempts in a row may fail.
CHANGES = 60
FAILURES = 3
# The features of a model up to which the way up from none is tried as well, and its changes, and the
# first features that are tried. (Not tuned.)
FEW = 5
FIRST = 3
# The relative difference of gains that are equal, and what zeros may cost, relative to Φ.
EQUAL = 1e-9
NEGLIGIBLE = 1e-9


Minimise = Callable[[Any, Vector, float, float], Vector]
"""A problem with a ridge, where to begin, the weight of a proximal term there, and the relative fall of the
last step ↦ the minimiser."""


def reweighted_iterates(
    objective: Objective,
    start: Evaluated,
    minimise: Minimise,
    descend: Descend | None = None,
    *,
    cold: bool | None = None,
) -> Iterator[Iterate]:
    """The iterates after the start.

    With `descend`, features are screened by ℓ1 first. A cold run, by default one from zero, leads over
    surrogates.
    """
    if cold is None:
        cold = not objective.lengths(start.theta).any()
    return _Reweighted(objective, start, minimise, descend, cold).iterates()


def minimised(
    problem: Objective,
    theta: Vector,
    proximal: float = 0.0,
    fall: float = 0.0,
    *,
    descend: Callable[[Objective, Evaluated], Iterator[Iterate]],
) -> Vector:
    """The minimiser of a problem with a ridge, from θ, by the iterates of a solver on it.

    There is no proximal term: where the loss is flat, these iterates move as little as they can.
    """
    here = problem.evaluate(theta)
    unit = problem.column_lengths
    for n, at in enumerate(descend(problem, here)):
        check()
        if isinstance(at, Evaluated):
            settled = (
                at.value >= (1.0 - fall) * here.value
                or change(problem, unit, here.theta, at.theta) <= SETTLED
            )
            here = at if at.value < here.value else here
            if settled or n >= INNER_STEPS:
                break
    return here.theta


def change(objective: Objective, unit: Vector, theta: Vector, moved: Vector) -> float:
    """How far the coefficients have moved, relative to the largest in units of their features."""
    size = float(np.max(unit * objective.lengths(moved), initial=0.0))
    return float(np.max(unit * objective.lengths(moved - theta), initial=0.0)) / size if size > 0.0 else 0.0


def spread(rows: Rows) -> Vector:
    """2 Σ s (x - x̄)², the curvature of the loss along each feature with all rows active."""
    stats = rows.stats_at_zero
    squares = stats.squares[:-1]
    if stats.squares[-1] > 0.0:
        sums = 0.5 * (stats.negative.gradient[:-1] - stats.positive.gradient[:-1])
        centred = squares - sums**2 / stats.squares[-1]
        # What is left of a constant column is rounding.
        squares = np.where(centred > 1e-12 * squares, centred, 0.0)
    return np.asarray(2.0 * squares)


class _Reweighted:
    """θ is that of the part of the features that the run works with; what is yielded, that of all."""

    def __init__(
        self,
        objective: Objective,
        start: Evaluated,
        minimise: Minimise,
        descend: Descend | None,
        cold: bool,
    ) -> None:
        self.whole, self.start, self.cold = objective, start, cold
        self.minimise_outside, self.descend = minimise, descend
        self.all_spread = spread(objective.classes[0])
        spreads = self.all_spread[self.all_spread > 0.0]
        typical = float(np.median(spreads)) if len(spreads) else 1.0
        self.all_units = np.sqrt(np.where(self.all_spread > 0.0, self.all_spread, typical) / typical)
        # What is shown instead of `best` while another way is tried.
        self.floor: Provisional | None = None
        # Of the part, as soon as there is one.
        self.best = self.shown = start

    def iterates(self) -> Iterator[Iterate]:
        whole, potential = self.whole, self.whole.potential
        for found in first_part(whole, self.start, self.all_spread, self.descend, cold=self.cold):
            if isinstance(found, Part):
                self._work_with(found)
            else:
                yield found
        theta = self.part.narrow(self.start.theta)
        self.best = start = self.objective.evaluate(theta)
        self.shown = start
        if self.cold:
            theta = yield from self._minimise(theta, FIRST_RIDGE * self.spread + self.unique)
            scale = float(np.max(self.unit * self.objective.lengths(theta), initial=0.0))
            theta = yield from self._narrow(theta, potential.surrogates(scale))
        theta = yield from self._settle(theta)
        if self.best is start:  # the way has led nowhere: what is lower is near the start
            theta = yield from self._settle(start.theta)
        yield from self._change_support(theta)
        if self.cold and whole.nonzeros(self.part.widen(self.best.theta)) <= FEW:
            theta, value = self.part.widen(self.best.theta), self.best.value
            self.floor = Provisional(theta, value)
            self.best = self.shown = self.objective.evaluate(self.part.narrow(whole.start()))
            yield from self._from_none()
            self.floor = None
            if not self.best.value < (1.0 - EQUAL) * value:  # of two equal minima, the first
                self.best = self.shown = self.objective.evaluate(self.part.narrow(theta))
        if self._held_back() > NEGLIGIBLE * self.best.value:
            before = self.part.widen(self.best.theta)
            self._work_with(Part.of(whole, np.ones(len(whole.factor), dtype=np.bool_)))
            self.best = self.shown = self.objective.evaluate(before)
            yield from self._settle(before)
        while True:
            yield self._wide(self.best)

    def _work_with(self, part: Part) -> None:
        self.part, self.kept = part.narrowing, part.kept
        self.objective = part.narrowing.objective
        self.minimise = part.ridge.minimise if part.ridge is not None else self.minimise_outside
        self.spread = self.all_spread[part.kept]
        # A feature without any spread has no business with the loss.
        self.unique = UNIQUE * np.where(self.spread > 0.0, self.spread, 1.0)
        self.unit = self.all_units[part.kept]
        self.tilt = 1.0 + TILT * np.linspace(0.0, 1.0, len(part.kept))[part.kept]

    def _wide(self, at: Evaluated) -> Evaluated:
        """A point of the part as a point of all features."""
        return at if self.part.objective is self.whole else self.whole.evaluate(self.part.widen(at.theta))

    def _narrow(self, theta: Vector, surrogates: Sequence[Potential]) -> Generator[Iterate, None, Vector]:
        """Where majorants of ever narrower potentials lead, until narrower ones would change nothing."""
        unit = np.sqrt(self.spread)
        scale = np.where(self.spread > 0.0, self.spread, 1.0)
        for surrogate in surrogates:
            for _ in range(SURROGATE_STEPS):
                weights = self._surrogate_weights(theta, surrogate)
                out = weights > HOPELESS * scale
                weights[out] = np.maximum(weights[out], INFINITE * scale[out])
                moved = yield from self._minimise(theta, weights + self.unique, fall=SURROGATE_FALL)
                still = change(self.objective, unit, theta, moved) <= STILL
                theta = moved
                if still:
                    break
            narrow, last = weights / scale, self._weights(theta, self.whole.potential) / scale
            if np.all((np.abs(narrow - last) <= SAME_WEIGHT) | (np.minimum(narrow, last) > HOPELESS)):
                break
        return theta

    def _surrogate_weights(self, theta: Vector, surrogate: Potential) -> Vector:
        """The ridge that majorises a surrogate of the penalty, of a width in the units of the features."""
        weights = surrogate.weight(self.unit * self.objective.lengths(theta)) * self.unit**2
        return np.asarray(self.objective.factor * weights * self.tilt + self.objective.eta)

    def _weights(self, theta: Vector, potential: Potential) -> Vector:
        """The ridge that majorises the penalty at θ."""
        return replace(self.objective, potential=potential).half_quadratic_weights(theta)

    def _minimise(
        self, theta: Vector, ridge: Vector, proximal: float = 0.0, fall: float = 0.0
    ) -> Generator[Iterate, None, Vector]:
        """The minimiser of the loss and that ridge, from θ."""
        if self.floor is not None:
            yield self.floor
        else:
            yield Provisional(self.part.widen(self.best.theta), self.best.value)
        return self.minimise(self._with_ridge(ridge), theta, proximal, fall)

    def _with_ridge(self, ridge: Vector) -> Objective:
        return replace(self.objective, potential=L2(1.0), eta=0.0, penalty_factor=ridge)

    def _settle(self, theta: Vector) -> Generator[Iterate, None, Vector]:
        """Majorise and minimise until θ stays where it is, also without a proximal term.

        The weight of that term falls step by step. The lowest point is kept in `best`, and shown.
        """
        objective = self.objective
        for share in PROXIMAL:
            theta = yield from self._repeat(theta, share * UNIQUE)
            ridge = self._weights(theta, objective.potential)
            majorant = self._with_ridge(ridge)
            moved = yield from self._minimise(theta, ridge)
            if not majorant.evaluate(moved).value < (1.0 - CLEAR_FALL) * majorant.evaluate(theta).value:
                break
            theta = moved
            self._keep_if_lower(theta)
        if self.floor is None and self.best is not self.shown:  # the same point once more would end the run
            self.shown = self.best
            yield replace(self._wide(self.best), candidate=False)  # the support may still change
        return theta

    def _repeat(self, theta: Vector, proximal: float) -> Generator[Iterate, None, Vector]:
        """Majorise and minimise until θ stays where it is.

        Where a geometric series of such steps would lead, θ goes at once, if Φ is clearly lower there.
        """
        objective, unit = self.objective, np.sqrt(self.spread)
        step = np.zeros_like(theta)
        for _ in range(FINAL_STEPS):
            weights = self._weights(theta, objective.potential)
            moved = yield from self._minimise(theta, weights, proximal)
            settled = change(objective, unit, theta, moved) <= SETTLED
            before, step, theta = step, moved - theta, moved
            ratio = float(before @ step) / max(float(before @ before), TINY)
            if SLOW < ratio < 1.0:
                ahead = moved + ratio / (1.0 - ratio) * step
                if objective.evaluate(ahead).value < (1.0 - SETTLED) * objective.evaluate(moved).value:
                    step, theta = np.zeros_like(theta), ahead
            self._keep_if_lower(theta)
            if settled:
                break
        return theta

    def _keep_if_lower(self, theta: Vector) -> None:
        at = self.objective.evaluate(theta)
        if at.value < self.best.value:
            self.best = at

    def _held_back(self) -> float:
        """How much zeros cost at most, to first order: half the squared pull over the weight at zero."""
        whole, at = self.whole, self._wide(self.best)
        weight = whole.half_quadratic_weights(whole.start())
        zero = (whole.lengths(at.theta) == 0.0) & (weight > 0.0)
        pulls = whole.lengths(at.loss_gradient)[zero]
        return 0.5 * float(np.sum(pulls / weight[zero] * pulls))

    def _change_support(self, theta: Vector, most: int = CHANGES) -> Iterator[Iterate]:
        """Let features go, or take features away, one by one, while Φ falls clearly: `most` times."""
        whole = self.whole
        if not bounded(whole):
            return
        at = self._wide(self.objective.evaluate(theta))
        failed: set[tuple[bool, int]] = set()
        for _ in range(most):
            promises = gains_of_change(whole, at, self.all_spread)
            for removed, feature in failed:
                promises[int(removed), feature] = -math.inf
            largest = float(promises.max(initial=-math.inf))
            if not largest > PROMISE * at.value or len(failed) >= FAILURES:
                return
            # The first of those that are equal but for rounding.
            first = int(np.argmax(promises.ravel() >= (1.0 - EQUAL) * largest))
            removal, chosen = divmod(first, len(self.kept))
            moved = yield from self._changed(at, chosen, bool(removal))
            after = self._wide(self.objective.evaluate(moved))
            if after.value < (1.0 - PROMISE) * at.value:
                at = after
                failed.clear()
            else:
                failed.add((bool(removal), chosen))

    def _from_none(self) -> Iterator[Iterate]:
        """With few features, the way up from none may lead lower than the way down.

        The first features are tried without a promise, which is only the least that they can save.
        """
        theta = yield from self._settle(self.part.narrow(self.whole.start()))
        if not bounded(self.whole):
            return
        at = self._wide(self.objective.evaluate(theta))
        promises = gains_of_release(self.whole, at, self.all_spread)
        lowest: tuple[float, Vector] | None = None
        for chosen in np.argsort(-promises, kind="stable")[:FIRST].tolist():
            if math.isfinite(promises[chosen]):
                moved = yield from self._changed(at, chosen, False)
                wide = self.part.widen(moved)
                value = self.whole.evaluate(wide).value
                if lowest is None or value < (1.0 - EQUAL) * lowest[0]:  # of two equal minima, the first
                    lowest = value, wide
        if lowest is not None:
            # Not the best of all: rounding would choose among equal ones.
            self.best = self.shown = self.objective.evaluate(self.part.narrow(lowest[1]))
            yield from self._change_support(self.part.narrow(lowest[1]), FEW)

    def _changed(self, at: Evaluated, feature: int, removed: bool) -> Generator[Iterate, None, Vector]:
        """Where majorants lead after a feature was let go or taken away."""
        if not self.kept[feature]:
            best = self.part.widen(self.best.theta)
            self._work_with(Part.of(self.whole, self.kept | (np.arange(len(self.kept)) == feature)))
            self.best = self.shown = self.objective.evaluate(self.part.narrow(best))
        chosen = int(np.count_nonzero(self.kept[:feature]))
        theta = self.part.narrow(at.theta)
        ridge = self._weights(theta, self.whole.potential) + self.unique
        if removed:
            ridge[chosen] = INFINITE * max(self.spread[chosen], 1.0)
        else:
            ridge[chosen] = self.whole.eta + self.unique[chosen]
        moved = yield from self._minimise(theta, ridge)
        return (yield from self._settle(moved))
