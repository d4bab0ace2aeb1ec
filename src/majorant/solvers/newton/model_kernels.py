"""Coordinate descent on a quadratic model. Imports numba, so it is imported late.

For one class, the minimiser over a coefficient has a closed form; for several classes, `shrink` minimises
over all coefficients of a feature.
"""

from __future__ import annotations

import numpy as np

from majorant.jit import compiled, compiled_part


@compiled
def minimise_on_model(H, theta, r, start, start_gradient, slopes, ridge, sweeps, accuracy, moved, gradient):
    """`descend_on_model` from a start until the violation is a given share of that at θ.

    r is the gradient of the quadratic part at θ, and `start_gradient` that at the start. Writes the result to
    `moved`, and the gradient at the result to `gradient`. Returns the violation in the last sweep, the goal,
    and the fall of the model from θ to the result.
    """
    goal = 0.0
    for j in range(theta.size):
        g = r[j] + ridge[j] * theta[j]
        if theta[j] > 0.0:
            violation = abs(g + slopes[j])
        elif theta[j] < 0.0:
            violation = abs(g - slopes[j])
        else:
            violation = max(abs(g) - slopes[j], 0.0)
        curvature = H[j, j] + ridge[j]
        if curvature > 0.0:
            violation /= np.sqrt(curvature)
        goal = max(goal, accuracy * violation)
        moved[j] = start[j]
        gradient[j] = start_gradient[j]
    worst = descend_on_model(H, gradient, moved, slopes, ridge, sweeps, goal)
    rise = 0.0
    for j in range(theta.size):
        before, after = abs(theta[j]), abs(moved[j])
        rise += 0.5 * (moved[j] - theta[j]) * (r[j] + gradient[j])
        rise += (after - before) * (slopes[j] + 0.5 * ridge[j] * (after + before))
    return worst, goal, -rise


@compiled
def descend_on_model(H, r, theta, slopes, ridge, sweeps, tolerance):
    """Cyclic coordinate descent on ½θᵀHθ - c·θ + Σ_j (slopes_j |θ_j| + ridge_j θ_j²/2), in place.

    r = Hθ - c is kept up to date. Stops after `sweeps` sweeps, or when no coordinate was off by more than the
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
                # Without active rows and ridge, only the slope is left.
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
def descend_on_group_model(H, R, W, slopes, ridge, scale, sweeps, accuracy, g, h, w):
    """Sweeps on Σ_c (R_c·D_c + ½ D_cᵀH_cD_c) + Σ_j (slopes_j ‖W_j‖ + ridge_j ‖W_j‖²/2), in place.

    D is the change of W. R is the gradient of the quadratic part, and is updated. Ends after the first sweep
    without a violation above the accuracy; returns the largest violation of the last sweep, in units of the
    scale.
    """
    worst = 0.0
    for _ in range(sweeps):
        worst = 0.0
        for j in range(W.shape[0]):
            for c in range(g.size):
                g[c] = R[c, j] + ridge[j] * W[j, c]
                h[c] = H[c, j, j] + ridge[j]
            _, _, violation = optimality(W[j], g, slopes[j])
            if violation == 0.0:
                continue
            worst = max(worst, violation * scale[j])
            shrink(W[j], g, h, slopes[j], w)
            for c in range(g.size):
                move = w[c] - W[j, c]
                W[j, c] = w[c]
                if move != 0.0:
                    for i in range(R.shape[1]):
                        R[c, i] += H[c, j, i] * move
        if worst <= accuracy:
            break
    return worst


@compiled_part
def optimality_of_one(w, g, slope):
    """|w|, |g| and the violation: the least length of g plus a subgradient of slope |w|."""
    return abs(w), abs(g), abs(g + slope * np.sign(w)) if w != 0.0 else max(abs(g) - slope, 0.0)


@compiled_part
def shrink_one(w, g, h, slope):
    """The minimiser v of g (v - w) + h (v - w)²/2 + slope |v|."""
    if h > 0.0:
        b = h * w - g
        return np.sign(b) * max(abs(b) - slope, 0.0) / h
    # No active row has the feature and there is no ridge: only the slope sees it.
    return 0.0 if slope > 0.0 else w


@compiled_part
def optimality(W, g, slope):
    """`optimality_of_one` with norms over the classes."""
    size = 0.0
    slope_of_loss = 0.0
    for c in range(g.size):
        size += W[c] * W[c]
        slope_of_loss += g[c] * g[c]
    size = np.sqrt(size)
    slope_of_loss = np.sqrt(slope_of_loss)
    violation = max(slope_of_loss - slope, 0.0)
    if size > 0.0:
        violation = 0.0
        for c in range(g.size):
            violation += (g[c] + slope * W[c] / size) ** 2
        violation = np.sqrt(violation)
    return size, slope_of_loss, violation


@compiled
def shrink(W, g, h, slope, w):
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
