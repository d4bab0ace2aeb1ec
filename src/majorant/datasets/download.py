"""Downloads that go on where they were cut off, and that are whole or not there.

The bytes are gathered in `NAME.part`, beside a note of the address they come from, of the size, and of the
server's own mark for this version of the file (its ETag, or else its date). A later try, or a later run, asks
for the rest *of that version*; if the server has another one by now, or cannot send the rest alone, it sends
everything, and the part is begun anew. Only a part whose content has the expected hash is renamed to `NAME`,
so a process that is killed at any moment leaves no file of that name or the whole one.

Not by `pooch.retrieve`: its temporary file has another name in every run, which leaves nothing to resume from
and an empty file for every run that was killed, and it knows the hash of what is sent, not of the content.
"""

from __future__ import annotations

import json
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

from majorant.datasets.hashes import why_not
from majorant.errors import DataFileError
from majorant.files import replacing

__all__ = ["DownloadError", "Report", "download"]

TRIES = 4
WAIT = 0.5  # seconds before the second try; twice as many before each one after it
TIMEOUT = 30.0  # seconds without a byte
PIECE = 1 << 14  # what is lost of a connection that is cut

Report = Callable[[int, int | None], None]
"""Told how many bytes are there and how many there will be (None: the server does not say)."""


class DownloadError(DataFileError):
    """A download that did not succeed; nothing is at its destination."""


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
        kept for the next run), or sends another content (which is removed).
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url!r} is not an http or https address")
    expected = (sha256,) if isinstance(sha256, str) else tuple(sha256)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _alone(destination):
            part = _Part(url, destination, report or (lambda done, total: None), timeout)
            if destination.exists() and why_not(destination, expected) is None:
                part.remove()  # the note, if a run was killed just after the renaming
                return destination
            _try_again(part.fetch, tries, wait)
            part.accept(expected)
    except OSError as error:  # a full disk, a directory without permission
        raise DownloadError(f"{str(destination)!r} cannot be written ({error.strerror or error})") from None
    return destination


def _try_again(fetch: Callable[[], None], tries: int, wait: float) -> None:
    for number in range(1, tries + 1):
        try:
            return fetch()
        except _CutError as error:
            if number == tries:
                times = "1 try" if tries == 1 else f"{tries} tries"
                raise DownloadError(f"{error}, in {times}") from None
            time.sleep(wait * 2 ** (number - 1))


class _Part:
    """What has come of a file so far."""

    def __init__(self, url: str, destination: Path, report: Report, timeout: float) -> None:
        self.url, self.destination, self.report, self.timeout = url, destination, report, timeout
        self.host = urlsplit(url).netloc
        self.path = destination.with_name(destination.name + ".part")
        self.note = destination.with_name(destination.name + ".part.json")

    def fetch(self) -> None:
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
            version, have, mode = self._continuation(response, version, have)
            try:
                have = self._write(response.iter_content(PIECE), version, have, mode)
            except requests.RequestException:
                raise _CutError(f"{self.host} cut the connection, or went silent") from None
        if version.size is not None and have != version.size:
            raise _CutError(f"{self.host} cut the connection")

    def _continuation(self, response: Any, version: _Version | None, have: int) -> tuple[_Version, int, str]:
        """What an answer is a version of, after how many bytes it goes on, and how to open the part."""
        status = response.status_code
        if status == HTTPStatus.PARTIAL_CONTENT and version and _goes_on(response, version, have):
            return version, have, "ab"
        if status == HTTPStatus.OK:
            return self._begin(response), 0, "wb"
        if status in (HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE):
            self.remove()
            raise _CutError(f"{self.host} sent another part of the file than the one asked for")
        said = f"{self.host} answered {status} {response.reason or ''}".rstrip()
        passing = status >= 500 or status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        raise (_CutError if passing else DownloadError)(said)

    def _write(self, pieces: Iterable[bytes], version: _Version, have: int, mode: str) -> int:
        """Add what comes to the part; how many bytes there are then."""
        with open(self.path, mode) as file:
            self.report(have, version.size)
            for piece in pieces:
                file.write(piece)
                have += len(piece)
                self.report(have, version.size)
            file.flush()
            os.fsync(file.fileno())
        return have

    def _version(self) -> _Version | None:
        """What the bytes of an earlier try or run belong to, if they can be used."""
        try:
            version = _Version(**json.loads(self.note.read_text(encoding="utf-8")))
            fits = version.size is None or self.path.stat().st_size <= version.size
        except (OSError, ValueError, TypeError):
            return None
        return version if fits and version.url == self.url and isinstance(version.mark, str) else None

    def _begin(self, response: Any) -> _Version:
        """Forget the bytes of another version *before* the note of the new one is written."""
        self.remove()
        headers = response.headers
        length, mark = headers.get("Content-Length", ""), headers.get("ETag", "")
        if not mark or mark.startswith("W/"):  # a weak one does not vouch for every byte
            mark = headers.get("Last-Modified", "")
        if headers.get("Content-Encoding", "identity") != "identity":  # compressed on the way, unasked
            length = mark = ""
        version = _Version(self.url, mark, int(length) if length.isdigit() else None)
        if mark:  # without a mark nobody can tell whether the rest belongs to this part
            with replacing(self.note) as file:
                file.write(json.dumps(asdict(version)).encode())
        return version

    def accept(self, expected: Collection[str]) -> None:
        """Rename the part to what it is, if that is what it should be."""
        wrong = why_not(self.path, expected)
        if wrong is not None:
            self.remove()
            raise DownloadError(f"{self.url} sent something else, which was removed ({wrong})")
        os.replace(self.path, self.destination)
        self.note.unlink(missing_ok=True)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def _goes_on(response: Any, version: _Version, have: int) -> bool:
    """Whether an answer begins with the first byte that is missing, in the version that the part is of."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if not found or int(found[1]) != have:
        return False
    return found[2] == "*" or version.size is None or int(found[2]) == version.size


@contextmanager
def _alone(destination: Path) -> Iterator[None]:
    """Let one process or thread at a time download a file; the others wait, and find it there.

    The lock goes with the process that holds it, however that ends.
    """
    try:
        import fcntl
    except ImportError:  # Windows: two at a time spoil each other's part, which the hash finds out
        yield
        return
    with open(destination.with_name(f".{destination.name}.lock"), "wb") as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
