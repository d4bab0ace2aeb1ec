"""`mm` and `mm-inversion`: quadratic MM over all features at once.

`mm` has the exact half-quadratic curvature, Eq. (eq:fullMM), and factorises it in every iteration. The
curvature of `mm-inversion` is inverted once and for all, Eq. (eq:A_bar_approx_inv).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from majorant.majorants import HalfQuadratic, Spectral
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


@dataclass(frozen=True)
class MMInversion(Solver):
    """θ(n+1) = θ(n) - Ā(θ(n))⁻¹ ∇Φ(θ(n)), Ā = 2LᵀSL + σ Id.

    Three regimes: as many rows as parameters, or more: the eigenvectors of LᵀSL, p × p. Fewer: those of
    its range, p × n, from a thin factorisation. Too many of both: an objection.
    """

    name = "mm-inversion"

    def objection(self, objective: Objective) -> str | None:
        return super().objection(objective) or size_objection(
            objective.size * min(objective.size, objective.rows.n_samples),
            "a dense factor of the curvature",
        )

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return majorize_minimize(Spectral(objective), theta)
