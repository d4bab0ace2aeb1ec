"""Data from files and from the registry."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from majorant.datasets.catalogue import REGISTRY, DatasetInfo
from majorant.datasets.preprocessing import Preprocessing
from majorant.datasets.readers import Data, read
from majorant.datasets.registry import describe, find, load
from majorant.datasets.writers import write_libsvm

if TYPE_CHECKING:
    from majorant.datasets.sources import Source, from_arrays, from_blocks, open_source

__all__ = [
    "REGISTRY",
    "Data",
    "DatasetInfo",
    "Preprocessing",
    "Source",
    "describe",
    "find",
    "from_arrays",
    "from_blocks",
    "load",
    "on_dask",
    "open_source",
    "read",
    "write_libsvm",
]


def on_dask(source: Source) -> Any:
    """Let the workers of the current Dask cluster load the blocks of a source, each some of them.

    ``SparseSVC().fit(on_dask(source))`` then trains on the cluster. Every worker must be able to read the
    source. Needs dask: ``pip install "majorant[dask]"``.

    Parameters
    ----------
    source : Source
        Of `open_source`, `from_blocks`, ….
    """
    try:
        from majorant.estimators.clusters import on_dask as place
    except ImportError as error:
        raise ImportError('dask is not installed: pip install "majorant[dask]"') from error
    return place(source)


def __getattr__(name: str) -> Any:
    # Blocks of rows need scipy, which a look into the registry need not wait for.
    if name in ("Source", "from_arrays", "from_blocks", "open_source"):
        return getattr(import_module("majorant.datasets.sources"), name)
    raise AttributeError(f"module 'majorant.datasets' has no attribute {name!r}")
