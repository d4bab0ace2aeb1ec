"""A model of a data frame needs only the columns that it uses."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer

from majorant import SparseSVC

FRAME, Y = load_breast_cancer(return_X_y=True, as_frame=True)
MODEL = SparseSVC("l1", lam=20.0, standardize=True).fit(FRAME, Y)
USED = list(FRAME.columns[MODEL.support_])
UNUSED = [name for name in FRAME.columns if name not in USED]
EXPECTED = MODEL.decision_function(FRAME)


def test_a_frame_with_only_the_columns_in_use_is_enough():
    assert UNUSED
    assert np.allclose(MODEL.decision_function(FRAME[USED]), EXPECTED, rtol=1e-12)
    assert np.array_equal(MODEL.predict(FRAME[USED[::-1]]), MODEL.predict(FRAME))
    assert MODEL.score(FRAME[USED], Y) == MODEL.score(FRAME, Y)


def test_a_polars_frame_too():
    frame = pl.DataFrame({name: FRAME[name].to_numpy() for name in USED})
    assert np.allclose(MODEL.decision_function(frame), EXPECTED, rtol=1e-12)


def test_missing_values_in_columns_that_are_not_used_do_no_harm():
    holes = FRAME.copy()
    holes.loc[3, UNUSED[0]] = np.nan
    assert np.allclose(MODEL.decision_function(holes), EXPECTED, rtol=1e-12)


def test_missing_values_in_columns_in_use_are_refused():
    holes = FRAME.copy()
    holes.loc[3, USED[0]] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        MODEL.predict(holes)


def test_a_missing_column_in_use_is_named():
    with pytest.raises(ValueError, match=rf"yet now missing:\n- {USED[0]}"):
        MODEL.predict(FRAME.drop(columns=USED[0]))


def test_unknown_columns_and_another_order_are_refused_as_by_scikit_learn():
    with pytest.raises(ValueError, match="unseen at fit time:\n- new"):
        MODEL.predict(FRAME.assign(new=1.0))
    with pytest.raises(ValueError, match="must be in the same order"):
        MODEL.predict(FRAME[FRAME.columns[::-1]])


def test_a_model_without_features_predicts_from_a_frame_without_columns():
    empty = SparseSVC("l1", lam=1e9).fit(FRAME, Y)
    assert np.array_equal(empty.predict(FRAME[[]]), empty.predict(FRAME))


def test_sparsified_models_need_only_the_columns_in_use():
    sparse = SparseSVC("l1", lam=20.0, standardize=True).fit(FRAME, Y).sparsify()
    assert np.allclose(sparse.decision_function(FRAME[USED]), EXPECTED, rtol=1e-12)
