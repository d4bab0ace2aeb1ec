"""Which features a step looks at: those in use, and those that the loss pulls nearly as hard as zero holds.

    features_to_watch      a rule for all engines that do not move every feature
    working_set_iterates   `gram.py` on such features of dense rows

The Gram matrix of a fifth of the features is 25 times cheaper. (Of sparse rows it is not: on a9a and
mushrooms taking the columns out cost what it saved.) The gradient of the others is that of the start, which
may be the gradient of a sample, until a first look at all features, when the certificate on those chosen has
improved; that gradient is computed again whenever the certificate has become a thousand times better. In
between the others are taken to be as they were, which makes every claim of convergence provisional, as the
driver takes it anyway. For 2,600 × 500 normal numbers and a solution of 19 features a fit takes 0.4 of the
time that it takes with the Gram matrix of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.newton import tuning
from majorant.solvers.newton.gram import gram_iterates
from majorant.status import Evaluated

Features = NDArray[np.intp]


def features_to_watch(
    objective: Objective, at: Evaluated, first: int, growth: int, most: int | None = None
) -> Features:
    """The features that are in use, or pulled nearly as hard as zero can hold; if too many, the worst.

    There is room for `first` of them, or `growth` times those in use, and never for more than `most`. If
    those in use leave next to no room for those that violate the optimality conditions, both have to compete.
    """
    potential = objective.potential
    needed = (objective.lengths(at.theta) > potential.zero_width) | (objective.factor == 0.0)
    limits = objective.factor * potential.max_slope
    pulls = objective.lengths(at.loss_gradient)
    candidates = np.flatnonzero(needed | (pulls > tuning.WATCHED_PULL * limits))
    count = int(np.count_nonzero(needed))
    room = max(first, growth * count)
    crowded = False
    if most is not None:
        room = min(most, room)
        crowded = (
            count > tuning.WATCHED_PULL * most and int(np.count_nonzero(needed | (pulls > limits))) > most
        )
    if len(candidates) > room:
        # A smooth potential is at rest inside of its rounded bottom, however hard the loss pulls.
        by_pull = potential.smooth and not crowded
        urgency = pulls / np.where(needed, np.inf, limits) if by_pull else objective.violations(at)[:-1]
        if not crowded:
            urgency[needed] = np.inf
        candidates = np.sort(candidates[np.argpartition(-urgency[candidates], room)[:room]])
    return candidates


def working_set_iterates(
    objective: Objective, classes: Sequence[MemoryRows], start: Evaluated
) -> Iterator[Evaluated]:
    """Newton's method on the features that may matter; on all of them, if these are most of them.

    Of the start, the value is not used, and the gradient may be that of a sample of the rows.
    """
    chosen, at, known = np.zeros(0, dtype=np.intp), start, 0
    while True:
        chosen = np.union1d(
            chosen, features_to_watch(objective, at, tuning.WORKING_SET_FIRST, tuning.WORKING_SET_GROWTH)
        )
        if len(chosen) > tuning.WORKING_SET_SHARE * len(objective.factor):
            iterates = gram_iterates(objective, classes, at.theta)
        else:
            iterates = _restricted_iterates(objective, at, chosen)
        for at in islice(iterates, known, None):
            yield at
        known = 1  # of the next iterates the first is this point


def _restricted_iterates(objective: Objective, start: Evaluated, chosen: Features) -> Iterator[Evaluated]:
    """The start, and steps on the chosen features, until one of the others wants to move."""
    where = np.append(chosen, objective.width - 1)
    restricted = objective.columns(chosen)
    assert restricted.in_memory is not None
    outside, last, goal = objective.matrix(start.loss_gradient), start.theta, math.nan
    iterates = gram_iterates(
        restricted, restricted.in_memory, objective.matrix(start.theta)[:, where].ravel()
    )
    for inner in iterates:
        theta, gradient = np.zeros_like(outside), outside.copy()
        theta[:, where] = restricted.matrix(inner.theta)
        gradient[:, where] = restricted.matrix(inner.loss_gradient)
        at = Evaluated(theta.ravel(), inner.value, gradient.ravel(), carried=True)
        error = restricted.estimate(inner).error
        if math.isnan(goal):
            goal = tuning.WORKING_SET_FIRST_LOOK * error
        elif error <= goal or np.array_equal(at.theta, last):
            at = objective.evaluate(at.theta)
            outside, goal = objective.matrix(at.loss_gradient), tuning.WORKING_SET_NEXT_LOOK * error
            if np.any(np.delete(objective.violations(at), where) > 0.0):
                yield at
                return
        yield at
        last = at.theta
