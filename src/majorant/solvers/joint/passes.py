r"""All classes at once on rows that are not in memory: one pass over them for each Newton step.

The joint counterpart of `newton/passes.py`. From the end of a step a pass brings, for every class c,

    the loss, its gradient over all features,
    H_c = 2 L_AᵀS_A L_A over the rows A that are active there for c, on the features that may move next, and
    the loss at some shorter steps.

With n_classes · n² ≤ 3000² entries, n features may move at a time: all of them, if there are no more. If
there are, and the potential has a kink, those that are not zero or are about to be different, by the gradient
at the beginning of the step; if they are still too many, the worst of them for one half, and of the rest
those that are not zero. Who is missed is seen in the gradient, and moves in the next step but one.

A smooth potential moves all features, so where they are too many, Newton's equations are solved by conjugate
gradients, each of whose products is a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from majorant.joint import JointObjective
from majorant.linsolve import conjugate_gradients, rounding_level
from majorant.rows import MemoryRows
from majorant.rows.block import Block
from majorant.rows.memory import joined
from majorant.rows.protocol import Every, totals
from majorant.solvers.joint.models import JointModel
from majorant.solvers.joint.smooth import PenaltyCurvature
from majorant.solvers.newton.passes import MAX_FEATURES, losses_on_the_way, step
from majorant.solvers.sample import Engine, sample_step
from majorant.status import Evaluated, Matrix, Vector

# How many entries the matrices of all classes have: no more than that of one class.
ENTRIES = MAX_FEATURES**2
# A feature is about to be different from zero if it is pulled by this share of what holds it; and features
# that may not move are looked at if they violate so many times more than all that may.
NEAR = 0.8
MISSED = 2.0
# The passes that one solution of Newton's equations may take, without their matrix.
PRODUCTS = 20

Features = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class View:
    """What a pass brings for one class; blocks' views add up. H is of the chosen features and symmetric."""

    loss: float
    gradient: Vector
    H: Matrix
    shorter: Vector

    def __add__(self, other: View) -> View:
        return View(
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.H + other.H,
            self.shorter + other.shorter,
        )


@dataclass(frozen=True, eq=False)
class JointView:
    """What a pass brings for all classes, and the features that the H are of."""

    classes: Sequence[View]
    chosen: Features

    @property
    def loss(self) -> float:
        """Of all classes."""
        return sum(view.loss for view in self.classes)

    @property
    def shorter(self) -> Vector:
        """The losses of all classes at shorter steps."""
        return np.asarray(np.sum([view.shorter for view in self.classes], axis=0))

    @property
    def gradient(self) -> Matrix:
        """Of the loss, a row per class."""
        return np.stack([view.gradient for view in self.classes])

    @property
    def curvature(self) -> NDArray[np.float64]:
        """All H, (n_classes, n, n), the intercepts last."""
        return np.stack([view.H for view in self.classes])


def view(chosen: Features, theta: Vector, d: Vector | None, block: Block) -> View:
    """The block's part of the view at θ, at the end of the step d."""
    loss, margins = block.loss(theta), block.image(theta)
    part = block if len(chosen) == block.n_features else block.columns(chosen)
    size = len(chosen) + 1
    H, c = np.zeros((size, size)), np.zeros(size)
    part.add_rows(np.flatnonzero(margins < 1.0), 1.0, H, c)
    part.mirror(H)
    return View(loss.value, loss.gradient, H, losses_on_the_way(margins, d, block))


def active_product(theta: Vector, d: Vector, block: Block) -> Vector:
    """H d over the rows of the block that are active at θ."""
    return block.active_product(block.image(theta) < 1.0, d)


def _room(objective: JointObjective) -> int:
    """How many features may move at a time."""
    return max(1, math.isqrt(ENTRIES // len(objective.classes)) - 1)


# Steps -----------------------------------------------------------------------------------------------------


def pass_iterates(objective: JointObjective, start: Evaluated) -> Iterator[Evaluated]:
    """Newton's method with one pass for each step that is right at once."""
    theta = start.theta
    seen = _look(objective, _choose(objective, start, theta), theta, None)
    while True:
        value = seen.loss + objective.penalty(theta)
        at = Evaluated(theta, value, seen.gradient.ravel())
        yield at
        moved = None
        if not _others_matter_more(objective, at, seen.chosen):
            moved = _newton_step(objective, at, seen)
        if moved is None and len(seen.chosen) < objective.single.size - 1:
            seen = _look(objective, _choose(objective, at, theta), theta, None)
            moved = _newton_step(objective, at, seen)
        if moved is not None:  # else: what is yielded again ends the run
            theta, _, seen = moved


def _newton_step(
    objective: JointObjective, at: Evaluated, seen: JointView
) -> tuple[Vector, float, JointView] | None:
    where = np.append(seen.chosen, objective.single.size - 1)
    theta = objective.matrix(at.theta.copy())
    model = JointModel(
        replace(objective, penalty_factor=objective.factor[seen.chosen]),
        seen.curvature,
        seen.gradient[:, where],
        theta[:, where],
        objective.violation_scale[where],
        rounding_level(objective.single.rows.loss_at_zero.value, objective.single.size),
    )
    theta[:, where], predicted = model.minimise()
    look = partial(_look, objective, _choose(objective, at, theta.ravel()))
    return step(objective, at, theta.ravel(), predicted, look)


def _look(objective: JointObjective, chosen: Features, theta: Vector, d: Vector | None) -> JointView:
    """One pass."""
    thetas = objective.matrix(theta)
    moves = [None] * len(thetas) if d is None else list(objective.matrix(d))
    questions = [partial(view, chosen, row, move) for row, move in zip(thetas, moves, strict=True)]
    return JointView(totals(objective.classes, questions), chosen)


def _choose(objective: JointObjective, at: Evaluated, target: Vector) -> Features:
    """Who may move in the step after the one to the target, by the gradient before it."""
    n, room = objective.single.size - 1, _room(objective)
    if n <= room:
        return np.arange(n)
    needed = (objective.lengths(target) > 0.0) | (objective.factor == 0.0)
    pulls = objective.lengths(at.loss_gradient)
    candidates = np.flatnonzero(needed | (pulls > NEAR * objective.single.kink_slopes[:-1]))
    if len(candidates) > room:
        worst_first = candidates[np.argsort(-objective.violations(at)[candidates], kind="stable")]
        half, others = np.split(worst_first, [room // 2])
        others = others[np.argsort(~needed[others], kind="stable")]
        candidates = np.sort(np.append(half, others[: room - len(half)]))
    return candidates


def _others_matter_more(objective: JointObjective, at: Evaluated, chosen: Features) -> bool:
    """Whether those that may not move violate the optimality conditions much more than those that may."""
    violations = objective.violations(at)
    others = np.ones(len(violations), dtype=np.bool_)
    others[chosen] = others[-1] = False
    worst = float(np.max(violations[others], initial=0.0))
    return worst > MISSED * float(np.max(violations[~others]))


def conjugate_iterates(objective: JointObjective, start: Evaluated) -> Iterator[Evaluated]:
    """Truncated Newton: some passes for the direction, one for the step."""
    at = objective.evaluate(start.theta)
    diagonal = 2.0 * objective.single.rows.gram_diagonal[np.newaxis]
    look = partial(_look, objective, np.zeros(0, dtype=np.intp))
    while True:
        yield at
        here, gradient = objective.matrix(at.theta), objective.gradient(at)
        penalty = PenaltyCurvature(objective, at.theta)

        def curved(d: Vector, here: Matrix = here, penalty: PenaltyCurvature = penalty) -> Vector:
            moves = zip(here, objective.matrix(d), strict=True)
            questions = [partial(active_product, row, move) for row, move in moves]
            return np.concatenate(totals(objective.classes, questions)) + penalty.product(d)

        preconditioner = penalty.preconditioner(diagonal)
        d = -conjugate_gradients(curved, gradient, preconditioner, max_steps=PRODUCTS)
        moved = step(objective, at, at.theta + d, -float(gradient @ d), look)
        if moved is not None:
            theta, value, seen = moved
            at = Evaluated(theta, value, seen.gradient.ravel())


# All of it ------------------------------------------------------------------------------------------------


def _iterates(
    objective: JointObjective, start: Evaluated, sample: JointObjective | None
) -> Iterator[Evaluated]:
    few_matter = not objective.potential.smooth
    return (pass_iterates if _has_room(objective) or few_matter else conjugate_iterates)(objective, start)


def _has_room(objective: JointObjective) -> bool:
    """Whether all features may move at a time."""
    return objective.single.size - 1 <= _room(objective)


def _sampled(objective: JointObjective) -> JointObjective:
    rows = objective.classes[0]
    blocks = rows.thinned(objective.classes, Every(sample_step(rows)))
    return replace(objective, classes=[MemoryRows.of(joined(part)) for part in blocks])


JOINT = Engine(_iterates, _sampled, lambda objective: not _has_room(objective))
