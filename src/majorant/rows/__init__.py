"""Where the rows live, and the questions they answer."""

from majorant.rows.memory import MemoryRows
from majorant.rows.protocol import LossSum, Rows
from majorant.rows.sources import RawBlock, Source, from_arrays, from_blocks
from majorant.rows.stream import StreamRows

__all__ = [
    "LossSum",
    "MemoryRows",
    "RawBlock",
    "Rows",
    "Source",
    "StreamRows",
    "from_arrays",
    "from_blocks",
]
