"""A limit for the time of a run."""

from __future__ import annotations

from majorant.callbacks.base import Callback
from majorant.errors import MajorantError
from majorant.status import Evaluated, Record, Status


class TimeLimit(Callback):
    """Stop after `seconds` seconds of solver time (without callbacks and evaluation).

    With a problem for every class, each problem has that time.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise MajorantError(f"seconds must be positive, got {seconds!r}")
        self.seconds = seconds

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        return Status.TIME_LIMIT if record.time >= self.seconds else None
