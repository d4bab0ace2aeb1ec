r"""Rows that are not in memory: one pass over them for each Newton step.

If the passes are the main cost, a pass should compute everything that the next step needs. At the end θ + d
of a step, a pass computes for every class

    the loss, and its gradient over all features,
    H = 2 L_AᵀS_A L_A over the rows A that are active there, for the features that may move in the next step,
    and the loss at θ + t d for some shorter t.

The whole step nearly always lowers Φ enough; the pass has then computed the next model. Otherwise the losses
show which part of the step does, and one more pass computes the model there.

A pass computes up to 3,000² entries of H, for all classes together. If these are enough for all features, all
may move, and passes without H are enough most of the time (see below). If they are not, and coefficients may
stay at zero (|∂_j loss| ≤ c_j φ'(0+)), the set W of features that may move is chosen before the pass, by the
gradient at θ (`features_to_watch`). A feature outside of W that violates the optimality conditions is in the
W of the next pass, and moves in the step after it. (The gradient has all features, so the certificate is that
of the whole problem.)

With a rounded kink (the hyperbolic potential) no coefficient is exactly zero. But inside of the rounding the
curvature of the penalty is so large that coefficients hardly influence each other. So W contains the features
beyond the rounding, or likely to leave it, and each other feature is moved as if it were the only one; the
line search makes sure that Φ falls. On 23,765 × 47,236 rows of text this took 18 passes with δ = 1e-4 and 164
with δ = 1e-2; `mm-subspace` takes more than 3,000 for either.

If no coefficient stays at zero and there are too many features, Newton's equations are solved by conjugate
gradients, with a pass for each product: on the same text with ℓ2, 84 passes with λ = 1 (`mm-subspace` 974)
and 14 with λ = 100 (134). (The curvature of a sample in memory as the preconditioner did not pay: with a
sixteenth of the rows it took 95 passes; only with a quarter of the rows fewer, 47.)

H is most of the work of a pass, p² operations for a row of p entries where the loss and its gradient take 4p,
and most of a block's answer. So H is left out of a pass if it is not needed. Since H was computed, at θ₀,
some rows have become active and some inactive; near the minimum these are few. Their effect is estimated by
the sample S in memory with which the run started (`subsample_start.py`):

    H(θ) ≈ H(θ₀) + H_S(θ) - H_S(θ₀).

Let H be the curvature of a quadratic loss, Ĥ an estimate of it, and (1 - δ) H ≼ Ĥ ≼ (1 + δ) H. Then a step
from θ to θ⁺ multiplies the distance to the minimum θ*, measured by H, by at most δ / (1 - δ): since the
penalty is convex, the optimality conditions of θ⁺ and θ* give

    (θ⁺ - θ*)·Ĥ (θ⁺ - θ*) ≤ (θ⁺ - θ*)·(Ĥ - H)(θ - θ*).

For the H of a sample of m normal rows, δ is about 2 √(p / m); here only the rows that have changed sides
contribute. If the predicted decreases do not shrink quickly, the next pass computes H.

(With a choice of features this was tried and did not pay, since the choice changes with every step: on text,
3 of 5 passes with H remained, for one pass more; with 2,000 features in use 10 of 10, for 4 passes more.)
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


# What a pass computes -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelSums(AddedByField):
    """Sums over the rows at the end of a step, for one class, and the losses at shorter steps.

    `triangle` is the lower triangle of H, row by row: half of the numbers to send and to add.
    """

    loss: float
    gradient: Vector
    triangle: Vector
    shorter: Vector

    def hessian(self) -> Matrix:
        """H, the intercept last."""
        # LAPACK stores matrices by columns: our rows are its upper triangle.
        upper, _ = dtpttr(math.isqrt(2 * len(self.triangle)), self.triangle)
        return np.asarray(upper + np.triu(upper, 1).T)


def model_sums(chosen: Features | None, theta: Vector, d: Vector | None, block: Block) -> ModelSums:
    """The block's terms of the sums at θ, the end of the step d; H of the chosen features, or of all."""
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
        else:  # only the intercept, without reading X
            H = np.array([[2.0 * block.b**2 * block.s[active].sum()]])
        loss = block.loss(theta)
        value, gradient = loss.value, loss.gradient
    triangle, _ = dtrttp(H.T)
    return ModelSums(value, gradient, triangle, shorter)


@dataclass(frozen=True, eq=False)
class PassModel:
    """The quadratic model of the loss at a point, for all classes, from one pass.

    `chosen` are the features of the Hessians; None: all. `shorter` are the losses at shorter steps.
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
    """Whether Φ has fallen enough after the part t of a step whose predicted fall is `predicted`."""
    return reached <= at.value - SUFFICIENT * t * predicted + ROUNDING * abs(at.value)


def step(
    objective: Objective, chosen: Features | None, at: Evaluated, target: Vector, predicted: float
) -> PassModel | None:
    """The model at the end of the step or of a part of it; None if Φ does not fall enough."""
    d = target - at.theta
    whole = 1.0
    while whole > 1e-10:
        model = pass_model(objective, chosen, at.theta + whole * d, whole * d)
        if enough(at, whole, predicted, model.at.value):
            return model
        for part, loss in zip(tuning.SHORTER_PARTS, model.shorter.tolist(), strict=True):
            between = at.theta + whole * part * d
            if enough(at, whole * part, predicted, loss + objective.penalty(between)):
                return pass_model(objective, chosen, between)
        whole *= tuning.SHORTER_PARTS[-1] / 2.0
    return None


# Newton's method with Hessians ----------------------------------------------------------------------------


def movable_features(objective: Objective) -> int:
    """The largest number of features that may move in a step."""
    return max(1, math.isqrt(tuning.PASS_ENTRIES // len(objective.classes)) - (len(objective.classes) > 1))


def all_may_move(objective: Objective) -> bool:
    """Whether a pass computes the Hessians of all features."""
    return objective.width - 1 <= movable_features(objective)


def stays_at_zero(objective: Objective) -> bool:
    """Whether coefficients may stay at or near zero, since φ has a kink or a rounded kink."""
    rounded = () if objective.other_classes else objective.potential.surrogates(1.0)
    return not all(potential.smooth for potential in (objective.potential, *rounded))


def descend(objective: Objective, start: Evaluated, sample: Objective | None = None) -> Iterator[Evaluated]:
    """Newton's iterates, beginning with a pass at the start.

    Only θ of the start must be right, and, if features are chosen, its gradient approximately.
    """
    if all_may_move(objective) or stays_at_zero(objective):
        return _Passes(objective, sample).iterates(start)
    return newton_cg_pass_iterates(objective, start)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point, and the last model computed, there or at an earlier point.

    `error` is the relative error of the predicted fall of Φ to this point.
    """

    at: Evaluated
    model: PassModel
    error: float = 1.0

    @property
    def stale(self) -> bool:
        """Whether the model is that of an earlier point."""
        return self.model.at is not self.at


class _Passes:
    """Newton's method with one pass for each step that is not shortened."""

    def __init__(self, objective: Objective, sample: Objective | None) -> None:
        self.objective, self.all = objective, all_may_move(objective)
        self.of_sample: Callable[[Evaluated], Hessians] | None = None
        # A small sample cannot estimate how a Hessian changes.
        least = tuning.SAMPLED_ROWS_PER_FEATURE * objective.width
        if sample is not None and self.all and sample.rows.n_samples >= least:
            # The last two: at the point, and at the point of the model.
            self.of_sample = lru_cache(2)(lambda at: pass_model(sample, None, at.theta).hessians)
        # The last predicted fall of Φ. ∞ accepts the next approximate Hessian, whatever fall it predicts.
        self.accept_any = math.inf if objective.potential.convex else 0.0
        self.last = self.accept_any

    def iterates(self, start: Evaluated) -> Iterator[Evaluated]:
        point = self._model_at(start)
        while True:
            yield point.at
            point = self._next_point(point)

    def _choose(self, at: Evaluated) -> Features | None:
        """The features that may move, by the gradient at a point; None: all."""
        if self.all:
            return None
        most = movable_features(self.objective)
        return features_to_watch(self.objective, at, tuning.PASS_FIRST, tuning.PASS_GROWTH, most)

    def _model_at(self, at: Evaluated, target: Evaluated | None = None) -> _Point:
        """θ with a new model, on features chosen at θ or at a target."""
        model = pass_model(self.objective, self._choose(target or at), at.theta)
        return _Point(model.at, model)

    def _hessians(self, here: _Point) -> Hessians:
        """H(θ₀) + H_S(θ) - H_S(θ₀), if there is a sample."""
        H = here.model.hessians
        if self.of_sample is None or not here.stale:
            return H
        moved = H + self.of_sample(here.at) - self.of_sample(here.model.at)
        # If the sample would halve a curvature, its estimate is not used.
        return moved if np.all(np.einsum("cii->ci", moved) >= 0.5 * np.einsum("cii->ci", H)) else H

    def _next_point(self, here: _Point) -> _Point:
        """The end of a step; if the chosen features do not lower Φ, others are chosen; else θ itself."""
        target = self._minimised(here)
        if here.stale and not here.at.value - target.value > ROUNDING * abs(here.at.value):
            # A feature whose rows were all inactive at the point of the model has no curvature in H.
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
        if moved is None:  # yielding the same point again ends the run
            return here
        promised = here.at.value - target.value
        error = abs(here.at.value - moved.at.value - promised) / promised if promised > 0.0 else 1.0
        # A new Hessian is used once more without a test if its predicted decrease was nearly right.
        self.last = self.accept_any if not quick and error <= tuning.RIGHT_MODEL_ERROR else promised
        return _Point(moved.at, moved, error)

    def _step(self, here: _Point, target: Evaluated) -> PassModel | None:
        promised = here.at.value - target.value
        return step(self.objective, self._choose(target), here.at, target.theta, promised)

    def _minimised(self, here: _Point) -> Evaluated:
        """The minimiser of the model on the chosen features, with Φ and the gradient that it predicts."""
        objective, at, chosen, H = self.objective, here.at, here.model.chosen, self._hessians(here)
        if chosen is None:
            found, predicted = minimise_model(objective, H, at, tuning.PASS_MODEL_ACCURACY)
            return Evaluated(found, at.value - predicted, at.loss_gradient, carried=True)
        where = np.append(chosen, objective.width - 1)
        theta, gradient = objective.matrix(at.theta.copy()), objective.matrix(at.loss_gradient.copy())
        part = Evaluated(theta[:, where].ravel(), at.value, gradient[:, where].ravel())
        restricted = replace(objective, penalty_factor=objective.factor[chosen])
        if objective.potential.smooth:
            found, predicted = minimise_from_kink(restricted, H, part)
            moved, fall = _move_separately(objective, at, chosen)
            theta, predicted = objective.matrix(moved), predicted + fall
        else:
            accuracy = min(max(here.error, tuning.FINEST_PASS_MODEL_ACCURACY), tuning.MODEL_ACCURACY)
            found, predicted = minimise_model(restricted, H, part, accuracy)
        theta[:, where] = restricted.matrix(found)
        gradient[:, where] += restricted.matrix(product_with(H, found - part.theta))
        return Evaluated(theta.ravel(), at.value - predicted, gradient.ravel(), carried=True)


def _move_separately(objective: Objective, at: Evaluated, chosen: Features) -> tuple[Vector, float]:
    """Move each feature that is not chosen as if no other moved; returns θ and the predicted fall of Φ.

    Steps of half-quadratic MM on each feature, where D bounds the curvature of the loss.
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
    """The block's term of Hd, H = 2 L_AᵀS_A L_A, for the rows A that are active at θ."""
    return block.active_product(block.matvec(theta) < 1.0, d)


def _product_of_all(objective: Objective, theta: Vector, penalty: PenaltyCurvature, d: Vector) -> Vector:
    """The Hessian of Φ at θ times d: one pass."""
    pairs = zip(objective.matrix(theta), objective.matrix(d), strict=True)
    answers = sum_blocks_each(objective.classes, [partial(_product, row, move) for row, move in pairs])
    return penalty.add_product(d, np.concatenate(answers))


def newton_cg_pass_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Truncated Newton: a pass for each product, and a pass for each step that is not shortened."""
    nothing = np.zeros(0, dtype=np.intp)
    model = pass_model(objective, nothing, start.theta)
    steps = tuning.JOINT_CG_PASSES if objective.other_classes else MAX_STEPS
    while True:
        yield (at := model.at)
        gradient, penalty = objective.gradient(at), PenaltyCurvature(objective, at.theta)
        product = partial(_product_of_all, objective, at.theta, penalty)
        preconditioner = penalty.preconditioner(2.0 * objective.rows.gram_diagonal[np.newaxis])
        d = -conjugate_gradients(product, gradient, preconditioner, max_steps=steps)
        # If no step lowers Φ, yielding the same point again ends the run.
        model = step(objective, nothing, at, at.theta + d, -0.5 * float(gradient @ d)) or model
