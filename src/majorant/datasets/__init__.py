"""Data from files and from the registry."""

from majorant.datasets.data import Data

__all__ = ["Data"]
