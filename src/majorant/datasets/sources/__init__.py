"""Data that need not fit into memory: one function that opens them all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from majorant.datasets.content import Content, is_compressed
from majorant.datasets.formats import FORMATS, checked_format, format_by_name
from majorant.datasets.options import ReadOptions
from majorant.datasets.preprocessing import Preprocessing
from majorant.datasets.readers import read_file, warn_of
from majorant.datasets.sniff import explained_errors
from majorant.datasets.sources.blocks import ChainSource, DataSource, FileSource
from majorant.datasets.sources.libsvm_text import LibsvmSource
from majorant.errors import DataFileError, MajorantError
from majorant.rows.sources import BLOCK_BYTES, DEFAULT_MEMORY, Source, from_arrays, from_blocks, n_bytes

__all__ = ["Source", "from_arrays", "from_blocks", "open_source"]

# How many blocks fit into the memory at least, unless their size is given.
LEAST_BLOCKS = 8


def open_source(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    label: str | int | None = None,
    weight: str | None = None,
    format: str | None = None,
    features: int | None = None,
    drop: Sequence[str | int] = (),
    zero_based: bool = False,
    header: bool = True,
    labelled: bool | None = True,
    columns: Sequence[str] | None = None,
    preprocessing: Preprocessing | None = None,
    rows_per_block: int | None = None,
    block_bytes: int | str | None = None,
    memory: int | str = DEFAULT_MEMORY,
) -> Source:
    r"""Open data that need not fit into memory, for ``SparseSVC().fit(source)``.

    ========================  =======================================================================
    LIBSVM text               cut at line ends; where, is kept in the user's cache
    X.npy                     with y.npy beside it, or `label`
    a directory               with X.npy and y.npy, or with the CSR arrays data.npy, indices.npy, indptr.npy,
                              and y.npy; shape.npy may say how many features there are
    .parquet                  by row groups
    .npz, .csv, …             all other files that `read` knows, and compressed ones: one block each
    "-"                       standard input, read whole and kept in memory
    a list of these           one after the other
    ========================  =======================================================================

    Parameters
    ----------
    path : path, or sequence of paths
    label : str or int, optional
        Of a table, the column of the labels; of .npy, the file of the labels; of .npz, the array.
    weight : str, optional
        Of a Parquet table, the column of the sample weights; of .npy, the file.
    format, features, drop, zero_based, header, labelled, columns, preprocessing
        As in `read`. What `preprocessing` learns of several files, it learns from the first one.
    rows_per_block : int, optional
        The rows of a block, where they can be chosen: .npy and CSR arrays.
    block_bytes : int or str, optional
        The size of a block in memory; by default 4 MiB (dense: or more, for at least twice as many rows
        as features), but at most an eighth of `memory`.
    memory : int or str, default="1GB"
        How many bytes of the rows a fit may keep. It keeps the first blocks, and reads the others anew in
        every pass.

    Returns
    -------
    Source
        It holds no data, and can be pickled. The same cuts give the same model, bit for bit, whatever the
        memory is.

    Raises
    ------
    DataFileError
        What is wrong with a file, and where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from majorant import SparseSVC
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "rows.txt"
    ...     _ = path.write_text("1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:0.5 3:0.1\n")
    ...     source = open_source(path, memory="2GB")
    ...     model = SparseSVC("l2", lam=0.1).fit(source)
    >>> source.n_blocks, source.n_features
    (1, 3)
    """
    if rows_per_block is not None and rows_per_block < 1:
        raise MajorantError(f"rows_per_block={rows_per_block!r} must be at least 1")
    block_size = BlockSize(
        rows_per_block, None if block_bytes is None else n_bytes(block_bytes), n_bytes(memory)
    )
    options = ReadOptions(
        label, labelled, features, drop, zero_based, header, columns, preprocessing, weight
    )  # fmt: skip
    source = open_files(path, format, options, block_size)
    warn_of(source)
    return source


def open_files(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: str | None,
    options: ReadOptions,
    block_size: BlockSize,
) -> Source:
    """`open_source`, with the options together."""
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not paths:
        raise MajorantError("there is no file in the list of files to open")
    parts: list[Source] = []
    for each in paths:
        parts.append(_open(os.fspath(each), format, options, block_size))
        options = replace(options, preprocessing=parts[0].preprocessing)
    source = parts[0] if len(parts) == 1 else _chain(parts)
    source.memory = block_size.memory
    return source


@dataclass(frozen=True)
class BlockSize:
    """How large blocks are to be."""

    rows: int | None
    """As the user has said."""
    given_bytes: int | None
    """As the user has said."""
    memory: int

    @property
    def bytes(self) -> int:
        """About how many bytes a block may have."""
        return self.given_bytes or min(BLOCK_BYTES, self.memory // LEAST_BLOCKS)

    def dense_rows(self, row_bytes: int, n_features: int) -> int:
        """How many rows of a dense matrix make a block.

        Some answers of a block are matrices of all pairs of features: it should be larger than they are.
        """
        rows = self.bytes // row_bytes
        if self.given_bytes is None:
            rows = max(rows, min(2 * n_features, self.memory // LEAST_BLOCKS // row_bytes))
        return self.rows or max(rows, 1)


def _open(path: str, format: str | None, options: ReadOptions, block_size: BlockSize) -> Source:
    where = Path(path)
    if format is None and (where.is_dir() or where.suffix.lower() == ".npy"):
        from majorant.datasets.sources.npy import open_arrays

        return open_arrays(where, options, block_size)
    kind = checked_format(format) or format_by_name(path)
    compressed = path != "-" and is_compressed(path)
    if options.weight is not None and (kind != "parquet" or compressed or path == "-"):
        raise DataFileError("sample weights are read from .npy and Parquet files only", path)
    if block_size.rows is not None:
        raise DataFileError("rows_per_block is for .npy files: others are cut by block_bytes", path)
    too_large = f"too large for memory={block_size.memory / 1e6:,.3g} MB"
    if path == "-":  # what can be read only once is kept
        source = DataSource(read_file(path, format, options))
        if source.load(0).nbytes > block_size.memory // 2:
            raise DataFileError(
                f"standard input is kept whole, and these rows are {too_large}: write them to a file first",
                "<stdin>",
            )
        return source
    if FORMATS[kind].source is not None and not compressed:
        with Content(path) as content, explained_errors(content, kind):
            return FORMATS[kind].open(path, options, block_size.bytes)
    if where.stat().st_size > block_size.memory // 2:
        raise DataFileError(
            f"{'compressed files' if compressed else f'{kind} files'} are read whole, and this one is "
            f"{too_large}: split it, or save it as .npy, Parquet or LIBSVM text",
            path,
        )
    return FileSource(path, format, options)


def _chain(parts: Sequence[Source]) -> Source:
    widest = max(part.n_features for part in parts)
    for part in parts:
        if isinstance(part, LibsvmSource):
            part.n_features = widest
    return ChainSource(parts)
