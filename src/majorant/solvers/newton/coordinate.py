"""Coordinate descent, on a small quadratic or along columns. Imports numba, so it is imported late."""

from __future__ import annotations

import numpy as np

from majorant.interrupts import check
from majorant.rows.columns import Columns
from majorant.rows.kernels import compiled
from majorant.status import Vector


@compiled
def descend(H, r, theta, slopes, ridge, sweeps, tolerance):
    """Cyclic coordinate descent on ½θᵀHθ - c·θ + Σ_j (slopes_j |θ_j| + ridge_j θ_j²/2), in place.

    r = Hθ - c is kept up to date. Stops after so many sweeps, or when no coordinate was off by more than the
    tolerance, in units of the square root of its curvature; returns the largest such error of the last sweep.
    """
    worst = 0.0
    for _ in range(sweeps):
        worst = 0.0
        for j in range(theta.size):
            curvature = H[j, j] + ridge[j]
            old = theta[j]
            if curvature > 0.0:
                target = H[j, j] * old - r[j]
                if target > slopes[j]:
                    new = (target - slopes[j]) / curvature
                elif target < -slopes[j]:
                    new = (target + slopes[j]) / curvature
                else:
                    new = 0.0
            else:
                # No active row has the feature and there is no ridge: only the slope sees it.
                new = 0.0 if slopes[j] > 0.0 else old
            step = new - old
            if step != 0.0:
                worst = max(worst, abs(step) * np.sqrt(curvature))
                theta[j] = new
                row = H[j]
                for i in range(theta.size):
                    r[i] += step * row[i]
        if worst <= tolerance:
            break
    return worst


@compiled
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


@compiled
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


@compiled
def _sweeps(
    data, indices, starts, column, u, theta, slopes, ridge, scale, order, near, enough, trail, slacks
):
    """Some sweeps over the coordinates in order, in place: as many as the trail has room for, or need be.

    θ has the intercept last, whose column is given by itself. The trail keeps the coordinates before the
    first sweep and after each, and the slacks that belong to them. Returns the violation that the last
    sweep met and how many there were.
    """
    worst, n = 0.0, 0
    while True:
        for i in range(order.size):
            trail[n, i] = theta[order[i]]
        trail[n, order.size] = theta[theta.size - 1]
        for k in range(u.size):
            slacks[n, k] = u[k]
        n += 1
        if n == trail.shape[0] or (n > 1 and worst <= enough):
            return worst, n - 1
        worst = _sweep(data, indices, starts, u, theta, slopes, ridge, scale, order, near)
        theta[theta.size - 1] += _centre(column, u)


@compiled
def _value(part, u, slopes, ridge, order):
    total = 0.0
    for i in range(order.size):
        total += slopes[order[i]] * abs(part[i]) + 0.5 * ridge * part[i] * part[i]
    for k in range(u.size):
        slack = max(u[k], 0.0)
        total += slack * slack
    return total


@compiled
def _extrapolate(trail, slacks, u, theta, slopes, ridge, order, products, shares, ahead):
    """Anderson's acceleration: the combination of the iterates that a sweep would move least.

    The slacks are affine in θ, so the same combination of them belongs to it. It is kept if the value falls.
    """
    m = trail.shape[0] - 1
    count = order.size + 1
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
    for k in range(u.size):
        ahead[k] = 0.0
    for a in range(m):
        share = shares[a] / total
        for i in range(count):
            part[i] += share * trail[a + 1, i]
        for k in range(u.size):
            ahead[k] += share * slacks[a + 1, k]
    if _value(part, ahead, slopes, ridge, order) < _value(trail[m], slacks[m], slopes, ridge, order):
        for i in range(order.size):
            theta[order[i]] = part[i]
        theta[theta.size - 1] = part[order.size]
        for k in range(u.size):
            u[k] = ahead[k]


# Sweeps from one extrapolation to the next.
SWEEPS = 5


def descend_along(
    columns: Columns,
    intercept: Vector,
    u: Vector,
    theta: Vector,
    slopes: Vector,
    ridge: float,
    scale: Vector,
    share: float,
    goal: float,
) -> tuple[float, int]:
    """Coordinate descent on Σ max(u, 0)² + Σ_j (slopes_j |θ_j| + ridge θ_j²/2), in place.

    One sweep over all coordinates; then over those that are near to moving, with Anderson's extrapolation,
    until these violate no more than a share of what the first sweep met (or than the goal), or have cost as
    much as it. θ has the intercept last, whose column is given by itself. Returns the violation that the
    first sweep met and the number of entries that were visited.
    """
    data, indices, starts = columns.data, columns.indices, columns.starts
    near = np.zeros(len(slopes), dtype=np.bool_)
    first = _sweep(data, indices, starts, u, theta, slopes, ridge, scale, np.arange(len(slopes)), near)
    theta[-1] += _centre(intercept, u)
    order = np.flatnonzero(near)
    enough = max(share * first, goal)
    once, spent = int(columns.counts[order].sum()) + len(u), 0
    trail, slacks = np.empty((SWEEPS + 1, len(order) + 1)), np.empty((SWEEPS + 1, len(u)))
    room = np.empty((SWEEPS, SWEEPS)), np.empty(SWEEPS), np.empty(len(u))
    while spent <= len(data):
        check()
        worst, done = _sweeps(
            data,
            indices,
            starts,
            intercept,
            u,
            theta,
            slopes,
            ridge,
            scale,
            order,
            near,
            enough,
            trail,
            slacks,
        )
        spent += done * once
        if worst <= enough:
            break
        _extrapolate(trail, slacks, u, theta, slopes, ridge, order, *room)
    return first, len(data) + spent
