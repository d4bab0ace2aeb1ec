"""Many features, few of them needed: Newton on a working set that grows until nothing outside violates."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from majorant.majorants import MAX_DENSE_ENTRIES, DescentLemma
from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.base import majorize_minimize
from majorant.solvers.newton.gram import gram_iterates
from majorant.status import Iterate, Underway, Vector

INNER_STEPS = 50
# The most features whose Gram matrix is formed.
LARGEST = math.isqrt(MAX_DENSE_ENTRIES) - 1


def working_set_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Iterate]:
    """Solve on the working set, look at all features, take in the worst violators, repeat.

    The accuracy asked of a round shrinks geometrically: tied to the violation outside alone, rounds crawl.
    """
    at = objective.evaluate(theta)
    goal = np.inf
    smallest = min(200, max(50, 3 * rows.n_samples))
    while True:
        needed = (at.theta[:-1] != 0.0) | (objective.factor == 0.0)
        if needed.sum() > LARGEST:
            yield from majorize_minimize(DescentLemma(objective), at.theta)
        yield at
        violations = objective.violations(at)
        size = min(max(smallest, 2 * int(needed.sum())), len(needed), LARGEST)
        chosen = _choose(np.where(needed, np.inf, violations[:-1]), size)
        goal = min(0.2 * float(np.max(violations)), 0.3 * goal)
        theta = at.theta
        for theta, value in _rounds(objective, rows, at.theta, chosen, goal):
            yield Underway(theta, value)
        at = objective.evaluate(theta)


def _choose(priority: Vector, size: int) -> NDArray[np.intp]:
    """The features of highest priority, so many at most, none without any."""
    chosen = np.argpartition(-priority, size - 1)[:size]
    return np.sort(chosen[priority[chosen] > 0.0])


def _rounds(
    objective: Objective, rows: MemoryRows, theta: Vector, chosen: NDArray[np.intp], goal: float
) -> Iterator[tuple[Vector, float]]:
    """The steps on the chosen features (the others are zero), until none violates more than the goal."""
    where = np.append(chosen, len(theta) - 1)
    part = rows.columns(chosen)
    restricted = Objective(part, objective.potential, objective.eta, objective.factor[chosen])
    scale = objective.violation_scale[where]
    for n, inner in enumerate(gram_iterates(restricted, part, theta[where])):
        whole = theta.copy()
        whole[where] = inner.theta
        yield whole, inner.value
        if n == INNER_STEPS or float(np.max(np.abs(restricted.subgradient(inner)) * scale)) <= goal:
            return
