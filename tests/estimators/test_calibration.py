"""Calibrations: the same curves and probabilities as scikit-learn's `CalibratedClassifierCV`."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import cross_val_predict

from majorant import SparseSVC, SparseSVCCV
from majorant.datasets import from_arrays
from majorant.estimators.calibration import METHODS, Calibration
from majorant.estimators.splitter import FoldsByPlace


def make_rows(classes, n=120):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((n, 4))
    y = np.argmax(X[:, :classes] + rng.standard_normal((n, classes)), axis=1)
    return X, np.array(["a", "b", "c"])[y]


def calibrated(X, y, method, folds):
    model = SparseSVC("l2").fit(X, y)
    decision = cross_val_predict(SparseSVC("l2"), X, y, cv=folds, method="decision_function")
    model.calibration_ = Calibration.fit(method, folds.number, decision, y, model.classes_)
    return model


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_scikit_learn(classes, method):
    X, y = make_rows(classes)
    folds = FoldsByPlace(5, 0)
    model = calibrated(X, y, method, folds)
    theirs = CalibratedClassifierCV(SparseSVC("l2"), method=method, ensemble=False, cv=folds).fit(X, y)
    for rows in (X, 10.0 * X, X[:1]):
        np.testing.assert_allclose(
            model.predict_proba(rows), theirs.predict_proba(rows), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_row_without_any_chance_has_uniform_probabilities():
    """As in scikit-learn: every curve of an isotonic calibration may be zero there."""
    zero = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    calibration = Calibration("isotonic", 5, [zero] * 3)
    assert calibration.probabilities(np.array([[-1.0, -2.0, -3.0]])).tolist() == [[1 / 3] * 3]


@pytest.mark.parametrize("model", [SparseSVC(), SparseSVCCV(lambdas=3)], ids=["one", "cv"])
def test_only_calibrated_models_have_probabilities(model):
    X, y = make_rows(2)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, y), "predict_proba")
    model.calibration_ = Calibration.fit("sigmoid", 5, model.decision_function(X), y, model.classes_)
    assert model.predict_proba(X).shape == (120, 2)
    assert np.array_equal(model.predict_proba(from_arrays(X, y, rows_per_block=50)), model.predict_proba(X))
    assert not hasattr(model.fit(X, y), "predict_proba")
