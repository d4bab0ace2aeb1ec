"""Stability selection: halves, frequencies, bounds kept in simulations, clusters, tables and plots."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from majorant import SparseSVC, SparseSVCCV, StabilitySelection
from majorant.datasets import from_blocks
from majorant.estimators.correlations import Correlations
from majorant.estimators.halves import complementary_halves
from majorant.estimators.selection_bounds import false_selections
from majorant.rows.sources import RawBlock

matplotlib.use("Agg")
import matplotlib.pyplot as plt


class Marginal(BaseEstimator):
    """Selects the features with the largest correlations with the label: fast, for simulations."""

    def __init__(self, size=5):
        self.size = size

    def fit(self, X, y):
        values = X - X.mean(axis=0)
        r = np.abs(values.T @ (y - y.mean())) / np.sqrt((values**2).sum(axis=0))
        self.coef_ = np.where(r >= np.sort(r)[-self.size], r, 0.0)
        return self


@pytest.fixture(scope="module")
def problem():
    """Three true features of 40; feature 5 is nearly feature 4, a true one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40))
    X[:, 5] = X[:, 4] + 0.05 * rng.standard_normal(200)
    y = np.where(X[:, 4] - X[:, 10] + X[:, 20] + 0.3 * rng.standard_normal(200) > 0, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def fitted(problem):
    svc = SparseSVC("l1", lam=0.0, tol=1e-4)
    return StabilitySelection(svc, n_pairs=20, assumption="unimodal", random_state=0).fit(*problem)


def test_it_finds_the_features_and_states_a_bound(fitted):
    assert {10, 20} <= set(fitted.support_) <= {4, 5, 10, 20}
    assert 0.5 < fitted.threshold_ <= 0.75
    assert fitted.error_bound_ <= 1.0
    q = fitted.features_per_half_
    assert fitted.error_bound_ == false_selections(q, 40, fitted.threshold_, 20, "unimodal")
    assert false_selections(q + 1, 40, 0.75, 20, "unimodal") > 1.0
    assert fitted.selections_.sum(axis=1).max() <= q
    assert np.array_equal(fitted.selection_frequency_, fitted.selections_.toarray().mean(axis=0))
    assert np.array_equal(np.flatnonzero(fitted.get_support()), fitted.support_)


def test_halves_are_disjoint_and_have_half_of_every_class():
    codes = np.array([0] * 11 + [1] * 6 + [2])
    a, b = complementary_halves(codes, np.random.RandomState(0))
    assert not set(a) & set(b)
    for half in (a, b):
        assert np.bincount(codes[half], minlength=3).tolist() == [5, 3, 0]
    assert not np.array_equal(a, complementary_halves(codes, np.random.RandomState(1))[0])


def test_the_same_state_gives_the_same_answer_with_threads_and_sparse_rows(problem, fitted):
    X, y = problem
    again = clone(fitted).set_params(n_jobs=2).fit(X, y)
    assert (again.selections_ != fitted.selections_).nnz == 0
    few = StabilitySelection(fitted.estimator, n_pairs=4, random_state=0)
    dense = few.fit(X, y).clusters_
    assert str(few.fit(sp.csr_array(X), y).clusters_) == str(dense)


def test_interchangeable_features_are_reported_together(fitted):
    clusters = {frozenset(cluster.features): cluster for cluster in fitted.clusters_}
    pair = clusters[frozenset({4, 5})]
    halves = fitted.selections_.toarray()
    assert pair.frequency == halves[:, [4, 5]].any(axis=1).mean()
    assert pair.frequency >= max(pair.frequencies) == fitted.selection_frequency_[pair.features[0]]
    assert abs(pair.correlations[1]) > 0.99
    leader, other = pair.names
    assert str(pair) == f"{leader} or {other}: {pair.frequency:.2f} together"
    assert "x20: 1.00" in map(str, fitted.clusters_)
    assert set(fitted.support_) <= {i for cluster in fitted.clusters_ for i in cluster.features}


def test_a_cluster_is_reported_although_neither_feature_is_selected_often_enough(problem):
    X, y = problem
    twins = np.column_stack([X, X[:, 10]])  # LIBLINEAR takes the one or the other at random
    model = StabilitySelection(
        LinearSVC(penalty="l1", dual=False, C=0.02, random_state=0), n_pairs=20, threshold=0.9, random_state=0
    ).fit(twins, y)
    together = next(cluster for cluster in model.clusters_ if 10 in cluster.features)
    assert set(together.features) == {10, 40}
    assert together.frequency >= 0.9


@pytest.mark.parametrize("assumption", ["unimodal", "r-concave"])
def test_false_selections_stay_below_the_bound(assumption):
    """40 null features and 3 strong ones, 60 times: the mean number of nulls selected, against the bound."""
    rng = np.random.default_rng(0)
    false, bounds = [], []
    for _ in range(60):
        y = np.repeat([-1.0, 1.0], 30)
        X = rng.standard_normal((60, 43))
        X[:, 40:] += y[:, None]
        model = StabilitySelection(
            Marginal(6), n_pairs=10, threshold=0.7, assumption=assumption, random_state=0
        )
        model.fit(X, y)
        false.append(np.count_nonzero(model.support_ < 40))
        bounds.append(model.error_bound_)
        assert {40, 41, 42} <= set(model.support_)
    assert 0.0 < np.mean(false) <= np.mean(bounds)


def test_with_a_fixed_strength_the_number_selected_is_measured(problem):
    X, y = problem
    model = StabilitySelection(SparseSVC("l1", lam=30.0), n_pairs=5, features_per_half=None, random_state=0)
    model.fit(X, y)
    assert model.features_per_half_ == model.selections_.sum() / 10
    assert model.error_bound_ == false_selections(
        model.features_per_half_, 40, model.threshold_, 5, "r-concave"
    )


def test_the_estimators_own_limit_is_kept(problem):
    X, y = problem
    model = StabilitySelection(SparseSVC("l1", lam=0.0, max_features=2), n_pairs=3).fit(X, y)
    assert model.features_per_half_ == 2.0
    model.set_params(features_per_half=4).fit(X, y)
    assert model.features_per_half_ == 4.0
    searched = StabilitySelection(SparseSVCCV("l1", lambdas=5, cv=3), n_pairs=1, threshold=1.0).fit(X, y)
    assert searched.selections_.sum(axis=1).max() <= searched.features_per_half_


def test_a_given_threshold_is_used(problem):
    X, y = problem
    model = StabilitySelection(SparseSVC("l1"), n_pairs=5, features_per_half=5, threshold=0.65)
    model.fit(X, y)
    assert model.threshold_ == 0.65
    # Of ten halves 6.5 are 7.
    assert np.array_equal(model.get_support(), model.selection_frequency_ >= 0.7)
    assert model.error_bound_ == false_selections(5, 40, 0.7, 5, "r-concave")


def test_too_many_features_per_half_select_none_and_say_what_to_do(problem):
    model = StabilitySelection(SparseSVC("l1", lam=0.1), n_pairs=2, features_per_half=None, max_false=0.1)
    with pytest.warns(UserWarning, match=r"No feature is selected.*features_per_half"):
        model.fit(*problem)
    assert model.threshold_ == np.inf
    assert model.error_bound_ == 0.0
    assert len(model.support_) == len(model.clusters_) == 0
    assert "No threshold" in model.plot().get_title(loc="left")
    plt.close("all")


def test_weights_are_those_of_the_estimator(problem):
    X, y = problem
    weights = np.ones(200)
    weights[150:] = 0.0
    model = StabilitySelection(SparseSVC("l1", lam=0.0), n_pairs=3, random_state=0)
    left_out = model.fit(X, y, sample_weight=weights).selections_
    assert (model.fit(X[:150], y[:150]).selections_ != left_out).nnz == 0
    # Rows of little weight that say the opposite change nothing; with full weight they do.
    other = np.where(y == "yes", "no", "yes")
    model.set_params(features_per_half=3)
    frequencies = {
        weight: model.fit(
            np.vstack([X, X]), np.append(y, other), sample_weight=np.repeat([1.0, weight], 200)
        ).selection_frequency_
        for weight in (1e-3, 1.0)
    }
    assert frequencies[1e-3][[10, 20]].min() == 1.0
    assert frequencies[1.0][[10, 20]].min() < 1.0
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, sample_weight=-weights)


def test_metadata_is_routed_to_the_estimator(problem):
    X, y = problem
    weights = np.where(np.arange(200) < 150, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = SparseSVC("l1", lam=0.0).set_fit_request(sample_weight=True)
        routed = StabilitySelection(svc, n_pairs=2, random_state=0).fit(X, y, sample_weight=weights)
    plain = StabilitySelection(SparseSVC("l1", lam=0.0), n_pairs=2, random_state=0).fit(X[:150], y[:150])
    assert (routed.selections_ != plain.selections_).nnz == 0


def test_names_of_a_frame_are_kept():
    data = load_breast_cancer(as_frame=True)
    model = StabilitySelection(n_pairs=5, random_state=0).set_output(transform="pandas")
    selected = model.fit_transform(data.data, data.target)
    assert list(selected.columns) == list(model.get_feature_names_out())
    assert set(selected.columns) < set(data.data.columns)
    table = model.to_frame()
    assert list(table.columns) == ["frequency", "selected", "error_bound"]
    assert set(table.index[table.selected]) == set(selected.columns)
    assert table.frequency.is_monotonic_decreasing
    assert table.error_bound.is_monotonic_increasing
    assert table.error_bound[table.selected].max() <= model.error_bound_
    assert all(name in data.data.columns for cluster in model.clusters_ for name in cluster.names)


def test_several_classes_select_the_features_of_any():
    X, y = load_iris(return_X_y=True)
    model = StabilitySelection(SparseSVC("l1", lam=1.0), n_pairs=2, features_per_half=None, threshold=0.6)
    model.set_params(random_state=0).fit(X, y)
    first = complementary_halves(
        y, np.random.RandomState(np.random.RandomState(0).randint(2**31 - 1, size=2)[0])
    )
    support = SparseSVC("l1", lam=1.0).fit(X[first[0]], y[first[0]]).support_
    assert np.array_equal(np.flatnonzero(model.selections_.toarray()[0]), support)
    assert model.classes_.tolist() == [0, 1, 2]


def test_pipelines_and_other_estimators(problem):
    X, y = problem
    pipeline = make_pipeline(StandardScaler(), LinearSVC(penalty="l1", dual=False, C=0.02))
    model = StabilitySelection(pipeline, n_pairs=5, random_state=0).fit(X, y)
    assert {10, 20} <= set(model.support_)
    whole = make_pipeline(StabilitySelection(n_pairs=3, random_state=0), SparseSVC("l2")).fit(X, y)
    assert whole.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (StabilitySelection(LinearSVC(), features_per_half=3), ValueError, "features_per_half=None"),
        (StabilitySelection(StandardScaler()), TypeError, "neither get_support nor coef_"),
        (StabilitySelection(SparseSVC("l2"), n_pairs=1), ValueError, "makes coefficients zero"),
        (StabilitySelection(SparseSVC(), threshold=0.5), ValueError, "threshold"),
        (StabilitySelection(SparseSVC(), assumption="normal"), ValueError, "assumption"),
    ],
)
def test_errors_say_what_to_do(problem, model, error, message):
    with pytest.raises(error, match=message):
        model.fit(*problem)


def test_steps_that_drop_features_are_refused(problem):
    pipeline = make_pipeline(StabilitySelection(n_pairs=2, threshold=0.9, random_state=0), SparseSVC())
    with pytest.raises(ValueError, match="must keep the features"):
        StabilitySelection(pipeline, n_pairs=1).fit(*problem)


def test_rows_that_cannot_be_halved_are_refused(problem):
    X, y = problem
    with pytest.raises(ValueError, match="fewer than two rows"):
        StabilitySelection(SparseSVC()).fit(X[:4], ["a", "a", "a", "b"])
    with pytest.raises(TypeError, match="in memory"):
        StabilitySelection(SparseSVC()).fit(from_blocks(lambda i: RawBlock(X, y, None), 1), None)


def test_fits_that_do_not_converge_are_counted_once(problem):
    model = StabilitySelection(SparseSVC("hyperbolic", lam=5.0, solver="gradient", max_iter=2), n_pairs=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(features_per_half=None, threshold=0.9).fit(*problem)
    found = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(found) == 1
    assert found[0].startswith("4 of 4 fits")


def test_the_plot_shows_frequencies_threshold_and_clusters(fitted):
    ax = fitted.plot(top=7)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(fitted.selection_frequency_, reverse=True)[:7]
    assert "expected false selections at most" in ax.get_title(loc="left")
    assert any(np.allclose(line.get_xdata(), fitted.threshold_) for line in ax.get_lines())
    assert ax.get_legend() is not None
    plt.close("all")


@pytest.mark.parametrize("as_sparse", [False, True])
def test_correlations_are_weighted_ones(as_sparse):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6)) * (rng.random((50, 6)) < 0.7)
    X[:, 3] = 2.0
    weights = rng.integers(0, 4, 50).astype(float)
    sums = Correlations(np.array([1, 4]), 6)
    rows = sp.csr_array(X) if as_sparse else X
    sums.add_all(rows[:20], weights[:20])
    sums.add_all(rows[20:], weights[20:])
    expected = pd.DataFrame(np.repeat(X, weights.astype(int), axis=0)).corr().to_numpy()[[1, 4]]
    assert sums.result() == pytest.approx(np.nan_to_num(expected), abs=1e-12)
