"""From dask collections, or a source on a cluster, to the rows of every problem.

Nothing of X comes to the client, nor of y: the labels are counted where they are. Imports dask, and is
imported only where there is something of dask's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import delayed
from dask.graph_manipulation import clone
from numpy.typing import NDArray

from majorant.errors import MajorantError
from majorant.estimators.sources import BlockEncoder, FoldSpec, OnDask, rows_by_problem
from majorant.rows.dask import Cluster
from majorant.rows.partitioned import PartitionedRows, identity
from majorant.rows.sources import RawBlock, Source, Tally

if TYPE_CHECKING:
    from majorant.estimators.svc import SparseSVC

__all__ = ["cluster_by_problem", "on_dask", "predicted_lazily"]


def on_dask(source: Source) -> OnDask:
    """Let the workers of the current Dask cluster load the blocks of a source, each some of them.

    ``SparseSVC().fit(on_dask(source))`` then trains on the cluster. Every worker must be able to read the
    source.

    Parameters
    ----------
    source : Source
        Of `majorant.datasets.open_source`, `from_blocks`, ….
    """
    blocks = range(source.n_blocks)
    raws = [delayed(source.load, pure=False)(i) for i in blocks]
    return OnDask(raws, [delayed(source.tally, pure=False)(i) for i in blocks], source)


class _Columns:
    """What is known of the columns of a collection."""

    name = "dask collection"

    def __init__(self, X: Any) -> None:
        columns = getattr(X, "columns", None)
        self.feature_names = None if columns is None else tuple(map(str, columns))
        self.n_features = int(X.shape[1]) if columns is None else len(columns)
        types = {np.dtype(X.dtype)} if columns is None else set(map(np.dtype, X.dtypes))
        self.dtype = np.dtype(np.float32 if types == {np.dtype(np.float32)} else np.float64)


def _from_collections(X: Any, y: Any, sample_weight: Any) -> OnDask:
    """The blocks of X with the labels and weights that belong to them."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    parts = [np.ravel(X.to_delayed()).tolist()]
    for name, other in (("y", y), ("sample_weight", sample_weight)):
        if other is None:
            parts.append([None] * len(parts[0]))
            continue
        if not hasattr(other, "__dask_graph__"):
            raise TypeError(f"X is a dask collection, so {name} must be one too, with the same blocks")
        if hasattr(X, "chunks") and hasattr(other, "chunks") and not np.isnan(X.chunks[0]).any():
            other = other.rechunk((X.chunks[0],))
        parts.append(np.ravel(other.to_delayed()).tolist())
        if len(parts[-1]) != len(parts[0]):
            raise ValueError(f"X has {len(parts[0])} blocks, and {name} {len(parts[-1])}: they must match")
    raw = delayed(_raw, pure=False)
    tally = delayed(_tally, pure=False)
    return OnDask(
        [raw(*block) for block in zip(*parts, strict=True)],
        [tally(y, weight) for _, y, weight in zip(*parts, strict=True)],
        _Columns(X),
    )


def _raw(X: Any, y: Any, weight: Any) -> RawBlock:
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    return RawBlock(values, np.asarray(y), None if weight is None else np.asarray(weight))


def _tally(y: Any, weight: Any) -> Tally:
    return Tally.of(np.asarray(y), None if weight is None else np.asarray(weight))


def cluster_by_problem(
    estimator: SparseSVC, X: Any, y: Any, sample_weight: Any, cut: FoldSpec | None = None
) -> tuple[OnDask, NDArray[Any], list[PartitionedRows]]:
    """The classes, by a count of all labels on the workers, and the rows as every problem labels them."""
    if isinstance(X, OnDask):
        if y is not None or sample_weight is not None:
            raise TypeError("A source has its own labels and weights: call fit(on_dask(source)), without y.")
        there = X
    else:
        if y is None:
            raise ValueError("y is missing: a dask collection needs its labels.")
        there = _from_collections(X, y, sample_weight)
    tallies = Cluster([partial(_task, identity, tally) for tally in there.tallies]).one_pass(identity)

    def make_store(prepare: BlockEncoder) -> Cluster:
        makers = (partial(prepare.only(i), i) for i in range(len(there.raws)))
        return Cluster([partial(_task, *pair) for pair in zip(makers, there.raws, strict=True)])

    return there, *rows_by_problem(estimator, there, tallies, cut, make_store)


def _task(function: Any, task: Any, name: str, anew: bool) -> Any:
    """The task, under this name, that applies a function to what another task makes."""
    return delayed(function, pure=False)(clone(task) if anew else task, dask_key_name=name)


def predicted_lazily(method: Any, X: Any, n_columns: int, dtype: Any) -> Any:
    """What a method of a model says of a collection: another collection, computed when that is asked for."""
    if isinstance(X, OnDask):
        raise MajorantError(
            "predict takes a dask collection, or a source block by block, not on_dask(source)"
        )
    if hasattr(X, "map_partitions"):
        meta = np.zeros(0, dtype=dtype) if n_columns == 1 else np.zeros((0, n_columns), dtype=dtype)
        return X.map_partitions(method, meta=meta)
    X = X.rechunk({1: -1})
    if n_columns == 1:
        return X.map_blocks(method, dtype=dtype, drop_axis=1, meta=np.zeros(0, dtype=dtype))
    chunks = (X.chunks[0], (n_columns,))
    return X.map_blocks(method, dtype=dtype, chunks=chunks, meta=np.zeros((0, n_columns), dtype=dtype))
