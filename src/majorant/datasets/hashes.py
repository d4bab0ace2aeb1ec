"""Whether a file holds what it should, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from majorant.datasets.content import Content
from majorant.errors import DataFileError

__all__ = ["content_sha256", "why_not"]


def content_sha256(path: Path, most: int | None = None) -> str:
    """The hash of the content of a file, uncompressed; an error if that is more than `most` bytes.

    Remembered as long as the process lives and the file stays as it is, since decompressing takes longer than
    training does on some of these data.
    """
    try:
        state = os.stat(path)
    except OSError as error:
        raise DataFileError(f"cannot be read ({error.strerror})", path) from None
    return _content_sha256(path, most, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _content_sha256(path: Path, most: int | None, *_state: int) -> str:
    with Content(path) as content:
        size = 0
        for chunk in content.chunks():
            size += len(chunk)
            if most is not None and size > most:
                raise DataFileError(f"the content is larger than {most} bytes", path)
        return content.sha256


def why_not(path: Path, expected: Collection[str], most: int | None = None) -> str | None:
    """What keeps a file from having one of the expected hashes, in words; None if it has.

    Not more than `most` bytes of the content are looked at.
    """
    try:
        found = content_sha256(path, most)
    except DataFileError as error:
        return str(error)
    if found in expected:
        return None
    return f"{path}: the content has sha256 {found} instead of {' or '.join(expected)}"
