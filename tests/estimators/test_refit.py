"""`refit="l2"`: the penalty selects, a light ridge on the features selected sets the coefficients."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path
from majorant.estimators.fit_problem import REFIT_RIDGE
from majorant.objective import Objective
from majorant.potentials import L2
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from majorant.solvers.reweighted import spread


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12)) * np.geomspace(0.2, 5.0, 12)
    scores = X / np.geomspace(0.2, 5.0, 12)
    y = np.where(scores[:, :3].sum(axis=1) + rng.standard_normal(150) > 0, 1, -1)
    return X, y, rng.uniform(0.5, 2.0, 150)


PENALTIES = {"l1": 20.0, "hyperbolic": 20.0, "welsch": 3.0, "mcp": 20.0}


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_claims_are_those_of_the_ridge_on_the_features_selected(penalty, standardize, data):
    X, y, s = data
    options = {"lam": PENALTIES[penalty], "standardize": standardize}
    plain = SparseSVC(penalty, **options).fit(X, y, s)
    model = SparseSVC(penalty, refit="l2", **options).fit(X, y, s)
    assert 0 < len(plain.support_) < 12
    assert np.array_equal(model.support_, plain.support_)
    rows = MemoryRows(np.ascontiguousarray(X[:, model.support_]), y, s)
    ridge = Objective(rows, L2(1.0), 0.0, REFIT_RIDGE * spread(rows))
    theta = np.append(model.coef_[0, model.support_], model.intercept_)
    least = solve(Newton(), ridge, tol=1e-12).iterate.value
    assert np.isclose(ridge.evaluate(theta).value, model.objective_, rtol=1e-12)
    assert model.objective_ - least <= model.gap_ * model.objective_ + 1e-12
    assert model.gap_ <= model.tol
    assert model.lower_bound_ <= least * (1 + 1e-12)
    assert model.converged_


def test_coefficients_are_not_shrunk(data):
    X, y, _ = data
    plain, refitted = (SparseSVC("l1", lam=60.0, refit=refit).fit(X, y) for refit in (None, "l2"))
    chosen = plain.support_
    assert np.all(np.abs(refitted.coef_[0, chosen]).sum() > 1.2 * np.abs(plain.coef_[0, chosen]).sum())


def test_a_refit_does_not_depend_on_the_weights_unit_or_on_repetition(data):
    X, y, _ = data
    one = SparseSVC("l1", lam=20.0, refit="l2").fit(X, y)
    two = SparseSVC("l1", lam=20.0, refit="l2").fit(np.vstack([X, X]), np.append(y, y), np.full(300, 0.5))
    assert np.allclose(one.coef_, two.coef_, rtol=1e-6)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_of_several_classes_each_has_the_features_that_it_selects(multi_class, data):
    X, _, s = data
    y = np.digitize(X[:, 0] / X[:, 0].std() + X[:, 1] / X[:, 1].std(), [-0.7, 0.7])
    options = {"lam": 30.0, "multi_class": multi_class}
    plain, refitted = (SparseSVC("l1", refit=refit, **options).fit(X, y, s) for refit in (None, "l2"))
    assert np.array_equal(plain.coef_ != 0.0, refitted.coef_ != 0.0)
    assert refitted.gap_ <= refitted.tol
    assert not np.allclose(plain.coef_, refitted.coef_)


def test_paths_limits_and_sparse_rows(data):
    X, y, _ = data
    path = sparse_svc_path(X, y, "l1", lambdas=8, ratio=0.05, refit="l2")
    alone = SparseSVC("l1", lam=path.lambdas[4], refit="l2").fit(sp.csr_matrix(X), y)
    assert np.allclose(path.coefs[4], alone.coef_[0], rtol=1e-6, atol=1e-9)
    assert len(path.models[0].support_) == 0
    assert all(model.gap_ <= model.tol for model in path.models)
    limited = SparseSVC("l1", lam=1e-3, max_features=3, refit="l2").fit(X, y)
    assert len(limited.support_) <= 3
    assert limited.gap_ <= limited.tol


def test_cross_validation_scores_the_refitted_models(data):
    X, y, _ = data
    model = SparseSVCCV("l1", lambdas=6, ratio=0.02, cv=3, refit="l2").fit(X, y)
    plain = SparseSVCCV("l1", lambdas=6, ratio=0.02, cv=3).fit(X, y)
    assert not np.array_equal(model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    alone = SparseSVC("l1", lam=model.lam_, refit="l2").fit(X, y)
    assert np.allclose(model.coef_, alone.coef_, rtol=1e-6)
    assert model.gap_ <= model.tol


def test_unpenalised_features_and_no_features(data):
    X, y, _ = data
    factor = np.ones(12)
    factor[5] = 0.0
    model = SparseSVC("l1", lam=1e4, penalty_factor=factor, refit="l2").fit(X, y)
    assert model.support_.tolist() == [5]
    assert model.converged_
    empty = SparseSVC("l1", lam=1e4, refit="l2").fit(X, y)
    assert len(empty.support_) == 0
    assert empty.converged_


def test_streams_and_unknown_words_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="refit=None"):
        SparseSVC(refit="l2").partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="refit"):
        SparseSVC(refit="ridge").fit(X, y)
