"""Coordinate descent along columns. Imports numba, so it is imported late.

The kernels serve one class and several: a feature's coefficients of all classes move together. With one
class, the columns are those of S^½Diag(y)X, and `codes` is None, which is known when a kernel is compiled,
so that loops over classes vanish. With several, the columns are those of S^½X, and row k has the label 1 in
its own class, codes[k], and -1 in all others. The slacks u = S^½(1 - v) are a vector: those of row 0, class
by class, then those of row 1, and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from majorant.jit import compiled, compiled_part
from majorant.solvers.newton import tuning
from majorant.solvers.newton.model_kernels import optimality, optimality_of_one, shrink, shrink_one

# A sweep along columns -------------------------------------------------------------------------------------


@compiled_part
def _sign(codes, k, c):
    """The label of row k in class c, unless the columns contain it."""
    if codes is None:
        return 1.0
    return 1.0 if codes[k] == c else -1.0


@compiled_part
def _place(codes, k, c, classes):
    """The place of the slack of row k for class c in u; for one class an unsigned index, which is faster."""
    if codes is None:
        return k
    return k * classes + c


@compiled_part
def _derivatives(data, indices, start, stop, codes, u, c, classes):
    """The derivatives of Σ max(u, 0)² along a column for class c: the second is that of the active rows."""
    gradient = 0.0
    curvature = 0.0
    for e in range(start, stop):
        x = data[e]
        k = indices[e]
        slack = u[_place(codes, k, c, classes)]
        gradient -= _sign(codes, k, c) * x * max(slack, 0.0)
        curvature += x * x if slack > 0.0 else 0.0
    return 2.0 * gradient, 2.0 * curvature


@compiled_part
def _move(data, indices, start, stop, codes, u, c, classes, step):
    """Update the slacks of class c for a step of a column's coefficient; returns the change of the loss."""
    change = 0.0
    for e in range(start, stop):
        k = indices[e]
        old = u[_place(codes, k, c, classes)]
        new = old - _sign(codes, k, c) * step * data[e]
        u[_place(codes, k, c, classes)] = new
        old = max(old, 0.0)
        new = max(new, 0.0)
        change += (new - old) * (new + old)
    return change


@compiled_part
def _sweep(data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, order, near):
    """Minimise Σ max(u, 0)² + Σ_j (slopes_j ‖W_j‖ + ridge ‖W_j‖²/2) over each feature in order, in place.

    The curvature of a step is that of the rows that are active before it, class by class. If the step
    increases the function, it is undone and repeated with the curvature of all rows, an upper bound. Returns
    the largest violation before a step, in units of the scale, and marks in `near` the features that are not
    zero or are likely to move from zero. The intercepts follow. `scratch` has three numbers per class.
    """
    classes = 1 if codes is None else W.shape[1]
    g, h, w = scratch[0], scratch[1], scratch[2]
    worst = 0.0
    for j in order:
        start = starts[j]
        stop = starts[j + 1]
        slope = slopes[j]
        for c in range(classes):
            gradient, curvature = _derivatives(data, indices, start, stop, codes, u, c, classes)
            g[c] = gradient + ridge * W[j, c]
            h[c] = curvature + ridge
        if codes is None:
            old, slope_of_loss, violation = optimality_of_one(W[j, 0], g[0], slope)
        else:
            old, slope_of_loss, violation = optimality(W[j], g, slope)
        near[j] = old > 0.0 or slope_of_loss > 0.9 * slope
        if violation == 0.0:
            continue
        worst = max(worst, violation * scale[j])
        for bounded in range(2):
            if bounded:
                whole = 0.0
                for e in range(start, stop):
                    whole += data[e] * data[e]
                for c in range(classes):
                    h[c] = 2.0 * whole + ridge
            if codes is None:
                w[0] = shrink_one(W[j, 0], g[0], h[0], slope)
                new = abs(w[0])
            else:
                new = shrink(W[j], g, h, slope, w)
            change = slope * (new - old) + 0.5 * ridge * (new * new - old * old)
            for c in range(classes):
                change += _move(data, indices, start, stop, codes, u, c, classes, w[c] - W[j, c])
            if change <= 0.0 or bounded:
                for c in range(classes):
                    W[j, c] = w[c]
                break
            for c in range(classes):
                _move(data, indices, start, stop, codes, u, c, classes, W[j, c] - w[c])
    _centre(column, codes, u, W[W.shape[0] - 1])
    return worst


@compiled_part
def _centre(column, codes, u, beta):
    """Newton's method for the intercepts alone, class by class, in place."""
    classes = 1 if codes is None else beta.size
    for c in range(classes):
        for _ in range(3):
            gradient = 0.0
            curvature = 0.0
            for k in range(column.size):
                slack = u[_place(codes, k, c, classes)]
                if slack > 0.0:
                    gradient += _sign(codes, k, c) * column[k] * slack
                    curvature += column[k] * column[k]
            if curvature == 0.0:
                break
            step = gradient / curvature
            for k in range(column.size):
                u[_place(codes, k, c, classes)] -= step * _sign(codes, k, c) * column[k]
            beta[c] += step


# Along columns, with Anderson's extrapolation --------------------------------------------------------------


@compiled_part
def _sweeps(
    data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, order, near, enough, trail
):
    """Sweep over the features in order, in place, until the trail is full or violations are small enough.

    The trail stores the slacks, the coefficients in order and the intercepts, before the first sweep and
    after each sweep. Returns the violation of the last sweep and the number of sweeps.
    """
    worst, n = 0.0, 0
    classes = W.shape[1]
    while True:
        point = trail[n]
        for k in range(u.size):
            point[k] = u[k]
        place = u.size
        for i in range(order.size + 1):
            row = W[order[i] if i < order.size else W.shape[0] - 1]
            for c in range(classes):
                point[place] = row[c]
                place += 1
        n += 1
        if n == trail.shape[0] or (n > 1 and worst <= enough):
            return worst, n - 1
        worst = _sweep(data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, order, near)


@compiled_part
def _value(point, size, classes, slopes, ridge, order):
    """The function that the sweeps minimise, at a point of the trail that begins with `size` slacks."""
    total = 0.0
    for k in range(size):
        slack = max(point[k], 0.0)
        total += slack * slack
    for i in range(order.size):
        j = order[i]
        square = 0.0
        for place in range(size + i * classes, size + (i + 1) * classes):
            square += point[place] ** 2
        total += slopes[j] * np.sqrt(square) + 0.5 * ridge * square
    return total


@compiled_part
def _extrapolate(trail, u, W, slopes, ridge, order, products, shares):
    """Anderson's acceleration: the combination of the iterates with the smallest combined step.

    The slacks are affine in θ, so they are combined with the same coefficients. The combination is kept if
    the function falls.
    """
    m = shares.size
    size, classes = u.size, W.shape[1]
    stop = size + (order.size + 1) * classes
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for i in range(size, stop):
                total += (trail[a + 1, i] - trail[a, i]) * (trail[b + 1, i] - trail[b, i])
            products[a, b] = total
            products[b, a] = total
    trace = 0.0
    for a in range(m):
        trace += products[a, a]
    # Gauss-Jordan elimination of an m × m matrix, which the added term makes positive definite.
    for a in range(m):
        shares[a] = 1.0
        products[a, a] += 1e-12 * trace
    for a in range(m):
        if products[a, a] <= 0.0:
            return
        for b in range(m):
            if b != a:
                factor = products[b, a] / products[a, a]
                for c in range(a, m):
                    products[b, c] -= factor * products[a, c]
                shares[b] -= factor * shares[a]
    total = 0.0
    for a in range(m):
        shares[a] /= products[a, a]
        total += shares[a]
    if not abs(total) > 0.0:
        return
    # The first iterate is not needed any more: the combination takes its place.
    point = trail[0]
    for i in range(stop):
        point[i] = 0.0
    for a in range(m):
        part = shares[a] / total
        for i in range(stop):
            point[i] += part * trail[a + 1, i]
    before = _value(trail[m], size, classes, slopes, ridge, order)
    if _value(point, size, classes, slopes, ridge, order) < before:
        for k in range(size):
            u[k] = point[k]
        place = size
        for i in range(order.size + 1):
            row = W[order[i] if i < order.size else W.shape[0] - 1]
            for c in range(classes):
                row[c] = point[place]
                place += 1


@compiled
def descend_along(
    data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, every, near, order, trail,
    products, shares, share, goal, budget, most,
):  # fmt: skip
    """Coordinate descent on Σ max(u, 0)² + Σ_j (slopes_j ‖W_j‖ + ridge ‖W_j‖²/2), in place.

    W has a row per feature and the intercepts as last row; `column` is the intercept's column. A round is a
    sweep over all features, then sweeps over the features marked in `near`, with extrapolation, until their
    violation is at most `share` of that of the first sweep (or half of the goal), or they have cost as much
    as the first sweep. Ends after `most` rounds, when a sweep over all features meets no violation above the
    goal, or when more entries than the budget were visited. Returns the violation of the last sweep over all
    features, and the number of entries visited.
    """
    visited = 0
    for _ in range(most):
        first = _sweep(data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, every, near)
        visited += data.size
        if first <= goal:
            break
        count = 0
        once = column.size
        for j in range(near.size):
            if near[j]:
                order[count] = j
                count += 1
                once += starts[j + 1] - starts[j]
        enough = max(share * first, 0.5 * goal)
        spent = 0
        while spent <= data.size:
            worst, done = _sweeps(
                data, indices, starts, codes, column, u, W, slopes, ridge, scale, scratch, order[:count],
                near, enough, trail,
            )  # fmt: skip
            spent += done * once
            if worst <= enough:
                break
            _extrapolate(trail, u, W, slopes, ridge, order[:count], products, shares)
        visited += spent
        if visited > budget:
            break
    return first, visited


def workspace(n_features: int, n_rows: int, n_classes: int) -> tuple[NDArray[Any], ...]:
    """The arrays that `descend_along` overwrites, from `scratch` to `shares`."""
    sweeps = tuning.CD_EXTRAPOLATED_SWEEPS
    return (
        np.empty((3, n_classes)),
        np.arange(n_features),
        np.zeros(n_features, dtype=np.bool_),
        np.empty(n_features, dtype=np.intp),
        np.empty((sweeps + 1, n_classes * (n_rows + n_features + 1))),
        np.empty((sweeps, sweeps)),
        np.empty(sweeps),
    )
