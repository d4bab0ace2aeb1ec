"""Compiled loops over CSR rows. Imported when the first sparse block is asked something.

Written by hand because each does in one pass over the matrix what library products do in two or
three: a row is still in the cache when its contribution to the gradient is scattered. All release the
GIL, none uses numba's own threads (they abort the process under concurrent callers), and the compiled
code is kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from majorant.losses import SquaredHinge


def compiled(function: Callable[..., Any]) -> Any:
    """Compile at the first call, cache on disk, release the GIL."""
    return numba.njit(cache=True, nogil=True)(function)


_value = compiled(SquaredHinge.value)
_derivative = compiled(SquaredHinge.derivative)


@compiled
def loss(data, indices, indptr, y, s, b, theta, subset):
    """Σ s ρ²(v) and its gradient, over all rows or over a subset; the gradient skips v ≥ 1."""
    intercept = b * theta[-1]
    gradient = np.zeros(theta.size)
    total = 0.0
    slope_sum = 0.0
    count = y.size if subset is None else subset.size
    for position in range(count):
        k = position if subset is None else subset[position]
        score = intercept
        for e in range(indptr[k], indptr[k + 1]):
            score += data[e] * theta[indices[e]]
        margin = y[k] * score
        slope = s[k] * y[k] * _derivative(margin)
        if slope != 0.0:
            total += s[k] * _value(margin)
            slope_sum += slope
            for e in range(indptr[k], indptr[k + 1]):
                gradient[indices[e]] += slope * data[e]
    gradient[-1] = b * slope_sum
    return total, gradient


@compiled
def audit(data, indices, indptr, y, s, b, theta):
    """Σ s ρ²(v) and its gradient by class, and the squared lengths of the columns over the active rows."""
    intercept = b * theta[-1]
    totals = np.zeros(2)
    gradients = np.zeros((2, theta.size))
    squares = np.zeros(theta.size)
    for k in range(y.size):
        score = intercept
        for e in range(indptr[k], indptr[k + 1]):
            score += data[e] * theta[indices[e]]
        margin = y[k] * score
        if margin < 1.0:
            slope = s[k] * y[k] * _derivative(margin)
            side = 1 if y[k] > 0.0 else 0
            totals[side] += s[k] * _value(margin)
            gradient = gradients[side]
            gradient[-1] += b * slope
            squares[-1] += b * b * s[k]
            for e in range(indptr[k], indptr[k + 1]):
                x = np.float64(data[e])
                gradient[indices[e]] += slope * x
                squares[indices[e]] += s[k] * x * x
    return totals, gradients, squares


@compiled
def squared_norms(data, indices, indptr):
    """‖x_k‖² for every row."""
    norms = np.zeros(indptr.size - 1)
    for k in range(norms.size):
        for e in range(indptr[k], indptr[k + 1]):
            x = np.float64(data[e])
            norms[k] += x * x
    return norms


@compiled
def image(data, indices, indptr, y, b, theta):
    """Lθ, for every row: the margins of θ, or what a step along θ adds to them."""
    result = np.empty(y.size)
    intercept = b * theta[-1]
    for k in range(y.size):
        score = intercept
        for e in range(indptr[k], indptr[k + 1]):
            score += data[e] * theta[indices[e]]
        result[k] = y[k] * score
    return result


@compiled
def add_rows(data, indices, indptr, y, s, b, rows, sign, H, c):
    """Add 2 sign Σ s_k L_k L_kᵀ over some rows to the lower triangle of H, and 2 sign Σ s_k L_k to c."""
    p = c.size
    for position in range(rows.size):
        k = rows[position]
        weight = 2.0 * sign * s[k]
        start = indptr[k]
        stop = indptr[k + 1]
        labelled = weight * y[k]
        for e in range(start, stop):
            weighted = weight * data[e]
            row = H[indices[e]]
            for f in range(start, e + 1):
                row[indices[f]] += weighted * data[f]
            H[p - 1, indices[e]] += b * weighted
            c[indices[e]] += labelled * data[e]
        H[p - 1, p - 1] += b * b * weight
        c[p - 1] += b * labelled


@compiled
def mirror(H):
    """Copy the lower triangle of H to the upper one."""
    for i in range(H.shape[0]):
        for j in range(i):
            H[j, i] = H[i, j]


@compiled
def active_product(data, indices, indptr, s, b, active, v):
    """2LᵀSL v over the active rows."""
    product = np.zeros(v.size)
    image_sum = 0.0
    for k in range(s.size):
        if active[k]:
            score = b * v[-1]
            for e in range(indptr[k], indptr[k + 1]):
                score += data[e] * v[indices[e]]
            score *= 2.0 * s[k]
            image_sum += score
            for e in range(indptr[k], indptr[k + 1]):
                product[indices[e]] += score * data[e]
    product[-1] = b * image_sum
    return product


@compiled
def take_columns(data, indices, indptr, position, capacity):
    """The entries of the columns whose position is not negative, renumbered by it.

    Every entry is written and the next one overwrites it unless it counts: no branch to mispredict. The
    arrays have one entry to spare for that.
    """
    taken = np.empty(capacity + 1, data.dtype)
    where = np.empty(capacity + 1, np.int32)
    ends = np.zeros(indptr.size, np.int64)
    count = 0
    for k in range(indptr.size - 1):
        for e in range(indptr[k], indptr[k + 1]):
            new = position[indices[e]]
            taken[count] = data[e]
            where[count] = new
            count += new >= 0
        ends[k + 1] = count
    return taken[:count], where[:count], ends
