"""scikit-learn estimators."""

from majorant.estimators.svc import SparseSVC

__all__ = ["SparseSVC"]
