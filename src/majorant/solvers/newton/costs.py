r"""What the engines of `newton` cost on rows in memory: flops and bytes, as nanoseconds.

For n rows, N features, E entries of X (nN if X is dense), Q the sum over the rows of their numbers of entries
squared, and R the same over the columns, a fit takes about

    engine       once                            each time                                       times
    dual_newton  dense rows   n²N flops          a pass over E, and n³/3 flops                   GRAM_STEPS
                 sparse rows  R/2 updates of K
    gram         dense rows   nN² flops          a pass over E, and                              GRAM_STEPS
                 sparse rows  Q/2 updates of H   smooth: N³/3 flops; a kink: sweeps over N²
    newton_cg    a start: two passes             two passes over E, some vectors of N            CG_PRODUCTS
    cd           the watched columns, copied     two passes over E; sweeps over the columns      CD_LOOKS

A pass reads an entry of 8 bytes where X is dense, and one of 12 bytes and a number of a vector, wherever that
is, where X is sparse: that is why entries have different prices. All of it is for each class. The prices are
in `tuning.py`. They are those of one machine, and only their ratios count.

The number of times depends on the data, and badly conditioned data take many times more products or sweeps
than others, while the steps of `gram` and `dual_newton`, which factorise, stay as few. So an engine that does
not factorise has a budget, half the cost of one that does: when it is spent, that one takes over. The sum is
at most one and a half times what that one would have cost alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from majorant.objective import Objective
from majorant.rows import MemoryRows
from majorant.solvers.newton import tuning


def pass_ns(rows: MemoryRows) -> float:
    """What reading all entries once costs."""
    if rows.dense:
        return tuning.DENSE_PASS_NS * rows.n_samples * rows.n_features
    return tuning.PASS_NS * sum(block.sparse_entries for block in rows.blocks)


def gram_ns(objective: Objective, classes: Sequence[MemoryRows]) -> float:
    """What a fit with the Gram matrix of all features costs."""
    rows, N = classes[0], objective.rows.n_features
    if rows.dense:
        build = tuning.FLOP_NS * rows.n_samples * N**2
    else:
        build = tuning.UPDATE_NS * 0.5 * sum(block.squared_row_lengths for block in rows.blocks)
    solve = tuning.FLOP_NS * N**3 / 3.0
    if not objective.potential.smooth:
        solve = tuning.MODEL_SWEEP_NS * tuning.LEAST_SWEEPS * N**2
    return len(classes) * (build + tuning.GRAM_STEPS * (pass_ns(rows) + solve))


def dual_ns(classes: Sequence[MemoryRows]) -> float:
    """What a fit with the dual equations, as many as rows, costs."""
    rows = classes[0]
    n = rows.n_samples
    if rows.dense:
        build = tuning.FLOP_NS * n**2 * rows.n_features
    else:
        counts = np.sum([block.column_counts for block in rows.blocks], axis=0, dtype=np.float64)
        build = tuning.UPDATE_NS * 0.5 * float(np.sum(counts**2))
    return build + tuning.GRAM_STEPS * (pass_ns(rows) + tuning.FLOP_NS * n**3 / 3.0)


def product_ns(objective: Objective, classes: Sequence[MemoryRows]) -> float:
    """What a step of conjugate gradients costs: a product with the Hessian, and vectors of all features."""
    vectors = tuning.VECTOR_NS * objective.rows.n_features
    return len(classes) * (2.0 * pass_ns(classes[0]) + vectors)


def cd_ns(classes: Sequence[MemoryRows]) -> float:
    """What coordinate descent along columns costs."""
    rows = classes[0]
    entries = rows.n_samples * rows.n_features
    if not rows.dense:
        entries = sum(block.sparse_entries for block in rows.blocks)
    sweeps = tuning.SWEEP_NS * tuning.CD_SWEEPS_PER_LOOK * entries
    return len(classes) * tuning.CD_LOOKS * (2.0 * pass_ns(rows) + sweeps)
