"""Downloads that go on where they were cut off, and that are whole or not there.

The bytes are gathered in `NAME.part`, beside a note of the address they come from, of the size, and of the
server's own mark for this version of the file (its ETag, or else its date). A later try, or a later run, asks
for the rest *of that version*; if the server has another one by now, or cannot send the rest alone, it sends
everything, and the part is begun anew. Only a part whose content has the expected hash is handed over.

pooch gives it its place: `pooch.retrieve` asks its downloader, which is ours, for a temporary file, and
renames that to `NAME`. It is given no hash, since it would check what was sent and not the content; and its
temporary file, whose name is another one in every run, is only ever a second name (a hard link) of a part
that is whole. So a process that is killed at any moment leaves no file of that name or the whole one, and no
bytes that the next run does not find.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from majorant.datasets.content import hash_mismatch
from majorant.errors import DownloadError
from majorant.files import atomic_write

__all__ = ["Report", "download"]

TRIES = 4
WAIT = 0.5  # seconds before the second try; twice as many before each one after it
TIMEOUT = 30.0  # seconds without a byte
PIECE = 1 << 14  # what is lost of a connection that is cut

Report = Callable[[int, int | None], None]
"""Told how many bytes are there and how many there will be (None: the server does not say)."""


class _CutError(Exception):
    """A failure that may have passed by the next try."""


@dataclass(frozen=True)
class _Version:
    """Which version of which file the bytes of a part belong to."""

    url: str
    mark: str
    size: int | None


def download(
    url: str,
    destination: Path,
    sha256: str | Collection[str],
    most_bytes: int | None = None,
    *,
    report: Report | None = None,
    tries: int = TRIES,
    wait: float = WAIT,
    timeout: float = TIMEOUT,
) -> Path:
    """Download a file, unless it is there already.

    Parameters
    ----------
    url : str
        An http or https address.
    destination : Path
        What the file will be called. Its directory is made if need be.
    sha256 : str or collection of str
        What the hash of the content, uncompressed, may be.
    most_bytes : int, optional
        A bound of what is transferred, and of what it is decompressed to.
    report : callable, optional
        Told of the progress.
    tries : int
        How many connections to make at most.
    wait : float
        Seconds before the second try; twice as many before each one after it.
    timeout : float
        Seconds without an answer after which a connection is given up.

    Returns
    -------
    Path
        `destination`.

    Raises
    ------
    DownloadError
        If the server cannot be reached, has no such file, cuts the connection every time (what has come is
        kept for the next run), or sends another content, or too much (which is removed).
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url!r} is not an http or https address")
    expected = (sha256,) if isinstance(sha256, str) else tuple(sha256)
    part = _Part(url, destination, most_bytes, report or (lambda done, total: None), timeout)

    def downloader(url: str, output_file: str, pooch: Any) -> None:
        os.unlink(output_file)  # a run that is killed from here on leaves the part alone
        part.complete(tries, wait)
        wrong = hash_mismatch(part.path, expected, most_bytes)
        if wrong is not None:
            part.remove()
            raise DownloadError(f"{url} sent something else, which was removed ({wrong})")
        try:  # the part keeps its own name, for a run that is killed before the last renaming
            os.link(part.path, output_file)
        except OSError:  # a file system without links
            os.replace(part.path, output_file)

    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _lock(destination.parent):
            if hash_mismatch(destination, expected, most_bytes) is not None:
                destination.unlink(missing_ok=True)  # pooch would take it as it is
                _retrieve(url, destination, downloader)
            part.remove()  # also what is left of a run that was killed just after the renaming
    except OSError as error:  # a full disk, a directory without permission
        raise DownloadError(f"{str(destination)!r} cannot be written ({error.strerror or error})") from None
    return destination


def _retrieve(url: str, destination: Path, downloader: Callable[..., None]) -> None:
    """Let pooch put the file into its place; without pooch's messages, since users see our own progress."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        pooch.retrieve(url, None, fname=destination.name, path=destination.parent, downloader=downloader)
    finally:
        logger.setLevel(level)


class _Part:
    """What has come of a file so far."""

    def __init__(self, url: str, destination: Path, most: int | None, report: Report, timeout: float) -> None:
        self.url, self.most, self.report, self.timeout = url, most, report, timeout
        self.host = urlsplit(url).netloc
        self.path = destination.with_name(destination.name + ".part")
        self.note = destination.with_name(destination.name + ".part.json")

    def complete(self, tries: int, wait: float) -> None:
        """Fetch what is missing, in at most `tries` tries."""
        for number in range(tries):
            if number:
                time.sleep(wait * 2 ** (number - 1))
            try:
                return self._fetch()
            except _CutError as error:
                failure = error
        raise DownloadError(f"{failure}, in {tries} {'try' if tries == 1 else 'tries'}")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def _fetch(self) -> None:
        """Ask for what is missing; `_CutError` if not all of it came."""
        import requests

        version = self._version()
        have = self.path.stat().st_size if version else 0
        if version and have == version.size:  # killed between the last byte and the renaming
            return
        headers = {"Accept-Encoding": "identity", "User-Agent": "majorant"}
        if version and have:
            headers |= {"Range": f"bytes={have}-", "If-Range": version.mark}
        try:
            response = requests.get(self.url, headers=headers, stream=True, timeout=self.timeout)
        except requests.Timeout:
            raise _CutError(f"{self.host} did not answer within {self.timeout:g} s") from None
        except requests.ConnectionError:
            raise _CutError(f"there was no connection to {self.host}") from None
        except requests.RequestException as error:
            raise DownloadError(f"{self.url!r} cannot be asked for ({type(error).__name__})") from None
        with response:
            if not (version and _goes_on(response, version, have)):
                version, have = self._begin(response), 0
            try:
                have = self._write(response.iter_content(PIECE), have, version.size)
            except requests.RequestException:
                raise _CutError(f"{self.host} cut the connection, or went silent") from None
        if version.size is not None and have != version.size:
            raise _CutError(f"{self.host} cut the connection")

    def _version(self) -> _Version | None:
        """What the bytes of an earlier try or run belong to, if they can be used."""
        try:
            version = _Version(**json.loads(self.note.read_text(encoding="utf-8")))
            fits = version.size is None or self.path.stat().st_size <= version.size
        except (OSError, ValueError, TypeError):
            return None
        return version if fits and version.url == self.url and isinstance(version.mark, str) else None

    def _begin(self, response: Any) -> _Version:
        """The version that is sent from its first byte on; an error if none is.

        The bytes of another version are forgotten *before* the note of the new one is written.
        """
        status, headers = response.status_code, response.headers
        if status in (HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE):
            self.remove()
            raise _CutError(f"{self.host} sent another part of the file than the one asked for")
        if status != HTTPStatus.OK:
            passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
            kind = _CutError if passing else DownloadError
            raise kind(f"{self.host} answered {status} {response.reason or ''}".rstrip())
        self.remove()
        length, mark = headers.get("Content-Length", ""), headers.get("ETag", "")
        if not mark or mark.startswith("W/"):  # a weak one does not vouch for every byte
            mark = headers.get("Last-Modified", "")
        if headers.get("Content-Encoding", "identity") != "identity":  # compressed on the way, unasked
            length = mark = ""
        version = _Version(self.url, mark, int(length) if length.isdigit() else None)
        if mark:  # without a mark the rest may belong to another version
            with atomic_write(self.note) as file:
                file.write(json.dumps(asdict(version)).encode())
        return version

    def _write(self, pieces: Iterable[bytes], have: int, total: int | None) -> int:
        """Add what comes to the bytes that are there; how many there are then."""
        self._refuse_if_too_much(total or 0)
        with open(self.path, "ab" if have else "wb") as file:
            self.report(have, total)
            for piece in pieces:
                file.write(piece)
                have += len(piece)
                self.report(have, total)
                if self.most is not None and have > self.most:
                    break
            file.flush()
            os.fsync(file.fileno())
        self._refuse_if_too_much(have)
        return have

    def _refuse_if_too_much(self, size: int) -> None:
        if self.most is not None and size > self.most:
            self.remove()
            raise DownloadError(f"{self.url} sends more than {self.most} bytes, too much for this file")


def _goes_on(response: Any, version: _Version, have: int) -> bool:
    """Whether an answer begins with the first byte that is missing, in the version that the part is of."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if response.status_code != HTTPStatus.PARTIAL_CONTENT or not found or int(found[1]) != have:
        return False
    return found[2] == "*" or version.size is None or int(found[2]) == version.size


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Let one process or thread at a time download into a directory; the others wait, and find a file there.

    The lock is on the directory itself, so it leaves nothing, and goes with the process that holds it,
    however that ends.
    """
    try:
        import fcntl
    except ImportError:  # Windows: two at a time spoil each other's part, which the hash finds out
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
