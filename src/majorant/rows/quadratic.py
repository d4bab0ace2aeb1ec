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

from functools import partial

import numpy as np

from majorant.losses import SquaredHinge
from majorant.rows.block import Block
from majorant.rows.memory import MemoryRows
from majorant.rows.together import together
from majorant.status import Vector

# A diagonal entry of H that has lost more than this factor has lost the digits it had in common.
CANCELLED = 1e6


class CarriedMargins:
    """One block's margins at θ, what a step along d would add to them, who is active, and its H and c."""

    def __init__(self, block: Block, theta: Vector, *, gram: bool) -> None:
        self.block = block
        p = len(theta)
        self.H, self.c = np.zeros((p, p) if gram else (0, 0)), np.zeros(p)
        self.refresh(theta)

    def refresh(self, theta: Vector) -> None:
        """The margins from θ itself, and H and c from them."""
        self.v = self.block.image(theta)
        self.dv = np.zeros_like(self.v)
        self.active = self.v < 1.0
        self.build()

    def build(self) -> None:
        """H and c from the active rows."""
        if self.H.size:
            self.H[:], self.c[:] = 0.0, 0.0
            self.block.add_rows(np.flatnonzero(self.active), 1.0, self.H, self.c)

    def advance(self, d: Vector) -> float:
        """Go to θ + d, and bring H and c along; the loss there."""
        return self.block.advance(d, self.dv, self.v, self.active, self.H, self.c)

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the last d."""
        return float(self.block.s @ SquaredHinge.value(self.v + t * self.dv))

    def move(self, t: float) -> None:
        """Go to θ + t d, for the last d."""
        self.block.cross(t, self.dv, self.v, self.active, self.H, self.c)

    def product(self, d: Vector) -> Vector:
        """The block's share of H d, without H."""
        return self.block.active_product(self.active, d)


class ActiveQuadratic:
    """The loss around θ, over all blocks, as a quadratic that follows θ.

    With ``gram=False`` the matrix H is not formed: only products with it are asked for.
    """

    def __init__(self, rows: MemoryRows, theta: Vector, *, gram: bool = True) -> None:
        self.theta: Vector | None = theta  # where it is; nowhere while a step is tried
        # Each part has an H of its own, which should be small beside the rows.
        entries = sum(block.sparse_entries for block in rows.blocks)
        blocks = rows.blocks if not gram or 2 * len(theta) ** 2 <= entries else rows.drawn
        self.parts = together([partial(CarriedMargins, block, theta, gram=gram) for block in blocks])
        one = len(self.parts) == 1
        self.H = self.parts[0].H if one else np.empty_like(self.parts[0].H)
        self.c = self.parts[0].c if one else np.empty_like(self.parts[0].c)
        self.fresh = True
        self._loss: float | None = None
        self._gather()

    def _gather(self) -> None:
        """H and c from those of the blocks."""
        if not self.H.size:
            self._diagonal = np.zeros(0)
            return
        first, *others = self.parts
        if others:
            np.copyto(self.H, first.H)
            np.copyto(self.c, first.c)
            for part in others:
                self.H += part.H
                self.c += part.c
        first.block.mirror(self.H)
        self._diagonal = np.diagonal(self.H).copy()

    def refresh(self, theta: Vector) -> None:
        """Everything anew from θ, free of what was carried."""
        together([partial(part.refresh, theta) for part in self.parts])
        self.theta, self.fresh, self._loss = theta, True, None
        self._gather()

    def gradient(self, theta: Vector) -> Vector:
        """∇loss(θ) = Hθ - c, for the θ that the margins are at."""
        return np.asarray(self.H @ theta - self.c)

    def product(self, d: Vector) -> Vector:
        """H d, without H."""
        return np.asarray(sum(together([partial(part.product, d) for part in self.parts])))

    def advance(self, d: Vector) -> float:
        """Go to θ + d, by one product with X; the loss there. H and c follow when the step is `settled`."""
        self.theta = None
        self._loss = sum(together([partial(part.advance, d) for part in self.parts]))
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
        together([partial(part.move, t) for part in self.parts])

    def settle(self, theta: Vector) -> None:
        """Bring H and c to where the margins are, which is θ."""
        before, self.theta, self.fresh = self._diagonal, theta, False
        self._gather()
        after = np.diagonal(self.H)
        if np.any(before > CANCELLED * after) and not all(part.block.exact for part in self.parts):
            together([part.build for part in self.parts])
            self._gather()
