"""How far a download is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Self, TextIO

__all__ = ["TransferProgress"]

BETWEEN_LINES = 5.0  # seconds


class TransferProgress:
    """Shows the progress of a download on standard error, or another stream.

    Parameters
    ----------
    name : str
        What is downloaded.
    address : str
        Where it comes from.
    stream : text file, optional
        Where to write; standard error by default.
    """

    def __init__(self, name: str, address: str, stream: TextIO | None = None) -> None:
        self.name, self.address = name, address
        self.stream = stream or sys.stderr
        self._bar: Any = None
        self._task: Any = None
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._shown = time.monotonic()
        self._line(f"downloading {self.name} from {self.address}")
        if self.stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
            self._bar = _make_bar(self.stream)
            self._task = self._bar.add_task(self.name, total=None)
            self._bar.start()
        return self

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` bytes have come."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._shown >= BETWEEN_LINES:
            self._shown = time.monotonic()
            share = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else ""
            self._line(f"{self.name}: {done / 1e6:.1f} MB{share}")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _line(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


def _make_bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    return Progress(*columns, console=Console(file=stream), transient=True)
