r"""Rows that are not in memory, many features, and few of them different from zero: their curvature alone.

With a kink at zero, a feature j stays there as long as the loss pulls it less than the penalty holds,
|∂_j loss| ≤ c_j φ'(0+). So a pass need not bring the whole H of `passes.py`: from the end θ + d of a step it
brings

    the loss, and its gradient over all features,
    H = 2 L_AᵀS_A L_A over a set W of columns, those that may move in the next step, and
    the loss at θ + t d for some shorter t,

|W|²/2 + p numbers. The next step minimises the model on W, where c = Hθ - ∇loss, whatever the coefficients
outside of W are: these stay. W is chosen before the pass, from the gradient at θ: the support of θ + d, what
violates the optimality conditions, and what is near to it. A feature that begins to violate them outside of W
is in the W of the next pass, and moves in the step after it. (The gradient is complete, so the certificate
sees it at once. To move it without its column of H, by a bound of its curvature, would be a step of its own
length beside Newton's, and the pass is needed in any case.)

If there are more features to look at than W may hold, the worst take their turn: slow, but never upwards.

A kink that is rounded (the hyperbolic potential) leaves no coefficient at zero, but those inside of the
rounding feel next to nothing of each other beside the penalty's curvature there. So W has those beyond it, or
pulled that way, and each of the others goes where it would go alone: nearly right, and the search along the
step sees to it that Φ falls. On 23,765 × 47,236 rows of text it took 18 passes with δ = 1e-4 and 164 with
δ = 1e-2; `mm-subspace` takes more than 3,000 of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtpttr, dtrttp

from majorant.objective import Objective
from majorant.rows import Rows
from majorant.rows.block import Block
from majorant.rows.protocol import LossSum
from majorant.solvers.newton.models import ACCURACY, minimise_from_stone, minimise_kinked, tangent_slopes
from majorant.solvers.newton.passes import MAX_FEATURES, losses_on_the_way, step
from majorant.solvers.sample import Engine, sample_by_entries
from majorant.status import Evaluated, Matrix, Vector

# W has room for so many features, or so many times the support, but never for more than the last.
FIRST = 500
GROWTH = 2
LARGEST = MAX_FEATURES
# The share of the room from which on features that are needed have to compete with others for it.
CROWDED = 0.8
# A feature may move in the next step if the loss pulls it at least with this share of what the penalty holds.
NEAR = 0.8

# How often a feature outside of W is moved on its own.
ALONE_STEPS = 20
# A model that has predicted well is minimised more accurately than others, to this at most: a pass less.
MOST_ACCURATE = 0.002

# The entries of the sample that the steps begin with.
SAMPLED = 4_000_000

Features = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class View:
    """What a pass brings from a point, and from shorter steps towards it; blocks' views add up.

    The triangle is that of H, row by row: half of what the blocks would have to hand over, and to add.
    """

    loss: float
    gradient: Vector
    triangle: Vector
    shorter: Vector

    def curvature(self) -> Matrix:
        """H itself."""
        p = math.isqrt(2 * len(self.triangle))
        upper, _ = dtpttr(p, self.triangle)  # LAPACK goes by columns, so our rows are the upper triangle
        return np.asarray(upper + np.triu(upper, 1).T)

    def __add__(self, other: View) -> View:
        return View(
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.triangle + other.triangle,
            self.shorter + other.shorter,
        )


def view(chosen: Features, theta: Vector, d: Vector | None, block: Block) -> View:
    """The block's part of the view at θ, at the end of the step d, with the H of the chosen features."""
    loss = block.loss(theta)
    margins = block.image(theta)
    p = len(chosen) + 1
    H, c = np.zeros((p, p)), np.zeros(p)
    block.columns(chosen).add_rows(np.flatnonzero(margins < 1.0), 1.0, H, c)
    triangle, _ = dtrttp(H.T)
    return View(loss.value, loss.gradient, triangle, losses_on_the_way(margins, d, block))


@dataclass(frozen=True, eq=False)
class Stand:
    """A point, the curvature of the loss there on the chosen features and the intercept, and its worth.

    `error` says by how much the fall of Φ to here was another than the model had predicted, relatively.
    """

    at: Evaluated
    chosen: Features
    H: Matrix
    error: float = 1.0


def few_column_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Newton's method on the features that may move, with one pass over the rows for each step."""
    theta, chosen = start.theta, choose(objective, start)
    seen = _look(objective.rows, chosen, theta, None)
    at = Evaluated(theta, seen.loss + objective.penalty(theta), seen.gradient)
    here = Stand(at, chosen, seen.curvature())
    while True:
        yield here.at
        here = _after(objective, here)


def _look(rows: Rows, chosen: Features, theta: Vector, d: Vector | None) -> View:
    return rows.total(partial(view, chosen, theta, d))


def _after(objective: Objective, here: Stand) -> Stand:
    """The end of a step. If none of the chosen features moves, others are; if none of these, θ is the end."""
    for _ in range(2):
        target = _minimised(objective, here)
        chosen = choose(objective, target)
        predicted = here.at.value - target.value
        moved = step(objective, here.at, target.theta, predicted, partial(_look, objective.rows, chosen))
        if moved is None:
            seen = _look(objective.rows, chosen, here.at.theta, None)
            moved = here.at.theta, here.at.value, seen
        theta, value, seen = moved
        error = abs(here.at.value - value - predicted) / predicted if predicted > 0.0 else 1.0
        there = Stand(Evaluated(theta, value, seen.gradient), chosen, seen.curvature(), error)
        if not np.array_equal(theta, here.at.theta):
            break
        here = there
    return there


def _minimised(objective: Objective, here: Stand) -> Evaluated:
    """The minimiser of the model on the chosen features; Φ and the gradient there, if the model is right."""
    at, chosen = here.at, here.chosen
    where = np.append(chosen, objective.size - 1)
    part = Evaluated(at.theta[where], at.value, at.loss_gradient[where])
    restricted = _restricted(objective, chosen)
    c = here.H @ part.theta - part.loss_gradient
    if objective.potential.smooth:
        found, predicted = minimise_from_stone(restricted, here.H, c, part)
        target, alone = _alone(objective, at, chosen)
        predicted += alone
    else:
        target = at.theta.copy()
        accuracy = min(max(here.error, MOST_ACCURATE), ACCURACY)
        slopes = tangent_slopes(restricted, part.theta)
        found, predicted = minimise_kinked(restricted, here.H, c, part, slopes, accuracy)
    gradient = at.loss_gradient.copy()
    target[where], gradient[where] = found, here.H @ found - c
    return Evaluated(target, at.value - predicted, gradient, carried=True)


def _restricted(objective: Objective, chosen: Features) -> Objective:
    """The objective on the chosen features alone; no row is asked for it."""
    rows, zero = objective.rows.columns(chosen), objective.rows.loss_at_zero
    gradient = zero.gradient[np.append(chosen, objective.size - 1)]
    rows.__dict__["loss_at_zero"] = LossSum(zero.value, gradient)  # where the cached property looks for it
    return replace(objective, rows=rows, penalty_factor=objective.factor[chosen])


def _alone(objective: Objective, at: Evaluated, chosen: Features) -> tuple[Vector, float]:
    """θ with each of the other features where it would be if no other moved, and by how much that is lower.

    By steps of half-quadratic MM on each of them, where D bounds the curvature of the loss.
    """
    outside = np.ones(objective.size, dtype=np.bool_)
    outside[np.append(chosen, objective.size - 1)] = False
    w, g = at.theta[outside], at.loss_gradient[outside]
    D, c = 2.0 * objective.rows.gram_diagonal[outside], objective.factor[outside[:-1]]
    moved = w
    for _ in range(ALONE_STEPS):
        weight = D + c * objective.potential.weight(moved) + objective.eta
        moved = np.divide(D * w - g, weight, out=w.copy(), where=weight > 0.0)
    theta, d = at.theta.copy(), moved - w
    theta[outside] = moved
    rise = float(g @ d + 0.5 * (d @ (D * d))) + objective.penalty(theta) - objective.penalty(at.theta)
    return theta, max(-rise, 0.0)


def choose(objective: Objective, at: Evaluated) -> Features:
    """The features that may move in a step from θ: all that are needed, and the most likely of the others.

    If those that are needed leave next to no room for those that violate, both have to compete.
    """
    potential = objective.potential
    needed = (np.abs(at.theta[:-1]) > potential.zero_width) | (objective.factor == 0.0)
    urgency = np.full(len(needed), np.inf)
    limits = potential.steepest * objective.factor[~needed]
    urgency[~needed] = np.abs(at.loss_gradient[:-1][~needed]) / limits
    least, count = NEAR, int(np.count_nonzero(needed))
    if count > CROWDED * LARGEST and np.count_nonzero(urgency > 1.0) > LARGEST:
        urgency, least = objective.violations(at)[:-1], 0.0
    candidates = np.flatnonzero(urgency >= least)
    room = min(LARGEST, max(FIRST, GROWTH * count))
    if len(candidates) > room:
        candidates = np.sort(candidates[np.argpartition(-urgency[candidates], room)[:room]])
    return candidates


def sampled(objective: Objective) -> Objective:
    """The problem on a sample, of which sparse rows have the more the fewer entries they have."""
    return replace(objective, rows=sample_by_entries(objective.rows, SAMPLED))


FEW_COLUMNS = Engine(
    lambda objective, start, sample: few_column_iterates(objective, start), sampled, lambda objective: True
)
