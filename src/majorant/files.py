"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from majorant.errors import OutputError

__all__ = ["check_writable", "replacing"]


def check_writable(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Say before the work begins what would keep its result from being written.

    Parameters
    ----------
    path : path
        Where the file is to be.
    overwrite : bool
        Whether a file that is there already may be replaced.
    """
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
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A binary file to write to, which takes the place of `path` when the block ends without an error.

    A reader, or a process killed at any moment, finds the old file (or none) or the whole new one: the bytes
    go to a temporary file in the same directory, reach the disk, and one rename makes them `path`. What is
    there already must be a file: a pipe or a device is not replaced.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "greeting"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"hello")
    ...     path.read_bytes()
    b'hello'
    """
    # A link stays a link: what it points to is replaced.
    path = Path(os.path.realpath(check_writable(path, overwrite=overwrite)))
    # Not by tempfile, whose files are for their owner alone: this one gets the permissions of any new file.
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")
    file = open(temporary, "xb")  # noqa: SIM115
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        if overwrite:
            os.replace(temporary, path)
        else:
            _rename_to_new(temporary, path)
        _sync_directory(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename, unless somebody else has written `path` in the meantime."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise OutputError(f"{str(path)!r} exists already and was left as it is") from None
    except OSError:  # a file system without links
        os.replace(temporary, path)
        return
    os.unlink(temporary)


def _sync_directory(directory: Path) -> None:
    """Let the new name reach the disk, too; not on Windows, where a directory cannot be opened."""
    if os.name != "posix":
        return
    with suppress(OSError):  # a directory that may not be listed, a file system that does not know how
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
