"""One function that reads every format."""

from __future__ import annotations

import os
from collections.abc import Sequence

from majorant.datasets.content import Content
from majorant.datasets.data import Data
from majorant.datasets.foreign import explained
from majorant.datasets.formats import FORMATS, checked_format, format_by_name
from majorant.datasets.wanted import Wanted
from majorant.errors import DataFileError

__all__ = ["read"]


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
    kind = checked_format(format) or format_by_name(source)
    wanted = Wanted(label, labelled, features, drop, zero_based, header, columns)
    with Content(source) as content:
        try:
            found = FORMATS[kind].read(content, wanted)
        except DataFileError as error:
            raise explained(error, content.head, kind) from error.__cause__
        if features is not None and found.X.shape[1] != features:
            raise DataFileError(f"{found.X.shape[1]} features, where {features} are expected", content.path)
        return Data(found.X, found.y, found.feature_names, os.fspath(source), content.sha256, found.label)
