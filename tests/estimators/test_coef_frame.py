"""The coefficients as a table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

from majorant import SparseSVC, SparseSVCCV

FRAME, Y = load_breast_cancer(return_X_y=True, as_frame=True)


def test_a_table_has_the_features_in_use_the_largest_effect_first():
    model = SparseSVC("l1", lam=20.0, standardize=True).fit(FRAME, Y)
    table = model.coef_frame()
    assert list(table.columns) == ["coefficient", "effect"]
    assert set(table.index) == set(FRAME.columns[model.support_])
    assert table["effect"].is_monotonic_decreasing
    expected = pd.Series(model.coef_[0] * model.scale_, FRAME.columns)[table.index]
    assert np.allclose(np.abs(expected), table["effect"])
    assert np.allclose(table["coefficient"], pd.Series(model.coef_[0], FRAME.columns)[table.index])


def test_without_deviations_features_are_ordered_by_coefficient():
    model = SparseSVC("l1", lam=20.0).fit(FRAME.to_numpy(), Y)
    table = model.coef_frame()
    assert list(table.columns) == ["coefficient"]
    assert table.index[0] == f"x{np.argmax(np.abs(model.coef_[0]))}"
    assert table["coefficient"].abs().is_monotonic_decreasing


def test_rows_give_the_deviations_that_a_model_does_not_know():
    model = SparseSVC("l1", lam=20.0).fit(FRAME, Y)
    table = model.coef_frame(FRAME)
    expected = np.abs(model.coef_[0]) * FRAME.to_numpy().std(axis=0)
    assert np.allclose(table["effect"], pd.Series(expected, FRAME.columns)[table.index])


def test_each_class_has_a_column():
    X, y = load_iris(return_X_y=True)
    model = SparseSVC("l1", lam=2.0, standardize=True).fit(X, np.array(["a", "b", "c"])[y])
    table = model.sparsify().coef_frame()
    assert list(table.columns) == ["a", "b", "c", "effect"]
    assert len(table) == len(model.support_)


def test_a_cross_validated_model_has_the_share_of_folds():
    model = SparseSVCCV("l1", lambdas=10, standardize=True).fit(FRAME, Y)
    table = model.coef_frame()
    shares = pd.Series(model.selection_frequency_, FRAME.columns)[table.index]
    assert np.array_equal(table["share_of_folds"], shares)


def test_a_model_without_features_has_an_empty_table():
    assert SparseSVC("l1", lam=1e9).fit(FRAME, Y).coef_frame().empty


def test_a_model_that_is_not_fitted_has_no_table():
    with pytest.raises(NotFittedError):
        SparseSVC().coef_frame()
