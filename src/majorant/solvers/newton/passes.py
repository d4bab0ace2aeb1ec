r"""Rows that are not in memory: one pass over them for each Newton step.

Where a pass is all that costs, it should answer everything that the next step asks. At the end θ + d of a
step each block says

    the loss, H = 2 L_AᵀS_A L_A and c = 2 L_AᵀS_A 1 over its rows A that are active there, and
    the loss at θ + t d for some shorter t,

so that the whole step, which is right nearly always, brings the next model along; and if it is not, the
right part of it is known, and one more pass brings the model there. The gradient of the loss is Hθ - c, as
in `gram.py`; the certificate is computed afresh by the driver.

From zero, the steps begin at the solution of a sample of the rows that fits into memory, which takes one
pass. That, and the step, are the same for the many features of `few_columns.py`, of which a pass brings the
H of some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows import MemoryRows, Rows
from majorant.rows.block import Block
from majorant.rows.memory import joined
from majorant.rows.protocol import Every, Some
from majorant.solvers.newton.models import minimise_kinked, minimise_smooth, tangent_slopes
from majorant.solvers.newton.search import ROUNDING, SUFFICIENT, Penalised
from majorant.solvers.way import Way
from majorant.status import Evaluated, Iterate, Matrix, Underway, Vector

# Up to how many features a matrix of all of them travels with every pass.
MAX_FEATURES = 3000

# The entries of the sample, if it were dense, and the least step from one of its rows to the next: rows that
# are elsewhere are to stay there. How far its problem is solved, and for how many steps.
SAMPLED = 16_000_000
LEAST_STEP = 8
SAMPLE_TOLERANCE = 1e-4
SAMPLE_STEPS = 200

# Parts of a step whose loss a pass brings along.
PARTS = (0.5, 0.25, 0.0625, 1 / 256)


class Seen(Protocol):
    """What a pass brings, as far as the step looks at it: the loss at its end and at shorter ones."""

    @property
    def loss(self) -> float: ...
    @property
    def shorter(self) -> Vector: ...


AnySeen = TypeVar("AnySeen", bound=Seen)
Look = Callable[[Vector, Vector | None], AnySeen]
"""The end of a step, and the step ↦ what a pass brings from there."""
Engine = Callable[[Objective, Evaluated], Iterator[Evaluated]]
"""The objective and a start ↦ Newton's iterates from there on, with the start itself. Its gradient may be a
sample's."""


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


def sample_of(rows: Rows, step: int) -> MemoryRows:
    """Every so-manieth row, weighed as many times, in memory: one pass."""
    (blocks,) = rows.thinned([rows], Every(step))
    return MemoryRows.of(joined(blocks))


def sample_step(rows: Rows) -> int:
    """Which rows are a sample: every so-manieth. They take their part of the memory, and are few of all."""
    entries = min(SAMPLED, max(1, rows.room // 8))
    return max(LEAST_STEP, math.ceil(rows.n_samples * (rows.n_features + 1) / entries))


def sample_by_entries(rows: Rows, entries: int) -> MemoryRows:
    """As many rows as have about so many entries, weighed to stand for all, in memory: one pass."""
    entries = min(entries, rows.room // 12)  # of 8 bytes, and 4 for where it is
    (blocks,) = rows.thinned([rows], Some(max(1, entries // rows.n_parts), LEAST_STEP))
    return MemoryRows.of(joined(blocks))


def iterates_in_passes(
    objective: Objective,
    theta: Vector,
    engine: Engine,
    take_sample: Callable[[Rows], MemoryRows],
    solve_sample: Callable[[Objective], Iterator[Iterate]],
) -> Iterator[Iterate]:
    """θ itself, then Newton's steps; from zero, by way of a sample.

    A non-convex potential is approached over stepping stones on all rows instead: a sample would decide in
    which of the minima it ends.
    """
    steps = partial(_steps, engine)
    way = Way(objective, objective.evaluate(theta), steps)
    yield way.end
    if not objective.potential.convex:
        yield from way.over_stepping_stones()
    elif not theta[:-1].any():
        sample = replace(objective, rows=take_sample(objective.rows))
        start = yield from _solution_of_sample(sample, way.end, solve_sample)
        iterates = engine(objective, start)
        first = next(iterates)
        # (A sample that leads nowhere must not look like a run that has come to a halt.)
        if first.value < way.end.value and not np.array_equal(first.theta, way.end.theta):
            yield first
            yield from iterates
    yield from steps(objective, way.end)


def thinned(rows: Rows) -> MemoryRows:
    """The sample for rows of few features."""
    return sample_of(rows, sample_step(rows))


def _solution_of_sample(
    sample: Objective, start: Evaluated, solve_sample: Callable[[Objective], Iterator[Iterate]]
) -> Generator[Iterate, None, Evaluated]:
    """Where the sample's Φ is least, more or less, and its gradient there."""
    found = start
    for n, at in enumerate(solve_sample(sample)):
        yield Underway(start.theta, start.value)
        if isinstance(at, Evaluated):
            found = at
            if n >= SAMPLE_STEPS or sample.estimate(at).error <= SAMPLE_TOLERANCE:
                break
    return found


def _steps(engine: Engine, objective: Objective, start: Evaluated) -> Iterator[Iterate]:
    """Newton's iterates after the start."""
    iterates = engine(objective, start)
    next(iterates)
    yield from iterates


def pass_iterates(objective: Objective, start: Evaluated) -> Iterator[Evaluated]:
    """Newton's method with one pass over the rows for each step that is right at once."""

    def look(theta: Vector, d: Vector | None) -> View:
        return objective.rows.total(partial(view, theta, d))

    theta, seen = start.theta, look(start.theta, None)
    value = seen.loss + objective.penalty(theta)
    while True:
        at = Evaluated(theta, value, seen.H @ theta - seen.c, carried=True)
        yield at
        target, predicted = _minimised(objective, seen, at)
        moved = step(objective, at, target, predicted, look)
        if moved is None:
            # No way down that these numbers can tell: what is yielded again ends the run.
            continue
        theta, value, seen = moved


def _minimised(objective: Objective, seen: View, at: Evaluated) -> tuple[Vector, float]:
    if objective.potential.smooth:
        return minimise_smooth(objective, seen.H, seen.c, at.theta)
    return minimise_kinked(objective, seen.H, seen.c, at, tangent_slopes(objective, at.theta))


def step(
    objective: Penalised, at: Evaluated, target: Vector, predicted: float, look: Look[AnySeen]
) -> tuple[Vector, float, AnySeen] | None:
    """Where the step leads, Φ and what is seen there; None if Φ does not fall on the way."""

    def enough(t: float, reached: float) -> bool:
        return reached <= at.value - SUFFICIENT * t * predicted + ROUNDING * abs(at.value)

    d = target - at.theta
    whole = 1.0
    while whole > 1e-10:
        end = at.theta + whole * d
        seen = look(end, whole * d)
        reached = seen.loss + objective.penalty(end)
        if enough(whole, reached):
            return end, reached, seen
        for part, loss in zip(PARTS, seen.shorter.tolist(), strict=True):
            t = whole * part
            between = at.theta + t * d
            if enough(t, loss + objective.penalty(between)):
                seen = look(between, None)
                return between, seen.loss + objective.penalty(between), seen
        whole *= PARTS[-1] / 2.0
    return None
