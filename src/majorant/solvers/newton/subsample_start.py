r"""Rows that are not in memory: Newton's method starts at the solution of a sample that is in memory.

If passes over the rows are the main cost, the sample costs one pass, and its solution none. With m rows and p
features, the relative distance to the solution of all rows is about √(p / m).

A problem that is not convex is solved on all rows from the start, by surrogates: a sample would decide which
of the minima is found.
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
from majorant.solvers.newton.out_of_core import all_may_move, descend, stays_at_zero
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.status import Evaluated, Iterate, Provisional, Vector


def iterates_out_of_core(
    problem: Objective, theta: Vector, solve: Callable[[Objective], Iterator[Iterate]]
) -> Iterator[Iterate]:
    """θ itself, then Newton's iterates; from zero, by way of the solution of a sample.

    `solve` yields the iterates of a problem in memory.
    """
    started, convex = bool(problem.lengths(theta).any()), problem.potential.convex
    zero = problem.evaluate(np.zeros_like(theta))  # known without a pass
    steps: Iterator[Evaluated] = iter(())
    needs_gradient = not all_may_move(problem) and stays_at_zero(problem)
    if started and convex and not needs_gradient:
        # The first pass of `descend` also evaluates θ.
        steps = descend(problem, Evaluated(theta, math.nan, np.full_like(theta, math.nan)))
    at = next(steps, None) or problem.evaluate(theta)
    yield replace(at, candidate=started or convex)
    if convex and at.value > zero.value:  # the start is worse than zero
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
        # (If the sample's solution is no better, yielding the same point again would end the run.)
        if first.value < continuation.end.value and not np.array_equal(first.theta, continuation.end.theta):
            yield first
            yield from iterates
    yield from _after(problem, continuation.end)


def _after(problem: Objective, start: Evaluated) -> Iterator[Iterate]:
    """Newton's iterates after the start."""
    return islice(descend(problem, start), 1, None)


def _solution(
    sample: Objective, start: Evaluated, solve: Callable[[Objective], Iterator[Iterate]]
) -> Generator[Iterate, None, Evaluated]:
    """The approximate minimiser of the sample's Φ, with its gradient."""
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

    If not all features may move at a time, the sample is limited by its number of entries.
    """
    rows = problem.rows
    sample = EveryKth(sample_step(rows))
    if len(problem.classes) == 1 and not all_may_move(problem):
        # An entry takes 8 bytes, and 4 for its column number.
        entries = min(tuning.SPARSE_SAMPLE_ENTRIES, rows.copy_budget // 12)
        sample = EveryKth(tuning.SAMPLE_LEAST_STEP, max(1, entries // rows.n_batch_blocks))
    return problem.on([MemoryRows.of(joined(blocks)) for blocks in rows.subsample(problem.classes, sample)])


def sample_step(rows: Rows) -> int:
    """The step of the sample, which limits its memory and its share of all rows."""
    entries = min(tuning.SAMPLE_ENTRIES, max(1, rows.copy_budget // 8))
    return max(tuning.SAMPLE_LEAST_STEP, math.ceil(rows.n_samples * (rows.n_features + 1) / entries))
