r"""`sgd`, `momentum`, `adam`: mini-batch methods, Alg. (alg1), Alg. (momentum), Alg. (Adam).

Each step estimates ∇Φ(θ)/K from a batch B of the K rows:

    d = 1/b (Σ_{k ∈ B} ∇loss_k(θ) + |B| κ ∇f(θ))

where b is the batch size (a last batch of fewer rows is a smaller step, not a noisier one). With κ = 1/K
("unbiased", the default) the d of an epoch at one θ add up to ∇Φ(θ)/b, and a decaying step leads
to the minimiser of Φ. The paper takes κ = 1 ("paper"): its steps then minimise the *mean* loss plus f, in
which f counts K times as much as in Φ. An iterate is an epoch: every row once, in an order drawn anew.

The steps, with the textbook indices (those in the paper's listings are slipped):

    sgd       θ ← θ - α d
    momentum  m ← β m + d;  θ ← θ - α m
    adam      m ← β₁ m + (1-β₁) d;  v ← β₂ v + (1-β₂) d²;  θ ← θ - α m̂/(√v̂ + ε)
              m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)

α follows a schedule, α times a function of the number of epochs seen so far: it decays by default, because a
constant one (the paper's) ends in a cloud around the minimiser, not at it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from majorant.errors import MajorantError
from majorant.interrupts import check
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.potentials import Potential
from majorant.rows import Rows
from majorant.rows.block import Block
from majorant.solvers.base import Solver
from majorant.status import Iterate, Vector

Schedule: TypeAlias = Callable[[float], float]
Memory: TypeAlias = dict[str, Any]
"""What a run remembers of its steps, by name: arrays of the size of θ, and counts."""

SCHEDULES: dict[str, Schedule] = {
    "constant": lambda epochs: 1.0,
    "inverse": lambda epochs: 1.0 / (1.0 + epochs),
    "sqrt": lambda epochs: 1.0 / np.sqrt(1.0 + epochs),
}


@dataclass(frozen=True)
class StochasticSolver(Solver):
    """The loop that the three methods share.

    Parameters
    ----------
    step : float, optional
        The learning rate α at the start, for the gradient of the mean Φ/K. By default `sgd` and `momentum`
        take one that is stable for every batch, `adam` 0.001.
    batch_size : int, default=64
        Rows per step.
    schedule : {"constant", "inverse", "sqrt"} or function, default="sqrt"
        The factor of α after a number of epochs t: 1, 1/(1+t), 1/√(1+t), or any function of t.
    weighting : {"unbiased", "paper"}, default="unbiased"
        How the penalty is weighed against a batch, see the module.
    """

    step: float | None = None
    batch_size: int = 64
    schedule: str | Schedule = "sqrt"
    weighting: Literal["unbiased", "paper"] = "unbiased"

    monotone = False
    stochastic = True

    def __post_init__(self) -> None:
        if self.step is not None and not 0.0 < self.step < np.inf:
            raise MajorantError(f"step must be positive and finite, got {self.step!r}")
        if self.batch_size < 1:
            raise MajorantError(f"batch_size must be at least 1, got {self.batch_size!r}")
        if not callable(self.schedule) and self.schedule not in SCHEDULES:
            raise MajorantError(
                f"schedule={self.schedule!r} is unknown: choose one of {', '.join(SCHEDULES)} or pass a "
                "function of the number of epochs"
            )
        if self.weighting not in ("unbiased", "paper"):
            raise MajorantError(f"weighting must be 'unbiased' or 'paper', got {self.weighting!r}")

    def memory(self, size: int) -> Memory:
        """The memory of a run that begins, for θ of that size."""
        return {}

    @abstractmethod
    def update(self, memory: Memory, d: Vector, alpha: float) -> Vector:
        """What to subtract from θ; the memory changes in place."""

    def default_step(self, smoothness: float) -> float:
        """α when none is given; `smoothness` bounds the curvature of every batch's estimate."""
        return 1.0 / smoothness

    def iterates(self, objective: Objective, theta: Vector, seed: int) -> Iterator[Iterate]:
        descent = Descent(self, theta, seed)
        descent.note_largest_row(objective.rows)
        while True:
            yield Iterate(descent.theta.copy())
            descent.epoch(objective, objective.rows.n_samples)


@dataclass(frozen=True)
class DescentState:
    """A `Descent` but for its solver: numbers and arrays, to be written down."""

    theta: Vector
    seen: int
    steps: int
    largest_row: float
    memory: Mapping[str, Any]
    generator: Mapping[str, Any]
    """The state of the random generator, as numpy gives it."""


class Descent:
    """θ on its way, and all that a step needs to know of those before it.

    It is of the size of θ however many rows have gone by, it holds none of them, and it can be pickled: the
    epochs of `iterates` and the calls of a stream are steps of the same kind.

    Parameters
    ----------
    solver : StochasticSolver
        Whose steps to take.
    theta : array (n_features + 1,)
        Where to begin.
    seed : int
        For the order of the rows.
    seen : int, default=0
        How many rows have been learned from before.
    """

    def __init__(self, solver: StochasticSolver, theta: Vector, seed: int, seen: int = 0) -> None:
        self.theta = theta.copy()
        self.seen = seen
        self.steps = 0
        self.largest_row = 0.0
        self._rng = np.random.default_rng(seed)
        self.follow(solver)

    def follow(self, solver: StochasticSolver) -> None:
        """Take the steps of another solver from now on, which begins without a memory."""
        self.solver, self._memory = solver, solver.memory(len(self.theta))

    def copy(self) -> Descent:
        """Another one at the same point, for steps that may have to be taken back."""
        return self.restored(self.solver, self.state())

    def state(self) -> DescentState:
        """All that `restored` needs to go on from here, besides the solver; the arrays are not copied."""
        generator = self._rng.bit_generator.state
        return DescentState(self.theta, self.seen, self.steps, self.largest_row, self._memory, generator)

    @classmethod
    def restored(cls, solver: StochasticSolver, state: DescentState) -> Descent:
        """The descent that was in this state, with the steps of this solver."""
        descent = cls(solver, state.theta, 0, state.seen)
        descent.steps, descent.largest_row = state.steps, state.largest_row
        descent._memory = {name: copy(value) for name, value in state.memory.items()}
        descent._rng.bit_generator.state = dict(state.generator)
        return descent

    def note_largest_row(self, rows: Rows) -> None:
        """Look at rows that are to come: the default step must be stable for the largest of all."""
        if self.solver.step is None:
            self.largest_row = max(self.largest_row, rows.largest_row())

    def epoch(self, objective: Objective, n_samples: int) -> None:
        """Learn from every row of the objective once; the penalty is spread over `n_samples` rows."""
        solver, rows = self.solver, objective.rows
        kappa = 1.0 if solver.weighting == "paper" else 1.0 / n_samples
        alpha = solver.step or solver.default_step(_smoothness(objective, kappa, self.largest_row))
        context = BatchContext(objective.potential, objective.factor, objective.eta, kappa, alpha, n_samples)
        order = self._rng.permutation(rows.n_parts).tolist()
        # Where the rows are on other machines, what comes back from there is a copy.
        vars(self).update(vars(rows.fold_blocks(self, partial(Descent.learn, context=context), order)))

    def learn(self, block: Block, context: BatchContext) -> Descent:
        """Learn from every row of a block once, in random batches; return this descent."""
        solver, size = self.solver, min(self.solver.batch_size, context.n_samples)
        schedule = solver.schedule if callable(solver.schedule) else SCHEDULES[solver.schedule]
        rows = self._rng.permutation(block.n_samples)
        for start in range(0, len(rows), size):
            check()
            batch = rows[start : start + size]
            d = block.loss(self.theta, batch).gradient
            d += len(batch) * context.kappa * context.penalty_gradient(self.theta)
            alpha = context.alpha * schedule(self.seen / context.n_samples)
            self.theta -= solver.update(self._memory, d / size, alpha)
            self.seen += len(batch)
            self.steps += 1
        return self


@dataclass(frozen=True, eq=False)
class BatchContext:
    """What a descent takes along to a block of rows: the penalty, κ, α and K. It holds no rows itself."""

    potential: Potential
    factor: Vector
    eta: float
    kappa: float
    alpha: float
    n_samples: int

    def penalty_gradient(self, theta: Vector) -> Vector:
        """∇f̃(θ), Eq. (eq:gradientreg); its last entry is zero."""
        w = theta[:-1]
        return np.append(self.factor * self.potential.derivative(w) + self.eta * w, 0.0)


def _smoothness(objective: Objective, kappa: float, largest_row: float) -> float:
    """A bound of the curvature of every batch's estimate, if no row is larger than that."""
    potential, factor = objective.potential, float(np.max(objective.factor))
    bound = SquaredHinge.curvature_bound * largest_row
    return (bound + kappa * (potential.lipschitz * factor + objective.eta)) or 1.0


@dataclass(frozen=True)
class SGD(StochasticSolver):
    """Stochastic gradient descent, Alg. (alg1)."""

    name = "sgd"

    def update(self, memory: Memory, d: Vector, alpha: float) -> Vector:
        return alpha * d


@dataclass(frozen=True)
class Momentum(StochasticSolver):
    """Stochastic gradient descent with heavy-ball momentum, Alg. (momentum)."""

    beta: float = 0.9

    name = "momentum"

    def default_step(self, smoothness: float) -> float:
        # A steady gradient is amplified by 1/(1-β).
        return (1.0 - self.beta) / smoothness

    def memory(self, size: int) -> Memory:
        return {"m": np.zeros(size)}

    def update(self, memory: Memory, d: Vector, alpha: float) -> Vector:
        m = memory["m"] = self.beta * memory["m"] + d
        return np.asarray(alpha * m)


@dataclass(frozen=True)
class Adam(StochasticSolver):
    """Adaptive moment estimation, Alg. (Adam)."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    name = "adam"

    def default_step(self, smoothness: float) -> float:
        return 1e-3

    def memory(self, size: int) -> Memory:
        return {"m": np.zeros(size), "v": np.zeros(size), "t": 0}

    def update(self, memory: Memory, d: Vector, alpha: float) -> Vector:
        t = memory["t"] = memory["t"] + 1
        m = memory["m"] = self.beta1 * memory["m"] + (1.0 - self.beta1) * d
        v = memory["v"] = self.beta2 * memory["v"] + (1.0 - self.beta2) * d * d
        corrected = np.sqrt(v / (1.0 - self.beta2**t)) + self.epsilon
        return np.asarray(alpha / (1.0 - self.beta1**t) * m / corrected)

    @classmethod
    def examples(cls) -> tuple[Adam, ...]:
        # The usual step of 0.001 would need some thousand batches to get anywhere.
        return (cls(step=0.05, batch_size=8),)
