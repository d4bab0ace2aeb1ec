"""Atomic writing of files: whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from majorant.errors import OutputError

__all__ = ["atomic_write", "check_writable"]

PROBE_BYTES = 2**20
"""The bytes that `check_writable` writes: more than most models take, in less than a millisecond."""


def check_writable(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Raise an error before the work begins if its result could not be written.

    A file of `PROBE_BYTES` is written beside `path` and removed: permissions do not show that a directory
    like /proc takes no files, or that a disk is full.

    Parameters
    ----------
    path : path
        The file to write.
    overwrite : bool
        Whether an existing file may be replaced.
    """
    path = _checked(path, overwrite)
    try:
        with _temporary(_target(path)) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise OutputError(f"{str(path)!r} cannot be written ({error.strerror})") from None
    return path


def _checked(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """The path; an `OutputError` if its kind or its directory show that it cannot be written."""
    path = Path(path)
    if not path.parent.is_dir():
        raise OutputError(f"there is no directory {str(path.parent)!r} to write {path.name!r} to")
    if path.is_dir():
        raise OutputError(f"{str(path)!r} is a directory, not a file to write to")
    if path.exists() and not path.is_file():
        raise OutputError(f"{str(path)!r} is a device or a pipe, not a file that can be replaced")
    if path.exists() and not overwrite:
        raise OutputError(f"{str(path)!r} exists already and was left as it is")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputError(f"no permission to write to the directory {str(path.parent)!r}")
    return path


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A binary file that replaces `path` when the block ends without an error.

    After a crash at any moment there is the old file (or none) or the whole new file: the bytes go to a
    temporary file in the same directory, reach the disk, and one rename makes them `path`. A pipe or a device
    is not replaced.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "greeting"
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"hello")
    ...     path.read_bytes()
    b'hello'
    """
    path = _target(_checked(path, overwrite))
    with _temporary(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        if path.exists():
            os.chmod(file.name, stat.S_IMODE(path.stat().st_mode))
        if overwrite:
            os.replace(file.name, path)
        else:
            _rename_to_new(Path(file.name), path)
        _sync_directory(path.parent)


def _target(path: Path) -> Path:
    """The file to replace: the target of a link, so that the link stays."""
    return Path(os.path.realpath(path))


@contextmanager
def _temporary(path: Path) -> Iterator[BinaryIO]:
    """A new file in the directory of `path`, which is removed unless it was renamed.

    It has the usual permissions; only the owner could read a file of `tempfile`.
    """
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")
    file = open(temporary, "xb")  # noqa: SIM115
    try:
        with file:
            yield file
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename, unless another process has written `path` in the meantime."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise OutputError(f"{str(path)!r} exists already and was left as it is") from None
    except OSError:  # a file system without links
        os.replace(temporary, path)
        return
    os.unlink(temporary)


def _sync_directory(directory: Path) -> None:
    """Sync the directory with the new name; not on Windows, where a directory cannot be opened."""
    if os.name != "posix":
        return
    with suppress(OSError):  # no permission to list the directory, or a file system without support
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
