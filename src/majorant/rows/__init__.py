"""Where the rows live, and the questions they answer."""

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
