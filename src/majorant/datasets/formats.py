"""The formats of data files: `read`, `open_source`, `convert` and the command line ask these records.

A new format is one more `Format`. What reads, opens and writes files is imported when it is needed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from majorant.datasets.content import COMPRESSIONS
from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.datasets.content import Content
    from majorant.datasets.options import ReadOptions, ReadResult
    from majorant.rows.sources import Source

__all__ = ["FORMATS", "Format", "checked_format", "format_by_name"]


@dataclass(frozen=True)
class Format:
    """How files of one format are told, read, opened and written."""

    name: str
    reader: tuple[str, ...]
    """A module of `majorant.datasets`, its function of `Content` and options, and further arguments."""
    suffixes: tuple[str, ...] = ()
    """Endings of names, besides that of its own name."""
    magic: bytes | None = None
    """What its files begin with."""
    title: str = ""
    """What a file that begins so is called."""
    table: bool = False
    """Whether columns have names."""
    source: tuple[str, str] | None = None
    """A module and its source, of a path, options and the bytes of a block; None: files are read whole."""
    writer: tuple[str, str] | None = None
    """A module and its function of a path, X and y."""

    def read(self, content: Content, options: ReadOptions) -> ReadResult:
        """Read all rows."""
        module, function, *more = self.reader
        found: ReadResult = _imported(module, function)(content, options, *more)
        return found

    def open(self, path: str, options: ReadOptions, block_bytes: int) -> Source:
        """Open a file that is read block by block."""
        assert self.source is not None
        source: Source = _imported(*self.source)(path, options, block_bytes)
        return source

    def write(self, path: str | os.PathLike[str], X: Any, y: Any, *, overwrite: bool) -> None:
        """Write rows and labels."""
        assert self.writer is not None
        _imported(*self.writer)(path, X, y, overwrite=overwrite)


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format(
            "libsvm", ("libsvm", "read_libsvm"), source=("sources.libsvm_text", "LibsvmSource"),
            writer=("writers", "write_libsvm"),
        ),
        Format("csv", ("text_tables", "read_text_table", ","), table=True),
        Format("tsv", ("text_tables", "read_text_table", "\t"), table=True),
        Format(
            "parquet", ("arrow_tables", "read_arrow_table", "parquet"), (".pq",), b"PAR1", "a Parquet file",
            table=True, source=("arrow_tables", "ParquetSource"),
        ),
        Format(
            "arrow", ("arrow_tables", "read_arrow_table", "arrow"), (".feather", ".ipc"), b"ARROW1",
            "an Arrow file", table=True,
        ),
        Format("npz", ("arrays", "read_arrays", "npz")),
        Format("mat", ("arrays", "read_arrays", "mat"), magic=b"MATLAB 5", title="a MATLAB file"),
    )
}  # fmt: skip

_BY_SUFFIX = {suffix: each.name for each in FORMATS.values() for suffix in (f".{each.name}", *each.suffixes)}


def format_by_name(path: str | os.PathLike[str]) -> str:
    """The format that the ending of a name says."""
    name = PurePath(path)
    if name.suffix.lower() in COMPRESSIONS:
        name = name.with_suffix("")
    return _BY_SUFFIX.get(name.suffix.lower(), "libsvm")


def checked_format(name: str | None) -> str | None:
    """The name of a format, or None; an error if there is no such format."""
    if name is not None and name not in FORMATS:
        raise MajorantError(f"format={name!r} is not known: it is one of {', '.join(FORMATS)}")
    return name


def _imported(module: str, name: str) -> Any:
    return getattr(import_module(f"majorant.datasets.{module}"), name)
