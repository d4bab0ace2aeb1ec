"""Coordinate descent along columns. Imports numba, so it is imported late.

Every kernel stands twice: for one class, where the shrinkage has a closed form, and for several, where all
coefficients of a feature move together.

With one class, the columns are those of S^½Diag(y)X and the slacks u = S^½(1 - v) are a vector. With several,
the columns are those of S^½X, without labels; u has a column per class, and row k pulls with the sign 1 in
its own class, codes[k], and with -1 in all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from majorant.jit import compiled, compiled_part
from majorant.rows.columns import Columns
from majorant.solvers.newton import tuning
from majorant.solvers.newton.model_kernels import shrink
from majorant.status import Matrix, Vector

# A sweep along columns -------------------------------------------------------------------------------------


@compiled_part
def _sweep(data, indices, starts, u, theta, slopes, ridge, scale, order, near):
    """One pass of coordinate descent on Σ max(u, 0)² + Σ_j (slopes_j |θ_j| + ridge θ_j²/2), in place.

    The curvature of a step is that of the rows that are active before it; should the loss turn out to be
    higher after it, the step is taken back and made anew with that of all rows, which is an upper bound.
    Returns the largest violation that was met, in units of the scale, and marks in `near` the coordinates
    that are, or are about to be, different from zero.
    """
    worst = 0.0
    for position in range(order.size):
        j = order[position]
        start = starts[j]
        stop = starts[j + 1]
        gradient = 0.0
        curvature = 0.0
        for e in range(start, stop):
            x = data[e]
            slack = u[indices[e]]
            gradient += x * max(slack, 0.0)
            curvature += x * x if slack > 0.0 else 0.0
        old = theta[j]
        gradient = ridge * old - 2.0 * gradient
        curvature = 2.0 * curvature + ridge
        slope = slopes[j]
        near[j] = old != 0.0 or abs(gradient) > 0.9 * slope
        if old > 0.0:
            violation = abs(gradient + slope)
        elif old < 0.0:
            violation = abs(gradient - slope)
        else:
            violation = max(abs(gradient) - slope, 0.0)
        if violation == 0.0:
            continue
        worst = max(worst, violation * scale[j])
        for bounded in range(2):
            if bounded:
                curvature = ridge
                for e in range(start, stop):
                    curvature += 2.0 * data[e] * data[e]
            if curvature > 0.0:
                target = curvature * old - gradient
                if target > slope:
                    new = (target - slope) / curvature
                elif target < -slope:
                    new = (target + slope) / curvature
                else:
                    new = 0.0
            else:
                # No row has the feature and there is no ridge: only the slope sees it.
                new = 0.0 if slope > 0.0 and bounded else old
            step = new - old
            if step == 0.0:
                continue
            change = slope * (abs(new) - abs(old)) + 0.5 * ridge * (new * new - old * old)
            for e in range(start, stop):
                k = indices[e]
                before = max(u[k], 0.0)
                u[k] -= step * data[e]
                after = max(u[k], 0.0)
                change += (after - before) * (after + before)
            if change <= 0.0 or bounded:
                theta[j] = new
                break
            for e in range(start, stop):
                u[indices[e]] += step * data[e]
    return worst


@compiled_part
def _sweep_groups(data, indices, starts, codes, u, W, slopes, ridge, scale, order, near, g, h, w):
    """One pass on Σ max(u, 0)² + Σ_j (slopes_j ‖W_j‖ + ridge ‖W_j‖²/2), in place, over the features in order.

    The curvature of a step is that of the rows that are active before it, class by class; should the value
    turn out to be higher after it, the step is made anew with that of all rows, which is an upper bound.
    Returns the largest violation that was met, in units of the scale, and marks in `near` the features
    that are, or are about to be, different from zero. g, h, w: room for a number per class.
    """
    worst = 0.0
    for position in range(order.size):
        j = order[position]
        for c in range(g.size):
            g[c] = 0.0
            h[c] = 0.0
        whole = 0.0
        for e in range(starts[j], starts[j + 1]):
            x = data[e]
            k = indices[e]
            whole += x * x
            for c in range(g.size):
                slack = max(u[k, c], 0.0)
                g[c] += x * slack
                h[c] += x * x if slack > 0.0 else 0.0
            g[codes[k]] -= 2.0 * x * max(u[k, codes[k]], 0.0)
        old = 0.0
        pull = 0.0
        for c in range(g.size):
            g[c] = 2.0 * g[c] + ridge * W[j, c]
            h[c] = 2.0 * h[c] + ridge
            old += W[j, c] * W[j, c]
            pull += g[c] * g[c]
        old = np.sqrt(old)
        pull = np.sqrt(pull)
        slope = slopes[j]
        near[j] = old > 0.0 or pull > 0.9 * slope
        violation = max(pull - slope, 0.0)
        if old > 0.0:
            violation = 0.0
            for c in range(g.size):
                violation += (g[c] + slope * W[j, c] / old) ** 2
            violation = np.sqrt(violation)
        if violation == 0.0:
            continue
        worst = max(worst, violation * scale[j])
        for bounded in range(2):
            if bounded:
                for c in range(g.size):
                    h[c] = 2.0 * whole + ridge
            new = shrink(W[j], g, h, slope, w)
            change = slope * (new - old) + 0.5 * ridge * (new * new - old * old)
            change += _move(data, indices, starts[j], starts[j + 1], codes, u, W[j], w)
            if change <= 0.0 or bounded:
                for c in range(g.size):
                    W[j, c] = w[c]
                break
            _move(data, indices, starts[j], starts[j + 1], codes, u, w, W[j])
    return worst


@compiled_part
def _move(data, indices, start, stop, codes, u, before, after):
    """Bring the slacks along from `before` to `after`; returns by how much the loss changes."""
    change = 0.0
    for e in range(start, stop):
        x = data[e]
        k = indices[e]
        own = codes[k]
        for c in range(before.size):
            old = u[k, c]
            step = x * (after[c] - before[c])
            new = old - step if c == own else old + step
            u[k, c] = new
            old = max(old, 0.0)
            new = max(new, 0.0)
            change += (new - old) * (new + old)
    return change


@compiled_part
def _centre(column, u):
    """Newton's method on Σ max(u - d column, 0)² for the intercept alone, in place; returns d."""
    moved = 0.0
    for _ in range(3):
        gradient = 0.0
        curvature = 0.0
        for k in range(u.size):
            if u[k] > 0.0:
                gradient += column[k] * u[k]
                curvature += column[k] * column[k]
        if curvature == 0.0:
            break
        step = gradient / curvature
        for k in range(u.size):
            u[k] -= step * column[k]
        moved += step
    return moved


@compiled_part
def _centre_groups(root, codes, u, beta):
    """Newton's method for the intercepts alone, class by class, in place; `root` is S^½1, or zero."""
    for c in range(beta.size):
        for _ in range(3):
            gradient = 0.0
            curvature = 0.0
            for k in range(root.size):
                slack = u[k, c]
                if slack > 0.0:
                    gradient += (root[k] if codes[k] == c else -root[k]) * slack
                    curvature += root[k] * root[k]
            if curvature == 0.0:
                break
            step = gradient / curvature
            for k in range(root.size):
                u[k, c] -= step * (root[k] if codes[k] == c else -root[k])
            beta[c] += step


# Along columns, with Anderson's extrapolation --------------------------------------------------------------


@compiled_part
def _sweeps(
    data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, order, near, enough, trail,
    slacks,
):  # fmt: skip
    """Some sweeps over the features in order, in place: as many as the trail has room for, or need be.

    θ has a row per feature and the intercepts last, whose column is given by itself. The trail keeps the
    coefficients before the first sweep and after each, and `slacks` the u that belong to them. Returns the
    violation that the last sweep met and how many sweeps there were.
    """
    classes = theta.shape[1]
    flat = u.reshape(-1)
    worst, n = 0.0, 0
    while True:
        for i in range(order.size):
            for c in range(classes):
                trail[n, i * classes + c] = theta[order[i], c]
        for c in range(classes):
            trail[n, order.size * classes + c] = theta[theta.shape[0] - 1, c]
        for k in range(flat.size):
            slacks[n, k] = flat[k]
        n += 1
        if n == trail.shape[0] or (n > 1 and worst <= enough):
            return worst, n - 1
        worst = _sweep_and_centre(
            data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, order, near
        )


@compiled_part
def _sweep_and_centre(
    data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, order, near
):
    """One sweep, and the intercepts after it; returns the largest violation that the sweep met.

    `room` has three numbers per class.
    """
    last = theta.shape[0] - 1
    if u.ndim == 1:  # known when this is compiled
        w = theta[:, 0]
        worst = _sweep(data, indices, starts, u, w, slopes, ridge, scale, order, near)
        w[last] += _centre(column, u)
    else:
        worst = _sweep_groups(
            data,
            indices,
            starts,
            codes,
            u,
            theta,
            slopes,
            ridge,
            scale,
            order,
            near,
            room[0],
            room[1],
            room[2],
        )
        _centre_groups(column, codes, u, theta[last])
    return worst


@compiled_part
def _value(part, u, slopes, ridge, order, classes):
    total = 0.0
    for i in range(order.size):
        square = 0.0
        for c in range(classes):
            square += part[i * classes + c] ** 2
        total += slopes[order[i]] * np.sqrt(square) + 0.5 * ridge * square
    for k in range(u.size):
        slack = max(u[k], 0.0)
        total += slack * slack
    return total


@compiled_part
def _extrapolate(trail, slacks, u, theta, slopes, ridge, order, products, shares, ahead):
    """Anderson's acceleration: the combination of the iterates that a sweep would move least.

    The slacks are affine in θ, so the same combination of them belongs to it. It is kept if the value falls.
    """
    m = trail.shape[0] - 1
    classes = theta.shape[1]
    count = (order.size + 1) * classes
    flat = u.reshape(-1)
    for a in range(m):
        for b in range(a + 1):
            total = 0.0
            for i in range(count):
                total += (trail[a + 1, i] - trail[a, i]) * (trail[b + 1, i] - trail[b, i])
            products[a, b] = total
            products[b, a] = total
    trace = 0.0
    for a in range(m):
        trace += products[a, a]
    # Gauss, on m × m numbers that are positive definite by the term added.
    for a in range(m):
        shares[a] = 1.0
        products[a, a] += 1e-12 * trace
    for a in range(m):
        if products[a, a] <= 0.0:
            return
        for b in range(a + 1, m):
            factor = products[b, a] / products[a, a]
            for c in range(a, m):
                products[b, c] -= factor * products[a, c]
            shares[b] -= factor * shares[a]
    for a in range(m - 1, -1, -1):
        for c in range(a + 1, m):
            shares[a] -= products[a, c] * shares[c]
        shares[a] /= products[a, a]
    total = 0.0
    for a in range(m):
        total += shares[a]
    if not abs(total) > 0.0:
        return
    # The first iterate is not needed any more: the combination takes its place.
    part = trail[0]
    for i in range(count):
        part[i] = 0.0
    for k in range(flat.size):
        ahead[k] = 0.0
    for a in range(m):
        share = shares[a] / total
        for i in range(count):
            part[i] += share * trail[a + 1, i]
        for k in range(flat.size):
            ahead[k] += share * slacks[a + 1, k]
    before = _value(trail[m], slacks[m], slopes, ridge, order, classes)
    if _value(part, ahead, slopes, ridge, order, classes) < before:
        for c in range(classes):
            for i in range(order.size):
                theta[order[i], c] = part[i * classes + c]
            theta[theta.shape[0] - 1, c] = part[order.size * classes + c]
        for k in range(flat.size):
            flat[k] = ahead[k]


@compiled
def _rounds(
    data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, every, near, order, trail,
    slacks, products, shares, ahead, share, goal, budget, most,
):  # fmt: skip
    """Rounds until a sweep over all features meets no violation above the goal, or the budget is spent.

    A round is a sweep over all features; then sweeps over those that are near to moving, with extrapolation,
    until these violate no more than a share of what the first sweep met (or than half of the goal), or have
    cost as much as it. Returns the violation that the last sweep over all features met, and the entries
    visited.
    """
    visited = 0
    for _ in range(most):
        first = _sweep_and_centre(
            data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, every, near
        )
        visited += data.size
        if first <= goal:
            break
        count = 0
        once = u.shape[0]
        for j in range(near.size):
            if near[j]:
                order[count] = j
                count += 1
                once += starts[j + 1] - starts[j]
        enough = max(share * first, 0.5 * goal)
        spent = 0
        while spent <= data.size:
            worst, done = _sweeps(
                data, indices, starts, codes, column, u, theta, slopes, ridge, scale, room, order[:count],
                near, enough, trail, slacks,
            )  # fmt: skip
            spent += done * once
            if worst <= enough:
                break
            _extrapolate(trail, slacks, u, theta, slopes, ridge, order[:count], products, shares, ahead)
        visited += spent
        if visited > budget:
            break
    return first, visited


class Workspace:
    """The arrays that sweeps write to, allocated once for a number of features and rows."""

    def __init__(self, n_features: int, slacks: Vector | Matrix) -> None:
        C = 1 if slacks.ndim == 1 else slacks.shape[1]
        sweeps = tuning.CD_EXTRAPOLATED_SWEEPS
        self.arrays = (
            np.empty((3, C)),
            np.arange(n_features),
            np.zeros(n_features, dtype=np.bool_),
            np.empty(n_features, dtype=np.intp),
            np.empty((sweeps + 1, C * (n_features + 1))),
            np.empty((sweeps + 1, slacks.size)),
            np.empty((sweeps, sweeps)),
            np.empty(sweeps),
            np.empty(slacks.size),
        )


def descend_along(
    columns: Columns,
    codes: NDArray[np.intp] | None,
    intercept: Vector,
    u: Vector | Matrix,
    theta: Matrix,
    slopes: Vector,
    ridge: float,
    scale: Vector,
    workspace: Workspace,
    *,
    share: float,
    goal: float,
    budget: float,
    rounds: int,
) -> tuple[float, int]:
    """Coordinate descent on Σ max(u, 0)² + Σ_j (slopes_j ‖θ_j‖ + ridge ‖θ_j‖²/2), in place: see `_rounds`.

    θ has a row per feature and the intercepts last, whose column is given by itself. The budget is a number
    of entries. Returns the last violation and the number of entries visited.
    """
    found: tuple[float, int] = _rounds(
        columns.data, columns.indices, columns.starts, codes, intercept, u, theta, slopes, ridge, scale,
        *workspace.arrays, share, goal, budget, rounds,
    )  # fmt: skip
    return found
