"""`standardize=True`: the penalty in units of standard deviations, coefficients for X as it is."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from majorant import SparseSVC, SparseSVCCV, lambda_max, load_model, save_model, sparse_svc_path
from majorant.callbacks import Callback, EarlyStopping
from majorant.rows import from_arrays

X, Y = load_breast_cancer(return_X_y=True)
SCALED = StandardScaler(with_mean=False).fit_transform(X)
# Values of 1e-3 to 1e3; a third of them zero.
SPARSE = sp.csr_array(np.where(np.quantile(X, 0.33, axis=0) > X, 0.0, X))


def same_model(standardized, scaled, rtol=1e-5):
    """Whether a model on X is the one on X in other units."""
    assert np.isclose(standardized.objective_, scaled.objective_, rtol=1e-6)
    assert np.array_equal(standardized.support_, scaled.support_)
    assert np.allclose(standardized.coef_ * standardized.scale_, scaled.coef_, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2", "hyperbolic", "welsch", "none"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_standardized_fit_is_the_fit_on_scaled_features(penalty, sparse):
    raw = SPARSE if sparse else X
    scaled = StandardScaler(with_mean=False).fit_transform(raw)
    options = {"lam": 5.0, "eta": 0.5, "tol": 1e-9}
    one = SparseSVC(penalty, standardize=True, **options).fit(raw, Y)
    other = SparseSVC(penalty, **options).fit(scaled, Y)
    assert one.converged_
    same_model(one, other)
    assert np.array_equal(one.predict(raw), other.predict(scaled))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver", ["gradient", "mm", "mm-inversion", "mm-subspace", "sgd", "momentum", "adam"]
)
def test_every_solver_takes_the_same_steps_as_on_scaled_features(solver):
    options = {"lam": 5.0, "delta": 1e-2, "solver": solver, "max_iter": 5, "random_state": 0}
    one = SparseSVC(standardize=True, **options).fit(X, Y)
    other = SparseSVC(**options).fit(SCALED, Y)
    assert np.isclose(one.objective_, other.objective_, rtol=1e-6)


def test_the_objective_can_be_computed_from_coefficients_and_deviations():
    model = SparseSVC("l1", lam=3.0, eta=0.2, standardize=True).fit(X, Y)
    margins = np.where(Y == 1, 1.0, -1.0) * model.decision_function(X)
    w = model.coef_[0] * model.scale_
    phi = np.sum(np.maximum(0.0, 1.0 - margins) ** 2) + 3.0 * np.abs(w).sum() + 0.1 * w @ w
    assert np.isclose(model.objective_, phi, rtol=1e-12)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_several_classes_are_standardized_alike(multi_class):
    rows, labels = load_iris(return_X_y=True)
    options = {"lam": 2.0, "multi_class": multi_class, "tol": 1e-9}
    one = SparseSVC("l1", standardize=True, **options).fit(rows, labels)
    same_model(one, SparseSVC("l1", **options).fit(rows / rows.std(axis=0), labels))


def test_weights_are_repetitions():
    weights = np.random.default_rng(0).integers(0, 4, len(Y))
    options = {"lam": 5.0, "standardize": True, "tol": 1e-10}
    one = SparseSVC("l1", **options).fit(X, Y, weights)
    other = SparseSVC("l1", **options).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert np.allclose(one.scale_, other.scale_, rtol=1e-12)
    assert np.allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)


def test_units_of_the_features_change_nothing_but_the_units_of_the_coefficients():
    units = 10.0 ** np.random.default_rng(0).uniform(-3, 3, X.shape[1])
    for penalty in ("l1", "welsch"):
        one = SparseSVC(penalty, lam=5.0, standardize=True).fit(X, Y)
        other = SparseSVC(penalty, lam=5.0, standardize=True).fit(X * units, Y)
        assert np.array_equal(one.support_, other.support_)
        assert np.allclose(one.coef_, other.coef_ * units, rtol=1e-4, atol=1e-9)


def test_a_constant_feature_counts_as_having_deviation_one():
    model = SparseSVC("l1", lam=5.0, standardize=True).fit(np.column_stack([X, np.full(len(Y), 3.0)]), Y)
    assert model.scale_[-1] == 1.0
    assert model.coef_[0, -1] == 0.0


def test_single_precision_is_standardized_too():
    model = SparseSVC("l1", lam=5.0, standardize=True).fit(X.astype(np.float32), Y)
    reference = SparseSVC("l1", lam=5.0, standardize=True).fit(X.astype(np.float32).astype(float), Y)
    assert model.converged_
    assert np.isclose(model.objective_, reference.objective_, rtol=2e-6)


def test_paths_and_lambda_max_are_in_standardized_units():
    assert np.isclose(lambda_max(X, Y, "l1", standardize=True), lambda_max(SCALED, Y, "l1"), rtol=1e-9)
    one = sparse_svc_path(X, Y, "l1", standardize=True, lambdas=8)
    other = sparse_svc_path(SCALED, Y, "l1", lambdas=8)
    for a, b in zip(one.models, other.models, strict=True):
        assert np.isclose(a.objective_, b.objective_, rtol=2e-6)
    limited = SparseSVC("l1", lam=1e-3, max_features=4, standardize=True).fit(X, Y)
    assert len(limited.support_) <= 4


def test_cross_validation_standardizes_inside_of_each_fold():
    model = SparseSVCCV("l1", lambdas=6, standardize=True, cv=3).fit(X, Y)
    fold = np.arange(len(Y)) % 3 == 0
    train = X[~fold]
    inside = SparseSVC("l1", lam=model.lam_, standardize=True).fit(train, Y[~fold])
    assert np.allclose(inside.scale_, train.std(axis=0), rtol=1e-9)
    assert np.allclose(model.scale_, X.std(axis=0), rtol=1e-9)
    assert model.best_score_ > 0.95


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_source_is_standardized_as_rows_in_memory(sparse):
    rows = SPARSE if sparse else X
    source = from_arrays(rows, Y, rows_per_block=150)
    one = SparseSVC("l1", lam=5.0, standardize=True).fit(source)
    other = SparseSVC("l1", lam=5.0, standardize=True).fit(rows, Y)
    assert np.allclose(one.scale_, other.scale_, rtol=1e-12)
    assert np.isclose(one.objective_, other.objective_, rtol=2e-6)
    assert np.array_equal(one.support_, other.support_)
    chosen = [
        SparseSVCCV("l1", lambdas=5, standardize=True, cv=3, random_state=0).fit(*data)
        for data in ((source, None), (rows, Y))
    ]
    assert np.isclose(chosen[0].lambdas_[0], chosen[1].lambdas_[0], rtol=1e-9)
    assert np.allclose(chosen[0].scale_, chosen[1].scale_, rtol=1e-12)


def test_warm_start_continues_at_the_solution():
    model = SparseSVC("l1", lam=5.0, standardize=True, warm_start=True).fit(X, Y)
    coef = model.coef_.copy()
    assert model.fit(X, Y).n_iter_ <= 1
    assert np.allclose(model.coef_, coef, rtol=1e-6)


class Iterates(Callback):
    def __init__(self):
        self.thetas = []

    def on_iterate(self, iterate, record):
        self.thetas.append(iterate.theta.copy())


def test_callbacks_see_coefficients_for_x_as_it_is():
    seen = Iterates()
    model = SparseSVC("l1", lam=5.0, standardize=True).set_callbacks(seen).fit(X, Y)
    assert np.allclose(seen.thetas[-1][:-1], model.coef_[0], rtol=1e-6, atol=1e-9)


def test_early_stopping_scores_validation_rows_as_they_are():
    stopping = EarlyStopping(X[::3], Y[::3], patience=2)
    model = SparseSVC("l1", lam=5.0, standardize=True).set_callbacks(stopping).fit(X, Y)
    assert model.score(X[::3], Y[::3]) == stopping.best_score


def test_a_checkpoint_resumes_a_standardized_fit(tmp_path):
    file = tmp_path / "fit.npz"

    class Stop(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 3:
                raise RuntimeError("killed")

    model, seen = SparseSVC("l1", lam=5.0, standardize=True), Iterates()
    model.set_callbacks(Stop())
    with pytest.raises(RuntimeError, match="killed"):
        model.fit(X, Y, checkpoint=file)
    saved = np.load(file)["theta"]
    assert saved.any()
    model.set_callbacks(seen)
    resumed = model.fit(X, Y, checkpoint=file)
    assert np.allclose(seen.thetas[0], saved, rtol=1e-12)
    reference = SparseSVC("l1", lam=5.0, standardize=True).fit(X, Y)
    assert np.isclose(resumed.objective_, reference.objective_, rtol=2e-6)


def test_a_model_file_keeps_the_deviations(tmp_path):
    model = SparseSVC("l1", lam=5.0, standardize=True).fit(X, Y)
    save_model(model, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.scale_, model.scale_)
    assert loaded.standardize is True
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


def test_fitting_anew_without_standardizing_forgets_the_deviations():
    model = SparseSVC("l1", lam=5.0, standardize=True).fit(X, Y)
    model.set_params(standardize=False, lam=50.0).fit(SCALED, Y)
    assert not hasattr(model, "scale_")


def test_partial_fit_says_that_it_cannot_standardize():
    with pytest.raises(ValueError, match="standardize=True needs all rows"):
        SparseSVC(standardize=True).partial_fit(X, Y, classes=[0, 1])
