"""Where the rows live, and the questions they answer."""

from majorant.rows.memory import MemoryRows
from majorant.rows.protocol import Batch, LossSum, Rows

__all__ = ["Batch", "LossSum", "MemoryRows", "Rows"]
