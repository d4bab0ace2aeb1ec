"""The base class of solvers: a frozen record of settings, with a generator of iterates.

`iterates` holds only the mathematics of one step: it yields θ(0), θ(1), … without end. The driver stops it,
measures the time, writes the trace and calls the callbacks, for all solvers alike. `objection` says, before a
run, why a solver cannot solve a problem.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

from majorant.errors import UnsuitableSolverError
from majorant.objective import Objective
from majorant.status import Iterate, Vector


class Solver(ABC):
    """An algorithm that minimises Φ."""

    registry: ClassVar[dict[str, type[Solver]]] = {}
    name: ClassVar[str]
    monotone: ClassVar[bool] = True
    """Whether Φ never increases along the iterates, as for every MM method."""
    stochastic: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    """Whether it comes so near to a minimum that `certify_with_interior_point` is worth its time."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(cls.__dict__.get("name"), str):  # a helper or a composite has none
            Solver.registry[cls.name] = cls

    @abstractmethod
    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        """θ(0) = theta, θ(1), …, without end. Only stochastic solvers use the seed."""

    def objection(self, objective: Objective) -> str | None:
        """Why this solver cannot solve the problem, as half a sentence; None if it can."""
        if objective.other_classes:
            return "solves one class at a time, and the problem is of all classes at once"
        if not objective.potential.smooth:
            return f"needs a differentiable potential, and {objective.potential.name!r} has a kink at zero"
        return None

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Instances for the law tests."""
        return (cls(),)


def make_solver(solver: str | Solver) -> Solver:
    """The solver of this name with its default settings; a Solver object is returned as it is."""
    if isinstance(solver, Solver):
        return solver
    if solver not in Solver.registry:
        raise UnsuitableSolverError(
            f"There is no solver {solver!r}: choose one of {', '.join(map(repr, Solver.registry))}, or pass "
            "a Solver object."
        )
    return Solver.registry[solver]()


def require_suitable(solver: Solver, objective: Objective) -> None:
    """Raise an error if the solver has an objection, with the names of the solvers that have none."""
    reason = solver.objection(objective)
    if reason is None:
        return
    suitable = [repr(name) for name, kind in Solver.registry.items() if not kind().objection(objective)]
    raise UnsuitableSolverError(
        f"solver {solver.name!r} {reason}. Solvers that accept this problem: {', '.join(suitable)}."
    )
