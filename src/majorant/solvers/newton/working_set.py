"""Many features, few of them needed: Newton on a working set that grows until nothing outside violates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.newton.gram import gram_iterates
from majorant.status import Evaluated, Vector

SMALLEST = 50
INNER_STEPS = 50


def working_set_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    """Solve on the working set, look at all features, take in the worst violators, repeat.

    The accuracy asked of a round shrinks geometrically: tied to the violation outside alone, rounds crawl.
    """
    at = objective.evaluate(theta)
    goal = np.inf
    size = SMALLEST
    while True:
        yield at
        violations = objective.violations(at)
        chosen = _choose(objective, at, violations, size)
        size = max(size, 2 * len(chosen))
        goal = min(0.2 * float(np.max(violations)), 0.3 * goal)
        at = objective.evaluate(_solve_on(objective, rows, at.theta, chosen, goal))


def _choose(objective: Objective, at: Evaluated, violations: Vector, size: int) -> NDArray[np.intp]:
    """The support, what is never penalised, and the worst violators, up to twice the support."""
    needed = (at.theta[:-1] != 0.0) | (objective.factor == 0.0)
    size = min(max(size, 2 * int(needed.sum())), len(needed))
    priority = np.where(needed, np.inf, violations[:-1])
    chosen = np.argpartition(-priority, size - 1)[:size]
    return np.sort(chosen[priority[chosen] > 0.0])


def _solve_on(
    objective: Objective, rows: MemoryRows, theta: Vector, chosen: NDArray[np.intp], goal: float
) -> Vector:
    part = Objective(rows.columns(chosen), objective.potential, objective.eta, objective.factor[chosen])
    where = np.append(chosen, len(theta) - 1)
    # The part's violations in the units of the whole, so that the goal means the same.
    scale = objective.violation_scale[where] / part.violation_scale
    iterates = gram_iterates(part, part.rows, theta[where])  # type: ignore[arg-type]
    for n, inner in enumerate(iterates):
        if n == INNER_STEPS or float(np.max(part.violations(inner) * scale)) <= goal:
            break
    theta = theta.copy()
    theta[where] = inner.theta
    return theta
