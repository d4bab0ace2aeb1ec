"""Whether a file is still the one that was looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass

from majorant.errors import DataFileError

__all__ = ["Stamp"]


@dataclass(frozen=True)
class Stamp:
    """A file, and what tells whether it has changed."""

    path: str
    size: int
    changed: int
    """When it was, in nanoseconds."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Of the file as it is now."""
        name = os.fspath(path)
        try:
            state = os.stat(name)
        except FileNotFoundError:
            raise DataFileError("there is no such file", name) from None
        except OSError as error:
            raise DataFileError(f"cannot be read ({error.strerror})", name) from None
        return cls(name, state.st_size, state.st_mtime_ns)

    def check(self) -> None:
        """An error if it is another file now: blocks of both together would be rows of neither."""
        if Stamp.of(self.path) != self:
            raise DataFileError("the file has changed since it was opened: open it again", self.path)
