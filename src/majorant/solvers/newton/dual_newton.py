r"""Fewer rows than features and a quadratic penalty: Newton's equations in dual variables, one per row.

With the penalty ½ wᵀDw, D = Diag(c λ + η) > 0, the minimiser of the model for the active rows A is

    w = D⁻¹X_Aᵀa,    (K_AA + Diag(1/2s)) a + β 1 = y_A,    1ᵀa = 0  (if there is an intercept),    K = XD⁻¹Xᵀ,

since stationarity in w and β requires a_k = 2 s_k y_k (1 - v_k). An iteration is a Cholesky factorisation of
the size of A. w is always D⁻¹Xᵀa, so that margins and penalty follow from K: v = y (Ka + β), wᵀDw = aᵀKa.
X is read only for the iterates that are yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.linsolve import cholesky_solve
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.rows.columns import Columns
from majorant.solvers.newton import tuning
from majorant.status import Iterate, Matrix, Vector


def dual_newton_applies(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the dual equations, with an unknown per row, apply, and are fewer than the features."""
    if objective.other_classes or not objective.potential.quadratic:
        return False
    few = rows.n_samples <= min(tuning.DUAL_ROWS, rows.n_features)
    return few and bool(np.all(objective.quadratic_weights > 0.0))


def dual_newton_iterates(
    objective: Objective, classes: Sequence[MemoryRows], theta: Vector
) -> Iterator[Iterate]:
    """Newton's method for a instead of w, from w = 0; iterates with a larger Φ than θ are not yielded."""
    (rows,) = classes
    at = objective.evaluate(theta)
    yield at
    D = objective.quadratic_weights
    y, s = rows.labels_and_weights
    used = np.flatnonzero(s > 0.0)
    K, pull = (_dense_kernel if rows.dense else _sparse_kernel)(rows, D, used, y[used] / np.sqrt(s[used]))
    dual = _DualEquations(K, y[used], s[used], intercept=rows.blocks[0].b > 0.0)
    while True:
        check()
        dual.step()
        theta = np.append(pull(dual.a) / D, dual.beta)
        moved = objective.evaluate(theta)
        # The method starts at w = 0: if θ is better, the first iterates may be worse than θ.
        if moved.value < at.value:
            at = moved
        elif not dual.settled:
            continue
        yield at


Pull = Callable[[Vector], Vector]
"""a ↦ Xᵀa."""


def _dense_kernel(rows: MemoryRows, D: Vector, used: NDArray[np.intp], scale: Vector) -> tuple[Matrix, Pull]:
    """K for the rows in use, and a ↦ Xᵀa. Rows of S^½Diag(y)X times `scale` are rows of X."""
    design = rows.design()  # S^½ Diag(y) [X b]
    X = np.empty((len(used), design.shape[1] - 1))
    for start in range(0, len(used), tuning.DUAL_ROWS_AT_A_TIME):  # without a second large array
        check()
        part = slice(start, start + tuning.DUAL_ROWS_AT_A_TIME)
        np.multiply(design[used[part], :-1], scale[part, np.newaxis], out=X[part])
    del design
    # Some features at a time, so that Ctrl-C is checked: all of them may take half a minute.
    width = tuning.DUAL_FEATURES_AT_A_TIME
    first, *others = (slice(start, start + width) for start in range(0, X.shape[1], width))
    K = (X[:, first] / D[first]) @ X[:, first].T
    for part in others:
        check()
        K += (X[:, part] / D[part]) @ X[:, part].T
    return K, lambda a: np.asarray(X.T @ a)


def _sparse_kernel(rows: MemoryRows, D: Vector, used: NDArray[np.intp], scale: Vector) -> tuple[Matrix, Pull]:
    """The same for sparse rows: K is the Gram matrix of a block whose rows are the columns of X."""
    from majorant.rows.csr import CsrBlock  # imports numba

    columns, n = Columns.of(rows, np.arange(rows.n_features)), rows.n_samples
    starts = columns.starts.astype(np.uint64)
    entries = (columns.data, columns.indices, starts[:-1], starts[1:])
    transposed = CsrBlock(entries, n, np.ones(len(D)), 1.0 / D, intercept=False, ones=False)
    K = _submatrix(transposed.gram()[:-1, :-1], used)
    K *= scale
    K *= scale[:, np.newaxis]
    Z, whole = columns.matrix(n), np.zeros(n)

    def pull(a: Vector) -> Vector:
        whole[used] = scale * a
        return np.asarray(Z.T @ whole)

    return K, pull


def _submatrix(K: Matrix, rows: NDArray[np.intp]) -> Matrix:
    """A copy of some rows and columns of K; copying all of them is several times as fast."""
    return K.copy() if len(rows) == len(K) else K[np.ix_(rows, rows)]


class _DualEquations:
    """The variables a and β, and Newton's method on them."""

    def __init__(self, K: Matrix, y: Vector, s: Vector, *, intercept: bool) -> None:
        self.K, self.y, self.s, self.intercept = K, y, s, intercept
        self.a, self.beta = np.zeros(len(y)), 0.0
        self.scores = np.zeros(len(y))  # Ka
        self.settled = False

    def value(self, a: Vector, beta: float, scores: Vector) -> float:
        loss = self.s @ SquaredHinge.value(self.y * (scores + beta))
        return float(loss + 0.5 * (a @ scores))

    def step(self) -> None:
        """A step to the minimiser for the rows that are active now, halved until Φ falls."""
        target, beta = self._minimiser(self.y * (self.scores + self.beta) < 1.0)
        scores = self.K @ target
        current = self.value(self.a, self.beta, self.scores)
        t = 1.0
        while t > 1e-10:
            moved = (
                self.a + t * (target - self.a),
                self.beta + t * (beta - self.beta),
                self.scores + t * (scores - self.scores),
            )
            if self.value(*moved) < current:
                self.a, self.beta, self.scores = moved
                return
            t *= 0.5
        self.settled = True

    def _minimiser(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Vector, float]:
        a = np.zeros(len(self.y))
        rows = np.flatnonzero(active)
        if not len(rows):
            return a, self.beta
        M = _submatrix(self.K, rows)
        M[np.diag_indices_from(M)] += 0.5 / self.s[rows]
        solutions = cholesky_solve(M, np.stack([self.y[rows], np.ones(len(rows))], axis=1), overwrite=True)
        if solutions is None:
            return self.a, self.beta
        u, ones = solutions.T
        beta = float(u.sum() / ones.sum()) if self.intercept else 0.0
        a[rows] = u - beta * ones
        return a, beta
