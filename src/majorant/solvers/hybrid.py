"""Hybrids: stochastic epochs first, then a deterministic method from where they ended.

A hybrid is a chain of two generators, not an algorithm of its own, and any two can be chained. For the
convergence of the second, the first is only a choice of θ(0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from majorant.objective import Objective
from majorant.solvers.base import Solver
from majorant.status import Iterate, Vector


@dataclass(frozen=True)
class Hybrid(Solver):
    """`warmup` iterates (epochs, if stochastic) of one solver, then another from there on.

    Has no registered name: `SparseSVC(solver=..., warmup=...)` builds it.
    """

    first: Solver
    then: Solver
    warmup: int

    monotone = False
    stochastic = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of both solvers, and the number of warm-up iterates."""
        return f"{self.first.name} × {self.warmup}, then {self.then.name}"

    def objection(self, objective: Objective) -> str | None:
        if reason := self.first.objection(objective):
            return f"{reason} (because of its warm-up by {self.first.name!r}; warmup=0 turns it off)"
        return self.then.objection(objective)

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        first = self.first.iterates(objective, theta, seed)
        yield from islice(first, self.warmup)
        # The second solver begins by yielding the same point, evaluated.
        yield from self.then.iterates(objective, next(first).theta, seed)
