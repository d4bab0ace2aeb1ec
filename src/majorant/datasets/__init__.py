"""Data from files and from the registry."""

from majorant.datasets.catalogue import REGISTRY, DatasetInfo
from majorant.datasets.data import Data
from majorant.datasets.readers import read
from majorant.datasets.registry import describe, find, load
from majorant.datasets.sources import Source, from_arrays, from_blocks, open_source
from majorant.datasets.writers import write_libsvm

__all__ = [
    "REGISTRY",
    "Data",
    "DatasetInfo",
    "Source",
    "describe",
    "find",
    "from_arrays",
    "from_blocks",
    "load",
    "open_source",
    "read",
    "write_libsvm",
]
