"""Which features a fit of a non-convex potential begins with: those that ℓ1 selects.

As a rule, only those features matter to a non-convex fit that some ℓ1 model uses. The path of ℓ1 is short
and cheap: a few strengths, roughly solved, until the models are larger than a non-convex fit can support.
Features are measured in units of their spread, so the answer does not depend on the units of X. What the rule
leaves out is not lost: in the end features outside are looked at, and let in if they lower Φ.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from majorant.interrupts import check
from majorant.objective import Objective
from majorant.potentials import L1
from majorant.rows import MemoryRows
from majorant.rows.memory import same_rows
from majorant.solvers.dense import DenseRidge, small_enough
from majorant.solvers.narrowing import Narrowing
from majorant.status import Evaluated, Iterate, Provisional, Vector

# Up to this many features all are looked at.
FEW_FEATURES = 50
# The path ends when its models use this many features. (Not a share of the rows: repeated rows are weights.)
# (On ten random problems of 500 to 2,000 rows and 200 to 1,000 features, these models used all of the up to
# 20 features that the labels depend on; they had 68 to 188 features.)
MOST_FEATURES = 150
# The ratio of one strength to the last, their number at most, the certificate of a model on the path, and the
# steps to it at most.
FALL = 0.7
STRENGTHS = 20
TOLERANCE = 1e-6
STEPS = 100

Descend = Callable[[Objective, Evaluated], Iterator[Iterate]]


@dataclass(frozen=True, eq=False)
class Part:
    """The problem with some features, and what solves a ridge on these, if they are few."""

    narrowing: Narrowing
    kept: NDArray[np.bool_]
    ridge: DenseRidge | None

    @classmethod
    def of(cls, objective: Objective, kept: NDArray[np.bool_]) -> Part:
        """The problem with the features `kept`; all of them are not copied."""
        where = np.flatnonzero(kept)
        part = objective if kept.all() else objective.columns(where)
        ridge = DenseRidge(part) if small_enough(part) else None
        return cls(Narrowing(part, objective.width, np.append(where, objective.width - 1)), kept, ridge)

    def at(self, objective: Objective) -> Part:
        """The same features of a problem on the same rows."""
        part = self.narrowing.objective
        factor = None if objective.penalty_factor is None else objective.factor[self.kept]
        there = replace(objective.on(part.classes), penalty_factor=factor)
        return replace(self, narrowing=replace(self.narrowing, objective=there))


@dataclass(frozen=True, eq=False)
class _Known:
    """The part that was used last on some rows."""

    classes: tuple[ref[MemoryRows], ...]
    factor: Vector
    part: Part


def first_part(
    objective: Objective, start: Evaluated, units: Vector, descend: Descend | None, *, cold: bool
) -> Iterator[Iterate | Part]:
    """What is worth beginning with, after points underway; it is kept for the next run on these rows.

    Parameters
    ----------
    objective, start
        What is to be minimised, and where the run begins. What the start uses belongs to the part.
    units : array (n_features,)
        The spread of every feature.
    descend : function, optional
        (problem, start) ↦ the iterates of a solver with potentials that have a kink; without it, or if the
        rows are not in memory, all features belong to the part.
    cold : bool
        Whether the run is to look for features; else those of the start are enough to begin with.
    """
    rows = objective.in_memory
    used = (objective.lengths(start.theta) > 0.0) | (objective.factor == 0.0)
    kept = np.ones_like(used)
    if not rows:
        narrowing = Narrowing(objective, objective.width, np.arange(objective.width))
        yield Part(narrowing, kept, DenseRidge(objective) if small_enough(objective) else None)
        return
    known: _Known | None = rows[0].warm_cache.get(_Known)
    same = known is not None and same_rows(known.classes, objective.classes)
    if known is not None and same and np.array_equal(known.factor, objective.factor):
        if known.part.kept[used].all():
            yield known.part.at(objective)
            return
        kept = known.part.kept | used
    elif descend is not None and len(used) > FEW_FEATURES:
        if not cold:
            used[np.argmax(objective.gradient_norms_at_zero)] = True  # at least one feature
            yield Part.of(objective, used)
            return
        kept = yield from _on_the_l1_path(objective, start, units, descend)
        kept |= used
    part = Part.of(objective, kept)
    rows[0].warm_cache[_Known] = _Known(tuple(ref(one) for one in rows), objective.factor, part)
    yield part


def _on_the_l1_path(
    objective: Objective, start: Evaluated, units: Vector, descend: Descend
) -> Generator[Iterate, None, NDArray[np.bool_]]:
    """Whether a model on the path of ℓ1 uses the feature."""
    factor = objective.factor * np.sqrt(np.where(units > 0.0, units, 1.0))
    penalised = factor > 0.0
    strongest = float(np.max(objective.gradient_norms_at_zero[penalised] / factor[penalised], initial=0.0))
    kept = np.zeros(len(factor), dtype=np.bool_)
    theta = start.theta
    for strength in strongest * FALL ** np.arange(1, STRENGTHS + 1):
        problem = replace(objective, potential=L1(float(strength)), penalty_factor=factor)
        at = problem.evaluate(theta)
        if strength > 0.0:
            for n, iterate in enumerate(descend(problem, at)):
                check()
                yield Provisional(start.theta, start.value)
                if isinstance(iterate, Evaluated):
                    at = iterate
                    if n >= STEPS or problem.estimate(at).error <= TOLERANCE:
                        break
        theta = at.theta
        kept |= objective.lengths(theta) > 0.0
        if np.count_nonzero(kept) >= MOST_FEATURES:
            break
    return kept
