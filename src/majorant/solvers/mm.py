"""`mm`: quadratic MM with the exact half-quadratic curvature, Eq. (eq:fullMM)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from majorant.majorants import HalfQuadratic
from majorant.objective import Objective
from majorant.solvers.base import Solver, majorize_minimize, size_objection
from majorant.status import Iterate, Vector


@dataclass(frozen=True)
class MM(Solver):
    """θ(n+1) = θ(n) - A(θ(n))⁻¹ ∇Φ(θ(n)): 2LᵀSL once, a Cholesky factorisation per iteration."""

    name = "mm"

    def objection(self, objective: Objective) -> str | None:
        return super().objection(objective) or size_objection(
            objective.size**2, "the curvature matrix of all pairs of features"
        )

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return majorize_minimize(HalfQuadratic(objective), theta)
