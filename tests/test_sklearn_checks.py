"""scikit-learn's own estimator checks, none expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from majorant import SparseSVC
from majorant.potentials import Potential


@parametrize_with_checks([SparseSVC(name) for name in Potential.registry])
def test_estimator_checks(estimator, check):
    check(estimator)
