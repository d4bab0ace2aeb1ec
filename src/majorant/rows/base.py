"""The questions a solver may ask of the rows, wherever they live.

A solver never sees an n-vector. It asks for sums over the rows of feature-sized quantities, and each
kind of rows answers by putting the same question to each of its blocks and adding the answers in
block order. So *where* rows live is one method, `map_blocks`; the algebra is in `block.py`; and the same
partition gives bitwise the same answer everywhere.

Notation, as in Eq. (eq:sqHingeRef): L = Diag(y)[X b] with b = 1 when there is an intercept and 0
when there is none, S = Diag(s) the sample weights, p = n_features + 1. Without an intercept the last
column of L is zero, hence so are the last entries of every sum, and β stays where it starts: at 0.
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
    """What the blocks' answers are: things that add up."""

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
        """The loss itself, under the name that an `LossByClass` has for it."""
        return self


@dataclass(frozen=True, eq=False)
class LossByClass(AddedByField):
    """What a certificate needs: the loss at θ by class, and the squared lengths of the active columns.

    The lengths are left out, `squares` is empty, where they are not asked for.
    """

    negative: LossSum
    positive: LossSum
    loss: LossSum
    """Over both classes; without lengths, the same bits as if only the loss had been asked for."""
    squares: Vector

    def columns(self, where: NDArray[np.intp]) -> LossByClass:
        """The loss by class of some columns at θ = 0, or where all other coefficients are zero."""
        negative, positive, whole = (
            LossSum(loss.value, loss.gradient[where]) for loss in (self.negative, self.positive, self.loss)
        )
        return LossByClass(negative, positive, whole, self.squares[where])


class Rows(ABC):
    """Labelled, weighted rows, in one or more blocks."""

    n_samples: int
    n_features: int
    loss_by_class_is_cheap = False
    """Whether the loss by class costs no more than the loss; elsewhere, it is twice as much to send."""

    @abstractmethod
    def map_blocks(self, question: Callable[[Block], Answer]) -> Iterable[Answer]:
        """The answers of all blocks, in block order."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many blocks there are that a stochastic method may draw from, one at a time."""

    @property
    def copy_budget(self) -> int:
        """How many bytes of copies of rows a solver may hold beside them."""
        return 2**27

    @abstractmethod
    def fold_blocks(
        self, state: State, through: Callable[[State, Block], State], order: Sequence[int]
    ) -> State:
        """Take a state through these parts, one after the other: what it becomes.

        It goes to where a part is. So it must be what can be sent there, and what comes back may be a copy.
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
        """A question to each of the parts, of which this is one: block by block, the answers of all.

        Parts that are transforms of the blocks of one store share a pass.
        """
        answers = (part.map_blocks(question) for part, question in zip(parts, questions, strict=True))
        return zip(*answers, strict=True)

    def subsample(self, parts: Sequence[Rows], sample: EveryKth) -> list[list[Block]]:
        """The blocks of a sample of each of the parts, of which this is one, weighed to stand for all rows.

        Parts that are transforms of the blocks of one store share the copy of X.
        """
        return [list(part.map_blocks(sample)) for part in parts]

    def loss(self, theta: Vector) -> LossSum:
        """g(Lθ) = Σ_k s_k ρ²((Lθ)_k) and its gradient Lᵀ∇g(Lθ), Eq. (eq:gradient)."""
        (loss,) = losses([self], [theta])
        return loss

    # A run often begins where another has ended, with another penalty but the same loss; and a point is
    # certified right after it was evaluated. Between two runs, the point that is delivered is evaluated.
    _recent: tuple[tuple[Vector, LossSum | LossByClass], ...] = ()

    def _known(self, theta: Vector) -> LossSum | LossByClass | None:
        """What was found at θ, if θ was one of the last two points."""
        return next((found for point, found in self._recent if np.array_equal(point, theta)), None)

    def gram(self) -> Matrix:
        """LᵀSL, p × p."""
        return self.sum_blocks(lambda block: block.gram())

    def gram_product(self, v: Vector) -> Vector:
        """LᵀSL v without forming the matrix."""
        return self.sum_blocks(lambda block: block.gram_product(v))

    def _know_columns_of(self, whole: Rows, chosen: NDArray[np.intp]) -> None:
        """Take over what is known of the rows whose columns these are: the loss by class at θ = 0."""
        if "stats_at_zero" in whole.__dict__:
            self.__dict__["stats_at_zero"] = whole.stats_at_zero.columns(np.append(chosen, whole.n_features))

    @cached_property
    def stats_at_zero(self) -> LossByClass:
        """The loss by class at θ = 0, where every row is active, and the lengths of the columns."""
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
    """A copy of every `step`-th row. Equal queries share a pass.

    With a number of entries, fewer rows: so that a block's sample has about so many entries.
    """

    step: int
    entries: int | None = None

    def __call__(self, block: Block) -> Block:
        size = block.n_samples * block.n_features if block.dense else block.sparse_entries
        step = self.step if self.entries is None else max(self.step, -(-size // self.entries))
        sample = block.every(step)
        # All columns, but copied: a view would keep the block alive.
        copied = sample.columns(np.arange(block.n_features))
        copied.fold = sample.fold
        return copied


def sum_blocks_each(parts: Sequence[Rows], questions: Sequence[Callable[[Block], Any]]) -> list[Any]:
    """The total of each of the parts, of a question of its own; of transforms of one store in one pass."""
    if len(parts) == 1:  # a loss of 500 rows in memory took 2 µs of 28 longer without this
        return [parts[0].sum_blocks(questions[0])]
    answers = parts[0].map_blocks_each(parts, questions)
    return list(reduce(lambda sums, others: list(map(add, sums, others)), answers))


def losses(parts: Sequence[Rows], thetas: Sequence[Vector] | Matrix) -> list[LossSum]:
    """The loss of each of the parts, at a θ of its own; of transforms of one store in one pass."""
    pairs = zip(parts, thetas, strict=True)
    found = [part._known(theta) if theta.any() else part.stats_at_zero for part, theta in pairs]
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
    """The loss by class of each of the parts, at a θ of its own; no pass if θ was evaluated just before."""
    known = [part._known(theta) for part, theta in zip(parts, thetas, strict=True)]
    by_class = [loss for loss in known if isinstance(loss, LossByClass) and not lengths]
    if len(by_class) == len(parts):
        return by_class
    return sum_blocks_each(parts, [methodcaller("loss_by_class", theta, lengths=lengths) for theta in thetas])
