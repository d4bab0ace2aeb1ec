"""One function that reads every format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.formats import FORMATS, checked_format, format_by_name
from majorant.datasets.options import ReadOptions
from majorant.datasets.sniff import explained_errors
from majorant.errors import DataFileError

__all__ = ["Data", "read", "read_file"]


@dataclass(frozen=True)
class Data:
    """A table of features, its labels if it has any, and where it came from."""

    X: Any
    """A float64 array or `scipy.sparse.csr_array` (n_rows, n_features)."""
    y: NDArray[Any] | None
    """Labels: integers where all of them are, else floats or strings; None if the file has none."""
    feature_names: tuple[str, ...] | None
    """The names of the columns, where the file has names."""
    source: str
    """The file or name that was read, as the user gave it."""
    sha256: str
    """Of the content, uncompressed."""
    label: str | None = None
    """The name of the column that the labels come from, where it has a name."""


def read(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    label: str | int | None = None,
    labelled: bool | None = True,
    features: int | None = None,
    drop: Sequence[str | int] = (),
    zero_based: bool = False,
    header: bool = True,
    columns: Sequence[str] | None = None,
) -> Data:
    r"""Read features and labels from a file.

    What cannot be read exactly as it is meant is an error that says where: values that are missing or not
    finite, text where numbers should be, indices that repeat. Compressed files (gzip, bzip2, xz) are known by
    their first bytes.

    Parameters
    ----------
    source : path or "-"
        The file; "-" is standard input.
    format : {"libsvm", "csv", "tsv", "parquet", "arrow", "npz", "mat"}, optional
        By default the ending of the name says it, after .gz, .bz2 or .xz. All other names, and standard
        input, are LIBSVM text.
    label : str or int, optional
        The column of the labels in a table, by name or number (from 0; -1 is the last). By default the one
        that is called label, target, class or y, in upper or lower case. Of a file with several arrays, the
        name of that with the labels. LIBSVM text has its labels at the beginning of the lines.
    labelled : bool or None, default=True
        True: a file without labels is an error. None: labels if there are any. False: none are returned, and
        those that are there are no features either.
    features : int, optional
        The number of features. LIBSVM text does not say it: by default it is the largest index. A test file
        should be given that of the training data. More of them, or in a table another number, is an error.
    drop : sequence of str or int, optional
        Columns of a table to leave out.
    zero_based : bool, default=False
        The indices of LIBSVM text count from 0.
    header : bool, default=True
        The first line of CSV or TSV has the names of the columns.
    columns : sequence of str, optional
        Of a table with names, the columns that are features, in this order, e.g. a model's
        `feature_names_in_`. None of them is the label, whatever it is called; what is in other columns does
        not matter.

    Notes
    -----
    Numbers are decimals, rounded as `float` rounds them. LIBSVM text may have comments after "#", lines that
    end with CRLF, and tabs; empty lines are skipped (in a file without labels they are an error: they may be
    rows without features). Tables are UTF-8 with quotation marks by RFC 4180. Nothing is unpickled.

    Returns
    -------
    data : Data
        X is a CSR array if the file is sparse (LIBSVM, sparse matrices in .npz and .mat), else an array.

    Raises
    ------
    DataFileError
        The message begins with file:line:column, as far as they are known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "flowers.csv"
    ...     _ = path.write_text("width,length,class\n0.2,1.4,setosa\n1.8,5.1,virginica\n")
    ...     data = read(path)
    >>> data.X
    array([[0.2, 1.4],
           [1.8, 5.1]])
    >>> data.y.tolist(), data.feature_names
    (['setosa', 'virginica'], ('width', 'length'))
    """
    return read_file(
        source, format, ReadOptions(label, labelled, features, drop, zero_based, header, columns)
    )


def read_file(source: str | os.PathLike[str], format: str | None, options: ReadOptions) -> Data:
    """`read`, with the options together."""
    kind = checked_format(format) or format_by_name(source)
    with Content(source) as content:
        with explained_errors(content, kind):
            found = FORMATS[kind].read(content, options)
        width = found.X.shape[1]
        if options.features not in (None, width):
            raise DataFileError(f"{width} features, where {options.features} are expected", content.path)
        return Data(found.X, found.y, found.feature_names, os.fspath(source), content.sha256, found.label)
