r"""Solving with curvature matrices that may be singular.

`solve_positive` solves A d = g for a positive semidefinite A, whatever the units of the features: by Cholesky
if A is well conditioned. Otherwise A is scaled to a unit diagonal, and a direction is *flat* if its relative
curvature is below one threshold. Flat directions in which g is only rounding are left out: rounding divided
by a tiny curvature would move the iterates at random. (With a multiple of the identity added instead, a row
of weight 2 and the same row twice gave different models where no penalty decides.) In the other flat
directions the curvature is raised to a floor. With more curvature, or an infinite one, a majorant remains a
majorant, so that the descent theorems hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import zip_longest

import numpy as np
from scipy.linalg import blas, lapack, qr

from majorant.interrupts import check
from majorant.rows.threads import parallel_map
from majorant.status import Matrix, Vector

# Relative curvature below which a direction is flat. On w8a, where A is singular with Welsch, values from
# 1e-16 to 1e-7 lead to the same Φ within 4e-7, and Φ never rises.
FLAT = 1e-10

# The same if columns were centred before.
CENTRED_FLOOR = 1e-14

# The residual, relative to the right-hand side, at which conjugate gradients stop, and their most steps.
FORCING = 0.1
MAX_STEPS = 250

# Rows from which on a matrix is factorised by tiles, and rows of a tile. (On one core, tiles of 128 to 512
# rows take 1.25 to 1.5 times as long as LAPACK with the whole matrix of 1,000 to 2,500 rows.)
LARGE, TILE = 1000, 256


def rounding_level(loss_at_zero: float, size: int) -> float:
    """A bound of the rounding errors of a gradient that was scaled as `unit_diagonal` scales.

    By Cauchy-Schwarz the terms of component i add up to at most 2 √(loss · H_ii) in size, and the loss is at
    most that at θ = 0; scaling divides by at least √H_ii.
    """
    return 4.0 * float(np.finfo(float).eps) * math.sqrt(loss_at_zero * size)


def cholesky_solve(
    A: Matrix, b: Vector | Matrix, floor: float = 0.0, *, overwrite: bool = False
) -> Vector | Matrix | None:
    """Solve A x = b by Cholesky; None if A is not positive definite, or too flat in some direction.

    A is too flat if a squared pivot is below `floor` times the diagonal entry. (Cholesky needs no scaling:
    its errors do not depend on the units.) Only the lower triangle of A is read.
    """
    diagonal = np.diagonal(A).copy()
    L = A if overwrite and A.flags.c_contiguous else A.copy()
    if not _factorise(L) or not np.all(np.diagonal(L) ** 2 > floor * diagonal):
        return None
    # The lower triangle in C order is the upper triangle in the order of LAPACK.
    return np.asarray(lapack.dpotrs(L.T, b, lower=0)[0])


def _factorise(A: Matrix) -> bool:
    """A = LLᵀ, where L takes the place of the lower triangle; False where A is not positive definite.

    By tiles, whose products the cores share. BLAS would divide a whole factorisation among threads of its
    own, which spin while they wait: on a machine that is busy with other work, fits with 1,500 features in
    use took 5 times as long as on one thread, and the bits of L would depend on the number of threads.
    """
    size = TILE if len(A) >= LARGE else max(1, len(A))
    for start in range(0, len(A), size):
        check()
        stop = start + size
        tile = A[start:stop, start:stop]
        U, info = lapack.dpotrf(tile.T, lower=0, clean=0)
        if info:
            return False
        tile[:] = U.T
        rest = A[stop:, stop:]
        if len(rest):
            panel = blas.dtrsm(1.0, U, A[stop:, start:stop].T, lower=0, trans_a=1).T
            A[stop:, start:stop] = panel
            parallel_map([partial(_subtract_product, rest, panel, rows) for rows in _row_tiles(len(rest))])
    return True


def _row_tiles(length: int) -> list[slice]:
    """Rows tile by tile, short rows of a lower triangle next to long ones, for threads to share evenly."""
    tiles = [slice(start, min(start + TILE, length)) for start in range(0, length, TILE)]
    middle = (len(tiles) + 1) // 2
    return [tile for pair in zip_longest(tiles[:middle], tiles[: middle - 1 : -1]) for tile in pair if tile]


def _subtract_product(A: Matrix, panel: Matrix, rows: slice) -> None:
    """A - PPᵀ in place: some rows of the lower triangle."""
    A[rows, : rows.stop] -= panel[rows] @ panel[: rows.stop].T


def unit_diagonal(A: Matrix) -> tuple[Matrix, Vector]:
    """A positive semidefinite A scaled to a unit diagonal, and the scale of every coordinate.

    A zero on the diagonal means a zero row and column: the scale is zero, and so is the solution.
    """
    diagonal = np.diagonal(A)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    scaled = A * np.outer(scale, scale)
    np.fill_diagonal(scaled, 1.0)
    return scaled, scale


def solve_positive(A: Matrix, g: Vector, noise: float = 0.0, floor: float = FLAT) -> Vector:
    """Solve A d = g for A positive semidefinite.

    If A is singular, d has no component in flat directions along which the scaled g is below `noise`; in the
    other directions the relative curvature is raised to `floor`.
    """
    solution = cholesky_solve(A, g, floor)
    if solution is not None:
        return solution
    scaled, scale = unit_diagonal(A)
    g = scale * g
    solution = _solve_across_flat(scaled, g, noise) if floor <= FLAT else None
    if solution is None:
        eigenvalues, V = np.linalg.eigh(scaled)
        inside = V.T @ g
        inside[(eigenvalues < FLAT) & (np.abs(inside) <= noise)] = 0.0
        solution = V @ (inside / np.maximum(eigenvalues, floor))
    return np.asarray(scale * solution)


def solve_centred(A: Matrix, g: Vector) -> Vector:
    """Solve A d = g for A positive semidefinite, by eliminating the last coordinate, that of the intercept.

    The remaining matrix is the curvature of centred features, which columns far from zero do not spoil.
    """
    centred, border = _centred(A)
    d = solve_positive(centred, g[:-1] - border * g[-1], floor=CENTRED_FLOOR)
    return np.append(d, (g[-1] / A[-1, -1] if A[-1, -1] > 0.0 else 0.0) - border @ d)


def flat_directions(A: Matrix) -> Matrix:
    """The directions along which A, with its last coordinate eliminated, has only rounding as curvature.

    They are the columns of the result, each of length 1 in the units of A's diagonal.
    """
    centred, border = _centred(A)
    scaled, scale = unit_diagonal(centred)
    eigenvalues, V = np.linalg.eigh(scaled)
    # A column that is constant up to rounding is a multiple of the intercept's column: its scale is zero.
    constant = np.flatnonzero((np.diagonal(centred) == 0.0) & (np.diagonal(A)[:-1] > 0.0))
    units = np.zeros((len(centred), len(constant)))
    units[constant, np.arange(len(constant))] = 1.0 / np.sqrt(np.diagonal(A)[constant])
    D = np.hstack([scale[:, np.newaxis] * V[:, eigenvalues < FLAT], units])
    return np.vstack([D, -border @ D])


def _centred(A: Matrix) -> tuple[Matrix, Vector]:
    """A after elimination of its last coordinate, zero for constant columns; and the multipliers."""
    last = float(A[-1, -1])
    border = A[-1, :-1] / last if last > 0.0 else np.zeros(len(A) - 1)
    centred = A[:-1, :-1] - np.outer(border, A[-1, :-1])
    # The diagonal of a constant column is rounding.
    constant = np.diagonal(centred) <= CENTRED_FLOOR * np.diagonal(A)[:-1]
    centred[constant] = centred[:, constant] = 0.0
    return centred, border


def _solve_across_flat(A: Matrix, g: Vector, noise: float) -> Vector | None:
    """The shortest solution if g is only noise along the flat directions of A, else None.

    Pivoted Cholesky, PᵀAP = RᵀR, stops when all remaining pivots are flat. R = (R₁ R₂) then has rank(A) rows,
    and the columns of (-R₁⁻¹R₂; I), which R maps to zero, span the flat directions. This takes a tenth of the
    time of an eigendecomposition.
    """
    factor, pivots, rank, info = lapack.dpstrf(A.T, tol=FLAT, lower=0)
    if info < 0 or rank == len(A):
        return None
    order = pivots - 1
    R = factor[:rank, :rank]
    flat = np.eye(len(A))[:, rank:]
    flat[:rank] = -lapack.dtrtrs(R, factor[:rank, rank:])[0]
    flat, _ = qr(flat, mode="economic", check_finite=False)
    g = g[order]
    along = flat.T @ g
    if np.any(np.abs(along) > noise):
        return None
    g -= flat @ along
    d = np.zeros(len(A))
    d[:rank] = lapack.dpotrs(R, g[:rank])[0]
    d -= flat @ (flat.T @ d)
    solution = np.empty(len(A))
    solution[order] = d
    return solution


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    right: Vector,
    preconditioner: Vector,
    accuracy: float = FORCING,
    max_steps: int = MAX_STEPS,
) -> Vector:
    """Solve A x = right for a positive semidefinite A, to a relative accuracy or with at most `max_steps`.

    `product` may return a buffer that its next call overwrites. All vectors are updated in place: with 47,236
    features, allocating each result took as long as the products.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    inverse = 1.0 / preconditioner
    z = residual * inverse
    direction = z.copy()
    rz = float(residual @ z)
    goal = accuracy**2 * rz
    for _ in range(max_steps):
        check()
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0:
            break
        alpha = rz / curvature
        blas.daxpy(direction, x, a=alpha)
        blas.daxpy(image, residual, a=-alpha)
        np.multiply(residual, inverse, out=z)
        rz, previous = float(residual @ z), rz
        if rz <= goal:
            break
        direction *= rz / previous
        direction += z
    # If the first direction is flat, x is zero; the preconditioned right-hand side is a descent direction.
    return x if x.any() else right / preconditioner
