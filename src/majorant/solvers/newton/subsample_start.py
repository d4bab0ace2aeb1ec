r"""Rows that are not in memory: Newton's method begins at the solution of a sample of them that is.

Where a pass over the rows is what costs, the sample takes one, and solving it none. Its solution is near that
of all rows: by about √(p / m) with m rows and p features.

A problem that is not convex is solved on all rows from the start, over surrogates: a sample would decide
in which of the minima it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows, Rows
from majorant.rows.base import EveryKth
from majorant.rows.memory import joined
from majorant.solvers.continuation import Continuation
from majorant.solvers.newton import tuning
from majorant.solvers.newton.out_of_core import all_may_move, descend, zero_holds
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.status import Evaluated, Iterate, Provisional, Vector


def iterates_out_of_core(
    problem: Objective, theta: Vector, solve: Callable[[Objective], Iterator[Iterate]]
) -> Iterator[Iterate]:
    """θ itself, then Newton's steps; from zero by way of a sample.

    `solve` yields the iterates of a problem in memory.
    """
    started, convex = bool(problem.lengths(theta).any()), problem.potential.convex
    zero = problem.evaluate(np.zeros_like(theta))  # known without a pass
    steps: Iterator[Evaluated] = iter(())
    needs_gradient = not all_may_move(problem) and zero_holds(problem)
    if started and convex and not needs_gradient:
        # The first pass of the steps says all that an evaluation would.
        steps = descend(problem, Evaluated(theta, math.nan, np.full_like(theta, math.nan)))
    at = next(steps, None) or problem.evaluate(theta)
    yield replace(at, candidate=started or convex)
    if convex and at.value > zero.value:  # a start that is worse than none
        at, started = zero, False
        yield at
    else:
        yield from steps
    if problem.potential.smooth and not convex:
        yield from reweighted_iterates(problem, at, partial(minimised, descend=_after))
    continuation = Continuation(problem, at, _after)
    if not convex:
        yield from continuation.over_surrogates()
    elif not started:
        sample = _sampled(problem)
        start = yield from _solution(sample, continuation.end, solve)
        iterates = descend(problem, start, sample)
        first = next(iterates)
        # (A sample that leads nowhere must not look like a run that has come to a halt.)
        if first.value < continuation.end.value and not np.array_equal(first.theta, continuation.end.theta):
            yield first
            yield from iterates
    yield from _after(problem, continuation.end)


def _after(problem: Objective, start: Evaluated) -> Iterator[Iterate]:
    """The iterates after the start."""
    return islice(descend(problem, start), 1, None)


def _solution(
    sample: Objective, start: Evaluated, solve: Callable[[Objective], Iterator[Iterate]]
) -> Generator[Iterate, None, Evaluated]:
    """Where the sample's Φ is least, more or less, and its gradient there."""
    found = start
    for n, at in enumerate(solve(sample)):
        yield Provisional(start.theta, start.value)
        if isinstance(at, Evaluated):
            found = at
            if n >= tuning.SAMPLE_NEWTON_STEPS or sample.estimate(at).error <= tuning.SAMPLE_TOLERANCE:
                break
    return found


def _sampled(problem: Objective) -> Objective:
    """The problem on a sample of the rows, in memory: one pass.

    Where not all features may move at a time, the more rows the fewer entries they have.
    """
    rows = problem.rows
    sample = EveryKth(sample_step(rows))
    if len(problem.classes) == 1 and not all_may_move(problem):
        # An entry has 8 bytes, and 4 for where it is.
        entries = min(tuning.SPARSE_SAMPLE_ENTRIES, rows.copy_budget // 12)
        sample = EveryKth(tuning.SAMPLE_LEAST_STEP, max(1, entries // rows.n_parts))
    return problem.on([MemoryRows.of(joined(blocks)) for blocks in rows.subsample(problem.classes, sample)])


def sample_step(rows: Rows) -> int:
    """The sample is every `step`-th row: so that it takes its part of the memory, and is few of all rows."""
    entries = min(tuning.SAMPLE_ENTRIES, max(1, rows.copy_budget // 8))
    return max(tuning.SAMPLE_LEAST_STEP, math.ceil(rows.n_samples * (rows.n_features + 1) / entries))
