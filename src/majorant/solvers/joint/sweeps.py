"""Coordinate descent on whole features: all classes of one at a time. Imports numba, so it is imported late.

The columns are those of S^½X, without labels; u = S^½(1 - y(Xw + β)), a column per class, are the slacks. Row
k pulls with the sign 1 in its own class, codes[k], and with -1 in all others.
"""

from __future__ import annotations

import numpy as np

from majorant.rows.kernels import compiled


@compiled
def sweep(data, indices, starts, codes, u, W, slopes, ridge, scale, order, near, g, h, w):
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
            new = _shrink(W[j], g, h, slope, w)
            change = slope * (new - old) + 0.5 * ridge * (new * new - old * old)
            change += _move(data, indices, starts[j], starts[j + 1], codes, u, W[j], w)
            if change <= 0.0 or bounded:
                for c in range(g.size):
                    W[j, c] = w[c]
                break
            _move(data, indices, starts[j], starts[j + 1], codes, u, w, W[j])
    return worst


@compiled
def _shrink(W, g, h, slope, w):
    """The minimiser w of Σ_c (g_c (w_c - W_c) + h_c (w_c - W_c)²/2) + slope ‖w‖; returns its length.

    With b = hW - g it is b/(h + slope/t), where its length t solves Σ (b/(ht + slope))² = 1: by Newton's
    method on the inverse root of the sum, which is nearly linear in t, from t = 0 upwards.
    """
    size = 0.0
    for c in range(g.size):
        size += (h[c] * W[c] - g[c]) ** 2
    if slope > 0.0 and size <= slope * slope:
        for c in range(g.size):
            w[c] = 0.0
        return 0.0
    t = 0.0
    if slope > 0.0:
        for _ in range(50):
            total = 0.0
            fall = 0.0
            for c in range(g.size):
                q = (h[c] * W[c] - g[c]) / (h[c] * t + slope)
                total += q * q
                fall += q * q * h[c] / (h[c] * t + slope)
            step = (np.sqrt(total) - 1.0) * total / fall
            t += step
            if step <= 1e-14 * t:
                break
    length = 0.0
    for c in range(g.size):
        b = h[c] * W[c] - g[c]
        if slope > 0.0:
            w[c] = b * t / (h[c] * t + slope)
        else:
            w[c] = b / h[c] if h[c] > 0.0 else W[c]
        length += w[c] * w[c]
    return np.sqrt(length)


@compiled
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


@compiled
def centre(root, codes, u, beta):
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


@compiled
def sweep_model(H, R, W, slopes, ridge, scale, sweeps, accuracy, g, h, w):
    """Sweeps on Σ_c (R_c·D_c + ½ D_cᵀH_cD_c) + Σ_j (slopes_j ‖W_j‖ + ridge_j ‖W_j‖²/2), in place.

    D are the moves of W. R is the gradient of the quadratic part, and brought along. Ends with the first
    sweep that meets no violation above the accuracy; returns the largest that the last one has met, in units
    of the scale.
    """
    worst = 0.0
    for _ in range(sweeps):
        worst = 0.0
        for j in range(W.shape[0]):
            old = 0.0
            pull = 0.0
            for c in range(g.size):
                g[c] = R[c, j] + ridge[j] * W[j, c]
                h[c] = H[c, j, j] + ridge[j]
                old += W[j, c] * W[j, c]
                pull += g[c] * g[c]
            old = np.sqrt(old)
            violation = max(np.sqrt(pull) - slopes[j], 0.0)
            if old > 0.0:
                violation = 0.0
                for c in range(g.size):
                    violation += (g[c] + slopes[j] * W[j, c] / old) ** 2
                violation = np.sqrt(violation)
            if violation == 0.0:
                continue
            worst = max(worst, violation * scale[j])
            _shrink(W[j], g, h, slopes[j], w)
            for c in range(g.size):
                move = w[c] - W[j, c]
                W[j, c] = w[c]
                if move != 0.0:
                    for i in range(R.shape[1]):
                        R[c, i] += H[c, j, i] * move
        if worst <= accuracy:
            break
    return worst
