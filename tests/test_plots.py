"""What the plots show, and the shares of the folds that one of them is made of."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from majorant import SparseSVC, SparseSVCCV


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def searched(cancer):
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    return SparseSVCCV("l1", lambdas=12, ratio=1e-2, cv=folds, selection="1se").fit(*cancer)


def test_the_selection_frequency_is_that_of_models_fitted_fold_by_fold(cancer, searched):
    X, y = cancer
    counts = np.zeros(X.shape[1])
    for train, _ in searched.cv.split(X, y):
        counts[SparseSVC("l1", lam=searched.lam_).fit(X[train], y[train]).support_] += 1
    assert np.array_equal(searched.selection_frequency_, counts / 4)
    at = list(searched.lambdas_).index(searched.lam_)
    assert searched.selection_frequency_.sum() == pytest.approx(searched.cv_results_["mean_n_features"][at])


def test_the_selection_frequency_of_a_model_without_features_is_zero(cancer):
    model = SparseSVCCV("l1", lambdas=[1e6], cv=2).fit(*cancer)
    assert np.array_equal(model.selection_frequency_, np.zeros(30))
