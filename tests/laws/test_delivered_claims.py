"""What is claimed is claimed of the coefficients that are delivered: anyone can check it from these."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning

from majorant import SparseSVC, lambda_max, sparse_svc_path
from majorant.datasets import from_arrays
from majorant.estimators.advice import what_limits
from majorant.objective import Objective
from majorant.potentials import L2, Zero
from majorant.rows import MemoryRows
from majorant.status import Status

X, Y = load_breast_cancer(return_X_y=True)
LABELS = np.where(Y == 1, 1.0, -1.0)


def value(model, X=X, y=LABELS, constant=True):
    """Φ at exactly the coefficients of a model of two classes, in extended precision."""
    w, beta = model.coef_.ravel().astype(np.longdouble), np.longdouble(model.intercept_[0])
    slack = np.maximum(1 - y * (X.astype(np.longdouble) @ w + beta), 0)
    lam, delta = np.longdouble(model.lam_), np.longdouble(model.delta or 1e-9)
    penalty = {
        "hyperbolic": lambda: np.sqrt(w * w + delta * delta) - (0 if constant else delta),
        "l1": lambda: np.abs(w),
        "l2": lambda: w * w / 2,
        "none": lambda: 0 * w,
    }[model.penalty]()
    return float(slack @ slack + lam * penalty.sum())


@pytest.mark.parametrize("lam", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("settings", [{"delta": 1e-4}, {"delta": 1e-2}, {}], ids=str)
def test_the_gap_is_that_of_the_coefficients_with_their_zeros(settings, lam):
    model = SparseSVC("hyperbolic", lam=lam, **settings).fit(X, Y)
    assert model.converged_
    assert model.objective_ == pytest.approx(value(model), rel=1e-10)
    gap = (value(model) - model.lower_bound_) / value(model, constant=False)
    assert gap <= 1e-6
    assert gap == pytest.approx(model.gap_, rel=1e-3, abs=1e-11)


def test_the_default_smoothing_leaves_the_zeros_of_l1():
    for lam in (1.0, 1e3):
        smooth, sharp = (SparseSVC(penalty, lam=lam).fit(X, Y) for penalty in ("hyperbolic", "l1"))
        np.testing.assert_array_equal(smooth.support_, sharp.support_)


def test_a_huge_strength_leaves_the_intercept_free():
    huge = SparseSVC("hyperbolic", lam=1e12, delta=1e-4).fit(X, Y)
    sharp = SparseSVC("l1", lam=1e12).fit(X, Y)
    assert huge.converged_
    assert huge.intercept_ == pytest.approx(sharp.intercept_, rel=1e-3)
    assert huge.gap_ <= 1e-6


def test_a_number_is_obeyed_and_what_it_costs_is_said():
    with pytest.warns(ConvergenceWarning, match="zero_tol"):
        model = SparseSVC("l1", lam=1e-2, zero_tol=0.01).fit(X, Y)
    assert model.status_ is Status.ZERO_TOL
    assert not model.converged_
    assert np.all(np.abs(model.coef_[model.coef_ != 0.0]) > 0.01)
    assert model.gap_ > 1e-6
    assert model.objective_ == pytest.approx(value(model), rel=1e-10)


def test_single_precision_is_kept_where_it_can_be():
    single = X.astype(np.float32)
    easy = SparseSVC("l1", lam=10.0).fit((single - single.mean(axis=0)) / single.std(axis=0), Y)
    assert easy.coef_.dtype == np.float32
    hard = SparseSVC("l1", lam=1e-2).fit(single + np.float32(1e4), Y)
    for model, rows in (
        (easy, (single - single.mean(axis=0)) / single.std(axis=0)),
        (hard, single + np.float32(1e4)),
    ):
        assert model.converged_
        assert model.objective_ == pytest.approx(value(model, rows), rel=1e-9)
        assert (value(model, rows) - model.lower_bound_) / value(model, rows) <= 1.01e-6


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_features_without_penalty_have_a_gap_as_well(penalty):
    rng = np.random.default_rng(0)
    rows = X[:, :5] + 0.5 * X[:, :5].std(axis=0) * rng.standard_normal((len(X), 5))
    factor = None if penalty == "none" else np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    model = SparseSVC(penalty, lam=10.0, penalty_factor=factor).fit(rows, Y)
    assert model.converged_
    assert model.gap_ <= 1e-6
    best = SparseSVC("none", tol=1e-12).fit(rows, Y) if penalty == "none" else model
    assert model.lower_bound_ <= best.objective_ * (1.0 + 1e-10)


def test_every_point_of_a_path_and_every_class():
    path = sparse_svc_path(X, Y, "hyperbolic", lambdas=5, ratio=1e-2, delta=1e-4)
    for model in path.models:
        dense = model.densify()
        assert dense.objective_ == pytest.approx(value(dense), rel=1e-10)
        assert dense.converged_
    digits, labels = load_digits(return_X_y=True)
    for multi_class in ("ovr", "joint"):
        model = SparseSVC("hyperbolic", lam=100.0, delta=1e-4, multi_class=multi_class).fit(
            digits[:300], labels[:300]
        )
        constant = 100.0 * 1e-4 * 64 * (10 if multi_class == "ovr" else 1)
        assert (model.objective_ - model.lower_bound_) / (model.objective_ - constant) <= 1e-6


def test_the_same_from_a_source():
    source = from_arrays(X, Y, rows_per_block=100)
    model = SparseSVC("hyperbolic", lam=1e3, delta=1e-4).fit(source)
    assert model.converged_
    assert model.objective_ == pytest.approx(value(model), rel=1e-10)
    assert (value(model) - model.lower_bound_) / value(model, constant=False) <= 1.001e-6


def test_what_limits_a_fit_is_named():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((40, 3)) + np.array([1e6, 0.0, 0.0])
    weights = 10.0 ** rng.uniform(-8, 8, 40)
    labels = np.where(rows[:, 1] > 0, 1.0, -1.0)
    words = what_limits(Objective(MemoryRows(rows, labels, weights), Zero()))
    assert "sample weights from" in words
    assert "features without any penalty" in words
    assert "features far from zero" in words
    easy = what_limits(Objective(MemoryRows(rng.standard_normal((40, 3)), labels), L2(1.0)))
    assert easy == "Rounding limits it: features that nearly depend on each other."


def test_a_penalty_that_is_not_convex_is_found_stationary():
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SparseSVC("welsch", lam=5.0).fit(standard, Y)
    assert model.converged_
    assert np.isnan(model.gap_)
    assert np.isnan(model.lower_bound_)
    assert model.stationarity_ <= 1e-6
    scaled = SparseSVC("welsch", lam=5.0, delta=1e-7).fit(standard * 1e3, Y)
    np.testing.assert_array_equal(scaled.support_, model.support_)


@pytest.mark.parametrize("seed", range(5))
def test_a_faint_coefficient_is_zero_once_the_intercept_has_moved(seed):
    X = np.random.default_rng(seed).standard_normal((200, 3))
    y = np.where(np.arange(200) % 5 == 0, 1, 0)
    model = SparseSVC("l1", lam=lambda_max(X, y, "l1")).fit(X, y)
    assert model.converged_
    assert not len(model.support_)
