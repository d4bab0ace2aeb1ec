"""All classes at once: the solver of `JointObjective`, what "auto" means with ``multi_class="joint"``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from majorant.joint import JointObjective
from majorant.solvers.base import Solver
from majorant.solvers.interior import or_interior_point
from majorant.solvers.joint.descent import group_iterates
from majorant.solvers.joint.passes import JOINT
from majorant.solvers.joint.smooth import smooth_iterates
from majorant.solvers.newton import Newton
from majorant.solvers.reweighted import minimised, reweighted_iterates
from majorant.solvers.sample import iterates_in_passes
from majorant.solvers.way import Way, stronger_penalties
from majorant.status import Evaluated, Iterate, Vector

# How many times stronger than the penalty the pull at zero is, for the penalty to be faint.
FAINT = 1e3


class JointNewton(Solver):
    """Descent on whole features for potentials with a kink, Newton's method for those without.

    On rows that are not in memory, Newton's method for both, with a pass over the rows for each step.
    """

    exact = True

    @property
    def name(self) -> str:  # type: ignore[override]  # not registered: it solves joint problems alone
        return "newton"

    def objection(self, objective: Any) -> str | None:
        potential = objective.potential
        if not (potential.smooth or potential.concave):
            return (
                "needs a potential that is differentiable or concave on [0, ∞[, and "
                f"{potential.name!r} is neither"
            )
        return None

    def iterates(self, objective: Any, theta: Vector, seed: int) -> Iterator[Iterate]:
        return or_interior_point(objective, theta, lambda start: self._iterates(objective, start, seed))

    def _iterates(self, objective: Any, theta: Vector, seed: int) -> Iterator[Iterate]:
        if objective.in_memory is None:
            yield from iterates_in_passes(
                objective, theta, JOINT, lambda sample: self._iterates(sample, sample.start(), seed)
            )
            return
        if objective.potential.smooth and not objective.potential.convex:
            start = objective.evaluate(theta)
            yield replace(start, candidate=bool(objective.lengths(theta).any()))
            yield from reweighted_iterates(objective, start, minimised_by_class)
            return
        way = Way[JointObjective](objective, objective.evaluate(theta), descend, approaches)
        yield way.end
        yield from way.over_stepping_stones()
        yield from descend(objective, way.end)


def minimised_by_class(problem: JointObjective, theta: Vector, proximal: float) -> Vector:
    """The minimiser of a joint problem whose penalty is a ridge, which does not tie the classes."""
    solver = Newton()
    parts = []
    for rows, row in zip(problem.in_memory or (), problem.matrix(theta), strict=True):
        single = replace(problem.single, rows=rows)
        parts.append(minimised(single, row, descend=partial(solver.descend, rows)))
    return np.concatenate(parts)


def approaches(objective: JointObjective, here: Evaluated) -> Iterator[JointObjective]:
    """From stronger penalties with a kink to a faint one, if the way begins at zero."""
    if not objective.potential.smooth and not objective.lengths(here.theta).any():
        yield from stronger_penalties(objective, objective.single.kink_slopes[:-1], least=FAINT)


def descend(objective: JointObjective, start: Evaluated) -> Iterator[Iterate]:
    """The iterates after the start."""
    iterates: Iterator[Iterate]
    if objective.potential.smooth:
        iterates = smooth_iterates(objective, start.theta)
    else:
        iterates = group_iterates(objective, start.theta)
    next(iterates)
    return iterates
