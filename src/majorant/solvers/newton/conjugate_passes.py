r"""Rows that are not in memory, many features, all of them needed: Newton's equations with a pass a product.

Neither H nor a part of it that would help has room. So each product of conjugate gradients (`conjugate.py`)
with the curvature of the rows that are active at θ is a pass, and so is the end of the step, which brings the
loss, its gradient, and the loss of shorter steps.

The passes are many, but a fraction of those of `mm-subspace`: for 23,765 × 47,236 rows of text and ℓ2 they
were 84, not 974, with λ = 1, and 14, not 134, with λ = 100. (The curvature of a sample in memory as the
preconditioner did not pay: with a sixteenth of the rows it took 95; only with a quarter of them fewer, 47.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from majorant.linsolve import conjugate_gradients
from majorant.objective import Objective
from majorant.rows.block import Block
from majorant.solvers.newton.conjugate import diagonals
from majorant.solvers.newton.few_columns import sampled
from majorant.solvers.newton.passes import losses_on_the_way, step
from majorant.solvers.sample import Engine
from majorant.status import Evaluated, Vector


@dataclass(frozen=True, eq=False)
class View:
    """What a pass brings from a point, and from shorter steps towards it; blocks' views add up."""

    loss: float
    gradient: Vector
    shorter: Vector

    def __add__(self, other: View) -> View:
        return View(self.loss + other.loss, self.gradient + other.gradient, self.shorter + other.shorter)


def view(theta: Vector, d: Vector | None, block: Block) -> View:
    """The block's part of the view at θ, at the end of the step d."""
    loss = block.loss(theta)
    shorter = np.zeros(0) if d is None else losses_on_the_way(block.image(theta), d, block)
    return View(loss.value, loss.gradient, shorter)


def product(theta: Vector, d: Vector, block: Block) -> Vector:
    """The block's part of Hd, H = 2 L_AᵀS_A L_A, for the rows A that are active at θ."""
    return block.active_product(block.image(theta) < 1.0, d)


def conjugate_pass_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Truncated Newton: a pass for each product and for each step that is right at once."""
    rows = objective.rows

    def look(theta: Vector, d: Vector | None) -> View:
        return rows.total(partial(view, theta, d))

    theta, seen = start.theta, look(start.theta, None)
    value = seen.loss + objective.penalty(theta)
    while True:
        at = Evaluated(theta, value, seen.gradient)
        yield at
        gradient = objective.gradient(at)
        diagonal, preconditioner = diagonals(objective, at.theta)

        def curved(d: Vector, theta: Vector = at.theta, diagonal: Vector = diagonal) -> Vector:
            return rows.total(partial(product, theta, d)) + diagonal * d

        d = -conjugate_gradients(curved, gradient, preconditioner)
        moved = step(objective, at, at.theta + d, -0.5 * float(gradient @ d), look)
        if moved is not None:  # else what is yielded again ends the run
            theta, value, seen = moved


CONJUGATE = Engine(
    lambda objective, start, sample: conjugate_pass_iterates(objective, start),
    sampled,
    lambda objective: False,
)
