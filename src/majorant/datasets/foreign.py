"""Files that are something else than they are taken for, told by their first bytes.

Asked only after a reader has refused a file, to say why: what can be read is read, whatever it begins with.
"""

from __future__ import annotations

import re

from majorant.datasets.content import compression_of
from majorant.datasets.formats import FORMATS
from majorant.errors import DataFileError

__all__ = ["explained", "what_it_is"]

_UNPACK = "unpack it first, and name the file inside of it"
_SHEET = "save the sheet as CSV in UTF-8 with the program that it belongs to"

# The bytes that a file begins with; the format whose reader knows them; what it is, and what to do.
_BEGINNINGS: tuple[tuple[bytes, str | None, str], ...] = (
    (b"PK\x05\x06", "npz", f"an empty zip archive: {_UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", None, f"a 7z archive: {_UNPACK}"),
    (b"Rar!\x1a\x07", None, f"a RAR archive: {_UNPACK}"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None, f"an Office document, probably an Excel workbook: {_SHEET}"),
    (b"\x28\xb5\x2f\xfd", None, "compressed by zstd, which is not known here: gzip, bzip2 and xz are"),
    (b"%PDF-", None, "a PDF document: find the data themselves, as a table or in LIBSVM's format"),
    *(
        (each.magic, name, f"{each.title}: say format={name!r} (--format {name}), or name it .{name}")
        for name, each in FORMATS.items()
        if each.magic is not None
    ),
    (b"\x89HDF\r\n", "mat", "an HDF5 file: save its arrays by numpy.savez as .npz"),
    (b"\x93NUMPY", "npz", "one array of numpy: save X and y together by numpy.savez as .npz, or read it by "
     "open_source (--memory), with its labels in y.npy beside it"),
    (b"SQLite format 3\0", None, "an SQLite database: export the table as CSV"),
)  # fmt: skip

_PAGES = (b"<!doctype html", b"<html", b"<head", b"<body")


def explained(error: DataFileError, head: bytes, format: str) -> DataFileError:
    """The error of a reader, or a better one if the file is something else."""
    sentence = what_it_is(head, format)
    return error if sentence is None else DataFileError(sentence, error.path)


def what_it_is(head: bytes, format: str) -> str | None:
    """What a file is that is not of this format, and what to do; None if that is unknown.

    Parameters
    ----------
    head : bytes
        What the file begins with: a few hundred bytes, uncompressed.
    format : str
        What it was read as.
    """
    for beginning, own, sentence in _BEGINNINGS:
        # What a format of ours begins with may be the name of a column as well, but that is followed by text.
        if head.startswith(beginning) and own != format and (own is None or b"\0" in head):
            return f"this is {sentence}"
    if head.startswith(b"PK\x03\x04"):
        return _zip(head, format)
    if head[257:262] == b"ustar":
        return f"this is a tar archive: {_UNPACK}"
    if compression_of(head) is not None:
        return "this was compressed twice: decompress it once"
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return (
            "this is a pickle, which is never loaded, because it may run any program: save arrays by "
            "numpy.savez as .npz, or a data frame by its to_csv or to_parquet"
        )
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_PAGES):
        return (
            "this is an HTML page, and not data: open it in a browser to see what it says, and download the "
            "file itself"
        )
    if text.startswith(b"<?xml"):
        return "this is an XML document: convert the data in it to a table, e.g. CSV"
    if re.match(rb'\{\s*"|\[\s*[\[{"]', text):
        return "this looks like JSON, e.g. a model and not data: convert data in it to a table, e.g. CSV"
    return None


def _zip(head: bytes, format: str) -> str | None:
    """What is in a zip archive, by the names of its first files."""
    if format == "npz":
        return None
    if b"[Content_Types].xml" in head or b"docProps/" in head or b"xl/" in head:
        return f"this is an Excel workbook: {_SHEET}"
    if b"opendocument.spreadsheet" in head:
        return f"this is a spreadsheet: {_SHEET}"
    if b".npy" in head[:300]:
        return "this is an .npz archive of numpy: say format='npz' (--format npz), or name it .npz"
    return f"this is a zip archive: {_UNPACK}"
