"""`Block`, the algebra on one block of rows, which `dense.py` and `csr.py` implement.

A `Block` is X (dense or CSR), labels y ∈ {-1, 1}, weights s ≥ 0 and the intercept column b ∈ {0, 1}. Each
method costs one or two passes over X, and does not copy X; sums are in float64 whatever the type of X is.

A row is *active* while its margin is below 1. The loss is quadratic until a row changes sides: the methods
from `rank_update` on keep its Hessian H and its linear part c up to date (see `quadratic.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from majorant.rows.base import LossByClass, LossSum
from majorant.status import Matrix, Vector

if TYPE_CHECKING:
    from majorant.rows.columns import Columns
    from majorant.rows.folds import FoldOf

Indices: TypeAlias = NDArray[np.int64]


class Block(ABC):
    """Some labelled, weighted rows of the design matrix."""

    dense = False
    sparse_entries = 0
    """The number of entries of X, if X is sparse."""
    fold: FoldOf | None = None
    """The fold of each row, in a cross-validation."""

    def __init__(self, y: Vector, s: Vector, *, intercept: bool) -> None:
        self.y = y
        self.s = s
        self.b = 1.0 if intercept else 0.0

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.y)

    @property
    def squared_row_lengths(self) -> float:
        """The sum of the squares of the numbers of entries of the rows."""
        return float(self.n_samples * self.n_features**2)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of X."""

    @abstractmethod
    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        """The loss and its gradient, over all rows or over those given."""

    def gram(self) -> Matrix:
        """LᵀSL."""
        H, _ = self.triangle_of(np.arange(self.n_samples))
        H *= 0.5
        self.symmetrize(H)
        return H

    def curvature(self, theta: Vector, features: NDArray[np.intp] | None) -> Matrix:
        """2 L_AᵀS_A L_A over the rows A active at θ, of some features or of all."""
        active = np.flatnonzero(self.matvec(theta) < 1.0)
        part = self if features is None else self.columns(features)
        H, _ = part.triangle_of(active)
        part.symmetrize(H)
        return H

    def triangle_of(self, rows: Indices) -> tuple[Matrix, Vector]:
        """The lower triangle of 2 Σ s_k L_k L_kᵀ over the rows, and 2 Σ s_k L_k."""
        p = self.n_features + 1
        H, c = np.zeros((p, p)), np.zeros(p)
        self.rank_update(rows, 1.0, H, c)
        return H, c

    def gram_product(self, v: Vector) -> Vector:
        """LᵀSL v."""
        return 0.5 * self.active_product(np.ones(self.n_samples, dtype=np.bool_), v)

    def gram_along(self, D: Matrix) -> Matrix:
        """DᵀLᵀSLD, a product with X for each column of D."""
        # On cina0 one BLAS product with two columns took three times as long as two products with one column;
        # on w8a a loop over the columns inside one pass over the CSR rows was no faster.
        images = np.stack([self.matvec(np.ascontiguousarray(d)) for d in D.T])
        return np.asarray((images * self.s) @ images.T)

    @abstractmethod
    def loss_by_class(self, theta: Vector, *, lengths: bool) -> LossByClass:
        """The loss at θ by class, and the diagonal of LᵀSL over the rows that are active there."""

    @abstractmethod
    def transposed_products(self, u: Matrix) -> Matrix:
        """UX, for the rows of U, which have a number for every row of X."""

    @abstractmethod
    def squared_norms(self, units: Vector | None = None) -> Vector:
        """‖x_k‖² for every row; with units, ‖units ∘ x_k‖²."""

    @abstractmethod
    def design(self) -> Matrix:
        """S^½L, dense."""

    @abstractmethod
    def matvec(self, d: Vector) -> Vector:
        """L d, row by row: the margins of d."""

    @abstractmethod
    def rank_update(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        """Add 2 Σ s_k L_k L_kᵀ over the rows to the lower triangle of H, and 2 Σ s_k L_k to c.

        With sign -1, subtract them. The entries above the diagonal of H are undefined until `symmetrize`.
        """

    @staticmethod
    @abstractmethod
    def symmetrize(H: Matrix) -> None:
        """Copy the lower triangle of H to the upper one."""

    @abstractmethod
    def advance(
        self, d: Vector, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> float:
        """Write L d to dv, call `update_active` with t = 1, and return the loss after the step.

        If H is empty, c becomes the gradient of the loss after the step.
        """

    def update_active(
        self, t: float, dv: Vector, v: Vector, active: NDArray[np.bool_], H: Matrix, c: Vector
    ) -> None:
        """Add t dv to the margins v and update `active`; update H and c as well, unless H is empty."""
        v += dv if t == 1.0 else t * dv
        now = v < 1.0
        if H.size and len(changed := (now != active).nonzero()[0]):
            entering = now[changed]
            self.rank_update(changed[~entering], -1.0, H, c)
            self.rank_update(changed[entering], 1.0, H, c)
        active[:] = now

    @abstractmethod
    def active_product(self, active: NDArray[np.bool_], d: Vector, out: Vector | None = None) -> Vector:
        """2LᵀSL d over the active rows, written to `out` if `out` is given."""

    @abstractmethod
    def rows(self, chosen: slice) -> Block:
        """Some of the rows."""

    @classmethod
    @abstractmethod
    def joined(cls, blocks: Sequence[Self]) -> Self:
        """The rows of several blocks of this class, copied into one block."""

    def relabelled(self, y: Vector, s: Vector) -> Self:
        """The same X with other labels and weights; nothing of X is copied."""
        twin = copy(self)
        twin.y, twin.s = y, s
        for cached in ("exact", "_last"):  # which depend on labels and weights
            twin.__dict__.pop(cached, None)
        return twin

    @property
    def exact(self) -> bool:
        """Whether sums of products of entries are exact: all entries are small whole numbers."""
        return False

    @abstractmethod
    def columns(self, chosen: NDArray[np.intp]) -> Block:
        """The same rows with some of the features only."""

    def renumbered(self, chosen: NDArray[np.intp]) -> Block:
        """The same rows without the other features, which must have no entries that are not zero."""
        return self.columns(chosen)

    @property
    @abstractmethod
    def column_counts(self) -> NDArray[np.intp]:
        """The number of entries of each column of X."""

    @abstractmethod
    def copy_columns(self, chosen: NDArray[np.intp], places: Indices, offset: int, target: Columns) -> None:
        """Copy columns of S^½Diag(y)X to the target, column j from places[j] on; rows count from `offset`."""

    def largest_row(self) -> float:
        """max_k s_k ‖L_k‖²."""
        return float(np.max(self.s * (self.squared_norms() + self.b**2)))

    def every(self, step: int) -> Block:
        """Every `step`-th row with `step` times its weight; sparse rows are not copied."""
        step = min(step, self.n_samples)  # one row at least, whose weight counts each row once
        part = self.rows(slice(None, None, step))
        part.s = step * part.s
        part.fold = None if self.fold is None else self.fold[::step].copy()
        return part

    def _design_from(self, X: Matrix) -> Matrix:
        design = np.empty((self.n_samples, self.n_features + 1))
        design[:, :-1] = X
        design[:, -1] = self.b
        design *= (self.y * np.sqrt(self.s))[:, np.newaxis]
        return design
