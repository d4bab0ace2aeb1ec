"""What `solver="auto"` means: a rule from the shape of the problem to a solver."""

from __future__ import annotations

from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.solvers.mm import Gradient
from majorant.solvers.newton import Newton
from majorant.solvers.subspace import MMSubspace


def choose_solver(objective: Objective) -> Solver:
    """`newton`; for rows or potentials that it does not take, `mm-subspace`, then `gradient`."""
    candidates: tuple[Solver, ...] = (Newton(), MMSubspace(), Gradient())
    return next((solver for solver in candidates if solver.objection(objective) is None), candidates[-1])
