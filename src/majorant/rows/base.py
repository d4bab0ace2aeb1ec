"""`Rows`: the sums over training rows that a solver may ask for, in memory, on a disk or on a cluster.

A solver never sees a vector with an entry per row. It asks for feature-sized sums over the rows. Every kind
of rows calls the same function, the *question*, on each of its blocks, and adds the answers in block order.
So a new place for rows needs one method, `map_blocks`; the algebra is in `block.py`; and the same blocks give
the same bits everywhere.

Notation, as in Eq. (eq:sqHingeRef): L = Diag(y)[X b] with b = 1 if there is an intercept and b = 0 if there
is none, S = Diag(s) the sample weights, p = n_features + 1. Without an intercept the last column of L is
zero, so the last entry of every sum is zero, and β stays at 0, where it starts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from operator import add, methodcaller
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.rows.block import Block


class Summable(Protocol):
    """The type of a block's answer: values that can be added."""

    def __add__(self, other: Self, /) -> Self: ...


Answer = TypeVar("Answer")
Sum = TypeVar("Sum", bound=Summable)
State = TypeVar("State")


class AddedByField:
    """A record whose sums are taken field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True, eq=False)
class LossSum(AddedByField):
    """Σ_k s_k ρ²(v_k) and its gradient with respect to θ."""

    value: float
    gradient: Vector

    @property
    def loss(self) -> LossSum:
        """The sum itself: `LossByClass` has an attribute of the same name."""
        return self


@dataclass(frozen=True, eq=False)
class LossByClass(AddedByField):
    """The loss at θ by class, and the squared length of each column over the rows active at θ.

    A certificate needs the loss by class. `squares` is empty if the lengths were not asked for.
    """

    negative: LossSum
    positive: LossSum
    loss: LossSum
    """The loss over both classes. Without lengths it has the same bits as the answer of `loss`."""
    squares: Vector

    def columns(self, where: NDArray[np.intp]) -> LossByClass:
        """The entries of some columns, which are right if the coefficients of all others are zero."""
        negative, positive, whole = (
            LossSum(loss.value, loss.gradient[where]) for loss in (self.negative, self.positive, self.loss)
        )
        return LossByClass(negative, positive, whole, self.squares[where])


class Rows(ABC):
    """Labelled, weighted rows, in one or more blocks."""

    n_samples: int
    n_features: int
    loss_by_class_is_cheap = False
    """Whether the loss by class costs no more than the loss. A cluster would have to send twice as much."""

    @abstractmethod
    def map_blocks(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in block order."""

    @property
    @abstractmethod
    def n_batch_blocks(self) -> int:
        """The number of blocks that a stochastic method visits one by one."""

    @property
    def copy_budget(self) -> int:
        """How many bytes a solver may use for copies of rows."""
        return 2**27

    @abstractmethod
    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        """Repeat state = through(state, block) for blocks in this order; returns the last state.

        On a cluster the state travels to each block: it must be picklable, and the result may be a copy.
        """

    @abstractmethod
    def columns(self, chosen: NDArray[np.intp]) -> Rows:
        """The same rows with some of the features only."""

    def sum_blocks(self, question: Callable[[Block], Sum]) -> Sum:
        """The sum of the blocks' answers, always added in block order."""
        return reduce(add, self.map_blocks(question))

    def map_blocks_each(
        self, parts: Sequence[Rows], questions: Sequence[Callable[[Block], Any]]
    ) -> Iterable[Sequence[Any]]:
        """questions[k] to parts[k], of which this is one: for each block, the list of all answers.

        Parts that are transforms of the blocks of one store share a pass.
        """
        answers = (part.map_blocks(question) for part, question in zip(parts, questions, strict=True))
        return zip(*answers, strict=True)

    def subsample(self, parts: Sequence[Rows], sample: EveryKth) -> list[list[Block]]:
        """A sample of the rows of each part, of which this is one, with weights that represent all rows.

        Parts that are transforms of the blocks of one store share the copy of X.
        """
        return [list(part.map_blocks(sample)) for part in parts]

    def loss(self, theta: Vector) -> LossSum:
        """g(Lθ) = Σ_k s_k ρ²((Lθ)_k) and its gradient Lᵀ∇g(Lθ), Eq. (eq:gradient)."""
        (loss,) = losses([self], [theta])
        return loss

    # The losses at the last two points. A run often starts where another one ended, with another penalty but
    # the same loss; a point is certified right after its evaluation; and between two runs the delivered point
    # is evaluated.
    _recent: tuple[tuple[Vector, LossSum | LossByClass], ...] = ()

    def _recent_loss(self, theta: Vector) -> LossSum | LossByClass | None:
        """The loss at θ, if θ was one of the last two points."""
        return next((found for point, found in self._recent if np.array_equal(point, theta)), None)

    def gram(self) -> Matrix:
        """LᵀSL, p × p."""
        return self.sum_blocks(lambda block: block.gram())

    def gram_product(self, v: Vector) -> Vector:
        """LᵀSL v without forming the matrix."""
        return self.sum_blocks(lambda block: block.gram_product(v))

    def _take_stats_at_zero_of(self, whole: Rows, chosen: NDArray[np.intp]) -> None:
        """Copy the entries of `stats_at_zero` from the rows whose columns these are, if they are known."""
        if "stats_at_zero" in whole.__dict__:
            self.__dict__["stats_at_zero"] = whole.stats_at_zero.columns(np.append(chosen, whole.n_features))

    @cached_property
    def stats_at_zero(self) -> LossByClass:
        """The loss by class at θ = 0, where every row is active, and the squared lengths of the columns."""
        return self.loss_by_class(np.zeros(self.n_features + 1), lengths=True)

    @property
    def gram_diagonal(self) -> Vector:
        """The diagonal of LᵀSL: the weighted square of each column's length."""
        return self.stats_at_zero.squares

    @cached_property
    def loss_at_zero(self) -> LossSum:
        """The loss at θ = 0, which is Σ_k s_k, and its gradient there."""
        return self.stats_at_zero.loss

    def loss_by_class(self, theta: Vector, *, lengths: bool) -> LossByClass:
        """The loss at θ by class, and the squared lengths of the columns over the rows active there."""
        (loss,) = losses_by_class([self], [theta], lengths=lengths)
        return loss

    def curvature(self, theta: Vector, features: NDArray[np.intp] | None = None) -> Matrix:
        """2 L_AᵀS_A L_A over the rows A active at θ: the Hessian of the loss, of some features or of all."""
        return self.sum_blocks(lambda block: block.curvature(theta, features))

    def gram_along(self, D: Matrix) -> Matrix:
        """DᵀLᵀSLD, m × m, for the m columns of D."""
        return self.sum_blocks(lambda block: block.gram_along(D))

    def gram_norm(self, scale: Vector, steps: int) -> float:
        """‖Λ LᵀSL Λ‖ for Λ = Diag(scale), from below: power iterations from the gradient at zero."""
        v, norm = scale * self.loss_at_zero.gradient, 0.0
        for _ in range(steps):
            v /= float(np.linalg.norm(v)) or 1.0
            v = scale * self.gram_product(scale * v)
            norm = float(np.linalg.norm(v))
        return norm

    def largest_row(self) -> float:
        """max_k s_k ‖L_k‖², the sharpest curvature that a single row can have, halved."""
        return max(self.map_blocks(lambda block: block.largest_row()))

    def design(self) -> Matrix:
        """S^½L as one dense n × p array: only for few rows."""
        parts = list(self.map_blocks(lambda block: block.design()))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True)
class EveryKth:
    """A copy of every `step`-th row of a block, with weights that represent all rows.

    If `entries` is given, the step is large enough for a block's sample to have about that many entries at
    most. Equal samples are equal questions, so that threads share the pass.
    """

    step: int
    entries: int | None = None

    def __call__(self, block: Block) -> Block:
        size = block.n_samples * block.n_features if block.dense else block.sparse_entries
        step = self.step if self.entries is None else max(self.step, -(-size // self.entries))
        sample = block.every(step)
        # `columns` copies the entries; a view would keep the whole block in memory.
        copied = sample.columns(np.arange(block.n_features))
        copied.fold = sample.fold
        return copied


def sum_blocks_each(parts: Sequence[Rows], questions: Sequence[Callable[[Block], Any]]) -> list[Any]:
    """The sum of the answers of parts[k] to questions[k]; transforms of one store share a pass."""
    if len(parts) == 1:  # without this, a loss of 500 rows in memory took 28 µs instead of 26
        return [parts[0].sum_blocks(questions[0])]
    answers = parts[0].map_blocks_each(parts, questions)
    return list(reduce(lambda sums, others: list(map(add, sums, others)), answers))


def losses(parts: Sequence[Rows], thetas: Sequence[Vector] | Matrix) -> list[LossSum]:
    """The loss of parts[k] at thetas[k]; transforms of one store share a pass."""
    pairs = zip(parts, thetas, strict=True)
    found = [part._recent_loss(theta) if theta.any() else part.stats_at_zero for part, theta in pairs]
    missing = [k for k, known in enumerate(found) if known is None]
    if missing:
        ask = partial(methodcaller, "loss")
        if parts[0].loss_by_class_is_cheap:
            ask = partial(methodcaller, "loss_by_class", lengths=False)
        questions = [ask(thetas[k]) for k in missing]
        for k, answer in zip(missing, sum_blocks_each([parts[k] for k in missing], questions), strict=True):
            parts[k]._recent = ((thetas[k].copy(), answer), *parts[k]._recent[:1])
            found[k] = answer
    return [known.loss for known in found if known is not None]


def losses_by_class(
    parts: Sequence[Rows], thetas: Sequence[Vector] | Matrix, *, lengths: bool = False
) -> list[LossByClass]:
    """The loss by class of parts[k] at thetas[k]; no pass if these points were evaluated just before."""
    known = [part._recent_loss(theta) for part, theta in zip(parts, thetas, strict=True)]
    by_class = [loss for loss in known if isinstance(loss, LossByClass) and not lengths]
    if len(by_class) == len(parts):
        return by_class
    return sum_blocks_each(parts, [methodcaller("loss_by_class", theta, lengths=lengths) for theta in thetas])
