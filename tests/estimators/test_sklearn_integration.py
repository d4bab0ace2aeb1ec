"""Together with scikit-learn: side by side with LinearSVC, and as a part of larger things, on real data."""

import pickle
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, scale
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from majorant import SparseSVC, SparseSVCCV
from majorant.potentials import Hyperbolic

# Side by side with LinearSVC --------------------------------------------------------------------

DATA = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "classification": lambda: make_classification(n_features=4, random_state=0),
    "classification-3": lambda: make_classification(
        300, 20, n_informative=6, n_classes=3, random_state=1, flip_y=0.1
    ),
}


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # to 1e-12; the answers are compared
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("intercept", [False, True])
def test_where_the_problem_is_the_same_so_is_the_answer(data, penalty, intercept):
    X, y = DATA[data]()
    X = scale(X)
    # LinearSVC penalises the intercept; a large scaling makes that as good as nothing.
    scaling = 1e5 if penalty == "l1" else 1e3
    settings = {"dual": False, "tol": 1e-12, "max_iter": 30_000, "random_state": 0}
    theirs = LinearSVC(penalty, C=0.1, fit_intercept=intercept, intercept_scaling=scaling, **settings)
    theirs.fit(X, y)
    ours = SparseSVC(penalty, lam=10.0, fit_intercept=intercept, tol=1e-12).fit(X, y)
    if penalty == "l2" or intercept:
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
    else:  # LinearSVC stops too early, whatever its tol
        slack = np.maximum(1.0 - np.where(y[:, None] == ours.classes_, 1, -1) * (X @ theirs.coef_.T), 0.0)
        slack = slack[:, -len(theirs.coef_) :]
        theirs_reaches = np.sum(slack**2) + 10.0 * np.abs(theirs.coef_).sum()
        assert ours.objective_ <= theirs_reaches * (1.0 + 1e-9)
    assert ours.decision_function(X).shape == theirs.decision_function(X).shape


# As a part of something larger ------------------------------------------------------------------


@pytest.mark.data
def test_in_a_pipeline_with_sparse_rows(a1a):
    X, y, X_test, y_test = a1a
    model = make_pipeline(MaxAbsScaler(), SparseSVC("l1", lam=2.0)).fit(X, y)
    assert model.score(X_test, y_test) > 0.8
    assert len(model[-1].support_) < 100


@pytest.mark.data
def test_in_a_grid_search(a1a):
    X, y, *_ = a1a
    search = GridSearchCV(SparseSVC("l1"), {"lam": [1.0, 10.0, 100.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_params_["lam"] in (1.0, 10.0)
    assert search.best_score_ > 0.8


@pytest.mark.data
def test_calibrated_probabilities(a1a):
    X, y, X_test, y_test = a1a
    model = CalibratedClassifierCV(SparseSVC("l1", lam=2.0), cv=3).fit(X, y)
    probabilities = model.predict_proba(X_test)[:, 1]
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    base = np.full(len(y_test), np.mean(y > 0))
    assert brier_score_loss(y_test, probabilities) < 0.7 * brier_score_loss(y_test, base)


@pytest.mark.data
def test_stacked_with_another(a1a):
    X, y, X_test, y_test = a1a
    parts = [("svc", SparseSVC("l1", lam=2.0)), ("tree", DecisionTreeClassifier(max_depth=4, random_state=0))]
    model = StackingClassifier(parts, final_estimator=SparseSVC("l2"), cv=3).fit(X, y)
    assert model.score(X_test, y_test) > 0.8


@pytest.mark.data
def test_permutation_importance_sees_the_selected_features_only(cina0):
    X, y, X_test, y_test = cina0
    scaler = StandardScaler().fit(X)
    model = SparseSVC("l1", lam=300.0).fit(scaler.transform(X), y)
    result = permutation_importance(model, scaler.transform(X_test), y_test, n_repeats=2, random_state=0)
    outside = ~model.get_support()
    assert np.all(result.importances_mean[outside] == 0.0)
    assert result.importances_mean.max() > 0.01


@pytest.mark.data
def test_cross_validate_routes_the_weights(a1a):
    X, y, *_ = a1a
    weights = np.where(y > 0, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            SparseSVC("l1", lam=2.0)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=False)
        )
        routed = cross_validate(model, X, y, params={"sample_weight": weights}, cv=3)["test_score"]
    plain = cross_validate(SparseSVC("l1", lam=2.0), X, y, cv=3)["test_score"]
    by_class = cross_validate(SparseSVC("l1", lam=2.0, class_weight={1: 3.0, -1: 1.0}), X, y, cv=3)[
        "test_score"
    ]
    assert np.allclose(routed, by_class)
    assert not np.allclose(routed, plain)


@pytest.mark.data
def test_pickled_and_cloned(cina0):
    X, y, X_test, _ = cina0
    model = SparseSVC("l1", lam=1e4).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X_test), model.decision_function(X_test))
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "coef_")


# SelectFromModel --------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "hyperbolic", "welsch", Hyperbolic(20.0, 1e-4)], ids=str)
@pytest.mark.parametrize("data", [load_breast_cancer, load_digits])
def test_select_from_model_takes_what_is_not_zero(penalty, data):
    X, y = data(return_X_y=True)
    X = scale(X)
    selector = SelectFromModel(SparseSVC(penalty, lam=20.0)).fit(X, y)
    assert np.array_equal(selector.get_support(), selector.estimator_.get_support())
    assert np.array_equal(selector.get_support(indices=True), selector.estimator_.support_)
    assert 0 < selector.transform(X).shape[1] < X.shape[1]


def test_select_from_model_takes_the_mean_where_nothing_is_zero():
    X, y = load_breast_cancer(return_X_y=True)
    selector = SelectFromModel(SparseSVC("l2")).fit(scale(X), y)
    assert selector.threshold_ == pytest.approx(np.mean(np.abs(selector.estimator_.coef_)))


def test_everybody_else_reads_the_penalty_that_was_set():
    model = SparseSVC("welsch")
    assert model.penalty == "welsch" != "l1"
    assert model.get_params()["penalty"] == "welsch"
    assert model.set_params(penalty="l2").penalty == "l2"
    assert "welsch" in repr(SparseSVC("welsch"))


def test_select_from_model_keeps_names_of_frames():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(
        StandardScaler(), SelectFromModel(SparseSVC("hyperbolic", lam=50.0)), SparseSVC("l2")
    ).set_output(transform="pandas")
    pipeline.fit(X, y)
    chosen = pipeline[-1].feature_names_in_
    assert set(chosen) < set(X.columns)
    assert len(chosen) == len(pipeline[1].estimator_.support_)


def test_sparsified_coefficients_select_and_predict_the_same():
    X, y = load_digits(return_X_y=True)
    model = SparseSVC("l1", lam=50.0, multi_class="joint").fit(X, y)
    scores, support = model.decision_function(X), model.get_support()
    model.sparsify()
    assert sp.issparse(model.coef_)
    assert np.allclose(model.decision_function(X), scores)
    assert np.array_equal(SelectFromModel(model, prefit=True).get_support(), support)
    assert np.array_equal(model.densify().get_support(), support)


# Types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(frame):
    X, y = load_iris(return_X_y=True)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame({name: X[:, i] for i, name in enumerate(names)})
    model = SparseSVC("l1", lam=0.5).fit(table, y)
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict(table), SparseSVC("l1", lam=0.5).fit(X, y).predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_the_type_of_x_is_the_type_of_the_coefficients(dtype, multi_class):
    X, y = load_iris(return_X_y=True)
    for form in (np.asarray, sp.csr_array):
        model = SparseSVC("l1", lam=0.5, multi_class=multi_class).fit(form(X.astype(dtype)), y)
        assert model.coef_.dtype == model.intercept_.dtype == dtype
        assert model.decision_function(form(X.astype(dtype))).dtype == dtype


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_64_bit_indices(multi_class):
    X, y = load_digits(return_X_y=True)
    narrow = sp.csr_array(X)
    wide = sp.csr_array(
        (narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)), X.shape
    )
    one, two = (SparseSVC("l1", lam=20.0, multi_class=multi_class).fit(form, y) for form in (narrow, wide))
    assert np.allclose(one.coef_, two.coef_)


def test_the_two_estimators_share_their_parameters():
    of_svc, of_cv = (set(signature(kind.__init__).parameters) for kind in (SparseSVC, SparseSVCCV))
    assert of_cv - of_svc == {"lambdas", "ratio", "cv", "scoring", "selection"}
    assert of_svc - of_cv == {"lam", "warmup", "warmup_solver", "warm_start"}
