"""Data sets by name: found on this machine, or downloaded.

A file is looked for in the directory that the environment variable MAJORANT_DATA names and then in the user's
cache; if it is in neither, it is downloaded into the cache. Wherever it is, its content must have the hash of
the record.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from majorant.datasets.catalogue import REGISTRY, DatasetInfo
from majorant.datasets.content import hash_mismatch
from majorant.datasets.readers import Data
from majorant.errors import DataFileError, DownloadError

__all__ = ["describe", "find", "load"]

VARIABLE = "MAJORANT_DATA"
ENDINGS = ("", ".bz2", ".gz", ".xz", ".txt")


def load(name: str, *, download: bool = True, progress: bool = True) -> Data:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `REGISTRY`, for example "a1a" or "a1a.t".
    download : bool
        Whether to download a file that is not on this machine.
    progress : bool
        Whether to show on standard error how far a download is.

    Returns
    -------
    Data
        With as many features as the training and the test file have together.
    """
    from majorant.datasets.readers import read

    path = find(name, download=download, progress=progress)
    info = REGISTRY[name]
    data = read(path, features=info.n_features)
    if data.sha256 not in info.hashes:
        raise DataFileError("the file changed between being checked and being read; load it again", path)
    return dataclasses.replace(data, source=name)


def find(name: str, *, download: bool = True, progress: bool = True) -> Path:
    """The file of a data set: from MAJORANT_DATA, the cache, or the address where it is published.

    Parameters
    ----------
    name : str
        One of `REGISTRY`.
    download : bool
        Whether to download a file that is not on this machine.
    progress : bool
        Whether to show on standard error how far a download is.

    Returns
    -------
    Path
        A file, compressed or not, whose content has been checked.

    Raises
    ------
    DataFileError
        If there is no such name or no such file, saying which file to put where; or if a file of that name
        holds something else.
    """
    info = _record(name)
    directory, cache = _data_directory(), _cache()
    wrong: list[str] = []
    for place in (directory, cache):
        for path in _candidates(info, place):
            problem = hash_mismatch(path, info.hashes, info.most_bytes)
            if problem is None:
                return path
            wrong.append(f"{problem}, so it is not {name}")
        # What is wrong in the user's own directory is his to put right; the cache is ours to replace.
        if wrong and place == directory:
            raise DataFileError(f"{wrong[0]}: replace the file, or remove it")
    failure = ""
    if info.address and download:
        try:
            return _downloaded(info, info.address, cache, progress)
        except DownloadError as error:
            failure = f" and could not be downloaded ({error})"
    elif wrong:
        raise DataFileError(wrong[0])
    raise DataFileError(_missing(info, directory or cache, failure))


def describe() -> list[dict[str, Any]]:
    """A line for each data set: name, rows, features, classes, size, task, and where its file is.

    Only looks for files, without reading them: whether their content is right is checked by `find`.

    Returns
    -------
    list of dict
        `size` is in bytes, uncompressed; `where` is a path, or "not here".
    """
    places = (_data_directory(), _cache())
    return [
        {
            "name": info.name,
            "rows": info.n_rows,
            "features": info.n_features,
            "classes": info.n_classes,
            "size": info.size,
            "task": info.task,
            "where": next((str(path) for place in places for path in _candidates(info, place)), "not here"),
        }
        for info in REGISTRY.values()
    ]


def _record(name: str) -> DatasetInfo:
    if name in REGISTRY:
        return REGISTRY[name]
    close = difflib.get_close_matches(name, REGISTRY, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(REGISTRY)}"
    raise DataFileError(f"no data set is called {name!r}; {hint}")


def _data_directory() -> Path | None:
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    directory = Path(named).expanduser()
    if not directory.is_dir():
        raise DataFileError(f"{VARIABLE} names {named!r}, which is not a directory")
    return directory


def _cache() -> Path:
    import pooch

    return Path(pooch.os_cache("majorant"))


def _candidates(info: DatasetInfo, directory: Path | None) -> list[Path]:
    if directory is None:
        return []
    paths = (directory / (file + ending) for file in info.files for ending in ENDINGS)
    return [path for path in paths if path.is_file()]


def _downloaded(info: DatasetInfo, address: str, cache: Path, progress: bool) -> Path:
    from majorant.datasets.download import download
    from majorant.datasets.progress import TransferProgress

    with TransferProgress(info.name, address) if progress else nullcontext() as report:
        destination = cache / _published_name(address)
        return download(address, destination, info.hashes, info.most_bytes, report=report)


def _published_name(address: str) -> str:
    return address.rsplit("/", 1)[-1]


def _missing(info: DatasetInfo, place: Path, failure: str) -> str:
    """Which file to put where."""
    file, source = info.files[0], f"{info.origin}; no address is known where this file is published"
    if info.address:
        file, source = _published_name(info.address).removesuffix(".bz2"), f"from {info.address}"
    where = f"into {str(place)!r}, or name a directory that holds it by {VARIABLE}"
    if os.environ.get(VARIABLE):
        where = f"into {str(place)!r}, the directory that {VARIABLE} names"
    return f"{info.name} is not on this machine{failure}: put {file} or {file}.bz2 ({source}) {where}"
