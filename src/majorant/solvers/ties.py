"""Orders that rounding does not decide: values that differ by no more than rounding count as equal."""

from __future__ import annotations

import math

import numpy as np

from majorant.solvers.refit import Indices
from majorant.status import Vector

# A relative difference of gains of features that counts as rounding.
SAME_GAIN = 1e-7


def ordered(values: Vector, features: Indices | None = None) -> Indices:
    """The positions of the values, the largest first; equal ones in the order of their features."""
    falling = np.argsort(-values, kind="stable")
    sizes = values[falling].tolist()
    # A group of equal values begins where one is smaller than the first of the group before.
    groups: list[int] = []
    leader = math.inf
    for size in sizes:
        if not groups or size < leader - SAME_GAIN * abs(leader):
            leader = size
            groups.append(len(groups))
        else:
            groups.append(groups[-1])
    ties = falling if features is None else features[falling]
    return np.asarray(falling[np.lexsort((ties, np.array(groups, dtype=np.intp)))], dtype=np.intp)


def largest(values: Vector, count: int) -> Indices:
    """The positions of the largest positive values, rising; of equal ones on the border, the first."""
    if len(values) > count:
        border = float(np.partition(values, len(values) - count)[len(values) - count])
        above = np.flatnonzero(values > (1.0 + SAME_GAIN) * border)
        tied = np.flatnonzero(np.abs(values - border) <= SAME_GAIN * border)
        chosen = np.sort(np.concatenate([above, tied[: count - len(above)]]))
    else:
        chosen = np.arange(len(values))
    return np.asarray(chosen[values[chosen] > 0.0], dtype=np.intp)
