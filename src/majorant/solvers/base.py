"""What a solver is: a small frozen record of its settings, and a generator of iterates.

`iterates` holds the mathematics of one step and nothing else: it yields θ(0), θ(1), … for ever. The
driver decides when to stop, keeps the time, writes the trace and calls the callbacks, so no solver can
forget to. What a solver cannot do it says in `objection`, before it starts.
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
    """Whether Φ never increases along the iterates: the theorem behind every MM method."""
    stochastic: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    """Whether it comes so near to a minimum that a certificate spoilt by rounding is worth a second one."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if isinstance(cls.__dict__.get("name"), str):  # a helper or a composite has none
            Solver.registry[cls.name] = cls

    @abstractmethod
    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        """θ(0) = theta, θ(1), …, without end. Only stochastic solvers look at the seed."""

    def objection(self, objective: Objective) -> str | None:
        """Why this solver cannot solve that problem, as half a sentence; None if it can."""
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
    """The solver that a name stands for, with its default settings; an object stands for itself."""
    if isinstance(solver, Solver):
        return solver
    if solver not in Solver.registry:
        raise UnsuitableSolverError(
            f"There is no solver {solver!r}: choose one of {', '.join(map(repr, Solver.registry))}, or pass "
            "a Solver object."
        )
    return Solver.registry[solver]()


def require_suitable(solver: Solver, objective: Objective) -> None:
    """Raise the sentence that says why not, and which solvers do accept the problem."""
    reason = solver.objection(objective)
    if reason is None:
        return
    suitable = [repr(name) for name, kind in Solver.registry.items() if not kind().objection(objective)]
    raise UnsuitableSolverError(
        f"solver {solver.name!r} {reason}. Solvers that accept this problem: {', '.join(suitable)}."
    )
