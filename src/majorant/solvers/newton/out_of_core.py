r"""Rows that are not in memory: one pass over them for each Newton step.

Where a pass is all that costs, it should answer everything that the next step asks. From the end θ + d of a
step a pass brings, for every class,

    the loss, and its gradient over all features,
    H = 2 L_AᵀS_A L_A over the rows A that are active there, of the features that may move in the next step,
    and the loss at θ + t d for some shorter t,

so that the whole step, which is right nearly always, brings the next model along; and if it is not, the right
part of it is known, and one more pass brings the model there.

Up to 3,000² entries of H, for all classes together, travel with a pass. If that is room for all features, all
may move, and H is not asked for while steps do well without (`sampled_hessian.py`). If it is not, and zero
can hold a pull, |∂_j loss| ≤ c_j φ'(0+), the features W that may move are chosen before the pass, from the
gradient at θ (`features_to_watch`); all others stay. A feature that begins to violate the optimality
conditions outside of W is in the W of the next pass, and moves in the step after it. (The gradient is
complete, so the certificate sees it at once.)

A kink that is rounded (the hyperbolic potential) leaves no coefficient at zero, but those inside of the
rounding feel next to nothing of each other beside the penalty's curvature there. So W has those beyond it, or
pulled that way, and each of the others goes where it would go alone: nearly right, and the search along the
step sees to it that Φ falls. On 23,765 × 47,236 rows of text it took 18 passes with δ = 1e-4 and 164 with
δ = 1e-2; `mm-subspace` takes more than 3,000 of either.

Where zero can hold nothing and all features are too many, Newton's equations are solved by conjugate
gradients, each of whose products is a pass: for the same text and ℓ2, 84 passes with λ = 1 (`mm-subspace`
974) and 14 with λ = 100 (134). (The curvature of a sample in memory as the preconditioner did not pay: with a
sixteenth of the rows it took 95 passes; only with a quarter of them fewer, 47.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtpttr, dtrttp

from majorant.linsolve import MAX_STEPS, conjugate_gradients
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows.block import Block
from majorant.rows.protocol import totals
from majorant.solvers.line_search import ROUNDING, SUFFICIENT
from majorant.solvers.newton import tuning
from majorant.solvers.newton.newton_equations import Hessians, PenaltyCurvature
from majorant.solvers.newton.quadratic_subproblem import minimise_from_kink, minimise_model
from majorant.solvers.newton.sampled_hessian import SampledHessian, large_enough
from majorant.solvers.newton.working_set import features_to_watch
from majorant.status import Evaluated, Vector

Features = NDArray[np.intp]


# What a pass brings ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class View:
    """What a pass brings from a point for one class, and from shorter steps towards it; views add up.

    The triangle is that of H, row by row: half of what the blocks would have to hand over, and to add.
    """

    loss: float
    gradient: Vector
    triangle: Vector
    shorter: Vector

    def __add__(self, other: View) -> View:
        return View(
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.triangle + other.triangle,
            self.shorter + other.shorter,
        )


def view(chosen: Features | None, theta: Vector, d: Vector | None, block: Block) -> View:
    """The block's part of the view at θ, the end of the step d, with H of the chosen features, or of all."""
    margins = block.image(theta)
    shorter = np.zeros(0)
    if d is not None:
        back = block.image(d)
        losses = (SquaredHinge.value(margins - (1.0 - t) * back) for t in tuning.SHORTER_PARTS)
        shorter = np.array([block.s @ loss for loss in losses])
    p = (block.n_features if chosen is None else len(chosen)) + 1
    H, c = np.zeros((p, p)), np.zeros(p)
    active = np.flatnonzero(margins < 1.0)
    if p > 1:
        part = block if chosen is None else block.columns(chosen)
        part.add_rows(active, 1.0, H, c)
    else:  # the intercept alone, which needs no entry of X
        H[0, 0] = 2.0 * block.b**2 * block.s[active].sum()
    if chosen is None:
        block.mirror(H)
        value, gradient = float(block.s @ SquaredHinge.value(margins)), H @ theta - c
    else:
        loss = block.loss(theta)
        value, gradient = loss.value, loss.gradient
    triangle, _ = dtrttp(H.T)
    return View(value, gradient, triangle, shorter)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a pass brings for all classes, and the features that the Hessians are of: None for all."""

    views: Sequence[View]
    chosen: Features | None

    @property
    def loss(self) -> float:
        """Of all classes."""
        return sum(view.loss for view in self.views)

    @property
    def shorter(self) -> Vector:
        """The losses of all classes at shorter steps."""
        return np.asarray(np.sum([view.shorter for view in self.views], axis=0))

    @property
    def gradient(self) -> Vector:
        """Of the loss."""
        return np.concatenate([view.gradient for view in self.views])

    def hessians(self) -> Hessians:
        """H, (C, n, n), the intercepts last."""
        p = math.isqrt(2 * len(self.views[0].triangle))
        # LAPACK goes by columns, so our rows are the upper triangle.
        uppers = [dtpttr(p, view.triangle)[0] for view in self.views]
        return np.stack([upper + np.triu(upper, 1).T for upper in uppers])


def look(objective: Objective, chosen: Features | None, theta: Vector, d: Vector | None = None) -> Seen:
    """One pass: what is to be seen at θ, at the end of the step d."""
    thetas = objective.matrix(theta)
    moves = [None] * len(thetas) if d is None else list(objective.matrix(d))
    questions = [partial(view, chosen, row, move) for row, move in zip(thetas, moves, strict=True)]
    return Seen(totals(objective.classes, questions), chosen)


# The step -------------------------------------------------------------------------------------------------


def enough(at: Evaluated, t: float, predicted: float, reached: float) -> bool:
    """Whether Φ has fallen far enough after the part t of a step that has promised so much in all."""
    return reached <= at.value - SUFFICIENT * t * predicted + ROUNDING * abs(at.value)


def step(
    objective: Objective,
    at: Evaluated,
    target: Vector,
    predicted: float,
    look: Callable[[Vector, Vector | None], Seen],
) -> tuple[Vector, float, Seen] | None:
    """Where the step leads, Φ and what is seen there; None if Φ does not fall on the way."""
    d = target - at.theta
    whole = 1.0
    while whole > 1e-10:
        end = at.theta + whole * d
        seen = look(end, whole * d)
        reached = seen.loss + objective.penalty(end)
        if enough(at, whole, predicted, reached):
            return end, reached, seen
        for part, loss in zip(tuning.SHORTER_PARTS, seen.shorter.tolist(), strict=True):
            t = whole * part
            between = at.theta + t * d
            if enough(at, t, predicted, loss + objective.penalty(between)):
                seen = look(between, None)
                return between, seen.loss + objective.penalty(between), seen
        whole *= tuning.SHORTER_PARTS[-1] / 2.0
    return None


# Newton's method with Hessians ----------------------------------------------------------------------------


def room(objective: Objective) -> int:
    """How many features may move at a time."""
    return max(1, math.isqrt(tuning.PASS_ENTRIES // len(objective.classes)) - (len(objective.classes) > 1))


def all_may_move(objective: Objective) -> bool:
    """Whether the Hessians of all features travel with a pass."""
    return objective.width - 1 <= room(objective)


def zero_holds(objective: Objective) -> bool:
    """Whether few features matter, since zero can hold a pull: at a kink, or at one that is rounded."""
    potential = objective.potential
    kinked = not potential.smooth
    if len(objective.classes) == 1:
        kinked |= any(not surrogate.smooth for surrogate in potential.surrogates(1.0))
    return kinked


def descend(objective: Objective, start: Evaluated, sample: Objective | None = None) -> Iterator[Evaluated]:
    """The iterates from the start on, beginning with a pass at the start itself.

    Of the start no more than θ need be right, and with a choice of features a gradient like a sample's.
    """
    if all_may_move(objective) or zero_holds(objective):
        return _Passes(objective, sample).iterates(start)
    return newton_cg_pass_iterates(objective, start)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point, the features that may move from there, and the Hessian of these.

    `error` says by how much the fall of Φ to here was another than the model had predicted, relatively.
    """

    at: Evaluated
    chosen: Features | None
    hessian: SampledHessian
    error: float = 1.0

    @property
    def stale(self) -> bool:
        """Whether the Hessian is that of another point."""
        return self.hessian.theta is not self.at.theta


class _Passes:
    """Newton's method with one pass for each step that is right at once."""

    def __init__(self, objective: Objective, sample: Objective | None) -> None:
        self.objective, self.all = objective, all_may_move(objective)
        self.of_sample: Callable[[Vector], Hessians] | None = None
        if sample is not None and self.all and large_enough(sample.rows, objective.width):
            self.of_sample = lambda theta: look(sample, None, theta).hessians()
        # The fall of Φ that the last model has promised. ∞ means: trust the next approximate Hessian whatever
        # its model promises.
        self.trusted = math.inf if objective.potential.convex else 0.0
        self.last = self.trusted

    def iterates(self, start: Evaluated) -> Iterator[Evaluated]:
        here = self._look(start.theta, None if self.all else self._choose(start))
        while True:
            yield here.at
            here = self._after(here)

    def _choose(self, at: Evaluated) -> Features:
        most = room(self.objective)
        return features_to_watch(self.objective, at, tuning.PASS_FIRST, tuning.PASS_GROWTH, most)

    def _look(self, theta: Vector, chosen: Features | None) -> _Point:
        seen = look(self.objective, chosen, theta)
        return self._arrived(theta, seen.loss + self.objective.penalty(theta), seen)

    def _arrived(self, theta: Vector, value: float, seen: Seen, error: float = 1.0) -> _Point:
        at = Evaluated(theta, value, seen.gradient, carried=self.all)
        return _Point(at, seen.chosen, SampledHessian(theta, seen.hessians(), self.of_sample), error)

    def _after(self, here: _Point) -> _Point:
        """The end of a step; if none of the chosen features moves, others are; if none of these, θ."""
        target = self._minimised(here)
        if here.stale and not here.at.value - target.value > ROUNDING * abs(here.at.value):
            # Rows that were not active where H was known may be all that a feature has: it was blind.
            here = self._look(here.at.theta, None)
            target = self._minimised(here)
        promised = here.at.value - target.value
        quick = self.all and promised <= tuning.REUSED_HESSIAN_FALL * self.last
        if quick:
            there = self.objective.evaluate(target.theta)
            if enough(here.at, 1.0, promised, there.value):
                self.last = promised
                return replace(here, at=there)
        moved = None if quick and here.stale else self._step(here, target)
        if moved is None and (here.stale or not self.all):
            here = self._look(here.at.theta, None if self.all else self._choose(target))
            target = self._minimised(here)
            moved = self._step(here, target)
        if moved is None:  # what is yielded again ends the run
            return here
        promised = here.at.value - target.value
        error = abs(here.at.value - moved[1] - promised) / promised if promised > 0.0 else 1.0
        # A fresh Hessian is trusted once if the last predicted decrease was nearly right.
        self.last = self.trusted if not quick and error <= tuning.RIGHT_MODEL_ERROR else promised
        return self._arrived(*moved, error)

    def _step(self, here: _Point, target: Evaluated) -> tuple[Vector, float, Seen] | None:
        chosen = None if self.all else self._choose(target)
        promised = here.at.value - target.value
        return step(self.objective, here.at, target.theta, promised, partial(look, self.objective, chosen))

    def _minimised(self, here: _Point) -> Evaluated:
        """The minimiser of the model on the chosen features; Φ and the gradient there by the model."""
        objective, at = self.objective, here.at
        H = here.hessian.near(at.theta)
        if here.chosen is None:
            found, predicted = minimise_model(objective, H, at, tuning.PASS_MODEL_ACCURACY)
            return Evaluated(found, at.value - predicted, at.loss_gradient, carried=True)
        where = np.append(here.chosen, objective.width - 1)
        theta, gradient = objective.matrix(at.theta.copy()), objective.matrix(at.loss_gradient.copy())
        part = Evaluated(theta[:, where].ravel(), at.value, gradient[:, where].ravel())
        restricted = replace(objective, penalty_factor=objective.factor[here.chosen])
        if objective.potential.smooth:
            found, predicted = minimise_from_kink(restricted, H, part)
            moved, alone = _alone(objective, at, here.chosen)
            theta, predicted = objective.matrix(moved), predicted + alone
        else:
            accuracy = min(max(here.error, tuning.FINEST_PASS_MODEL_ACCURACY), tuning.MODEL_ACCURACY)
            found, predicted = minimise_model(restricted, H, part, accuracy)
        move = found.reshape(len(H), -1) - part.theta.reshape(len(H), -1)
        theta[:, where] = found.reshape(len(H), -1)
        gradient[:, where] += np.einsum("cij,cj->ci", H, move)
        return Evaluated(theta.ravel(), at.value - predicted, gradient.ravel(), carried=True)


def _alone(objective: Objective, at: Evaluated, chosen: Features) -> tuple[Vector, float]:
    """θ with each of the other features where it would be if no other moved, and by how much that is lower.

    By steps of half-quadratic MM on each of them, where D bounds the curvature of the loss.
    """
    outside = np.ones(objective.size, dtype=np.bool_)
    outside[np.append(chosen, objective.size - 1)] = False
    w, g = at.theta[outside], at.loss_gradient[outside]
    D, c = 2.0 * objective.rows.gram_diagonal[outside], objective.factor[outside[:-1]]
    moved = w
    for _ in range(tuning.SINGLE_FEATURE_STEPS):
        weight = D + c * objective.potential.weight(moved) + objective.eta
        moved = np.divide(D * w - g, weight, out=w.copy(), where=weight > 0.0)
    theta, d = at.theta.copy(), moved - w
    theta[outside] = moved
    rise = float(g @ d + 0.5 * (d @ (D * d))) + objective.penalty(theta) - objective.penalty(at.theta)
    return theta, max(-rise, 0.0)


# Newton's method with products ----------------------------------------------------------------------------


def _product(theta: Vector, d: Vector, block: Block) -> Vector:
    """The block's part of Hd, H = 2 L_AᵀS_A L_A, for the rows A that are active at θ."""
    return block.active_product(block.image(theta) < 1.0, d)


def newton_cg_pass_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Truncated Newton: a pass for each product and for each step that is right at once."""
    nothing = np.zeros(0, dtype=np.intp)
    seen = look(objective, nothing, start.theta)
    at = Evaluated(start.theta, seen.loss + objective.penalty(start.theta), seen.gradient)
    several = len(objective.classes) > 1
    while True:
        yield at
        here, gradient = objective.matrix(at.theta), objective.gradient(at)
        penalty = PenaltyCurvature(objective, at.theta)

        def product(
            d: Vector, here: NDArray[np.float64] = here, penalty: PenaltyCurvature = penalty
        ) -> Vector:
            pairs = zip(here, objective.matrix(d), strict=True)
            answers = totals(objective.classes, [partial(_product, row, move) for row, move in pairs])
            return penalty.add_product(d, np.concatenate(answers))

        preconditioner = penalty.preconditioner(2.0 * objective.rows.gram_diagonal[np.newaxis])
        steps = tuning.JOINT_CG_PASSES if several else MAX_STEPS
        d = -conjugate_gradients(product, gradient, preconditioner, max_steps=steps)
        promised = -0.5 * float(gradient @ d)
        moved = step(objective, at, at.theta + d, promised, partial(look, objective, nothing))
        if moved is not None:  # else what is yielded again ends the run
            theta, value, seen = moved
            at = Evaluated(theta, value, seen.gradient)
