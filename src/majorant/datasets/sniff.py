"""Files that are something else than they are taken for, told by their first bytes (sniff.toml).

Asked only after a reader has refused a file, to say why: what can be read is read, whatever it begins with.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from majorant.datasets.content import Content, compression_of
from majorant.datasets.formats import FORMATS
from majorant.errors import DataFileError

__all__ = ["explained_errors", "what_it_is"]


@contextmanager
def explained_errors(content: Content, format: str) -> Iterator[None]:
    """Replace the error of a reader by a better one, if the file is something else than this format."""
    try:
        yield
    except DataFileError as error:
        sentence = what_it_is(content.head, format)
        if sentence is None:
            raise
        raise DataFileError(sentence, error.path) from error.__cause__


def what_it_is(head: bytes, format: str) -> str | None:
    """What a file is that is not of this format, and what to do; None if that is unknown.

    Parameters
    ----------
    head : bytes
        What the file begins with: a few hundred bytes, uncompressed.
    format : str
        What it was read as.
    """
    if compression_of(head) is not None:
        return "this was compressed twice: decompress it once"
    for name, each in FORMATS.items():
        # What a format of ours begins with may be the name of a column as well, but that is followed by text.
        if name != format and each.magic is not None and head.startswith(each.magic) and b"\0" in head:
            return f"this is {each.title}: say format={name!r} (--format {name}), or name it .{name}"
    kinds = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["kind"]
    for kind in kinds:
        if kind.get("own") != format and re.match(kind["begins"].encode(), head, re.DOTALL):
            return f"this {kind['sentence']}"
    return None
