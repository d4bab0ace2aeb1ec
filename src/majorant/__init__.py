"""Sparse linear support vector machines by majorization-minimization."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from majorant.estimators import (
        SparseSVC,
        SparseSVCCV,
        StabilitySelection,
        coef_intervals,
        lambda_max,
        sparse_svc_path,
    )
    from majorant.persistence import load_model, save_model
    from majorant.potentials import Potential
    from majorant.reporting import report
    from majorant.solvers import Solver

__version__ = "0.1.0"

# Imported at first use, so that `majorant --help` and `import majorant` are fast.
_EXPORTS = {
    "SparseSVC": "majorant.estimators",
    "SparseSVCCV": "majorant.estimators",
    "StabilitySelection": "majorant.estimators",
    "coef_intervals": "majorant.estimators",
    "lambda_max": "majorant.estimators",
    "sparse_svc_path": "majorant.estimators",
    "load_model": "majorant.persistence",
    "save_model": "majorant.persistence",
    "Potential": "majorant.potentials",
    "Solver": "majorant.solvers",
    "report": "majorant.reporting",
}
__all__ = [
    "Potential",
    "Solver",
    "SparseSVC",
    "SparseSVCCV",
    "StabilitySelection",
    "__version__",
    "coef_intervals",
    "lambda_max",
    "load_model",
    "report",
    "save_model",
    "sparse_svc_path",
]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'majorant' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
