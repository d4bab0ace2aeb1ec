r"""The squared hinge loss, Eq. (eq:squaredHingeLoss), as a function of one number.

    ρ²(v)  = max(1 - v, 0)²                    v = y (w·x + β), a margin
    (ρ²)'(v) = -2 max(1 - v, 0)                Eq. (eq:gradientsqhinge)
    (ρ²)'' ≤ 2                                 the curvature bound of Prop. (prp:sHingeLip)

(The paper prints max{(1 - v)², 0} and max(2 (v - 1), 0); the formulas above are correct.)

The functions take numpy arrays and, compiled, the scalars of the loops in `rows.kernels`: the loss is defined
only here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from majorant.status import Vector


class SquaredHinge:
    """ρ²(v) = max(1 - v, 0)²: zero beyond the margin, quadratic inside it."""

    name: Final = "squared hinge"
    curvature_bound: Final = 2.0

    @staticmethod
    def value(v: Any) -> Any:
        """ρ²(v)."""
        slack = np.maximum(1.0 - v, 0.0)
        return slack * slack

    @staticmethod
    def derivative(v: Any) -> Any:
        """(ρ²)'(v), which is 2-Lipschitz."""
        return -2.0 * np.maximum(1.0 - v, 0.0)

    @staticmethod
    def weighted_sum(v: Vector, s: Vector) -> tuple[float, Vector]:
        """Σ_k s_k ρ²(v_k) and the slopes s_k (ρ²)'(v_k), with few passes over memory; v is overwritten."""
        slack = np.maximum(np.subtract(1.0, v, out=v), 0.0, out=v)
        slopes = s * slack
        value = float(slopes @ slack)
        slopes *= -2.0
        return value, slopes
