"""The estimator: the mathematics through its front door."""

import os
import pickle
import signal
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils._param_validation import InvalidParameterError

from majorant import SparseSVC
from majorant.callbacks import Callback, TimeLimit
from majorant.potentials import Hyperbolic
from majorant.solvers import MM, Adam
from majorant.status import Status


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def fit(X, y, penalty="l2", sample_weight=None, **options):
    return SparseSVC(penalty, **{"lam": 5.0, "tol": 1e-9, "max_iter": 20_000} | options).fit(
        X, y, sample_weight
    )


def theta(model):
    return np.append(model.coef_[0], model.intercept_)


# Invariances: the same problem said in another way ---------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "l2", "hyperbolic"])
def test_repeated_rows_equal_doubled_weights(cancer, penalty):
    X, y = cancer[0][:150, :6], cancer[1][:150]
    options = {"delta": 0.1, "tol": 1e-8}
    once = fit(X, y, penalty, sample_weight=np.full(len(y), 2.0), **options)
    twice = fit(np.vstack([X, X]), np.tile(y, 2), penalty, **options)
    assert np.allclose(theta(once), theta(twice), rtol=1e-6, atol=1e-8)


def test_the_order_of_rows_does_not_matter(cancer):
    X, y = cancer
    order = np.random.default_rng(0).permutation(len(y))
    assert np.allclose(theta(fit(X, y)), theta(fit(X[order], y[order])), rtol=1e-6)


def test_an_unpenalised_column_of_ones_is_an_intercept(cancer):
    X, y = cancer
    inside = fit(X, y)
    column = fit(
        np.column_stack([X, np.ones(len(y))]),
        y,
        fit_intercept=False,
        penalty_factor=np.append(np.ones(30), 0),
    )
    assert np.allclose(theta(inside), column.coef_[0], rtol=1e-6)
    assert column.intercept_ == 0.0


def test_swapping_the_classes_changes_the_sign(cancer):
    X, y = cancer
    assert np.allclose(theta(fit(X, y)), -theta(fit(X, 1 - y)), rtol=1e-6)


def test_dense_and_sparse_agree(cancer):
    X, y = cancer
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    assert np.allclose(theta(fit(X, y)), theta(fit(sp.csr_matrix(X), y)), rtol=1e-6)


def test_a_penalty_factor_scales_lambda(cancer):
    X, y = cancer
    assert np.allclose(
        theta(fit(X, y, lam=10.0)), theta(fit(X, y, penalty_factor=np.full(30, 2.0))), rtol=1e-6
    )


def test_l2_and_eta_are_the_same_penalty(cancer):
    X, y = cancer
    assert np.allclose(theta(fit(X, y)), theta(fit(X, y, "none", eta=5.0)), rtol=1e-6)


def test_hyperbolic_tends_to_l1(cancer):
    X, y = cancer[0][:, :8], cancer[1]
    l1 = fit(X, y, "l1", lam=20.0)
    distances = [
        np.linalg.norm(theta(fit(X, y, "hyperbolic", lam=20.0, delta=delta, tol=1e-7)) - theta(l1))
        for delta in (1e-1, 1e-2, 1e-3, 1e-4)
    ]
    assert distances[3] < distances[2] < distances[1] < distances[0]
    assert distances[3] < 1e-2


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_lam_is_one_over_c_of_linear_svc(cancer, penalty):
    X, y = cancer[0][:, :8], cancer[1]
    ours = fit(X, y, penalty, lam=10.0, tol=1e-8)
    theirs = LinearSVC(
        penalty=penalty,
        dual=False,
        C=0.1,
        intercept_scaling=1e4,
        tol=1e-9,
        max_iter=1_000_000,
        random_state=0,
    ).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)


# What users see --------------------------------------------------------------------------------


def test_fitted_attributes(cancer):
    X, y = cancer
    model = SparseSVC(lam=20.0).fit(X, y)
    assert model.converged_
    assert model.status_ is Status.CONVERGED
    assert model.gap_ <= model.tol
    assert np.array_equal(model.support_, np.flatnonzero(model.coef_))
    assert 0 < len(model.support_) < 30
    assert model.n_iter_ == model.history_[-1].iteration
    assert model.score(X, y) > 0.95


def test_objective_is_phi_at_the_coefficients(cancer):
    X, y = cancer
    model = SparseSVC("welsch", lam=0.5, delta=0.05, eta=0.1, max_iter=5000).fit(X, y)
    w = model.coef_[0]
    slack = np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))
    phi = slack @ slack + np.sum(0.5 * (1 - np.exp(-(w**2) / (2 * 0.05**2)))) + 0.05 * w @ w
    assert model.objective_ == pytest.approx(phi, rel=1e-12)


def test_zeros_are_exact_and_only_inside_the_bottom(cancer):
    X, y = cancer
    kept = SparseSVC(lam=20.0, zero_tol=0.0).fit(X, y)
    model = SparseSVC(lam=20.0).fit(X, y)
    zeros = model.coef_[0] == 0.0
    assert np.all(np.abs(kept.coef_[0][zeros]) <= 1e-6)
    np.testing.assert_allclose(kept.coef_[0][~zeros], model.coef_[0][~zeros], rtol=1e-4)
    assert model.objective_ - kept.objective_ <= 1e-6 * kept.objective_
    assert np.count_nonzero(SparseSVC(lam=20.0, zero_tol=1e9).fit(X, y).coef_) == 0
    free = SparseSVC("l2", zero_tol="auto").fit(X, y)
    assert np.all(free.coef_ != 0)


@pytest.mark.parametrize("lam", [5.0, 20.0, 100.0, 500.0, 1000.0])
def test_the_zeros_are_those_of_l1_whatever_the_tolerance(cancer, lam):
    X, y = cancer
    sharp = SparseSVC("l1", lam=lam).fit(X, y).support_
    for tol in (1e-4, 1e-6):
        assert np.array_equal(SparseSVC(lam=lam, tol=tol).fit(X, y).support_, sharp)


def test_a_wide_delta_does_not_make_zeros_of_what_the_data_need(cancer):
    X, y = cancer
    model = SparseSVC(lam=1.0, delta=10.0, max_iter=5000).fit(X, y)
    assert np.count_nonzero(model.coef_) > 10
    assert model.score(X, y) > 0.95


def test_warm_start_continues_and_means_the_same_by_tol(cancer):
    X, y = cancer
    model = SparseSVC("l2", lam=50.0, warm_start=True, solver="mm").fit(X, y)
    first = theta(model)
    model.fit(X, y)
    assert model.n_iter_ <= 1
    assert model.history_[0].gap <= model.tol
    assert np.allclose(theta(model), first)
    model.set_params(lam=49.0).fit(X, y)
    cold = SparseSVC("l2", lam=49.0, solver="mm").fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    assert np.allclose(theta(model), theta(cold), rtol=1e-3, atol=1e-5)
    model.fit(X[:, :5], y)  # another number of features: a cold start
    assert model.coef_.shape == (1, 5)


def test_the_warning_says_what_was_reached_and_what_to_do(cancer):
    X, y = cancer
    with pytest.warns(
        ConvergenceWarning, match=r"duality gap \d\.\de.\d+ after 3 iterations of 'mm'.*Increase max_iter"
    ):
        model = SparseSVC("l2", solver="mm", max_iter=3).fit(X, y)
    assert not model.converged_
    assert model.status_ is Status.MAX_ITER


def test_a_diverging_step_is_reported_and_the_model_is_finite(cancer):
    X, y = cancer
    from majorant.solvers import SGD

    with pytest.warns(ConvergenceWarning, match="smaller step"):
        model = SparseSVC(solver=SGD(step=1e6, schedule="constant"), random_state=0).fit(X, y)
    assert np.all(np.isfinite(model.coef_))


def test_objects_stand_for_themselves(cancer):
    X, y = cancer
    by_name = SparseSVC("hyperbolic", lam=3.0, delta=0.1, solver="mm", tol=1e-2).fit(X, y)
    by_object = SparseSVC(Hyperbolic(3.0, 0.1), solver=MM(), tol=1e-2).fit(X, y)
    assert np.array_equal(by_name.coef_, by_object.coef_)
    assert clone(by_object).penalty == Hyperbolic(3.0, 0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{"solver": Adam()}, {"solver": "mm", "warmup": 3}])
def test_random_state_repeats_bit_for_bit(cancer, options):
    X, y = cancer
    a, b, c = (SparseSVC(max_iter=5, random_state=seed, **options).fit(X, y).coef_ for seed in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_up_is_the_papers_hybrid(cancer):
    X, y = cancer
    model = SparseSVC(solver="mm", warmup=4, max_iter=9, random_state=0).fit(X, y)
    assert model.solver_.name == "adam × 4, then mm"
    assert model.n_iter_ == 9


def test_callbacks_survive_cloning(cancer):
    X, y = cancer
    model = clone(SparseSVC("l2", solver="sgd", max_iter=10**6, tol=0).set_callbacks(TimeLimit(1e-6)))
    with pytest.warns(ConvergenceWarning, match="more time"):
        model.fit(X, y)
    assert model.status_ is Status.TIME_LIMIT


@pytest.mark.parametrize(
    "options",
    [{"solver": "sgd", "warmup": 3}, {"warmup": 10, "max_iter": 10}, {"penalty": "l1", "warmup": 3}],
)
def test_a_warm_up_that_makes_no_sense_is_refused(cancer, options):
    with pytest.raises(ValueError, match="warmup"):
        SparseSVC(**options).fit(*cancer)


def test_callbacks_are_kept_out_of_the_parameters_and_work(cancer):
    X, y = cancer
    model = SparseSVC("l2", solver="sgd", max_iter=10**6, tol=0).set_callbacks(TimeLimit(1e-6))
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ is Status.TIME_LIMIT
    assert "callbacks" not in model.get_params()
    with pytest.raises(TypeError, match="Callback"):
        model.set_callbacks(print)


def test_verbose_prints_progress(cancer, capsys):
    X, y = cancer
    SparseSVC("l2", lam=50.0, verbose=2).fit(X, y)
    assert capsys.readouterr().err.count("iteration") >= 2


def test_ctrl_c_keeps_the_last_iterate_and_is_raised(cancer):
    X, y = cancer

    class PressCtrlC(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 5:
                os.kill(os.getpid(), signal.SIGINT)

    model = SparseSVC(solver="mm-subspace", tol=0, max_iter=10**7).set_callbacks(PressCtrlC())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ >= 4
    assert model.score(X, y) > 0.8


def test_single_precision_stays_single(cancer):
    X, y = cancer
    model = SparseSVC("l2", lam=5.0).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert np.allclose(model.coef_, fit(X, y).coef_, atol=1e-4)


def test_sparsify_and_pickle(cancer):
    X, y = cancer
    model = fit(X, y)
    scores = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), scores)
    assert sp.issparse(model.sparsify().coef_)
    assert np.allclose(model.decision_function(X), scores)
    assert np.array_equal(model.densify().decision_function(X), scores)


def test_balanced_weights_follow_the_sample_weights(cancer):
    X, y = cancer
    s = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    balanced = fit(X, y, class_weight="balanced", sample_weight=s)
    share = np.array([s[y == 0].sum(), s[y == 1].sum()])
    by_hand = fit(X, y, sample_weight=s * (share.sum() / 2 / share)[y])
    assert np.allclose(theta(balanced), theta(by_hand), rtol=1e-9)
    explicit = fit(X, y, class_weight={0: 3.0}, sample_weight=s)
    assert np.allclose(
        theta(explicit), theta(fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0) * s)), rtol=1e-9
    )


@pytest.mark.parametrize(
    "options",
    [
        {"max_iter": 0}, {"tol": -1e-3}, {"lam": -1.0}, {"delta": 0.0}, {"eta": -1.0}, {"penalty": "lasso"},
        {"solver": "lbfgs"}, {"warmup": -1}, {"warmup_solver": "warm"}, {"class_weight": "even"},
        {"zero_tol": -1.0}, {"zero_tol": "none"}, {"lam": np.nan}, {"penalty": 3},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_parameters(cancer, options):
    with pytest.raises(InvalidParameterError):
        SparseSVC(**options).fit(*cancer)


def test_no_convergence_warning_when_converged(cancer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(*cancer)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_a_penalty_that_selects_nothing_among_many_features(form, multi_class):
    X = np.random.default_rng(0).standard_normal((150, 1500))
    for y in (X[:, 0] > 0, np.digitize(X[:, 0], [-0.5, 0.5])):
        model = SparseSVC("l1", lam=1e5, multi_class=multi_class).fit(form(X), y)
        assert model.converged_
        assert len(model.support_) == 0


def _with_wide_indices(X):
    X = sp.csr_array(X)
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "form",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        sp.csr_array,
        lambda X: sp.csr_array(X).astype(np.float32),
        _with_wide_indices,
    ],
    ids=["C", "Fortran", "float32", "CSR", "CSR float32", "CSR int64"],
)
def test_large_data_are_not_copied(form, n_classes, multi_class):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 60))
    X[rng.random(X.shape) < 0.5] = 0.0
    y = np.digitize(X[:, 0] + 0.1 * rng.standard_normal(20_000), np.linspace(-0.5, 0.5, n_classes - 1))
    X = form(X)
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    model = SparseSVC("l1", lam=300.0, multi_class=multi_class)
    model.fit(X, y)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # What else there is grows with the rows, not with their entries; joint descent walks along columns.
    assert peak < (2.0 if multi_class == "ovr" or n_classes == 2 else 5.0) * size


@pytest.mark.parametrize("delta", [1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize("lam", [2.0, 20.0, 100.0])
def test_zeros_cost_no_more_than_the_smoothing_itself(lam, delta):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rounded, kept = (
        SparseSVC(lam=lam, delta=delta, zero_tol=zero_tol, tol=tol).fit(X, y)
        for zero_tol, tol in (("auto", 1e-4), (0.0, 1e-10))
    )
    zeros = X.shape[1] - len(rounded.support_)
    assert zeros > 0
    assert rounded.objective_ - kept.objective_ <= 1e-4 * kept.objective_
    assert np.all(rounded.coef_[0, ~rounded.get_support()] == 0.0)
