r"""The curvature of the loss near where it is known: what a pass need not bring.

H is most of the work of a pass, p² operations for a row of p entries where the loss and its gradient take 4p,
and most of what a block answers. So it is not asked for while steps do well without. Where it was known last,
at θ₀, some rows have become active since, and others are not any more, which are few near the end; and what
they change is told by the sample S that the way has begun with (`subsample_start.py`), in memory:

    H(θ) ≈ H(θ₀) + H_S(θ) - H_S(θ₀).

Let H be the curvature of a quadratic loss, Ĥ what is taken for it, and (1 - δ) H ≼ Ĥ ≼ (1 + δ) H. Then a step
from θ to θ⁺ leaves no more than δ / (1 - δ) of the distance to the minimum θ*, measured by H: the penalty is
convex, so the conditions for θ⁺ and θ* give

    (θ⁺ - θ*)·Ĥ (θ⁺ - θ*) ≤ (θ⁺ - θ*)·(Ĥ - H)(θ - θ*).

Of a sample alone, of m normal rows, δ is about 2 √(p / m); here only the rows that have changed sides count.
When the models do not promise less and less quickly, the next pass brings H along.

(With a choice of features it was tried and did not pay: the choice changes with every step, and of 5 passes
with H 3 were left on text, for one pass more; 10 of 10 with 2,000 features in play, for 4 more.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from majorant.rows import Rows
from majorant.solvers.newton import tuning
from majorant.solvers.newton.newton_equations import Hessians
from majorant.status import Vector


class SampledHessian:
    """That of the loss: known at one point, and told by a sample near to it.

    Parameters
    ----------
    theta, H
        Where it is known, and what it is there.
    of_sample : function, optional
        θ ↦ the curvature of the sample there.
    """

    def __init__(self, theta: Vector, H: Hessians, of_sample: Callable[[Vector], Hessians] | None) -> None:
        self.theta, self.H, self._of_sample = theta, H, of_sample

    def near(self, theta: Vector) -> Hessians:
        """H + H_S(θ) - H_S where it is known, if that is possible."""
        if self._of_sample is None or theta is self.theta:
            return self.H
        H = self.H + self._of_sample(theta) - self._of_sample_here
        # A sample that knows no better than to take half of a curvature away is no help.
        return H if np.all(np.einsum("cii->ci", H) >= 0.5 * np.einsum("cii->ci", self.H)) else self.H

    @cached_property
    def _of_sample_here(self) -> Hessians:
        assert self._of_sample is not None
        return self._of_sample(self.theta)


def large_enough(sample: Rows, size: int) -> bool:
    """Whether a sample is large enough to tell how a Hessian of this size changes."""
    return sample.n_samples >= tuning.SAMPLED_ROWS_PER_FEATURE * size
