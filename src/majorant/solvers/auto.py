"""What `solver="auto"` means: a rule from the shape of the problem to a solver."""

from __future__ import annotations

from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.solvers.gradient import Gradient
from majorant.solvers.mm import MM
from majorant.solvers.subspace import MMSubspace


def choose_solver(objective: Objective) -> Solver:
    """`mm` where its matrix fits, `mm-subspace` where not, `gradient` for a potential with a kink."""
    candidates: tuple[Solver, ...] = (MM(), MMSubspace(), Gradient())
    return next((solver for solver in candidates if solver.objection(objective) is None), candidates[-1])
