"""Coordinate descent on a small quadratic with kinks. Imports numba, so it is imported late."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def descend(H, r, theta, slopes, ridge, sweeps, tolerance):  # type: ignore[no-untyped-def]
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
