"""Sources: descriptions of blocks of rows that can be loaded again and again.

A source holds no data: it can be pickled, and loads block i whenever it is asked to, in any process.
`stream.py` reads the blocks of a source in passes, `dask.py` loads them on the workers of a cluster.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from majorant.errors import MajorantError
from majorant.rows.sparse import corruption, is_canonical
from majorant.status import Vector

DEFAULT_MEMORY = 10**9
"""The bytes of rows that a fit keeps in memory, by default."""

BLOCK_BYTES = 4 * 2**20
"""The bytes of a block in memory, by default: small enough for the cache of a processor."""


class RawBlock(NamedTuple):
    """Some rows as they were loaded: features, labels of any type, and weights if there are any."""

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of the block in memory, with labels and weights in double precision."""
        X = self.X
        entries = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        return int(entries + 16 * X.shape[0])


@dataclass(frozen=True, eq=False)
class Tally:
    """The labels of a block, each once, with the number and the weight of its rows."""

    labels: NDArray[Any]
    rows: NDArray[np.int64]
    weights: Vector

    @classmethod
    def of(cls, y: NDArray[Any], weight: NDArray[Any] | None = None) -> Tally:
        """Count the rows of each label, and add up their weights."""
        labels, codes, rows = np.unique(y, return_inverse=True, return_counts=True)
        weights = rows if weight is None else np.bincount(codes, weight, len(labels))
        return cls(labels, rows, weights.astype(np.float64))


class Source(ABC):
    """Blocks of labelled rows that can be loaded again and again, in any process.

    `SparseSVC().fit(source)` trains on it; subclasses say how many blocks there are and load one of them. A
    source must be picklable, and `load(i)` must give the same rows every time.
    """

    name: str = "source"
    """The name of the source in messages."""
    memory: int = DEFAULT_MEMORY
    """The bytes of rows that a fit may keep in memory."""
    feature_names: tuple[str, ...] | None = None
    label: str | None = None
    """The name of the column of the labels, if it has a name."""
    dtype: np.dtype[Any] = np.dtype(np.float64)
    """The type of X and of the coefficients, float64 or float32."""
    sha256: str | None = None
    """The SHA-256 of the uncompressed content, if it was read as a whole."""
    preprocessing: Any = None
    """How the columns of a table become features: a `majorant.datasets.Preprocessing`, or None."""
    unnamed_columns: int | None = None
    """The number of columns of a table without a header."""
    notes: tuple[str, ...] = ()
    """Sentences about the reading of the data, for the user."""

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """The number of blocks."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of X, the same in every block."""

    @abstractmethod
    def load(self, i: int) -> RawBlock:
        """Block i."""

    def tally(self, i: int) -> Tally:
        """The labels of block i; overridden if they can be read without X."""
        _, y, weight = checked(self, i, self.load(i))
        assert y is not None
        return Tally.of(y, weight)

    @property
    def has_labels(self) -> bool:
        """Whether the rows have labels; overridden if that is known without loading a block."""
        return self.load(0).y is not None

    def n_rows(self, i: int) -> int:
        """The number of rows of block i; overridden if it is known without loading the block."""
        return int(self.load(i).X.shape[0])

    def size(self, i: int) -> int | None:
        """The bytes of block i in memory; None if that is not known without loading it."""
        return None

    def __repr__(self) -> str:
        blocks = f"{self.n_blocks} block{'' if self.n_blocks == 1 else 's'}"
        return f"<{type(self).__name__} {self.name}: {blocks}, {self.n_features} features>"


class FunctionSource(Source):
    """Blocks that a function makes."""

    name = "function"
    n_blocks = n_features = 0

    def __init__(self, load: Callable[[int], Any], n_blocks: int, n_features: int) -> None:
        self._load, self.n_blocks, self.n_features = load, n_blocks, n_features

    def load(self, i: int) -> RawBlock:
        return RawBlock(*self._load(i))


class ArraySource(FunctionSource):
    """Rows of arrays that are in memory already, cut into blocks."""

    name = "arrays"

    def __init__(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, cuts: Sequence[int] = ()
    ) -> None:
        weight = None if sample_weight is None else np.asarray(sample_weight)
        raw, ends = RawBlock(X, np.asarray(y), weight), [0, *cuts, X.shape[0]]
        super().__init__(partial(_part, raw, ends), len(cuts) + 1, int(X.shape[1]))
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def _part(raw: RawBlock, ends: Sequence[int], i: int) -> Iterator[Any]:
    return (None if array is None else array[ends[i] : ends[i + 1]] for array in raw)


class TransformedSource(Source):
    """The blocks of another source with a function of X: scaled, for example, or some of its columns.

    Parameters
    ----------
    source : Source
    transform : function
        X ↦ another X with the same number of rows. It is applied whenever a block is loaded.
    n_features : int, optional
        The number of columns of the new X; by default that of the source.
    feature_names : tuple of str, optional
    """

    n_blocks = n_features = 0

    def __init__(
        self,
        source: Source,
        transform: Callable[[Any], Any],
        n_features: int | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self.source, self.transform, self.n_blocks = source, transform, source.n_blocks
        self.n_features = source.n_features if n_features is None else n_features
        self.feature_names = feature_names or source.feature_names
        for name in (
            "name",
            "memory",
            "label",
            "dtype",
            "sha256",
            "preprocessing",
            "unnamed_columns",
            "notes",
        ):
            setattr(self, name, getattr(source, name))

    @property
    def has_labels(self) -> bool:
        return self.source.has_labels

    def load(self, i: int) -> RawBlock:
        X, y, weight = self.source.load(i)
        return RawBlock(self.transform(X), y, weight)

    def tally(self, i: int) -> Tally:
        return self.source.tally(i)

    def n_rows(self, i: int) -> int:
        return self.source.n_rows(i)

    def size(self, i: int) -> int | None:
        return self.source.size(i)


def from_blocks(
    load: Callable[[int], Any],
    n_blocks: int,
    *,
    n_features: int | None = None,
    memory: int | str = DEFAULT_MEMORY,
) -> Source:
    """A source whose blocks a function makes or loads.

    Parameters
    ----------
    load : function
        load(i) returns (X, y) or (X, y, sample_weight): arrays, or a sparse matrix and arrays. It must return
        the same rows at every call, is called from several threads, and must be picklable if the source is
        sent to other processes.
    n_blocks : int
        The number of blocks.
    n_features : int, optional
        The number of columns of X; by default block 0 is loaded to find out.
    memory : int or str, default="1GB"
        The bytes of rows that a fit may keep in memory.

    Examples
    --------
    >>> import numpy as np
    >>> def load(i):
    ...     rng = np.random.default_rng(i)
    ...     X = rng.standard_normal((1000, 5))
    ...     return X, X[:, 0] > 0
    >>> from_blocks(load, 20)
    <FunctionSource function: 20 blocks, 5 features>
    """
    if n_blocks < 1:
        raise MajorantError(f"n_blocks={n_blocks!r} must be at least 1")
    width = int(RawBlock(*load(0)).X.shape[1]) if n_features is None else n_features
    source = FunctionSource(load, n_blocks, width)
    source.memory = n_bytes(memory)
    return source


def from_arrays(
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    rows_per_block: int,
    memory: int | str = DEFAULT_MEMORY,
) -> Source:
    """A source of rows that are in memory, in blocks of a given number of rows, for experiments."""
    source = ArraySource(X, y, sample_weight, cuts=range(rows_per_block, X.shape[0], rows_per_block))
    source.memory = n_bytes(memory)
    return source


def n_bytes(size: int | str) -> int:
    """The number of bytes of a size such as "2GB", "500 MiB", or a number.

    >>> n_bytes("1.5GB"), n_bytes("2 KiB"), n_bytes(4096)
    (1500000000, 2048, 4096)
    """
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(?:([KMGT])(I?))?B?\s*", str(size).upper())
    if match:
        unit = (1024 if match[3] else 1000) ** " KMGT".index(match[2] or " ")
        if (found := int(float(match[1]) * unit)) >= 1:
            return found
    raise MajorantError(f"{size!r} is no size in memory: say e.g. 500MB, 2GB or 2GiB")


# Checking --------------------------------------------------------------------------------------------------


def checked(source: Source, i: int, raw: RawBlock, *, known: bool = False) -> RawBlock:
    """The block with a floating-point X, dense or CSR, and weights as float64; an error if it is not valid.

    `known` says that a block with the same X was checked before: only types and shapes are checked again.
    """
    X, y, weight = raw
    where = f"{source.name}, block {i}"
    if y is None:
        raise MajorantError(f"{where} has no labels")
    X, y = _floats(X, where), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != source.n_features:
        raise MajorantError(f"{where}: X has the shape {X.shape}, but must have {source.n_features} columns")
    if y.shape != (X.shape[0],):
        raise MajorantError(f"{where} has {X.shape[0]} rows, but labels of the shape {y.shape}")
    if not X.shape[0]:
        raise MajorantError(f"{where} has no rows")
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if weight.shape != y.shape:
            raise MajorantError(f"{where} has {X.shape[0]} rows, but weights of the shape {weight.shape}")
    if not known:
        _check_values(X, weight, where)
        if sp.issparse(X) and not is_canonical(X):
            X = X.copy()
            X.has_canonical_format = False  # the flag may be wrong
            X.sum_duplicates()
    return RawBlock(X, y, weight)


def _floats(X: Any, where: str) -> Any:
    if sp.issparse(X):
        if X.format != "csr":
            _check_indices(X, where)
            X = X.tocsr()
    elif not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
        raise MajorantError(f"{where}: X must be an array or a sparse matrix, got {type(X).__name__}")
    if X.dtype in (np.float64, np.float32):
        return X
    if X.dtype.kind not in "biuf":
        raise MajorantError(f"{where}: X must be made of numbers, got the type {X.dtype}")
    return X.astype(np.float64)


def _check_indices(X: Any, where: str) -> None:
    if wrong := corruption(X):
        raise MajorantError(f"{where}: X is a corrupt sparse matrix: {wrong}")


def _check_values(X: Any, weight: Vector | None, where: str) -> None:
    if sp.issparse(X):
        _check_indices(X, where)
    # A finite sum shows that all values are finite; the sum of finite values may overflow.
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(values.sum())
    if suspicious and not np.all(np.isfinite(values)):
        raise MajorantError(f"{where}: X has missing (NaN) or infinite values: replace them first")
    if weight is not None and not (np.all(np.isfinite(weight)) and np.all(weight >= 0.0)):
        raise MajorantError(f"{where}: weights must be finite and not negative")
