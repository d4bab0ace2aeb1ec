"""The training rows, in memory, on a disk or on a cluster, and the sums over them that solvers need."""

from majorant.rows.base import LossSum, Rows
from majorant.rows.memory import MemoryRows
from majorant.rows.partitioned import PartitionedRows
from majorant.rows.sources import RawBlock, Source, from_arrays, from_blocks

__all__ = [
    "LossSum",
    "MemoryRows",
    "PartitionedRows",
    "RawBlock",
    "Rows",
    "Source",
    "from_arrays",
    "from_blocks",
]
