"""Callbacks: what happens between two iterations, outside the solver's clock.

A callback is told when a run begins, of every iterate with its record, and when the run ends. Answering an
iterate with a `Status` stops the run for that reason. A fit is one run, or one for every class against the
rest: `for_problem` is then asked for a callback for each, since classes may be trained at the same time.
"""

from majorant.callbacks.base import Callback
from majorant.callbacks.checkpoint import Checkpoint
from majorant.callbacks.early_stopping import EarlyStopping
from majorant.callbacks.limits import TimeLimit
from majorant.callbacks.progress import LiveProgress, ModelsProgress, Progress, last_line, progress_fraction

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
