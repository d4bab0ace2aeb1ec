r"""The loss near θ as a quadratic function, which is exact until a row changes sides.

With A = {k : margin_k < 1}, the active rows,

    Σ_k s_k ρ²((Lθ)_k) = s_A - c·θ + ½ θᵀHθ,    H = 2 L_AᵀS_A L_A,    c = 2 L_AᵀS_A 1,    s_A = Σ_A s_k,

exactly, as long as A does not change. H is the true curvature; the paper's 2LᵀSL, a sum over all rows, is a
bound of it. When θ moves, rows that enter A are added to H and c, and rows that leave A are subtracted.

The margins v = Lθ are carried from step to step: a step d costs one product with X, and then the loss at
θ + t d costs a pass over two vectors with an entry per row, for every t.

Carried numbers collect rounding errors. Subtracting a large row from H can cancel all digits of the rest, so
H and c are recomputed when a diagonal entry has shrunk to a millionth; `refresh` recomputes everything from
θ.
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

# The factor by which a diagonal entry of H may shrink before its digits count as cancelled.
CANCELLED = 1e6


class CarriedMargins:
    """One block's margins v at θ, their change dv along the last step d, its active rows, and its H and c.

    Without H, c is the gradient of the loss after the last `advance`.
    """

    def __init__(self, block: Block, theta: Vector, *, gram: bool) -> None:
        self.block = block
        p = len(theta)
        self.H, self.c = np.zeros((p, p) if gram else (0, 0)), np.zeros(p)
        self._product = np.empty(p)
        self.refresh(theta)

    def refresh(self, theta: Vector) -> None:
        """Compute the margins from θ, and H and c from the margins."""
        self.v = self.block.matvec(theta)
        self.dv = np.zeros_like(self.v)
        self.active = self.v < 1.0
        self.build()

    def build(self) -> None:
        """Compute H and c from the active rows."""
        if self.H.size:
            self.H[:], self.c[:] = 0.0, 0.0
            self.block.rank_update(np.flatnonzero(self.active), 1.0, self.H, self.c)

    def advance(self, d: Vector) -> float:
        """Move the margins, H and c to θ + d; returns the loss there."""
        return self.block.advance(d, self.dv, self.v, self.active, self.H, self.c)

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the last d."""
        return float(self.block.s @ SquaredHinge.value(self.v + t * self.dv))

    def move(self, t: float) -> None:
        """Move to θ + t d, for the last d."""
        self.block.update_active(t, self.dv, self.v, self.active, self.H, self.c)

    def product(self, d: Vector) -> Vector:
        """The block's term of H d, computed without H, in a buffer that the next call overwrites."""
        return self.block.active_product(self.active, d, self._product)


class ActiveQuadratic:
    """The loss near θ, over all classes and blocks, as a quadratic that is updated when θ moves.

    For C classes H is (C, p, p) and c is (C, p), since the loss has no mixed terms. With ``gram=False`` H is
    not formed, and only products with it are available.
    """

    def __init__(self, classes: Sequence[MemoryRows], theta: Vector, *, gram: bool = True) -> None:
        self.theta: Vector | None = theta  # the point of the margins; None between `advance` and `commit`
        self.ahead: Vector | None = None  # a point near θ where a run has ended, not yet that of the margins
        self.made_for = [ref(rows) for rows in classes]
        thetas = theta.reshape(len(classes), -1)
        # Each block has its own H, which should be small beside the rows.
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
        self.fresh = True  # nothing was carried since the last computation from θ
        self.products = 0  # the number of products with H, without forming it
        self.knows_gradient = gram
        self._loss: float | None = None
        self._gather()

    def _gather(self) -> None:
        """Add up H and c of the blocks."""
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
        """Call a method of every block with its class's row of θ, or of a step."""
        if len(self.parts) == 1:
            check()
            return [getattr(self.parts[0], method)(theta)]
        rows = theta.reshape(len(self.by_class), -1)
        pairs = zip(self.by_class, rows, strict=True)
        return parallel_map([partial(getattr(part, method), row) for parts, row in pairs for part in parts])

    def is_at(self, theta: Vector) -> bool:
        """Whether θ is the point of the margins."""
        return self.theta is theta or (self.theta is not None and np.array_equal(self.theta, theta))

    def is_behind(self, theta: Vector) -> bool:
        """Whether the last run has ended at θ without moving the margins there."""
        return self.ahead is not None and np.array_equal(self.ahead, theta)

    def refresh(self, theta: Vector) -> None:
        """Compute everything from θ, without carried numbers."""
        self._each("refresh", theta)
        self.theta, self.ahead, self.fresh, self._loss = theta, None, True, None
        self.knows_gradient = self.H.size > 0
        self._gather()

    def gradient(self, theta: Vector) -> Vector:
        """∇loss(θ) = Hθ - c, class by class, if θ is the point of the margins and `knows_gradient`."""
        if not self.H.size:
            return np.concatenate([reduce(add, (part.c for part in parts)) for parts in self.by_class])
        if len(self.H) == 1:
            return np.asarray(self.H[0] @ theta - self.c[0])
        product = np.einsum("cij,cj->ci", self.H, theta.reshape(self.c.shape))
        return np.asarray((product - self.c).ravel())

    def product(self, d: Vector) -> Vector:
        """H d, computed without H, in a buffer that the next call overwrites."""
        self.products += 1
        answers = iter(self._each("product", d))
        sums = []
        for parts in self.by_class:
            sums.append(next(answers))
            for _ in parts[1:]:
                sums[-1] += next(answers)
        return sums[0] if len(sums) == 1 else np.concatenate(sums)

    def advance(self, d: Vector) -> float:
        """Move the margins to θ + d, by one product with X; returns the loss. `commit` updates H and c."""
        self.theta = None
        self._loss = sum(self._each("advance", d))
        self.knows_gradient = True
        return self._loss

    @property
    def loss(self) -> float:
        """The loss at the point of the margins."""
        if self._loss is None:
            self._loss = self.loss_at(0.0)
        return self._loss

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the last d."""
        return sum(part.loss_at(t) for part in self.parts)

    def move(self, t: float) -> None:
        """Move the margins by t d, for the last d; t = -1 undoes `advance`."""
        self._loss = None
        self.knows_gradient = self.H.size > 0
        parallel_map([partial(part.move, t) for part in self.parts])

    def commit(self, theta: Vector) -> None:
        """Update H and c to the point of the margins, which is θ."""
        before, self.fresh = self._diagonal, False
        self._gather()
        cancelled = (before > CANCELLED * self._diagonal).any()
        if cancelled and not all(part.block.exact for part in self.parts):
            parallel_map([part.build for part in self.parts])
            self._gather()
        self.theta, self.ahead = theta, None
