"""Smooth potentials that are not convex: what is found must not depend on units, order or rounding."""

import numpy as np
import pytest

from majorant import SparseSVC, sparse_svc_path
from majorant.estimators.path import lambda_max
from majorant.objective import Objective
from majorant.potentials import GemanMcClure, Welsch
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from majorant.solvers.reweighted import spread
from majorant.solvers.screening import FEW_FEATURES
from majorant.solvers.support_search import PROMISE, gains_of_change

ELL0 = [Welsch, GemanMcClure]


def many_features(n=120, p=200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, :k].sum(axis=1) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("kind", ELL0)
def test_the_units_of_the_columns_change_no_support(kind):
    X, y = many_features()
    units = 10.0 ** np.random.default_rng(1).uniform(-1, 1, X.shape[1])
    plain, scaled = (SparseSVC(kind.name, lam=3.0).fit(data, y) for data in (X, X * units))
    assert 0 < len(plain.support_) < 20
    assert np.array_equal(plain.support_, scaled.support_)
    assert np.allclose(scaled.coef_ * units, plain.coef_, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ELL0)
def test_weights_repetition_and_order_change_nothing(kind):
    X, y = many_features()
    weights = np.random.default_rng(2).integers(0, 3, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    order = np.random.default_rng(3).permutation(again)
    weighted = SparseSVC(kind.name, lam=3.0).fit(X, y, weights)
    for rows in (again, order):
        repeated = SparseSVC(kind.name, lam=3.0).fit(X[rows], y[rows])
        assert np.array_equal(weighted.support_, repeated.support_)
        assert np.allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_of_two_equal_features_the_first_is_taken():
    X, y = many_features(p=20)
    model = SparseSVC("welsch", lam=3.0).fit(np.hstack([X, X]), y)
    assert len(model.support_) > 0
    assert np.all(model.support_ < 20)


@pytest.mark.parametrize("kind", ELL0)
def test_no_feature_outside_the_screened_ones_promises_a_lower_objective(kind):
    X, y = many_features()
    assert len(X.T) > FEW_FEATURES
    objective = Objective(MemoryRows(X, y), kind(3.0, 1e-6))
    result = solve(Newton(), objective, max_iter=2000)
    assert result.status.converged
    promises = gains_of_change(objective, result.iterate, spread(objective.rows))
    assert promises.max() <= PROMISE * result.iterate.value


def test_what_a_change_of_the_support_promises_is_kept():
    """The fall of Φ after the release or removal of a feature is at least the promise."""
    X, y = many_features(p=8)
    objective = Objective(MemoryRows(X, y), Welsch(3.0, 1e-6))
    for support in ([0, 1, 5], [0, 1, 2, 3, 6, 7]):
        at = _refitted(objective, support)
        promises = gains_of_change(objective, at, spread(objective.rows))
        for feature in range(8):
            removed = feature in support
            changed = sorted(set(support) ^ {feature})
            fall = at.value - _refitted(objective, changed).value
            promise = promises[int(removed), feature]
            assert np.isfinite(promise)
            assert fall >= promise - 1e-6 * at.value


def _refitted(objective, support):
    """The minimum of the loss with these features alone."""
    start = objective.start()
    start[support] = 1.0
    restricted = Objective(objective.rows, Welsch(0.0, 1e-6), 0.0).columns(np.array(support))
    found = solve(Newton(), restricted, tol=1e-12).iterate.theta
    theta = objective.start()
    theta[[*support, len(theta) - 1]] = found
    return objective.evaluate(theta)


def test_a_path_is_nowhere_far_above_single_fits():
    X, y = many_features()
    path = sparse_svc_path(X, y, "welsch", lambdas=12, ratio=0.05)
    above = [
        model.objective_ / SparseSVC("welsch", lam=model.lam_).fit(X, y).objective_ for model in path.models
    ]
    assert len(path.models[0].support_) == 0
    assert np.mean(above) <= 1.0 + 1e-3
    assert max(above) <= 1.02


def test_lambda_max_selects_nothing_and_less_selects():
    X, y = many_features()
    strength = lambda_max(X, y, "welsch")
    assert len(SparseSVC("welsch", lam=strength).fit(X, y).support_) == 0
    assert len(SparseSVC("welsch", lam=0.7 * strength).fit(X, y).support_) > 0


def test_a_path_of_a_bounded_penalty_ends_at_a_size():
    X, y = many_features()
    path = sparse_svc_path(X, y, "welsch", lambdas=30)
    sizes = [len(model.support_) for model in path.models]
    assert max(sizes) <= round(120 / (np.log(200) * np.log(np.log(120))))
    strengths = sparse_svc_path(X, y, "welsch", lambdas=path.lambdas[:3])
    assert len(strengths) == 3


def test_a_width_beyond_the_coefficients_is_told():
    X, y = many_features()
    with pytest.warns(UserWarning, match="Take a smaller delta"):
        SparseSVC("welsch", lam=3.0, delta=0.3).fit(X, y)
