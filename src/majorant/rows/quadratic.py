r"""The loss as the quadratic that it is, until a row changes sides.

With A = {k : margin_k < 1}, the active rows,

    Σ_k s_k ρ²((Lθ)_k) = s_A - c·θ + ½ θᵀHθ,    H = 2 L_AᵀS_A L_A,    c = 2 L_AᵀS_A 1,    s_A = Σ_A s_k,

exactly, as long as A is the same. H is the true curvature, where the paper's 2LᵀSL, which counts all rows, is
a bound. When θ moves, only the rows that enter or leave A are added to H and c, or taken away.

The margins v = Lθ are kept beside the rows and carried along: a direction d costs one product with X, after
which the loss at θ + t d is known for every t at the price of a pass over two n-vectors.

What is carried gathers rounding. Taking a long row away can cancel all digits of what is left in H, so H and
c are built anew when a diagonal entry has shrunk to a millionth; `refresh` builds everything anew from θ.
"""

from __future__ import annotations

import numpy as np

from majorant.losses import SquaredHinge
from majorant.rows.block import Block
from majorant.rows.memory import MemoryRows
from majorant.status import Vector

# A diagonal entry of H that has lost more than this factor has lost the digits it had in common.
CANCELLED = 1e6


class CarriedMargins:
    """One block's margins at θ, what a step along d would add to them, and who is active."""

    def __init__(self, block: Block, theta: Vector) -> None:
        self.block = block
        self.refresh(theta)

    def refresh(self, theta: Vector) -> None:
        """The margins from θ itself."""
        self.v = self.block.image(theta)
        self.dv = np.zeros_like(self.v)
        self.active = self.v < 1.0

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d."""
        return float((self.block.s * SquaredHinge.value(self.v + t * self.dv)).sum())


class ActiveQuadratic:
    """The loss around θ, over all blocks, as a quadratic that follows θ.

    With ``gram=False`` the matrix H is not formed: only products with it are asked for.
    """

    def __init__(self, rows: MemoryRows, theta: Vector, *, gram: bool = True) -> None:
        p = len(theta)
        self.parts = [CarriedMargins(block, theta) for block in rows.blocks]
        self.gram = gram
        self.H = np.zeros((p, p) if gram else (0, 0))
        self.c = np.zeros(p)
        self._build()

    def _build(self) -> None:
        """H and c from the active rows."""
        self.H[:], self.c[:] = 0.0, 0.0
        self.fresh = True
        if self.gram:
            for part in self.parts:
                part.block.add_rows(np.flatnonzero(part.active), 1.0, self.H, self.c)

    def refresh(self, theta: Vector) -> None:
        """Everything anew from θ, free of what was carried."""
        for part in self.parts:
            part.refresh(theta)
        self._build()

    def gradient(self, theta: Vector) -> Vector:
        """∇loss(θ) = Hθ - c, for the θ that the margins are at."""
        return np.asarray(self.H @ theta - self.c)

    def product(self, d: Vector) -> Vector:
        """H d, without H."""
        return np.asarray(sum(part.block.active_product(part.active, d) for part in self.parts))

    def look_along(self, d: Vector) -> None:
        """Prepare for steps along d: one product with X."""
        for part in self.parts:
            part.dv = part.block.image(d)

    def loss_at(self, t: float) -> float:
        """The loss at θ + t d, for the d last looked along."""
        return sum(part.loss_at(t) for part in self.parts)

    def step(self, t: float) -> None:
        """Go to θ + t d, and bring H and c along."""
        before = np.diagonal(self.H).copy()
        for part in self.parts:
            part.v += t * part.dv
            active = part.v < 1.0
            if self.gram:
                part.block.add_rows(np.flatnonzero(part.active & ~active), -1.0, self.H, self.c)
                part.block.add_rows(np.flatnonzero(active & ~part.active), 1.0, self.H, self.c)
            part.active = active
        self.fresh = False
        if np.any(before > CANCELLED * np.diagonal(self.H)):
            self._build()
            self.fresh = False  # the margins are still carried
