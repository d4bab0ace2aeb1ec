"""A block of CSR rows. Imports numba, so it is imported only when there is such a block."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.rows import kernels
from majorant.rows.block import Block, Indices
from majorant.rows.protocol import Audit, LossSum
from majorant.status import Matrix, Vector


class CsrBlock(Block):
    """Rows in CSR form, answered by the compiled loops of `kernels`."""

    def __init__(self, X: Any, y: Vector, s: Vector, *, intercept: bool) -> None:
        super().__init__(y, s, intercept=intercept)
        self.X = X
        # Unsigned indices spare the compiled loops the test for negative ones: 1.4 times as fast.
        self._csr = (X.data, _unsigned(X.indices), _unsigned(X.indptr))

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def loss(self, theta: Vector, indices: Indices | None = None) -> LossSum:
        return LossSum(*kernels.loss(*self._csr, self.y, self.s, self.b, theta, indices))

    def audit(self, theta: Vector) -> Audit:
        values, gradients, squares = kernels.audit(*self._csr, self.y, self.s, self.b, theta)
        negative, positive = map(LossSum, values.tolist(), gradients)
        return Audit(negative, positive, squares)

    def squared_norms(self) -> Vector:
        return np.asarray(kernels.squared_norms(*self._csr))

    def design(self) -> Matrix:
        return self._design_from(self.X.toarray())

    def image(self, d: Vector) -> Vector:
        return np.asarray(kernels.image(*self._csr, self.y, self.b, d))

    def add_rows(self, rows: Indices, sign: float, H: Matrix, c: Vector) -> None:
        if len(rows):
            kernels.add_rows(*self._csr, self.y, self.s, self.b, rows, sign, H, c)
            kernels.mirror(H)

    def columns(self, chosen: NDArray[np.intp]) -> CsrBlock:
        position = np.full(self.n_features, -1, dtype=np.int32)
        position[chosen] = np.arange(len(chosen), dtype=np.int32)
        capacity = int(self._column_counts[chosen].sum())
        data, indices, indptr = kernels.take_columns(*self._csr, position, capacity)
        part = sp.csr_array((data, indices, indptr), shape=(self.n_samples, len(chosen)))
        return CsrBlock(part, self.y, self.s, intercept=self.b > 0)

    @cached_property
    def _column_counts(self) -> NDArray[np.intp]:
        return np.bincount(self.X.indices, minlength=self.n_features)

    def active_product(self, active: NDArray[np.bool_], d: Vector) -> Vector:
        return np.asarray(kernels.active_product(*self._csr, self.s, self.b, active, d))


def _unsigned(indices: NDArray[Any]) -> NDArray[Any]:
    return indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)
