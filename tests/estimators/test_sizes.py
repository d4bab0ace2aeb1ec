"""`n_features`: the public ways to a number of features."""

import signal
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path
from majorant.callbacks import Callback
from majorant.potentials import L2
from majorant.rows.sources import ArraySource
from majorant.status import Status


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def simulated():
    """Rows of 200 correlated features, of which 5 decide the labels; 5 % of these are wrong."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 200))
    for j in range(1, 200):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    true = np.array([33, 66, 100, 133, 166])
    y = np.where(X[:, true] @ [1.0, -1.0, 1.0, 1.0, -1.0] > 0.0, "yes", "no")
    wrong = rng.random(1000) < 0.05
    y[wrong] = np.where(y[wrong] == "yes", "no", "yes")
    return X, y, true


def test_the_true_features_are_found_in_whatever_units(simulated):
    X, y, true = simulated
    units = 10.0 ** np.random.default_rng(1).uniform(-1.0, 1.0, 200)
    model = SparseSVC(n_features=5).fit(X[:500], y[:500])
    assert model.support_.tolist() == true.tolist()
    assert model.converged_
    assert model.status_ is Status.NO_SWAP
    scaled = SparseSVC(n_features=5).fit(X[:500] * units, y[:500])
    np.testing.assert_allclose(scaled.coef_ * units, model.coef_, rtol=1e-6)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-9)
    assert model.score(X[500:], y[500:]) > 0.9


@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_is_a_ridge_fit_of_the_standardised_features_on_its_support(cancer, sparse):
    X, y = cancer
    X = sp.csr_matrix(X) if sparse else X
    model = SparseSVC(n_features=4, penalty="l2", lam=2.5, eta=0.5, tol=1e-8).fit(X, y)
    assert len(model.support_) == 4
    part = SparseSVC("l2", lam=2.5, eta=0.5, standardize=True, tol=1e-10).fit(X[:, model.support_], y)
    np.testing.assert_allclose(model.coef_[:, model.support_], part.coef_, rtol=1e-5)
    assert model.objective_ == pytest.approx(part.objective_, rel=1e-9)
    assert 0.0 <= model.gap_ <= 1e-8
    assert model.lower_bound_ <= (1.0 + 1e-12) * model.objective_
    assert model.lam_ == 2.5
    assert len(model.scale_) == 30


def test_the_ridge_that_is_there_by_default(cancer):
    X, y = cancer
    default = SparseSVC(n_features=3).fit(X, y)
    assert default.lam_ == pytest.approx(1e-3 * len(y))
    same = SparseSVC(L2(1e-3 * len(y)), n_features=3).fit(X, y)
    assert default.objective_ == same.objective_
    assert SparseSVC(n_features=3, eta=1.0).fit(X, y).lam_ == 0.0
    assert SparseSVC("none", n_features=3).fit(X, y).objective_ < default.objective_
    weights = np.full(len(y), 2.0)
    assert SparseSVC(n_features=3).fit(X, y, weights).lam_ == pytest.approx(2e-3 * len(y))


def test_a_path_of_sizes(cancer):
    X, y = cancer
    path = sparse_svc_path(X, y, n_features=range(0, 9))
    assert path.by_size
    assert path.sizes.tolist() == list(range(9))
    assert [len(model.support_) for model in path.models] == list(range(9))
    assert np.all(np.diff([model.objective_ for model in path.models]) < 0.0)
    assert all(model.converged_ and model.gap_ <= 1e-6 for model in path.models)
    assert path.coefs.shape == (9, 30)
    frame = path.to_frame()
    assert frame.index.name == "n_features"
    assert frame.index.tolist() == list(range(9))
    assert "n_features 0 to 8" in repr(path)
    for model in path.models[1:6:2]:  # a model of a path is what its parameters would fit
        alone = SparseSVC(**model.get_params()).fit(X, y)
        assert alone.support_.tolist() == model.support_.tolist()
        np.testing.assert_allclose(alone.coef_, model.coef_.toarray(), rtol=1e-6)
    short = sparse_svc_path(X, y, n_features=3)
    assert short.sizes.tolist() == [1, 2, 3]
    assert sparse_svc_path(X[:, :2], y, n_features=[1, 5, 7]).sizes.tolist() == [1, 2]
    ridge = sparse_svc_path(X, y, "l2", lam=7.0, n_features=[2])
    assert ridge.models[0].lam_ == 7.0


@pytest.mark.parametrize("selection", ["best", "1se"])
def test_cross_validation_chooses_the_size(simulated, selection):
    X, y, true = simulated
    model = SparseSVCCV(n_features=7, selection=selection, cv=3).fit(X, y)
    assert model.sizes_.tolist() == list(range(1, 8))
    assert model.n_features_1se_ <= model.n_features_best_
    chosen = model.n_features_best_ if selection == "best" else model.n_features_1se_
    assert model.n_features_ == len(model.support_) == chosen
    assert set(true) & set(model.support_.tolist())
    results = pd.DataFrame(model.cv_results_)
    assert results["n_features"].tolist() == results["mean_n_features"].tolist() == list(range(1, 8))
    assert model.best_score_ == results["mean_test_score"][chosen - 1]
    assert not hasattr(model, "lambdas_")
    assert model.selection_frequency_.sum() == pytest.approx(chosen)
    alone = SparseSVC(n_features=chosen).fit(X, y)
    assert np.array_equal(alone.coef_, model.coef_)


def test_a_best_size_at_the_end_is_told(simulated):
    X, y, _ = simulated
    with pytest.warns(UserWarning, match="largest number of features, n_features=2: a larger one may"):
        SparseSVCCV(n_features=2, cv=3).fit(X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_several_classes(multi_class):
    X, y = load_iris(return_X_y=True)
    model = SparseSVC(n_features=2, multi_class=multi_class).fit(X, y)
    per_class = np.count_nonzero(model.coef_, axis=1)
    assert per_class.tolist() == [2, 2, 2]
    assert len(model.support_) == 2 or multi_class == "ovr"
    assert model.score(X, y) > 0.85
    assert model.gap_ <= 1e-6


def test_features_without_penalty_are_always_used(cancer):
    X, y = cancer
    factor = np.ones(30)
    factor[[5, 8]] = 0.0
    model = SparseSVC(n_features=2, penalty_factor=factor).fit(X, y)
    assert {5, 8} < set(model.support_.tolist())
    assert len(model.support_) == 4


def test_no_intercept_and_weighted_classes(cancer):
    X, y = cancer
    model = SparseSVC(n_features=3, fit_intercept=False, class_weight={0: 3.0}).fit(X, y)
    assert model.intercept_ == 0.0
    weighted = SparseSVC(n_features=3, fit_intercept=False).fit(X, y, np.where(y == 0, 3.0, 1.0))
    assert np.array_equal(model.coef_, weighted.coef_)


def test_single_precision(cancer):
    X, y = cancer
    X = X.astype(np.float32)
    single, double = SparseSVC(n_features=3).fit(X, y), SparseSVC(n_features=3).fit(X.astype(np.float64), y)
    assert single.support_.tolist() == double.support_.tolist()
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-5)


def test_a_warm_start_goes_on_from_the_support(simulated):
    X, y, true = simulated
    model = SparseSVC(n_features=5, warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_ == 1
    model.set_params(n_features=4).fit(X, y)
    assert model.n_iter_ < 4
    assert set(model.support_) < set(true)


def test_a_number_as_zero_tol_is_obeyed(cancer):
    X, y = cancer
    model = SparseSVC(n_features=6).fit(X, y)
    size = np.abs(model.coef_[0, model.support_] * model.scale_[model.support_])
    fewer = SparseSVC(n_features=6, zero_tol=float(np.sort(size)[0]) * 1.01).fit(X, y)
    assert len(fewer.support_) < 6
    assert fewer.objective_ > model.objective_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, "no use for penalty='l1'.*max_features limits"),
        ({"lam": 2.0}, "lam and delta of penalty='hyperbolic' have no use.*penalty='l2'"),
        ({"delta": 0.1}, "lam and delta of penalty='hyperbolic' have no use"),
        ({"solver": "adam"}, "a search with a solver of its own"),
        ({"warmup": 2}, "a search with a solver of its own"),
        ({"max_features": 4}, "leave out one of them"),
        ({"n_features": -1}, "'n_features' parameter"),
        ({"n_features": 2.0}, "'n_features' parameter"),
    ],
)
def test_what_does_not_go_together_is_refused(cancer, parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        SparseSVC(**{"n_features": 3} | parameters).fit(*cancer)


def test_sizes_that_are_none_are_refused(cancer):
    for sizes in ([], [1.5], [-1], [[1]], "3", 0):
        with pytest.raises((ValueError, TypeError), match="n_features"):
            sparse_svc_path(*cancer, n_features=sizes)
    with pytest.raises(TypeError, match="no use for lam"):
        sparse_svc_path(*cancer, lam=1.0)
    with pytest.raises(InvalidParameterError, match="leave out one of them"):
        SparseSVCCV(n_features=3, max_features=3).fit(*cancer)


def test_rows_that_are_not_in_memory_are_refused(cancer):
    X, y = cancer
    source = ArraySource(X, y)
    for estimator in (SparseSVC(n_features=3), SparseSVCCV(n_features=3)):
        with pytest.raises(TypeError, match=r"rows that are in memory.*take max_features"):
            estimator.fit(source)
    with pytest.raises(AttributeError, match="has no partial_fit: n_features is a search"):
        SparseSVC(n_features=3).partial_fit(X, y, classes=[0, 1])


def test_the_budget_is_told(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match="search for 6 features has come to 3 after 3 steps"):
        model = SparseSVC(n_features=6, max_iter=3).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert not model.converged_
    assert len(model.support_) <= 3


class Press(Callback):
    """Ctrl-C at the third step."""

    def on_iterate(self, iterate, record):
        if record.iteration == 3:
            signal.raise_signal(signal.SIGINT)


def test_an_interrupted_search_keeps_its_last_step(cancer):
    X, y = cancer
    model = SparseSVC(n_features=12)
    model.set_callbacks(Press())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert 0 < len(model.support_) <= 3
    assert len(model.history_) == 4


def test_callbacks_see_coefficients_in_the_units_of_x(cancer):
    X, y = cancer
    seen = []

    class Watch(Callback):
        def on_iterate(self, iterate, record):
            seen.append((iterate.theta, record))

    model = SparseSVC(n_features=3)
    model.set_callbacks(Watch())
    model.fit(X, y)
    np.testing.assert_allclose(seen[-1][0], np.append(model.coef_[0], model.intercept_), rtol=1e-6)
    assert [np.count_nonzero(theta[:-1]) for theta, _ in seen] == [record.nonzeros for _, record in seen]


def test_progress_names_the_sizes(cancer, capsys):
    X, y = cancer
    SparseSVC(n_features=3, verbose=2).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 5
    assert "nan" not in "".join(lines)
    assert "non-zeros 3" in lines[-2]
    assert lines[-1].startswith("Converged: no swap of one of the 8 weakest features")


def test_constant_and_equal_features(cancer):
    X, y = cancer
    X = np.column_stack([np.ones(len(X)), X[:, :5], X[:, :5]])
    model = SparseSVC("none", n_features=8).fit(X, y)
    assert model.converged_
    assert model.support_.tolist() == [1, 2, 3, 4, 5]  # not the constant, and none twice
    # A ridge is lower for two halves of a coefficient.
    assert len(SparseSVC(n_features=8).fit(X, y).support_) == 8


def test_few_rows_that_are_separable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 100))
    y = rng.permutation(np.repeat([0, 1], 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = sparse_svc_path(X, y, n_features=6)
    assert all(np.isfinite(model.coef_.data).all() for model in path.models)
    assert np.all(np.diff([model.objective_ for model in path.models]) < 0.0)
    assert path.models[-1].score(X, y) == 1.0
