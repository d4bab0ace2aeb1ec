"""`gradient`: the full gradient method, Eq. (eq:gradientDescent); FG in the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from majorant.errors import MajorantError
from majorant.majorants import DescentLemma
from majorant.objective import Objective
from majorant.solvers.base import Solver, majorize_minimize
from majorant.status import Iterate, Vector


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
