r"""The loss as the quadratic that it is, until a row changes sides.

With A = {k : margin_k < 1}, the active rows,

    Σ_k s_k ρ²((Lθ)_k) = s_A - c·θ + ½ θᵀHθ,    H = 2 L_AᵀS_A L_A,    c = 2 L_AᵀS_A 1,    s_A = Σ_A s_k,

exactly, as long as A is the same. H is the true curvature, where the paper's 2LᵀSL, which counts all rows, is
a bound. When θ moves, only the rows that enter or leave A are added to H and c, or taken away.

The margins v = Lθ are kept beside the rows and carried along: a step d costs one product with X, after
which the loss at θ + t d is known for every t at the price of a pass over two n-vectors.

What is carried gathers rounding. Taking a long row away can cancel all digits of what is left in H, so H and
c are built anew when a diagonal entry has shrunk to a millionth; `refresh` builds everything anew from θ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import add
from typing import Any
from weakref import ref

import numpy as np

from majorant.interrupts import check
from majorant.losses import SquaredHinge
from majorant.rows.block import Block
from majorant.rows.memory import MemoryRows
from majorant.rows.threads import parallel_map
from majorant.status import Vector

# A diagonal entry of H that has lost more than this factor has lost the digits it had in common.
CANCELLED = 1e6


class CarriedMargins:
    """One block's margins at θ, what a step along d would add to them, who is active, and its H and c.

    Without H, c is the gradient of the loss where `advance` has led.
    """

    def __init__(self, block: Block, theta: Vector, *, gram: bool) -> None:
        self.block = block
        p = len(theta)
        self.H, self.c = np.zeros((p, p) if gram else (0, 0)), np.zeros(p)
        self._product = np.empty(p)
        self.refresh(theta)

    def refresh(self, theta: Vector) -> None:
        """The margins from θ itself, and H and c from them."""
        self.v = self.block.matvec(theta)
        self.dv = np.zeros_like(self.v)
        self.active = self.v < 1.0
        self.build()

    def build(self) -> None:
        """H and c from the active rows."""
        if self.H.size:
            self.H[:], self.c[:] = 0.0, 0.0
            self.block.rank_update(np.flatnonzero(self.active), 1.0, self.H, self.c)

    def advance(self, d: Vector) -> float:
        """Go to θ + d, and bring H and c along; the loss there."""
        return self.block.advance(d, self.dv, self.v, self.active, self.H, self.c)

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the last d."""
        return float(self.block.s @ SquaredHinge.value(self.v + t * self.dv))

    def move(self, t: float) -> None:
        """Go to θ + t d, for the last d."""
        self.block.update_active(t, self.dv, self.v, self.active, self.H, self.c)

    def product(self, d: Vector) -> Vector:
        """The block's share of H d, without H, in a buffer that the next call writes to."""
        return self.block.active_product(self.active, d, self._product)


class ActiveQuadratic:
    """The loss around θ, over all classes and blocks, as a quadratic that follows θ.

    H is (C, p, p) and c is (C, p) for C classes: the loss does not tie them. With ``gram=False`` H is not
    formed: only products with it are asked for.
    """

    def __init__(self, classes: Sequence[MemoryRows], theta: Vector, *, gram: bool = True) -> None:
        self.theta: Vector | None = theta  # where the margins are; nowhere while a step is tried
        self.ahead: Vector | None = None  # a point near θ that a run has ended at
        self.made_for = [ref(rows) for rows in classes]
        thetas = theta.reshape(len(classes), -1)
        # Each part has an H of its own, which should be small beside the rows.
        blocks = [rows.partition(2 * thetas.shape[1] ** 2 if gram else 0) for rows in classes]
        tasks = [
            partial(CarriedMargins, block, row, gram=gram)
            for row, own in zip(thetas, blocks, strict=True)
            for block in own
        ]
        self.parts = parallel_map(tasks)
        count = len(blocks[0])
        self.by_class = [self.parts[k : k + count] for k in range(0, len(self.parts), count)]
        first = self.parts[0]
        if len(self.parts) == 1:
            self.H, self.c = first.H[np.newaxis], first.c[np.newaxis]
        else:
            self.H, self.c = (np.empty((len(classes), *like.shape)) for like in (first.H, first.c))
        self.fresh = True
        self.products = 0  # with H, without forming it
        self.knows_gradient = gram
        self._loss: float | None = None
        self._gather()

    def _gather(self) -> None:
        """H and c from those of the blocks."""
        if not self.H.size:
            self._diagonal = np.zeros(0)
            return
        for H, c, (first, *others) in zip(self.H, self.c, self.by_class, strict=True):
            if len(self.parts) > 1:
                np.copyto(H, first.H)
                np.copyto(c, first.c)
            for part in others:
                H += part.H
                c += part.c
            first.block.symmetrize(H)
        self._diagonal = self.H.diagonal(axis1=1, axis2=2).copy()

    def _each(self, method: str, theta: Vector) -> list[Any]:
        """Call a method of every part with its class's row of θ, or of a step."""
        if len(self.parts) == 1:
            check()
            return [getattr(self.parts[0], method)(theta)]
        rows = theta.reshape(len(self.by_class), -1)
        pairs = zip(self.by_class, rows, strict=True)
        return parallel_map([partial(getattr(part, method), row) for parts, row in pairs for part in parts])

    def is_at(self, theta: Vector) -> bool:
        """Whether the margins are those of θ."""
        return self.theta is theta or (self.theta is not None and np.array_equal(self.theta, theta))

    def is_behind(self, theta: Vector) -> bool:
        """Whether θ is the point ahead of the margins, where the last run has ended."""
        return self.ahead is not None and np.array_equal(self.ahead, theta)

    def refresh(self, theta: Vector) -> None:
        """Everything anew from θ, free of what was carried."""
        self._each("refresh", theta)
        self.theta, self.ahead, self.fresh, self._loss = theta, None, True, None
        self.knows_gradient = self.H.size > 0
        self._gather()

    def gradient(self, theta: Vector) -> Vector:
        """∇loss(θ) = Hθ - c, class by class, for the θ that the margins are at, if `knows_gradient`."""
        if not self.H.size:
            return np.concatenate([reduce(add, (part.c for part in parts)) for parts in self.by_class])
        if len(self.H) == 1:
            return np.asarray(self.H[0] @ theta - self.c[0])
        product = np.einsum("cij,cj->ci", self.H, theta.reshape(self.c.shape))
        return np.asarray((product - self.c).ravel())

    def product(self, d: Vector) -> Vector:
        """H d, without H, in a buffer that the next call writes to."""
        self.products += 1
        answers = iter(self._each("product", d))
        sums = []
        for parts in self.by_class:
            sums.append(next(answers))
            for _ in parts[1:]:
                sums[-1] += next(answers)
        return sums[0] if len(sums) == 1 else np.concatenate(sums)

    def advance(self, d: Vector) -> float:
        """Go to θ + d, by one product with X; the loss there. H and c follow with `commit`."""
        self.theta = None
        self._loss = sum(self._each("advance", d))
        self.knows_gradient = True
        return self._loss

    @property
    def loss(self) -> float:
        """The loss where the margins are."""
        if self._loss is None:
            self._loss = self.loss_at(0.0)
        return self._loss

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the last d."""
        return sum(part.loss_at(t) for part in self.parts)

    def move(self, t: float) -> None:
        """Go to θ + t d, for the last d: with t = -1, back."""
        self._loss = None
        self.knows_gradient = self.H.size > 0
        parallel_map([partial(part.move, t) for part in self.parts])

    def commit(self, theta: Vector) -> None:
        """Bring H and c to where the margins are, which is θ."""
        before, self.fresh = self._diagonal, False
        self._gather()
        cancelled = (before > CANCELLED * self._diagonal).any()
        if cancelled and not all(part.block.exact for part in self.parts):
            parallel_map([part.build for part in self.parts])
            self._gather()
        self.theta, self.ahead = theta, None
