r"""Rows that are not in memory: one pass over them for each Newton step.

Where a pass is all that costs, it should answer everything that the next step asks. At the end θ + d of a
step each block says

    the loss, H = 2 L_AᵀS_A L_A and c = 2 L_AᵀS_A 1 over its rows A that are active there, and
    the loss at θ + t d for some shorter t,

so that the whole step, which is right nearly always, brings the next model along; and if it is not, the
right part of it is known, and one more pass brings the model there. The gradient of the loss is Hθ - c, as
in `gram.py`; the certificate is computed afresh by the driver.

H is not asked for while steps do well without: `curvature.py`.

The step is the same for the many features of `few_columns.py`, of which a pass brings the H of some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows.block import Block
from majorant.solvers.newton.curvature import QUICKLY, Curvature, large_enough
from majorant.solvers.newton.models import minimise_kinked, minimise_smooth, tangent_slopes
from majorant.solvers.sample import Engine, sample_of, sample_step
from majorant.solvers.search import ROUNDING, SUFFICIENT, Penalised
from majorant.status import Evaluated, Matrix, Vector

# Up to how many features a matrix of all of them travels with every pass.
MAX_FEATURES = 3000

# Parts of a step whose loss a pass brings along.
PARTS = (0.5, 0.25, 0.0625, 1 / 256)

# How accurately models with a kink are minimised: more than where a step costs less than a pass.
ACCURATE = 1e-3

# A model is not all wrong if Φ falls by what it has promised, give or take this share of it.
CLOSE = 0.3


class Seen(Protocol):
    """What a pass brings, as far as the step looks at it: the loss at its end and at shorter ones."""

    @property
    def loss(self) -> float: ...
    @property
    def shorter(self) -> Vector: ...


AnySeen = TypeVar("AnySeen", bound=Seen)
Look = Callable[[Vector, Vector | None], AnySeen]
"""The end of a step, and the step ↦ what a pass brings from there."""


@dataclass(frozen=True, eq=False)
class View:
    """What a pass brings from a point, and from shorter steps towards it; blocks' views add up."""

    loss: float
    H: Matrix
    c: Vector
    shorter: Vector

    def __add__(self, other: View) -> View:
        return View(self.loss + other.loss, self.H + other.H, self.c + other.c, self.shorter + other.shorter)


def view(theta: Vector, d: Vector | None, block: Block) -> View:
    """The block's part of the view at θ, at the end of the step d."""
    p = len(theta)
    margins = block.image(theta)
    H, c = np.zeros((p, p)), np.zeros(p)
    block.add_rows(np.flatnonzero(margins < 1.0), 1.0, H, c)
    block.mirror(H)
    loss = float(block.s @ SquaredHinge.value(margins))
    return View(loss, H, c, losses_on_the_way(margins, d, block))


def losses_on_the_way(margins: Vector, d: Vector | None, block: Block) -> Vector:
    """The loss at the parts of the step d, from the margins at its end; empty without a step."""
    if d is None:
        return np.zeros(0)
    back = block.image(d)
    return np.array([block.s @ SquaredHinge.value(margins - (1.0 - t) * back) for t in PARTS])


def pass_iterates(
    objective: Objective, start: Evaluated, sample: Objective | None = None
) -> Iterator[Evaluated]:
    """Newton's method with one pass over the rows for each step that is right at once."""

    def look(theta: Vector, d: Vector | None) -> View:
        return objective.rows.total(partial(view, theta, d))

    of_sample = None
    if sample is not None and large_enough(sample.rows, objective.size):
        of_sample = partial(_curvature, sample)

    def arrived(theta: Vector, value: float, seen: View) -> tuple[Evaluated, Curvature]:
        at = Evaluated(theta, value, seen.H @ theta - seen.c, carried=True)
        return at, Curvature(theta, seen.H, of_sample)

    seen = look(start.theta, None)
    at, curvature = arrived(start.theta, seen.loss + objective.penalty(start.theta), seen)
    # What the last model has promised. After ∞, the next one is trusted whatever it promises.
    trusted = math.inf if objective.potential.convex else 0.0
    last = trusted
    yield at
    while True:
        target, promised = _minimised(objective, curvature, at)
        if not promised > ROUNDING * abs(at.value) and curvature.theta is not at.theta:
            # Rows that were not active where it was known may be all that a feature has: it was blind.
            at, curvature = arrived(at.theta, at.value, look(at.theta, None))
            target, promised = _minimised(objective, curvature, at)
        quick, moved = promised <= QUICKLY * last, None
        if quick:
            there = objective.evaluate(target)
            if enough(at, 1.0, promised, there.value):
                at, last = there, promised
                yield at
                continue
        else:
            moved = step(objective, at, target, promised, look)
        if moved is None and curvature.theta is not at.theta:  # it was no more than nearly right
            at, curvature = arrived(at.theta, at.value, look(at.theta, None))
            target, promised = _minimised(objective, curvature, at)
            moved = step(objective, at, target, promised, look)
        elif quick:
            moved = step(objective, at, target, promised, look)
        if moved is not None:
            fall = at.value - moved[1]
            at, curvature = arrived(*moved)
            # A curvature that is new is, once, if the last one was not all wrong.
            last = trusted if not quick and abs(fall - promised) <= CLOSE * promised else promised
        # Without a way down that these numbers can tell, what is yielded again ends the run.
        yield at


def _curvature(objective: Objective, theta: Vector) -> Matrix:
    return objective.rows.total(partial(view, theta, None)).H


def _minimised(objective: Objective, curvature: Curvature, at: Evaluated) -> tuple[Vector, float]:
    H = curvature.near(at.theta)
    c = H @ at.theta - at.loss_gradient
    if objective.potential.smooth:
        return minimise_smooth(objective, H, c, at.theta)
    return minimise_kinked(objective, H, c, at, tangent_slopes(objective, at.theta), ACCURATE)


def _sampled(objective: Objective) -> Objective:
    rows = objective.rows
    return replace(objective, rows=sample_of(rows, sample_step(rows)))


ALL_COLUMNS = Engine(pass_iterates, _sampled, lambda objective: False)


def enough(at: Evaluated, t: float, predicted: float, reached: float) -> bool:
    """Whether Φ has fallen far enough after the part t of a step that has promised so much in all."""
    return reached <= at.value - SUFFICIENT * t * predicted + ROUNDING * abs(at.value)


def step(
    objective: Penalised, at: Evaluated, target: Vector, predicted: float, look: Look[AnySeen]
) -> tuple[Vector, float, AnySeen] | None:
    """Where the step leads, Φ and what is seen there; None if Φ does not fall on the way."""
    d = target - at.theta
    whole = 1.0
    while whole > 1e-10:
        end = at.theta + whole * d
        seen = look(end, whole * d)
        reached = seen.loss + objective.penalty(end)
        if enough(at, whole, predicted, reached):
            return end, reached, seen
        for part, loss in zip(PARTS, seen.shorter.tolist(), strict=True):
            t = whole * part
            between = at.theta + t * d
            if enough(at, t, predicted, loss + objective.penalty(between)):
                seen = look(between, None)
                return between, seen.loss + objective.penalty(between), seen
        whole *= PARTS[-1] / 2.0
    return None
