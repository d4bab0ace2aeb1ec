"""Data from files and from the registry."""

from majorant.datasets.catalogue import REGISTRY, DatasetInfo
from majorant.datasets.data import Data
from majorant.datasets.registry import available, describe, find, load

__all__ = ["REGISTRY", "Data", "DatasetInfo", "available", "describe", "find", "load"]
