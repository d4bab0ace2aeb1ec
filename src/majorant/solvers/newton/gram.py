"""Few features: the Gram matrix of the active rows, kept up to date, and dense linear algebra on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers.newton.models import minimise_kinked, minimise_smooth, tangent_slopes
from majorant.solvers.search import step_towards
from majorant.status import Evaluated, Vector


def gram_iterates(objective: Objective, rows: MemoryRows, theta: Vector) -> Iterator[Evaluated]:
    """Newton's method with the exact curvature of the active rows."""
    quadratic = _left_by_the_last_run(objective, rows, theta) or ActiveQuadratic(rows, theta)
    rows.kept.pop(ActiveQuadratic, None)
    try:
        yield from _steps(objective, quadratic, theta)
    finally:
        rows.kept[ActiveQuadratic] = quadratic


def carried_start(objective: Objective, rows: MemoryRows, theta: Vector) -> Evaluated | None:
    """θ as the last run has left it, without a pass over the rows; None if that ended somewhere else."""
    quadratic = _left_by_the_last_run(objective, rows, theta)
    return None if quadratic is None else _evaluated(objective, quadratic, theta)


def _left_by_the_last_run(objective: Objective, rows: MemoryRows, theta: Vector) -> ActiveQuadratic | None:
    quadratic: ActiveQuadratic | None = rows.kept.get(ActiveQuadratic)
    # Where the answer depends on the way to it, the rounding of what was carried shall not decide.
    if quadratic is None or quadratic.theta is None or not objective.potential.convex:
        return None
    return quadratic if np.array_equal(quadratic.theta, theta) else None


def _evaluated(objective: Objective, quadratic: ActiveQuadratic, theta: Vector) -> Evaluated:
    value = quadratic.loss + objective.penalty(theta)
    return Evaluated(theta, value, quadratic.gradient(theta), carried=True)


def _steps(objective: Objective, quadratic: ActiveQuadratic, theta: Vector) -> Iterator[Evaluated]:
    at = _evaluated(objective, quadratic, theta)
    while True:
        yield at
        moved, value = _step(objective, quadratic, at)
        if np.array_equal(moved, at.theta) and not quadratic.fresh:
            # No way down in what was carried; is there one in the truth?
            quadratic.refresh(at.theta)
            moved, value = _step(objective, quadratic, _evaluated(objective, quadratic, at.theta))
        at = Evaluated(moved, value, quadratic.gradient(moved), carried=True)


def _step(objective: Objective, quadratic: ActiveQuadratic, at: Evaluated) -> tuple[Vector, float]:
    if objective.potential.smooth:
        target, predicted = minimise_smooth(objective, quadratic.H, quadratic.c, at.theta)
    else:
        slopes = tangent_slopes(objective, at.theta)
        target, predicted = minimise_kinked(objective, quadratic.H, quadratic.c, at, slopes)
    return step_towards(objective, quadratic, at.theta, at.value, target, predicted)
