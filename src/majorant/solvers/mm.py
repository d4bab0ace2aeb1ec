"""`gradient`, `mm` and `mm-inversion`: each iterate minimises a quadratic majorant at the one before.

    gradient      the descent lemma: the full gradient method, Eq. (eq:gradientDescent)
    mm            the exact half-quadratic curvature, Eq. (eq:fullMM), factorised in every iteration
    mm-inversion  a curvature that is factorised only once, Eq. (eq:A_bar_approx_inv)

The paper's tables call `gradient` FG.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from majorant.errors import MajorantError
from majorant.majorants import MAX_DENSE_ENTRIES, DescentLemma, HalfQuadratic, Majorant, Spectral
from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.status import Iterate, Vector


def majorize_minimize(majorant: Majorant, theta: Vector) -> Iterator[Iterate]:
    """The MM scheme: θ(n+1) is the minimiser of the majorant at θ(n)."""
    objective = majorant.objective
    at = objective.evaluate(theta)
    while True:
        yield at
        at = objective.evaluate(majorant.minimiser(at))


def size_objection(entries: int, what: str) -> str | None:
    """The objection of a solver that needs a dense array with this number of entries."""
    if entries <= MAX_DENSE_ENTRIES:
        return None
    gigabytes = entries * 8 / 2**30
    limit = MAX_DENSE_ENTRIES * 8 / 2**30
    return f"needs {what}, which takes {gigabytes:.1f} GiB here, more than its limit of {limit:g} GiB"


@dataclass(frozen=True)
class Gradient(Solver):
    """θ(n+1) = θ(n) - α ∇Φ(θ(n)) with a constant step α ∈ ]0, 2/μ[.

    Φ decreases for every such α; at α = 1/μ each step minimises the majorant of Prop. (prp:sHingeLip). A
    potential with a kink is handled by its proximal operator (there μ is that of the smooth part).

    Parameters
    ----------
    relative_step : float in ]0, 2[, default=1
        α μ: the step in units of 1/μ.
    """

    relative_step: float = 1.0

    name = "gradient"

    def __post_init__(self) -> None:
        if not 0.0 < self.relative_step < 2.0:
            raise MajorantError(
                f"relative_step must lie strictly between 0 and 2, got {self.relative_step!r}"
            )

    def objection(self, objective: Objective) -> str | None:
        if objective.potential.smooth or objective.potential.proximable:
            return None
        return (
            "needs a potential that is differentiable or has a proximal operator, and "
            f"{objective.potential.name!r} is neither"
        )

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return majorize_minimize(DescentLemma(objective, self.relative_step), theta)

    @classmethod
    def examples(cls) -> tuple[Gradient, ...]:
        return cls(), cls(relative_step=1.8)


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

    With n ≥ p rows it needs the eigenvectors of LᵀSL, p × p; with fewer rows those of its range, p × n, from
    a thin factorisation. If both are too large, it objects.
    """

    name = "mm-inversion"

    def objection(self, objective: Objective) -> str | None:
        return super().objection(objective) or size_objection(
            objective.size * min(objective.size, objective.rows.n_samples),
            "a dense factor of the curvature",
        )

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        return majorize_minimize(Spectral(objective), theta)
