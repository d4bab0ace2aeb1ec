r"""Rows that are not in memory: Newton's method begins at the solution of a sample of them that is.

Where a pass over the rows is what costs, the sample takes one, and solving it none. Its solution is near that
of all rows: by about √(p / m) with m rows and p features.

A problem that is not convex is solved on all rows from the start, over stepping stones: a sample would decide
in which of the minima it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic

import numpy as np

from majorant.rows import MemoryRows, Rows
from majorant.rows.memory import joined
from majorant.rows.protocol import Every, Some
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.solvers.way import Problem, Way
from majorant.status import Evaluated, Iterate, Underway, Vector

# The entries of a sample, if it were dense, and the least step from one of its rows to the next: rows that
# are elsewhere are to stay there. How far its problem is solved, and for how many steps.
SAMPLED = 16_000_000
LEAST_STEP = 8
SAMPLE_TOLERANCE = 1e-4
SAMPLE_STEPS = 30


@dataclass(frozen=True)
class Engine(Generic[Problem]):
    """Newton's method for rows that are elsewhere.

    Parameters
    ----------
    iterates : function
        (problem, start, sample or None) ↦ the iterates from the start on, beginning with a pass at the start
        itself, of which no more than θ and a gradient like that of a sample need to be right.
    sample : function
        problem ↦ the same on a sample of the rows.
    needs_gradient : function
        problem ↦ whether something like a gradient at the start has to be known.
    """

    iterates: Callable[[Problem, Evaluated, Problem | None], Iterator[Evaluated]]
    sample: Callable[[Problem], Problem]
    needs_gradient: Callable[[Problem], bool]

    def after(self, problem: Problem, start: Evaluated) -> Iterator[Iterate]:
        """The iterates after the start."""
        iterates = self.iterates(problem, start, None)
        next(iterates)
        yield from iterates


def iterates_in_passes(
    problem: Problem,
    theta: Vector,
    engine: Engine[Problem],
    solve: Callable[[Problem], Iterator[Iterate]],
) -> Iterator[Iterate]:
    """θ itself, then Newton's steps; from zero by way of a sample.

    `solve` yields the iterates of a problem in memory.
    """
    started, convex = bool(problem.lengths(theta).any()), problem.potential.convex
    zero = problem.evaluate(np.zeros_like(theta))  # known without a pass
    steps: Iterator[Evaluated] = iter(())
    if started and convex and not engine.needs_gradient(problem):
        # The first pass of the steps says all that an evaluation would.
        steps = engine.iterates(problem, Evaluated(theta, math.nan, np.full_like(theta, math.nan)), None)
    at = next(steps, None) or problem.evaluate(theta)
    yield replace(at, candidate=started or convex)
    if convex and at.value > zero.value:  # a start that is worse than none
        at, started = zero, False
        yield at
    else:
        yield from steps
    if problem.potential.smooth and not convex:
        yield from reweighted_iterates(problem, at, partial(minimised, descend=engine.after))
    way = Way(problem, at, engine.after)
    if not convex:
        yield from way.over_stepping_stones()
    elif not started:
        sample = engine.sample(problem)
        start = yield from _solution(sample, way.end, solve)
        iterates = engine.iterates(problem, start, sample)
        first = next(iterates)
        # (A sample that leads nowhere must not look like a run that has come to a halt.)
        if first.value < way.end.value and not np.array_equal(first.theta, way.end.theta):
            yield first
            yield from iterates
    yield from engine.after(problem, way.end)


def _solution(
    sample: Problem, start: Evaluated, solve: Callable[[Problem], Iterator[Iterate]]
) -> Generator[Iterate, None, Evaluated]:
    """Where the sample's Φ is least, more or less, and its gradient there."""
    found = start
    for n, at in enumerate(solve(sample)):
        yield Underway(start.theta, start.value)
        if isinstance(at, Evaluated):
            found = at
            if n >= SAMPLE_STEPS or sample.estimate(at).error <= SAMPLE_TOLERANCE:
                break
    return found


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
