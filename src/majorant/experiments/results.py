"""The results of a study: a file of JSON lines, one for each cell that is done, appended whole.

A line is on the disk before its cell counts as done, so a run that was killed goes on where it stopped. What
a kill may leave is half a line at the end: it is cut off, and its cell done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from majorant.errors import OutputError
from majorant.experiments.protocol import Task, from_plain

__all__ = ["Results"]


class Results:
    """Records by the keys of their tasks, in memory and (with a path) in a file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._records: dict[str, dict[str, Any]] = {}
        self._whole = 0
        """The number of bytes of the file that are whole lines."""
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def _read(self, path: Path) -> None:
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    self._keep(json.loads(line))
                except (ValueError, KeyError, TypeError):
                    raise OutputError(
                        f"line {number} of {str(path)!r} is no result of this program: name another "
                        "directory, or begin anew with --fresh"
                    ) from None
                self._whole += len(line)

    def _keep(self, record: dict[str, Any]) -> None:
        from_plain(record["task"])  # what is no task is no record either
        self._records[record["key"]] = record

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns, it is on the disk."""
        if self.path is not None:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
            with open(self.path, "ab") as file:
                file.truncate(self._whole)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._whole += len(line)
        self._keep(record)

    def __contains__(self, task: Task) -> bool:
        return task.key in self._records

    def __getitem__(self, task: Task) -> dict[str, Any]:
        return self._records[task.key]

    def __len__(self) -> int:
        return len(self._records)

    def of(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
        """Those of the tasks that are done, with their records."""
        return ((task, self._records[task.key]) for task in tasks if task.key in self._records)
