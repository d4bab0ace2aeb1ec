r"""Some columns of S^½Diag(y)X, for coordinate descent on the features.

With the slacks u = S^½(1 - v), one per row, the loss is Σ max(u, 0)², and a step d of feature j subtracts d
times its column from u. So a step reads three numbers per entry, and neither labels nor weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from majorant.rows.memory import MemoryRows
from majorant.rows.threads import parallel_map
from majorant.status import Vector


@dataclass(frozen=True, eq=False)
class Columns:
    """The entries of column j are data[e], in the rows indices[e], for starts[j] ≤ e < starts[j + 1]."""

    data: Vector
    indices: NDArray[np.uint32]
    starts: NDArray[np.int64]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of entries of each column."""
        return np.diff(self.starts)

    @classmethod
    def of(cls, rows: MemoryRows, chosen: NDArray[np.intp]) -> Columns:
        """Copy the chosen columns; all blocks at the same time, each to its own places."""
        counts = np.stack([block.column_counts[chosen] for block in rows.blocks])
        starts = np.zeros(len(chosen) + 1, dtype=np.int64)
        np.cumsum(counts.sum(axis=0), out=starts[1:])
        # A block's entries of a column come after those of the blocks before it.
        places = starts[:-1] + np.cumsum(counts, axis=0) - counts
        target = cls(np.empty(starts[-1]), np.empty(starts[-1], dtype=np.uint32), starts)
        offsets = accumulate((block.n_samples for block in rows.blocks), initial=0)
        parallel_map(
            [
                partial(block.copy_columns, chosen, place, offset, target)
                for block, place, offset in zip(rows.blocks, places, offsets, strict=False)
            ]
        )
        return target

    def rows(self, chosen: NDArray[np.intp], whole: MemoryRows) -> MemoryRows:
        """Some of the columns as sparse rows, which is cheaper than `MemoryRows.columns` of all rows."""
        y, s = whole.labels_and_weights
        X = self.matrix(len(y))[:, chosen].tocsr()
        root = np.divide(y, np.sqrt(s), out=np.zeros_like(y), where=s > 0.0)
        X.data *= np.repeat(root, np.diff(X.indptr))
        return MemoryRows(X, y, s, intercept=whole.blocks[0].b > 0)

    def matrix(self, n_rows: int) -> sp.csc_array:
        """The columns as a scipy matrix, without a copy of the entries."""
        entries = (self.data, self.indices.view(np.int32), self.starts)
        return sp.csc_array(entries, shape=(n_rows, len(self.starts) - 1))
