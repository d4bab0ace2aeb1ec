r"""Estimated costs of the engines of `newton` on rows in memory: flops and bytes, in nanoseconds.

For n rows, N features, E entries of X (nN if X is dense), Q the sum over the rows of their numbers of entries
squared, and R the same over the columns, a fit takes about

    engine       once                            a step                                          steps
    dual_newton  dense rows   n²N flops          a pass over E, and n³/3 flops                   DUAL_STEPS
                 sparse rows  R/2 updates of K
    gram         dense rows   nN² flops          a pass over E, and N³/3 flops;                  GRAM_STEPS
                 sparse rows  Q/2 updates of H   with a kink also sweeps over N²
    newton_cg                                    two passes over E, some vectors of N            2√κ, at most
                                                                                                 CG_PRODUCTS
    cd                                           two passes over E; sweeps over the columns      CD_GRADIENTS

Per entry, a pass reads 8 bytes if X is dense; if X is sparse it reads 12 bytes and one number of a vector at
any place: so their prices differ. All costs are per class. The prices are in `tuning.py`; they were measured
on one machine, and only their ratios matter.

With the quadratic penalty ½ wᵀDw, the Hessian of Φ in units of D has at most the condition number

    κ = 1 + 2 ‖D^-½ LᵀSL D^-½‖

(without the intercept), and all steps of conjugate gradients together make about 2√κ products. For λ = 0.01
to 100 on ten data sets: 1.1√κ to 4√κ on text and on sparse random numbers, up to 8√κ on leukemia, and fewer
than 1.5√κ, often far fewer, where √κ is above 400. The norm is estimated by power iterations, if the choice
depends on that.

The number of steps depends on the data. Badly conditioned data take many times more products or sweeps than
others, but not more steps of `gram` and `dual_newton`, which factorise. So an engine that does not factorise
has a budget: half the cost of the engine that does. That engine continues when the budget is spent and an
iteration has cost more than half of one of its own steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.newton import tuning


@dataclass(frozen=True)
class Cost:
    """The cost of a fit by an engine, in nanoseconds: once, and for each of its steps."""

    once: float
    step: float
    steps: float

    @property
    def total(self) -> float:
        """The cost of the whole fit."""
        return self.once + self.steps * self.step


NOT_POSSIBLE = Cost(math.inf, math.inf, 1.0)


@dataclass(frozen=True)
class Budget:
    """The most that an engine without factorisations may cost, in nanoseconds, before another continues."""

    total: float = math.inf
    iteration: float = math.inf

    @classmethod
    def beside(cls, direct: Cost) -> Budget:
        """The budget of an engine that another, with this cost, may replace."""
        return cls(tuning.HAND_OVER_SHARE * direct.total, tuning.HAND_OVER_SHARE * direct.step)

    def is_spent(self, spent: float, last: float) -> bool:
        """Whether to hand over, by what all iterations and the last one have cost."""
        return spent > self.total and last > self.iteration


NO_LIMIT = Budget()


def _entries(rows: MemoryRows) -> int:
    return rows.n_samples * rows.n_features if rows.dense else sum(b.sparse_entries for b in rows.blocks)


def pass_ns(rows: MemoryRows) -> float:
    """The cost of reading all entries once."""
    return (tuning.DENSE_PASS_NS if rows.dense else tuning.PASS_NS) * _entries(rows)


def _build_ns(rows: MemoryRows, squares: float) -> float:
    """The cost of a Gram matrix, by the sum of squared numbers of entries of the rows, or of the columns."""
    return (tuning.FLOP_NS if rows.dense else 0.5 * tuning.UPDATE_NS) * squares


def gram_cost(objective: Objective, classes: Sequence[MemoryRows]) -> Cost:
    """The cost of a fit with the Gram matrix of all features."""
    rows, N = classes[0], objective.rows.n_features
    build = _build_ns(rows, sum(block.squared_row_lengths for block in rows.blocks))
    solve = tuning.FLOP_NS * N**3 / 3.0
    if not objective.potential.smooth:
        solve += tuning.MODEL_SWEEP_NS * tuning.LEAST_SWEEPS * N**2
    return Cost(len(classes) * build, len(classes) * (pass_ns(rows) + solve), tuning.GRAM_STEPS)


def dual_cost(classes: Sequence[MemoryRows]) -> Cost:
    """The cost of a fit with the dual equations, as many as rows."""
    rows = classes[0]
    counts = rows.column_counts.astype(np.float64)
    build = _build_ns(rows, float(np.sum(counts**2)))
    return Cost(build, pass_ns(rows) + tuning.FLOP_NS * rows.n_samples**3 / 3.0, tuning.DUAL_STEPS)


def cg_cost(objective: Objective, classes: Sequence[MemoryRows], direct: Cost) -> Cost:
    """The cost of a fit by conjugate gradients, as precisely as the choice against `direct` needs."""
    product, most = product_ns(objective, classes), float(tuning.CG_PRODUCTS)
    passes = tuning.CONDITION_STEPS + tuning.CG_PRODUCTS_PER_ROOT
    if passes * product < direct.total < most * product:
        weights = objective.quadratic_weights
        scale = np.append(1.0 / np.sqrt(weights), 0.0)
        norm = classes[0].gram_norm(scale, tuning.CONDITION_STEPS)  # the same for all classes
        most = min(most, tuning.CG_PRODUCTS_PER_ROOT * math.sqrt(1.0 + 2.0 * norm))
    return Cost(0.0, product, most)


def product_ns(objective: Objective, classes: Sequence[MemoryRows]) -> float:
    """The cost of a step of conjugate gradients: a product with the Hessian, and vectors of all features."""
    vectors = tuning.VECTOR_NS * objective.rows.n_features
    return len(classes) * (2.0 * pass_ns(classes[0]) + vectors)


def cd_cost(classes: Sequence[MemoryRows]) -> Cost:
    """The cost of a fit by coordinate descent along columns."""
    rows = classes[0]
    sweeps = tuning.SWEEP_NS * tuning.CD_SWEEPS_PER_GRADIENT * _entries(rows)
    return Cost(0.0, len(classes) * (2.0 * pass_ns(rows) + sweeps), tuning.CD_GRADIENTS)


def proximal_start_pays(objective: Objective, rows: MemoryRows) -> bool:
    """Whether `proximal_start` costs little beside the Gram matrix of the features that may be used.

    These are the features whose gradient of the loss at zero exceeds the slope of the kink.
    """
    passes = 2.0 * (tuning.PROXIMAL_STEPS + tuning.POWER_STEPS) * pass_ns(rows)
    moving = int(np.count_nonzero(objective.gradient_norms_at_zero > objective.kink_slopes[:-1]))
    return passes <= tuning.PROXIMAL_START_SHARE * _build_ns(rows, rows.n_samples * moving**2)
