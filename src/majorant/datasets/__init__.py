"""Data from files and from the registry."""

from majorant.datasets.data import Data
from majorant.datasets.readers import read
from majorant.datasets.writers import write_libsvm

__all__ = ["Data", "read", "write_libsvm"]
