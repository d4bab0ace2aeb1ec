r"""`sgd`, `momentum`, `adam`: mini-batch methods, Alg. (alg1), Alg. (momentum), Alg. (Adam).

Each step estimates ∇Φ(θ)/K from a batch B of the K rows:

    d = 1/b (Σ_{k ∈ B} ∇loss_k(θ) + |B| κ ∇f(θ))

where b is the batch size (a last batch of fewer rows makes a smaller step, not a noisier one). With κ = 1/K
("unbiased", the default) the d of an epoch at one θ add up to ∇Φ(θ)/b, and a decaying step leads to the
minimiser of Φ. The paper uses κ = 1 ("paper"): its steps minimise the *mean* loss plus f, in which f counts K
times as much as in Φ. An iterate is an epoch: every row once, in a new random order.

The steps, with the indices of textbooks (those in the paper's listings are shifted):

    sgd       θ ← θ - α d
    momentum  m ← β m + d;  θ ← θ - α m
    adam      m ← β₁ m + (1-β₁) d;  v ← β₂ v + (1-β₂) d²;  θ ← θ - α m̂/(√v̂ + ε)
              m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)

A schedule multiplies α by a function of the number of epochs so far. By default α decays: with a constant α,
as in the paper, the iterates stay in a neighbourhood of the minimiser without converging.
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
"""The memory of past steps, by name: arrays of the size of θ, and counts."""

SCHEDULES: dict[str, Schedule] = {
    "constant": lambda epochs: 1.0,
    "inverse": lambda epochs: 1.0 / (1.0 + epochs),
    "sqrt": lambda epochs: 1.0 / np.sqrt(1.0 + epochs),
}


@dataclass(frozen=True)
class StochasticSolver(Solver):
    """The base class of the three methods, with their loop.

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
        The weight κ of the penalty in a batch: 1/K or 1, see the module.
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
        """The memory at the start of a run, for θ of that size."""
        return {}

    @abstractmethod
    def update(self, memory: Memory, d: Vector, alpha: float) -> Vector:
        """The vector to subtract from θ; updates the memory in place."""

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
    """The state of a `Descent` without its solver: numbers and arrays, for model files."""

    theta: Vector
    seen: int
    steps: int
    largest_row: float
    memory: Mapping[str, Any]
    generator: Mapping[str, Any]
    """The state of the random generator, as numpy gives it."""


class Descent:
    """θ and the state of a stochastic solver between two steps.

    It holds no rows, has the size of a few θ, and can be pickled. The epochs of `iterates` and the calls of
    `partial_fit` both use it.

    Parameters
    ----------
    solver : StochasticSolver
        The solver that makes the steps.
    theta : array (n_features + 1,)
        The starting point.
    seed : int
        The seed of the order of the rows.
    seen : int, default=0
        The number of rows learned from before.
    """

    def __init__(self, solver: StochasticSolver, theta: Vector, seed: int, seen: int = 0) -> None:
        self.theta = theta.copy()
        self.seen = seen
        self.steps = 0
        self.largest_row = 0.0
        self._rng = np.random.default_rng(seed)
        self.follow(solver)

    def follow(self, solver: StochasticSolver) -> None:
        """Use another solver from now on, which starts without a memory."""
        self.solver, self._memory = solver, solver.memory(len(self.theta))

    def copy(self) -> Descent:
        """A copy in the same state, for steps that may have to be undone."""
        return self.restored(self.solver, self.state())

    def state(self) -> DescentState:
        """The state from which `restored` continues; the arrays are not copied."""
        generator = self._rng.bit_generator.state
        return DescentState(self.theta, self.seen, self.steps, self.largest_row, self._memory, generator)

    @classmethod
    def restored(cls, solver: StochasticSolver, state: DescentState) -> Descent:
        """A descent in this state, with this solver."""
        descent = cls(solver, state.theta, 0, state.seen)
        descent.steps, descent.largest_row = state.steps, state.largest_row
        descent._memory = {name: copy(value) for name, value in state.memory.items()}
        descent._rng.bit_generator.state = dict(state.generator)
        return descent

    def note_largest_row(self, rows: Rows) -> None:
        """Note the largest of the next rows, for which the default step must be stable."""
        if self.solver.step is None:
            self.largest_row = max(self.largest_row, rows.largest_row())

    def epoch(self, objective: Objective, n_samples: int) -> None:
        """Learn from every row of the objective once; the penalty is spread over `n_samples` rows."""
        solver, rows = self.solver, objective.rows
        kappa = 1.0 if solver.weighting == "paper" else 1.0 / n_samples
        # A bound of the curvature of every batch's estimate.
        smoothness = SquaredHinge.curvature_bound * self.largest_row + kappa * (
            objective.potential.lipschitz * float(np.max(objective.factor)) + objective.eta
        )
        alpha = solver.step or solver.default_step(smoothness or 1.0)
        context = BatchContext(objective.potential, objective.factor, objective.eta, kappa, alpha, n_samples)
        order = self._rng.permutation(rows.n_batch_blocks).tolist()
        # On a cluster, the descent that comes back from a worker is a copy.
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
    """The arguments of `Descent.learn` that are the same for all blocks of an epoch; it holds no rows."""

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
        # With the usual step of 0.001 the laws would need thousands of batches.
        return (cls(step=0.05, batch_size=8),)
