"""Strengths, paths of them, and cross-validation along the path."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.preprocessing import scale

from majorant import SparseSVC, SparseSVCCV, lambda_max, sparse_svc_path
from majorant.objective import Objective
from majorant.potentials import L1
from majorant.testing import small_problem


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def text():
    """Sparse rows with more features than the Gram matrix is formed for."""
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 1500), density=0.02, rng=rng, format="csr")
    return X, np.where(X[:, :20].sum(axis=1) + 0.1 * rng.standard_normal(300) > 0.2, 1, -1)


# lambda_max --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l1", "hyperbolic"])
def test_lambda_max_is_where_the_first_feature_enters(penalty, intercept, weighted, cancer):
    X, y = cancer
    settings = {"fit_intercept": intercept}
    weights = None
    if weighted:
        weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
        settings |= {"class_weight": "balanced", "penalty_factor": np.linspace(0.5, 2.0, 30)}
    strength = lambda_max(X, y, penalty, sample_weight=weights, **settings)
    above, below = (
        SparseSVC(penalty, lam=factor * strength, **settings).fit(X, y, sample_weight=weights)
        for factor in (1.0001, 0.98)
    )
    assert len(above.support_) == 0
    assert len(below.support_) > 0


def test_lambda_max_with_features_that_go_unpenalised(cancer):
    X, y = cancer
    factor = np.ones(30)
    factor[[3, 7]] = 0.0
    for eta in (0.0, 5.0):
        strength = lambda_max(X, y, "l1", penalty_factor=factor, eta=eta)
        settings = {"penalty_factor": factor, "eta": eta}
        assert SparseSVC("l1", lam=1.001 * strength, **settings).fit(X, y).support_.tolist() == [3, 7]
        assert len(SparseSVC("l1", lam=0.98 * strength, **settings).fit(X, y).support_) > 2


def test_no_strength_of_l2_makes_zeros(cancer):
    assert lambda_max(*cancer, "l2") == np.inf


def test_lambda_max_scales_with_the_weights(cancer):
    X, y = cancer
    once = lambda_max(X, y, "l1")
    assert np.isclose(lambda_max(X, y, "l1", sample_weight=np.full(len(y), 3.0)), 3.0 * once)


# The path ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "hyperbolic", "l2"])
@pytest.mark.parametrize("data", ["cancer", "text"])
def test_every_model_of_a_path_is_a_fit_by_itself(penalty, data, request):
    X, y = request.getfixturevalue(data)
    path = sparse_svc_path(X, y, penalty, lambdas=8, ratio=1e-2)
    assert len(path) == 8
    assert np.all(np.diff(path.lambdas) < 0)
    for model in path.models[::3]:
        alone = SparseSVC(penalty, lam=model.lam_).fit(X, y)
        assert model.converged_
        assert np.isclose(model.objective_, alone.objective_, rtol=2e-6)
    assert path.coefs.shape == (8, X.shape[1])
    assert path.intercepts.shape == (8,)
    assert np.array_equal(path.to_frame()["n_features"], [len(model.support_) for model in path.models])
    scores = X @ path.coefs[4] + path.intercepts[4]
    assert np.allclose(path.models[4].decision_function(X), scores)


def test_a_path_starts_without_features_and_ends_where_told(cancer):
    path = sparse_svc_path(*cancer, "l1", lambdas=10, ratio=1e-4)
    assert len(path.models[0].support_) == 0
    assert np.isclose(path.lambdas[-1] / path.lambdas[0], 1e-4)
    given = sparse_svc_path(*cancer, "l1", lambdas=[1.0, 100.0, 10.0])
    assert given.lambdas.tolist() == [100.0, 10.0, 1.0]


def test_a_path_ends_before_too_many_features(cancer):
    path = sparse_svc_path(*cancer, "l1", lambdas=50, max_features=5)
    assert 1 < len(path) < 50
    assert max(len(model.support_) for model in path.models) == 5


def test_a_path_of_several_classes():
    X, y = load_iris(return_X_y=True)
    for multi_class in ("ovr", "joint"):
        path = sparse_svc_path(X, y, "l1", lambdas=5, multi_class=multi_class)
        assert path.coefs.shape == (5, 3, 4)
        assert path.models[-1].score(X, y) > 0.9


def test_a_path_of_a_potential_object(cancer):
    path = sparse_svc_path(*cancer, L1(1.0), lambdas=[5.0, 1.0])
    assert np.isclose(path.models[1].objective_, SparseSVC("l1", lam=1.0).fit(*cancer).objective_, rtol=1e-6)
    with pytest.raises(ValueError, match="at least 1"):
        sparse_svc_path(*cancer, lambdas=0)
    with pytest.raises(ValueError, match="non-negative"):
        sparse_svc_path(*cancer, lambdas=[1.0, -1.0])


# max_features ------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "hyperbolic"])
@pytest.mark.parametrize("limit", [1, 4, 12])
def test_max_features_is_kept_with_the_weakest_penalty(penalty, limit, cancer):
    model = SparseSVC(penalty, lam=0.1, max_features=limit, tol=1e-7).fit(*cancer)
    assert 1 <= len(model.support_) <= limit
    assert model.lam_ > 0.1
    assert len(SparseSVC(penalty, lam=0.99 * model.lam_).fit(*cancer).support_) >= limit
    same = SparseSVC(penalty, lam=model.lam_, tol=1e-7).fit(*cancer)
    assert np.array_equal(same.support_, model.support_)


def test_max_features_that_do_not_bind_change_nothing(cancer):
    limited, free = (SparseSVC("l1", lam=30.0, max_features=k).fit(*cancer) for k in (30, None))
    assert limited.lam_ == 30.0
    assert np.allclose(limited.coef_, free.coef_, atol=1e-4)


def test_max_features_asks_for_a_penalty_that_selects(cancer):
    with pytest.raises(ValueError, match="makes none"):
        SparseSVC("l2", max_features=3).fit(*cancer)
    with pytest.raises(ValueError, match="unpenalised"):
        SparseSVC("l1", max_features=3, penalty_factor=np.zeros(30)).fit(*cancer)


# Cross-validation --------------------------------------------------------------------------------


def test_cross_validation_scores_are_those_of_single_fits(cancer):
    X, y = cancer
    folds = StratifiedKFold(3)
    model = SparseSVCCV("l1", lambdas=[20.0, 1.0], cv=folds, tol=1e-9).fit(X, y)
    for k, (train, test) in enumerate(folds.split(X, y)):
        for i, lam in enumerate([20.0, 1.0]):
            single = SparseSVC("l1", lam=lam, tol=1e-9).fit(X[train], y[train])
            assert np.isclose(model.cv_results_[f"split{k}_test_score"][i], single.score(X[test], y[test]))
    frame = pd.DataFrame(model.cv_results_)
    assert frame["mean_test_score"].idxmax() == frame["rank_test_score"].idxmin()
    refit = SparseSVC("l1", lam=model.lam_, tol=1e-9).fit(X, y)
    assert np.allclose(model.coef_, refit.coef_, atol=1e-6)
    assert model.lam_ == model.lam_best_


def test_one_standard_error_means_fewer_features(cancer):
    best, plain = (SparseSVCCV("l1", lambdas=30, selection=rule).fit(*cancer) for rule in ("best", "1se"))
    assert plain.lam_ == best.lam_1se_ > best.lam_best_
    assert len(plain.support_) < len(best.support_)
    results = best.cv_results_
    scores = np.stack([results[f"split{k}_test_score"] for k in range(5)])
    top = results["mean_test_score"].argmax()
    error = scores[:, top].std(ddof=1) / np.sqrt(5)
    within = results["mean_test_score"] >= results["mean_test_score"][top] - error
    assert plain.lam_ == results["lam"][within].max()


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss_of_margins", "f1"])
def test_any_scorer(scoring, cancer):
    if scoring == "neg_log_loss_of_margins":
        scoring = make_scorer(roc_auc_score, response_method="decision_function")
    model = SparseSVCCV("l1", lambdas=5, scoring=scoring, cv=3).fit(*cancer)
    assert model.best_score_ > 0.9


def test_folds_in_threads_change_nothing(cancer):
    one, two = (SparseSVCCV("hyperbolic", lambdas=6, n_jobs=jobs).fit(*cancer) for jobs in (None, 2))
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert np.array_equal(one.coef_, two.coef_)


def test_weights_and_groups_are_routed(cancer):
    X, y = cancer
    weights, groups = np.random.default_rng(0).uniform(0.1, 3.0, len(y)), np.arange(len(y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        from sklearn.metrics import get_scorer

        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        model = SparseSVCCV("l1", lambdas=[5.0], cv=GroupKFold(4), scoring=scorer)
        model.set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=weights, groups=groups)
    expected = []
    for train, test in GroupKFold(4).split(X, y, groups):
        single = SparseSVC("l1", lam=5.0).fit(X[train], y[train], weights[train])
        expected.append(single.score(X[test], y[test], weights[test]))
    assert np.isclose(model.best_score_, np.mean(expected), atol=1e-3)


def test_data_frames_keep_their_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseSVCCV("l1", lambdas=[2.0], multi_class="joint").fit(X, y)
        model.predict(X)
    assert model.feature_names_in_.tolist() == X.columns.tolist()


def test_no_finite_score_is_an_error():
    X, y, _ = small_problem()
    with pytest.raises(ValueError, match="not finite"):
        SparseSVCCV("l1", lambdas=2, scoring=lambda model, X, y: np.nan).fit(X, y)


# What others stumbled over ---------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_max_features_of_a_potential_that_is_not_convex(limit, cancer):
    model = SparseSVC("welsch", lam=0.01, max_features=limit).fit(*cancer)
    assert 1 <= len(model.support_) <= limit


@pytest.mark.slow
def test_max_features_goes_down_to_lam_however_small(cancer):
    assert SparseSVC("l1", lam=1e-5, max_features=30).fit(*cancer).lam_ == 1e-5


def test_max_features_ends_when_a_callback_says_so(cancer):
    from majorant.callbacks import Callback
    from majorant.status import Status

    class Enough(Callback):
        runs = 0

        def on_begin(self, objective, tol):
            self.runs += 1

        def on_iterate(self, iterate, record):
            return Status.STOPPED

    enough = Enough()
    SparseSVC("l1", lam=0.1, max_features=5).set_callbacks(enough).fit(*cancer)
    assert enough.runs == 1


def test_models_of_a_path_can_be_fitted_again(cancer):
    from sklearn.base import clone

    for penalty in ("l1", L1(1.0)):
        model = sparse_svc_path(*cancer, penalty, lambdas=[50.0]).models[0]
        again = clone(model).fit(*cancer)
        assert again.lam_ == 50.0
        assert np.isclose(again.objective_, model.objective_, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lambdas": 2.5}, "whole number"),
        ({"lambdas": "auto"}, "whole number"),
        ({"lambdas": [[1.0, 2.0]]}, "non-negative"),
        ({"ratio": 2.0}, "ratio=2.0"),
        ({"eta": -1.0}, "eta"),
        ({"multi_class": "jont"}, "multi_class"),
        ({"penalty": "none"}, "penalty='l1'"),
    ],
)
def test_a_path_says_what_is_wrong(arguments, message, cancer):
    with pytest.raises(ValueError, match=message):
        sparse_svc_path(*cancer, **arguments)


def test_a_path_has_no_use_for_a_strength(cancer):
    with pytest.raises(TypeError, match="no use for lam"):
        lambda_max(*cancer, "l1", lam=3.0)


def test_folds_that_do_not_converge_are_told_of(cancer):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="along the path did not converge"):
        SparseSVCCV("l1", lambdas=3, max_iter=1, tol=1e-12).fit(*cancer)


def test_at_lambda_max_itself_there_is_no_feature(cancer):
    X, y = cancer
    for form in (np.asfortranarray, np.ascontiguousarray, sp.csr_array):
        strength = lambda_max(form(X), y, "l1")
        assert len(SparseSVC("l1", lam=strength).fit(form(X), y).support_) == 0


def test_a_path_is_shown_in_one_line(cancer):
    assert repr(sparse_svc_path(*cancer, "l1", lambdas=[100.0, 1.0])).startswith(
        "Path(2 models, lam 100 to 1"
    )


def test_a_path_of_a_potential_that_is_not_convex(cancer):
    path = sparse_svc_path(*cancer, "welsch", lambdas=6, ratio=1e-3)
    sizes = [len(model.support_) for model in path.models]
    assert sizes[0] == 0
    assert sizes[-1] > 5
    alone = SparseSVC("welsch", lam=path.lambdas[3]).fit(*cancer)
    assert path.models[3].objective_ <= (1 + 1e-6) * alone.objective_
    strength = lambda_max(*cancer, "welsch")
    assert len(SparseSVC("welsch", lam=strength).fit(*cancer).support_) == 0
    assert len(SparseSVC("welsch", lam=0.98 * strength).fit(*cancer).support_) > 0


def test_just_above_lambda_max_there_is_next_to_never_a_feature():
    rng = np.random.default_rng(0)
    selected = 0
    for _ in range(40):
        X = rng.standard_normal((rng.integers(10, 80), rng.integers(1, 20)))
        y = X[:, 0] + rng.standard_normal(len(X)) > 0
        model = SparseSVC("l1", lam=1.001 * lambda_max(X, y, "l1")).fit(X, y)
        selected += len(model.support_) > 0
    assert selected <= 2


@pytest.mark.parametrize("how", ["path", "cv"])
def test_progress_counts_the_models_and_is_silent_by_default(how, capsys, monkeypatch):
    monkeypatch.setattr(
        "majorant.callbacks.progress.ProgressDisplay.show", lambda self, *what: print(what[1])
    )
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X[:, 0] + rng.standard_normal(60) > 0

    def fit(**kwargs):
        if how == "path":
            sparse_svc_path(X, y, "l1", lambdas=4, **kwargs)
        else:
            SparseSVCCV("l1", lambdas=2, cv=2, **kwargs).fit(X, y)
        return capsys.readouterr().out

    assert fit() == ""
    assert [line.split("  ")[0] for line in fit(verbose=1).splitlines()] == [
        f"model {k} of 4" for k in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("shape", [(60, 400), (500, 20)], ids=["wide", "tall"])
def test_hyperbolic_path_with_a_sharp_kink_ends_at_l1(shape, monkeypatch):
    """The solution of ℓ1 is certified as one of the hyperbolic problem, without steps on the rounded kink."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=shape)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0.0, 1, -1)
    sharp = sparse_svc_path(X, y, "l1", lambdas=20)
    monkeypatch.setattr(Objective, "smoothed_start", None)  # what steps on the rounded kink begin with
    rounded = sparse_svc_path(X, y, "hyperbolic", lambdas=sharp.lambdas)
    for one, other in zip(sharp.models, rounded.models, strict=True):
        assert other.converged_
        constant = other.lam_ * 1e-9 * X.shape[1]
        assert other.objective_ - constant == pytest.approx(one.objective_, rel=3e-6)
