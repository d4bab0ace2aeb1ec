"""The records of a study in a file.

The file has a line of JSON for each run that is done. A line is on the disk before its run counts as done, so
a study that was killed resumes where it stopped. A torn last line is cut off, and its run done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from majorant.errors import OutputError
from majorant.experiments.study import Run

RunRecord = dict[str, Any]


class Results:
    """Records by the keys of their runs, in memory and (with a path) in a file."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._records: dict[str, RunRecord] = {}
        self._size = 0
        """The number of bytes of the file that are complete lines."""
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
                        "directory, or start again with --fresh"
                    ) from None
                self._size += len(line)

    def _keep(self, record: RunRecord) -> None:
        Run.from_dict(record["task"])  # raises if the line is no record
        self._records[record["key"]] = record

    def add(self, record: RunRecord) -> None:
        """Keep a record; it is on the disk when this returns."""
        if self.path is not None:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
            with open(self.path, "ab") as file:
                file.truncate(self._size)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            self._size += len(line)
        self._keep(record)

    def __contains__(self, run: Run) -> bool:
        return run.key in self._records

    def __getitem__(self, run: Run) -> RunRecord:
        return self._records[run.key]

    def __len__(self) -> int:
        return len(self._records)

    def select(self, runs: Iterable[Run]) -> Iterator[tuple[Run, RunRecord]]:
        """The runs that are done, with their records."""
        return ((run, self._records[run.key]) for run in runs if run.key in self._records)
