"""Callbacks: functions called between two iterations, outside the solver's clock.

A run calls `on_begin`, `on_iterate` with every iterate and its record, and `on_end`. A `Status` returned by
`on_iterate` stops the run for that reason. A fit is one run, or one run for every class against the rest:
`for_problem` then makes a callback for each, since classes may be trained at the same time.
"""

from majorant.callbacks.base import Callback
from majorant.callbacks.checkpoint import Checkpoint
from majorant.callbacks.progress import LiveProgress, ModelsProgress, Progress, last_line, progress_fraction
from majorant.callbacks.stopping import EarlyStopping, TimeLimit

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "LiveProgress",
    "ModelsProgress",
    "Progress",
    "TimeLimit",
    "last_line",
    "progress_fraction",
]
