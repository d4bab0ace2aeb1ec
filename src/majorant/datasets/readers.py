"""One function that reads every format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from majorant.datasets.content import Content
from majorant.datasets.formats import FORMATS, checked_format, format_by_name
from majorant.datasets.options import ReadOptions
from majorant.datasets.preprocessing import Preprocessing
from majorant.datasets.sniff import explained_errors
from majorant.errors import DataFileError

__all__ = ["Data", "read", "read_file", "warn_of"]


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
    preprocessing: Preprocessing | None = None
    """How the columns of a table have become features, if this was asked for; fitted."""
    unnamed_columns: int | None = None
    """How many columns a table without a header has; they are called "column 0", "column 1", …."""
    notes: tuple[str, ...] = ()
    """What a reader of the data should know of the reading: sentences, of which `read` warns."""


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
    preprocessing: Preprocessing | None = None,
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
    preprocessing : Preprocessing, optional
        What is filled in for missing values of a table, and which of its columns are categories. What is
        learned from the rows is in `Data.preprocessing`, and may be passed here for other rows.

    Notes
    -----
    Numbers are decimals, rounded as `float` rounds them. LIBSVM text may have comments after "#", lines that
    end with CRLF, and tabs; empty lines are skipped (in a file without labels they are an error: they may be
    rows without features). Tables are UTF-8 with quotation marks by RFC 4180; True and False are 1 and 0. A
    first column without a name is the row index of a data frame: it is left out, with a warning. Nothing is
    unpickled.

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
    options = ReadOptions(label, labelled, features, drop, zero_based, header, columns, preprocessing)
    data = read_file(source, format, options)
    warn_of(data)
    return data


def warn_of(data: Any) -> None:
    """Warn of what there is to know of the reading of some data, or a source."""
    for note in data.notes:
        warnings.warn(f"{data.source if isinstance(data, Data) else data.name}: {note}", stacklevel=3)


def read_file(source: str | os.PathLike[str], format: str | None, options: ReadOptions) -> Data:
    """`read`, with the options together."""
    kind = checked_format(format) or format_by_name(source)
    with Content(source) as content:
        with explained_errors(content, kind):
            found = FORMATS[kind].read(content, options)
        width = found.X.shape[1]
        if options.features not in (None, width):
            raise DataFileError(f"{width} features, where {options.features} are expected", content.path)
        return Data(
            found.X, found.y, found.feature_names, os.fspath(source), content.sha256, *found[3:]
        )  # fmt: skip
