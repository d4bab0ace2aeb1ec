r"""What the engines of `newton` cost on rows in memory: flops and bytes, as nanoseconds.

For n rows, N features, E entries of X (nN if X is dense), Q the sum over the rows of their numbers of entries
squared, and R the same over the columns, a fit takes about

    engine       once                            each time                                       times
    dual_newton  dense rows   n²N flops          a pass over E, and n³/3 flops                   DUAL_STEPS
                 sparse rows  R/2 updates of K
    gram         dense rows   nN² flops          a pass over E, and N³/3 flops;                  GRAM_STEPS
                 sparse rows  Q/2 updates of H   with a kink also sweeps over N²
    newton_cg                                    two passes over E, some vectors of N            CG_PRODUCTS
    cd                                           two passes over E; sweeps over the columns      CD_LOOKS

A pass reads an entry of 8 bytes where X is dense, and one of 12 bytes and a number of a vector, wherever that
is, where X is sparse: that is why entries have different prices. All of it is for each class. The prices are
in `tuning.py`. They are those of one machine, and only their ratios count.

The number of times depends on the data, and badly conditioned data take many times more products or sweeps
than others, while the steps of `gram` and `dual_newton`, which factorise, stay as few. So an engine that does
not factorise has a budget, half the cost of one that does: when an iteration ends and the budget is spent,
that one takes over. So by these prices both together cost one and a half times as much as that one alone, and
what the last iteration has cost beyond the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.newton import tuning


def _entries(rows: MemoryRows) -> int:
    return rows.n_samples * rows.n_features if rows.dense else sum(b.sparse_entries for b in rows.blocks)


def pass_ns(rows: MemoryRows) -> float:
    """What reading all entries once costs."""
    return (tuning.DENSE_PASS_NS if rows.dense else tuning.PASS_NS) * _entries(rows)


def _build_ns(rows: MemoryRows, squares: float) -> float:
    """What a matrix of products costs, by the squared numbers of entries of the rows, or of the columns."""
    return (tuning.FLOP_NS if rows.dense else 0.5 * tuning.UPDATE_NS) * squares


def gram_ns(objective: Objective, classes: Sequence[MemoryRows]) -> float:
    """What a fit with the Gram matrix of all features costs."""
    rows, N = classes[0], objective.rows.n_features
    build = _build_ns(rows, sum(block.squared_row_lengths for block in rows.blocks))
    solve = tuning.FLOP_NS * N**3 / 3.0
    if not objective.potential.smooth:
        solve += tuning.MODEL_SWEEP_NS * tuning.LEAST_SWEEPS * N**2
    return len(classes) * (build + tuning.GRAM_STEPS * (pass_ns(rows) + solve))


def dual_ns(classes: Sequence[MemoryRows]) -> float:
    """What a fit with the dual equations, as many as rows, costs."""
    rows = classes[0]
    counts = rows.column_counts.astype(np.float64)
    build = _build_ns(rows, float(np.sum(counts**2)))
    return build + tuning.DUAL_STEPS * (pass_ns(rows) + tuning.FLOP_NS * rows.n_samples**3 / 3.0)


def product_ns(objective: Objective, classes: Sequence[MemoryRows]) -> float:
    """What a step of conjugate gradients costs: a product with the Hessian, and vectors of all features."""
    vectors = tuning.VECTOR_NS * objective.rows.n_features
    return len(classes) * (2.0 * pass_ns(classes[0]) + vectors)


def cd_ns(classes: Sequence[MemoryRows]) -> float:
    """What coordinate descent along columns costs."""
    rows = classes[0]
    sweeps = tuning.SWEEP_NS * tuning.CD_SWEEPS_PER_LOOK * _entries(rows)
    return len(classes) * tuning.CD_LOOKS * (2.0 * pass_ns(rows) + sweeps)


def proximal_start_pays(objective: Objective, rows: MemoryRows) -> bool:
    """Whether the passes of `proximal_start` cost little beside the Gram matrix of the features in play.

    These are the features that the loss pulls harder at zero than zero can hold.
    """
    passes = 2.0 * (tuning.PROXIMAL_STEPS + tuning.POWER_STEPS) * pass_ns(rows)
    pulled = int(np.count_nonzero(objective.gradient_norms_at_zero > objective.kink_slopes[:-1]))
    return passes <= tuning.PROXIMAL_START_SHARE * _build_ns(rows, rows.n_samples * pulled**2)
