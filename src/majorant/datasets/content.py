"""The bytes of a file or of standard input, uncompressed, with their checksum; whether a file has changed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from majorant.errors import DataFileError

__all__ = ["COMPRESSIONS", "Content", "Fingerprint", "compression_of", "hash_mismatch", "is_compressed"]


def _gzip(file: IO[bytes], mode: str = "rb") -> gzip.GzipFile:
    """Neither a name nor the time is written, so that the same content gives the same bytes."""
    return gzip.GzipFile("", mode, fileobj=file, mtime=0)


COMPRESSIONS: dict[str, Callable[..., Any]] = {".gz": _gzip, ".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
"""By the ending of a file's name: what makes a stream of a file and a mode. When reading, the first
bytes decide."""

_HEADS = {
    b"\x1f\x8b\x08": ".gz",
    b"\xfd7zXZ\x00": ".xz",
    **{b"BZh%d" % level + block: ".bz2" for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")},
}
_LONGEST_HEAD = max(map(len, _HEADS))
# Fits into the second cache of a core together with what is made of it.
_CHUNK = 1 << 20
# So much of the beginning is kept.
_HEAD = 2048


def compression_of(head: bytes) -> str | None:
    """The ending of the compression that a file begins like, if it does."""
    return next((kind for start, kind in _HEADS.items() if head.startswith(start)), None)


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether the first bytes of a file are those of a compression."""
    with Content(path) as content:
        return content.compressed


class Content(io.RawIOBase):
    """A stream of the uncompressed content.

    Parameters
    ----------
    source : path or "-"
        A file, or standard input.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        super().__init__()
        stdin = source == "-"
        self.path = "<stdin>" if stdin else os.fspath(source)
        self._sha256 = hashlib.sha256()
        self._head = b""
        try:
            self._opened: IO[bytes] | None = None if stdin else open(self.path, "rb")  # noqa: SIM115
            file = sys.stdin.buffer if self._opened is None else self._opened
            head = file.read(_LONGEST_HEAD)
            whole: Any = io.BufferedReader(_Rejoined(head, file), _CHUNK)
        except FileNotFoundError:
            raise DataFileError("there is no such file", self.path) from None
        except OSError as error:
            raise DataFileError(f"cannot be read: {error.strerror}", self.path) from None
        kind = compression_of(head)
        self.compressed = kind is not None
        self._stream = whole if kind is None else COMPRESSIONS[kind](whole)

    @property
    def sha256(self) -> str:
        """Of what has been read so far."""
        return self._sha256.hexdigest()

    @property
    def head(self) -> bytes:
        """How the content begins, as far as it can be read; if nothing has been read yet, that is begun."""
        if not self._head:
            with suppress(DataFileError):
                self._read(_HEAD)
        return self._head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def readall(self) -> bytes:
        return b"".join(self.chunks())

    def chunks(self, size: int = _CHUNK) -> Iterator[bytes]:
        """All that is left, `size` bytes at a time."""
        while chunk := self._read(size):
            yield chunk

    def close(self) -> None:
        if not self.closed and self._opened is not None:
            self._opened.close()
        super().close()

    def _read(self, size: int) -> bytes:
        try:
            part: bytes = self._stream.read(size)
        except EOFError:
            raise DataFileError(
                "the compressed data end too early: a part of the file is missing", self.path
            ) from None
        except (OSError, zlib.error, lzma.LZMAError) as error:
            if self.compressed:
                raise DataFileError(f"the compressed data are damaged ({error})", self.path) from None
            raise DataFileError(f"cannot be read ({error})", self.path) from None
        self._sha256.update(part)
        if len(self._head) < _HEAD:
            self._head += part[: _HEAD - len(self._head)]
        return part


class _Rejoined(io.RawIOBase):
    """A stream of which the head has been read already, whole again."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)


@dataclass(frozen=True)
class Fingerprint:
    """A file, and what tells whether it has changed."""

    path: str
    size: int
    changed: int
    """When it was, in nanoseconds."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Fingerprint:
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
        if Fingerprint.of(self.path) != self:
            raise DataFileError("the file has changed since it was opened: open it again", self.path)


def hash_mismatch(path: Path, expected: Collection[str], most: int | None = None) -> str | None:
    """What keeps a file's content from having one of the expected hashes, in words; None if it has.

    Not more than `most` bytes of the uncompressed content are looked at. Hashes are remembered as long as the
    process lives and the file stays as it is, since decompressing takes longer than training does on some of
    these data.
    """
    try:
        found = _content_sha256(Fingerprint.of(path), os.stat(path).st_ino, most)
    except DataFileError as error:
        return str(error)
    if found in expected:
        return None
    return f"{path}: the content has sha256 {found} instead of {' or '.join(expected)}"


@lru_cache(maxsize=256)
def _content_sha256(fingerprint: Fingerprint, inode: int, most: int | None) -> str:
    with Content(fingerprint.path) as content:
        size = 0
        for chunk in content.chunks():
            size += len(chunk)
            if most is not None and size > most:
                raise DataFileError(f"the content is larger than {most} bytes", fingerprint.path)
        return content.sha256
