r"""Some columns of S^½Diag(y)X, each by itself: what coordinate descent on the features walks along.

Beside them stand the slacks u = S^½(1 - v), one per row: the loss is Σ max(u, 0)², and a step d of feature j
takes d times its column away from u. Three numbers are read per entry, and neither labels nor weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from majorant.rows.memory import MemoryRows
from majorant.rows.together import together
from majorant.status import Vector


@dataclass(frozen=True, eq=False)
class Columns:
    """The entries of column j are data[e], in the rows indices[e], for starts[j] ≤ e < starts[j + 1]."""

    data: Vector
    indices: NDArray[np.uint32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: MemoryRows, chosen: NDArray[np.intp]) -> Columns:
        """The chosen columns, copied out of the rows block by block, into places of their own."""
        counts = np.stack([block.column_counts[chosen] for block in rows.blocks])
        starts = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(counts.sum(axis=0), out=starts[1:])
        # A block's entries of a column come after those of the blocks before it.
        places = starts[:-1] + np.cumsum(counts, axis=0) - counts
        data, indices = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.uint32)
        offsets = accumulate((block.n_samples for block in rows.blocks), initial=0)
        together(
            [
                partial(block.copy_columns, chosen, place, offset, data, indices)
                for block, place, offset in zip(rows.blocks, places, offsets, strict=False)
            ]
        )
        return cls(data, indices, starts)


def slacks(rows: MemoryRows, theta: Vector) -> Vector:
    """U = S^½(1 - v) at θ."""
    return np.concatenate(rows.ask(lambda block: np.sqrt(block.s) * (1.0 - block.image(theta))))


def intercept_column(rows: MemoryRows) -> Vector:
    """The column of S^½L that belongs to the intercept."""
    return np.concatenate([np.sqrt(block.s) * block.y * block.b for block in rows.blocks])
