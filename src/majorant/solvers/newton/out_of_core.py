r"""Rows that are not in memory: one pass over them for each Newton step.

Where a pass is all that costs, it should answer everything that the next step asks. From the end θ + d of a
step a pass brings, for every class,

    the loss, and its gradient over all features,
    H = 2 L_AᵀS_A L_A over the rows A that are active there, of the features that may move in the next step,
    and the loss at θ + t d for some shorter t,

so that the whole step, which is right nearly always, brings the next model along; and if it is not, the right
part of it is known, and one more pass brings the model there.

Up to 3,000² entries of H, for all classes together, travel with a pass. If that is room for all features, all
may move, and H is not asked for while steps do well without (see below). If it is not, and zero
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

H is most of the work of a pass, p² operations for a row of p entries where the loss and its gradient take 4p,
and most of what a block answers. So H is not asked for while steps do well without. Since H was known last,
at θ₀, some rows have become active, and others are not any more; both are few near the end. What they change
is told by the sample S that the way has begun with (`subsample_start.py`), in memory:

    H(θ) ≈ H(θ₀) + H_S(θ) - H_S(θ₀).

Let H be the curvature of a quadratic loss, Ĥ what is taken for it, and (1 - δ) H ≼ Ĥ ≼ (1 + δ) H. Then a step
from θ to θ⁺ leaves no more than δ / (1 - δ) of the distance to the minimum θ*, measured by H: the penalty is
convex, so the conditions for θ⁺ and θ* give

    (θ⁺ - θ*)·Ĥ (θ⁺ - θ*) ≤ (θ⁺ - θ*)·(Ĥ - H)(θ - θ*).

Of a sample alone, of m normal rows, δ is about 2 √(p / m); here only the rows that have changed sides count.
When the models do not promise less and less quickly, the next pass brings H along.

(With a choice of features this was tried and did not pay: the choice changes with every step, and of 5 passes
with H 3 were left on text, for one pass more; 10 of 10 with 2,000 features in play, for 4 more.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtpttr, dtrttp

from majorant.linsolve import MAX_STEPS, conjugate_gradients
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows.base import AddedByField, sum_blocks_each
from majorant.rows.block import Block
from majorant.solvers.line_search import ROUNDING, SUFFICIENT
from majorant.solvers.newton import tuning
from majorant.solvers.newton.newton_equations import Hessians, PenaltyCurvature, product_with
from majorant.solvers.newton.quadratic_subproblem import minimise_from_kink, minimise_model
from majorant.solvers.newton.working_set import features_to_watch
from majorant.status import Evaluated, Matrix, Vector

Features = NDArray[np.intp]


# What a pass brings ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelSums(AddedByField):
    """What a pass brings from a point for one class, and from shorter steps towards it.

    The triangle is that of H, row by row: half of what the blocks would have to hand over, and to add.
    """

    loss: float
    gradient: Vector
    triangle: Vector
    shorter: Vector

    def hessian(self) -> Matrix:
        """H, the intercept last."""
        # LAPACK goes by columns, so our rows are the upper triangle.
        upper, _ = dtpttr(math.isqrt(2 * len(self.triangle)), self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def model_sums(chosen: Features | None, theta: Vector, d: Vector | None, block: Block) -> ModelSums:
    """The block's part of the sums at θ, the end of the step d, with H of the chosen features, or of all."""
    margins = block.matvec(theta)
    shorter = np.zeros(0)
    if d is not None:
        back = block.matvec(d)
        losses = (SquaredHinge.value(margins - (1.0 - t) * back) for t in tuning.SHORTER_PARTS)
        shorter = np.array([block.s @ loss for loss in losses])
    active = np.flatnonzero(margins < 1.0)
    if chosen is None:
        H, c = block.triangle_of(active)
        block.symmetrize(H)
        value, gradient = float(block.s @ SquaredHinge.value(margins)), H @ theta - c
    else:
        if len(chosen):
            H, _ = block.columns(chosen).triangle_of(active)
        else:  # the intercept alone, which needs no entry of X
            H = np.array([[2.0 * block.b**2 * block.s[active].sum()]])
        loss = block.loss(theta)
        value, gradient = loss.value, loss.gradient
    triangle, _ = dtrttp(H.T)
    return ModelSums(value, gradient, triangle, shorter)


@dataclass(frozen=True, eq=False)
class PassModel:
    """What a pass brings for all classes: a quadratic model of the loss, and losses on the way to it.

    `chosen` are the features that the Hessians are of: None for all. `shorter` are the losses at shorter
    steps.
    """

    at: Evaluated
    chosen: Features | None
    hessians: Hessians
    shorter: Vector


def pass_model(
    objective: Objective, chosen: Features | None, theta: Vector, d: Vector | None = None
) -> PassModel:
    """One pass: the model at θ, the end of the step d, and the losses at shorter steps."""
    thetas = objective.matrix(theta)
    moves = [None] * len(thetas) if d is None else objective.matrix(d)
    questions = [partial(model_sums, chosen, row, move) for row, move in zip(thetas, moves, strict=True)]
    sums: list[ModelSums] = sum_blocks_each(objective.classes, questions)
    value = sum(part.loss for part in sums) + objective.penalty(theta)
    gradient = np.concatenate([part.gradient for part in sums])
    return PassModel(
        Evaluated(theta, value, gradient, carried=chosen is None),
        chosen,
        np.stack([part.hessian() for part in sums]),
        np.sum([part.shorter for part in sums], axis=0),
    )


# The step -------------------------------------------------------------------------------------------------


def enough(at: Evaluated, t: float, predicted: float, reached: float) -> bool:
    """Whether Φ has fallen far enough after the part t of a step that has promised so much in all."""
    return reached <= at.value - SUFFICIENT * t * predicted + ROUNDING * abs(at.value)


def step(
    objective: Objective, chosen: Features | None, at: Evaluated, target: Vector, predicted: float
) -> PassModel | None:
    """The model where the step leads; None if Φ does not fall on the way."""
    d = target - at.theta
    whole = 1.0
    while whole > 1e-10:
        seen = pass_model(objective, chosen, at.theta + whole * d, whole * d)
        if enough(at, whole, predicted, seen.at.value):
            return seen
        for part, loss in zip(tuning.SHORTER_PARTS, seen.shorter.tolist(), strict=True):
            between = at.theta + whole * part * d
            if enough(at, whole * part, predicted, loss + objective.penalty(between)):
                return pass_model(objective, chosen, between)
        whole *= tuning.SHORTER_PARTS[-1] / 2.0
    return None


# Newton's method with Hessians ----------------------------------------------------------------------------


def movable_features(objective: Objective) -> int:
    """How many features may move at a time."""
    return max(1, math.isqrt(tuning.PASS_ENTRIES // len(objective.classes)) - (len(objective.classes) > 1))


def all_may_move(objective: Objective) -> bool:
    """Whether the Hessians of all features travel with a pass."""
    return objective.width - 1 <= movable_features(objective)


def zero_holds(objective: Objective) -> bool:
    """Whether few features matter, since zero can hold a pull: at a kink, or at one that is rounded."""
    rounded = () if objective.other_classes else objective.potential.surrogates(1.0)
    return not all(potential.smooth for potential in (objective.potential, *rounded))


def descend(objective: Objective, start: Evaluated, sample: Objective | None = None) -> Iterator[Evaluated]:
    """The iterates from the start on, beginning with a pass at the start itself.

    Of the start no more than θ need be right, and with a choice of features a gradient like a sample's.
    """
    if all_may_move(objective) or zero_holds(objective):
        return _Passes(objective, sample).iterates(start)
    return newton_cg_pass_iterates(objective, start)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point, and what was seen last: here, or at a point before.

    `error` says by how much the fall of Φ to here was another than the model had predicted, relatively.
    """

    at: Evaluated
    seen: PassModel
    error: float = 1.0

    @property
    def stale(self) -> bool:
        """Whether the Hessian is that of another point."""
        return self.seen.at is not self.at


class _Passes:
    """Newton's method with one pass for each step that is right at once."""

    def __init__(self, objective: Objective, sample: Objective | None) -> None:
        self.objective, self.all = objective, all_may_move(objective)
        self.of_sample: Callable[[Evaluated], Hessians] | None = None
        # A small sample cannot tell how a Hessian changes.
        least = tuning.SAMPLED_ROWS_PER_FEATURE * objective.width
        if sample is not None and self.all and sample.rows.n_samples >= least:
            # The two last: of the point, and of the one where H is known.
            self.of_sample = lru_cache(2)(lambda at: pass_model(sample, None, at.theta).hessians)
        # The fall of Φ that the last model has promised. ∞ means: trust the next approximate Hessian whatever
        # its model promises.
        self.trusted = math.inf if objective.potential.convex else 0.0
        self.last = self.trusted

    def iterates(self, start: Evaluated) -> Iterator[Evaluated]:
        here = self._model_at(start)
        while True:
            yield here.at
            here = self._next_point(here)

    def _choose(self, at: Evaluated) -> Features | None:
        """The features that may move, by the gradient at a point; None for all."""
        if self.all:
            return None
        most = movable_features(self.objective)
        return features_to_watch(self.objective, at, tuning.PASS_FIRST, tuning.PASS_GROWTH, most)

    def _model_at(self, at: Evaluated, target: Evaluated | None = None) -> _Point:
        seen = pass_model(self.objective, self._choose(target or at), at.theta)
        return _Point(seen.at, seen)

    def _hessians(self, here: _Point) -> Hessians:
        """H(θ₀) + H_S(θ) - H_S(θ₀), if there is a sample."""
        H = here.seen.hessians
        if self.of_sample is None or not here.stale:
            return H
        moved = H + self.of_sample(here.at) - self.of_sample(here.seen.at)
        # A sample that knows no better than to take half of a curvature away is no help.
        return moved if np.all(np.einsum("cii->ci", moved) >= 0.5 * np.einsum("cii->ci", H)) else H

    def _next_point(self, here: _Point) -> _Point:
        """The end of a step; if none of the chosen features moves, others are; if none of these, θ."""
        target = self._minimised(here)
        if here.stale and not here.at.value - target.value > ROUNDING * abs(here.at.value):
            # Rows that were not active where H was known may be all that a feature has: it was blind.
            here = self._model_at(here.at)
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
            here = self._model_at(here.at, target)
            target = self._minimised(here)
            moved = self._step(here, target)
        if moved is None:  # what is yielded again ends the run
            return here
        promised = here.at.value - target.value
        error = abs(here.at.value - moved.at.value - promised) / promised if promised > 0.0 else 1.0
        # A fresh Hessian is trusted once if the last predicted decrease was nearly right.
        self.last = self.trusted if not quick and error <= tuning.RIGHT_MODEL_ERROR else promised
        return _Point(moved.at, moved, error)

    def _step(self, here: _Point, target: Evaluated) -> PassModel | None:
        promised = here.at.value - target.value
        return step(self.objective, self._choose(target), here.at, target.theta, promised)

    def _minimised(self, here: _Point) -> Evaluated:
        """The minimiser of the model on the chosen features; Φ and the gradient there by the model."""
        objective, at, chosen, H = self.objective, here.at, here.seen.chosen, self._hessians(here)
        if chosen is None:
            found, predicted = minimise_model(objective, H, at, tuning.PASS_MODEL_ACCURACY)
            return Evaluated(found, at.value - predicted, at.loss_gradient, carried=True)
        where = np.append(chosen, objective.width - 1)
        theta, gradient = objective.matrix(at.theta.copy()), objective.matrix(at.loss_gradient.copy())
        part = Evaluated(theta[:, where].ravel(), at.value, gradient[:, where].ravel())
        restricted = replace(objective, penalty_factor=objective.factor[chosen])
        if objective.potential.smooth:
            found, predicted = minimise_from_kink(restricted, H, part)
            moved, alone = _move_separately(objective, at, chosen)
            theta, predicted = objective.matrix(moved), predicted + alone
        else:
            accuracy = min(max(here.error, tuning.FINEST_PASS_MODEL_ACCURACY), tuning.MODEL_ACCURACY)
            found, predicted = minimise_model(restricted, H, part, accuracy)
        theta[:, where] = restricted.matrix(found)
        gradient[:, where] += restricted.matrix(product_with(H, found - part.theta))
        return Evaluated(theta.ravel(), at.value - predicted, gradient.ravel(), carried=True)


def _move_separately(objective: Objective, at: Evaluated, chosen: Features) -> tuple[Vector, float]:
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
    return block.active_product(block.matvec(theta) < 1.0, d)


def _product_of_all(objective: Objective, theta: Vector, penalty: PenaltyCurvature, d: Vector) -> Vector:
    """The Hessian of Φ at θ times d: one pass."""
    pairs = zip(objective.matrix(theta), objective.matrix(d), strict=True)
    answers = sum_blocks_each(objective.classes, [partial(_product, row, move) for row, move in pairs])
    return penalty.add_product(d, np.concatenate(answers))


def newton_cg_pass_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Truncated Newton: a pass for each product and for each step that is right at once."""
    nothing = np.zeros(0, dtype=np.intp)
    seen = pass_model(objective, nothing, start.theta)
    steps = tuning.JOINT_CG_PASSES if objective.other_classes else MAX_STEPS
    while True:
        yield (at := seen.at)
        gradient, penalty = objective.gradient(at), PenaltyCurvature(objective, at.theta)
        product = partial(_product_of_all, objective, at.theta, penalty)
        preconditioner = penalty.preconditioner(2.0 * objective.rows.gram_diagonal[np.newaxis])
        d = -conjugate_gradients(product, gradient, preconditioner, max_steps=steps)
        # What is yielded again ends the run.
        seen = step(objective, nothing, at, at.theta + d, -0.5 * float(gradient @ d)) or seen
