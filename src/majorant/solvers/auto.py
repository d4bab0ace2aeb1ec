"""The solver that `solver="auto"` chooses for a problem."""

from __future__ import annotations

from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.solvers.mm import Gradient
from majorant.solvers.newton import Newton
from majorant.solvers.subspace import MMSubspace


def choose_solver(objective: Objective) -> Solver:
    """The first of `newton`, `mm-subspace` and `gradient` that has no objection to the problem."""
    candidates: tuple[Solver, ...] = (Newton(), MMSubspace(), Gradient())
    return next((solver for solver in candidates if solver.objection(objective) is None), candidates[-1])
