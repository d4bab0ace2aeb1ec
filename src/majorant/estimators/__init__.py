"""What users hold in their hands: estimators in scikit-learn's manner."""

from majorant.estimators.cv import SparseSVCCV, check_parameters
from majorant.estimators.intervals import coef_intervals
from majorant.estimators.path import Path, lambda_max, sparse_svc_path
from majorant.estimators.stability import StabilitySelection
from majorant.estimators.svc import SparseSVC

__all__ = [
    "Path",
    "SparseSVC",
    "SparseSVCCV",
    "StabilitySelection",
    "check_parameters",
    "coef_intervals",
    "lambda_max",
    "sparse_svc_path",
]
