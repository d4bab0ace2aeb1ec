"""Bootstrap intervals: their coverage with a fixed support, and that selection makes them too narrow."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

from majorant import SparseSVC, StabilitySelection, coef_intervals


def draw(rng, rows):
    """Two features with an effect, of which one is for another class than the other."""
    X = rng.standard_normal((rows, 2))
    return X, np.where(X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(rows) > 0.0, 1, 0)


def test_intervals_cover_the_coefficients_of_the_population():
    truth = SparseSVC("none", eta=100.0).fit(*draw(np.random.default_rng(1), 100_000)).coef_[0]
    covered = []
    for seed in range(12):
        X, y = draw(np.random.default_rng(seed), 200)
        model = SparseSVC("l2").fit(X, y)
        table = coef_intervals(model, X, y, held_out=True, n_resamples=40, level=0.9, random_state=seed)
        assert (table.note == "").all()
        covered.append((table.low.to_numpy() <= truth) & (truth <= table.high.to_numpy()))
    assert np.mean(covered) >= 0.8


def test_after_selection_intervals_are_too_narrow_and_say_so():
    """The two largest of 40 features without an effect: their intervals exclude 0 far too often."""
    excluded = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((100, 40)), np.repeat([0, 1], 50)
        model = SparseSVC("l1", lam=0.0, max_features=2).fit(X, y)
        table = coef_intervals(model, X, y, n_resamples=40, random_state=0)
        assert (table.note == "after selection: too narrow").all()
        excluded += ((table.low > 0.0) | (table.high < 0.0)).tolist()
    assert np.mean(excluded) > 0.5


def test_the_table_has_names_classes_and_the_refit():
    data = load_breast_cancer(as_frame=True)
    model = SparseSVC("l1", lam=20.0, standardize=True).fit(data.data, data.target)
    table = coef_intervals(model, data.data, data.target, n_resamples=10, random_state=0)
    assert list(table.index) == list(data.data.columns[model.support_])
    assert (table.low < table.high).all()
    columns = data.data.to_numpy()[:, model.support_]
    refit = SparseSVC("none", eta=0.569, standardize=True).fit(columns, data.target)
    assert table.coefficient.to_numpy() == pytest.approx(refit.coef_[0], rel=1e-3)
    again = coef_intervals(model, data.data, data.target, n_resamples=10, random_state=0, n_jobs=2)
    assert again.equals(table)
    X, y = load_iris(return_X_y=True)
    several = coef_intervals(SparseSVC("l1").fit(X, y), X, y, n_resamples=3)
    assert several["class"].tolist() == np.repeat([0, 1, 2], len(several) // 3).tolist()


def test_weights_are_repetitions_for_the_coefficient_and_zero_weights_are_left_out():
    X, y = draw(np.random.default_rng(0), 60)
    weights = np.repeat([1.0, 2.0, 0.0], 20)
    model = StabilitySelection(SparseSVC("l1"), n_pairs=1, features_per_half=2, threshold=1.0).fit(X, y)
    weighted = coef_intervals(model, sp.csr_array(X), y, weights, n_resamples=5)
    times = weights.astype(int)
    repeated = coef_intervals(model, np.repeat(X, times, axis=0), np.repeat(y, times), n_resamples=5)
    assert weighted.coefficient.to_numpy() == pytest.approx(repeated.coefficient.to_numpy(), rel=1e-4)
    zeros = coef_intervals(model, X, y, weights, n_resamples=5, random_state=0)
    less = coef_intervals(model, X[:40], y[:40], weights[:40], n_resamples=5, random_state=0)
    assert zeros.low.to_numpy() == pytest.approx(less.low.to_numpy(), rel=1e-4)


def test_errors_say_what_is_wrong():
    X, y = draw(np.random.default_rng(0), 40)
    with pytest.raises(ValueError, match="no feature"):
        coef_intervals(SparseSVC("l1", lam=1e6).fit(X, y), X, y)
    model = SparseSVC("l1").fit(X, y)
    with pytest.raises(ValueError, match="level"):
        coef_intervals(model, X, y, level=95)
    with pytest.raises(ValueError, match="n_resamples"):
        coef_intervals(model, X, y, n_resamples=1)
    with pytest.raises(ValueError, match="features"):
        coef_intervals(model, X[:, :1], y)
