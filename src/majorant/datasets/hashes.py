"""Whether a file holds what it should, compressed or not."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from majorant.errors import DataFileError

__all__ = ["content_sha256", "why_not"]

PIECE = 1 << 20


def content_sha256(path: Path) -> str:
    """The hash of the content of a file, uncompressed.

    Remembered as long as the process lives and the file stays as it is, since decompressing takes longer than
    training does on some of these data.
    """
    try:
        state = os.stat(path)
    except OSError as error:
        raise DataFileError(f"cannot be read ({error.strerror})", path) from None
    return _content_sha256(path, state.st_ino, state.st_size, state.st_mtime_ns)


def why_not(path: Path, expected: Collection[str]) -> str | None:
    """What keeps a file from having one of the expected hashes, in words; None if it has."""
    try:
        found = content_sha256(path)
    except DataFileError as error:
        return str(error)
    if found in expected:
        return None
    return f"{path}: the content has sha256 {found} instead of {' or '.join(expected)}"


@lru_cache(maxsize=256)
def _content_sha256(path: Path, *_state: int) -> str:
    import lzma

    digest = hashlib.sha256()
    try:
        with _open(path) as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataFileError(f"cannot be read or decompressed ({error})", path) from None
    return digest.hexdigest()


def _open(path: Path) -> BinaryIO:
    """The content, by the first bytes of the file and not by its name: some servers rename."""
    import bz2
    import gzip
    import lzma

    with open(path, "rb") as file:
        start = file.read(6)
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(path))
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path))
    if start == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.open(path))
    return open(path, "rb")
