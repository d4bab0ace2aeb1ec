"""Streams: rows that come in parts, are learned from, and forgotten."""

import pickle
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils._param_validation import InvalidParameterError

from majorant import SparseSVC
from majorant.errors import ScaleError, UnsuitableSolverError
from majorant.solvers import SGD, Adam, Momentum

STOCHASTIC = [SGD(batch_size=16), Momentum(batch_size=16), Adam(step=0.05, batch_size=16)]
by_solver = pytest.mark.parametrize("solver", STOCHASTIC, ids=lambda solver: solver.name)


def data(n=240, p=6, n_classes=2, seed=0):
    X, y = make_classification(
        n, p, n_informative=p - 2, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=seed
    )
    return scale(X), y


def parts(X, y, size=50):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


def theta(model):
    return np.column_stack([model.coef_, model.intercept_])


def fit(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **options)


# What is minimised ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [SGD(step=0.2), Momentum(step=0.02), Adam(step=0.1)], ids=lambda s: s.name)
@pytest.mark.parametrize("penalty", ["hyperbolic", "l2"])
def test_repeated_passes_lead_to_what_fit_finds(solver, penalty):
    X, y = data()
    settings = {"lam": 20.0, "delta": 0.3, "zero_tol": 0.0}
    best = SparseSVC(penalty, tol=1e-10, **settings).fit(X, y)
    decaying = replace(solver, schedule="inverse", batch_size=16)
    model = SparseSVC(penalty, solver=decaying, random_state=0, **settings)
    distances = []
    for passes in range(1, 201):
        for X_part, y_part in parts(X, y):
            model.partial_fit(X_part, y_part, classes=[0, 1], n_samples=len(y))
        if passes in (3, 200):
            distances.append(np.linalg.norm(theta(model) - theta(best)) / np.linalg.norm(theta(best)))
    assert distances[1] < 2e-3
    assert distances[1] < 0.2 * distances[0]


@by_solver
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_a_pass_in_one_call_is_an_epoch_of_fit_bit_for_bit(solver, n_classes, kind):
    X, y = data(n_classes=n_classes)
    X, s = kind(X), np.linspace(0.0, 2.0, len(y))
    model = SparseSVC(solver=solver, delta=0.1, zero_tol=0.0, max_iter=4, random_state=3)
    epochs = fit(clone(model), X, y, sample_weight=s)
    for _ in range(4):
        model.partial_fit(X, y, np.unique(y), s, n_samples=len(y))
    assert model.coef_.dtype == X.dtype
    assert np.array_equal(theta(model), theta(epochs))


def test_the_first_pass_need_not_be_told_how_long_it_is():
    X, y = data()
    model = SparseSVC(solver="sgd", delta=0.1, zero_tol=0.0, max_iter=1, random_state=3)
    epoch = fit(clone(model), X, y)
    assert np.array_equal(theta(model.partial_fit(X, y, [0, 1])), theta(epoch))


def test_the_penalty_fades_if_the_rows_do_not_end():
    """All rows so far: after m passes, one penalty for m copies of the rows."""
    X, y = data()
    step = SGD(step=0.01, batch_size=16, schedule="constant")
    model = SparseSVC("l2", lam=60.0, solver=step, random_state=0)
    copies = 100
    for _ in range(copies):
        model.partial_fit(X, y, [0, 1])
    once, many = (SparseSVC("l2", lam=60.0 / m).fit(X, y) for m in (1, copies))
    assert np.linalg.norm(theta(model) - theta(many)) < 0.1 * np.linalg.norm(theta(model) - theta(once))


def test_the_papers_weighting_does_not_ask_how_many_rows_there_are():
    X, y = data()
    constant = SGD(weighting="paper", schedule="constant", batch_size=16)
    models = [SparseSVC("l2", lam=0.1, solver=constant, random_state=0) for _ in range(2)]
    for part in parts(X, y):
        models[0].partial_fit(*part, [0, 1])
        models[1].partial_fit(*part, [0, 1], n_samples=10_000)
    assert np.array_equal(theta(models[0]), theta(models[1]))


@by_solver
def test_a_stream_learns(solver):
    X, y = data(4000, 10)
    for settings in (solver, "auto"):
        model = SparseSVC(solver=settings, random_state=0)
        for part in parts(X[:3000], y[:3000]):
            model.partial_fit(*part, classes=[0, 1])
        best = SparseSVC().fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
        assert model.score(X[3000:], y[3000:]) > best - 0.05


def test_how_the_stream_is_cut_hardly_matters():
    X, y = data(2000)
    ends = []
    for size in (1, 16, 500):
        model = SparseSVC(solver=SGD(batch_size=16, step=0.02), random_state=0)
        for part in parts(X, y, size):
            model.partial_fit(*part, classes=[0, 1], n_samples=2000)
        ends.append(theta(model))
    assert np.linalg.norm(ends[0] - ends[1]) < 0.05 * np.linalg.norm(ends[1])
    assert np.linalg.norm(ends[2] - ends[1]) < 0.2 * np.linalg.norm(ends[1])


# Weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [SGD(), Momentum(), Adam()], ids=lambda solver: solver.name)
def test_a_weight_of_two_is_the_row_twice(solver):
    """In batches of the same content. What differs is K, and with it the scale of Φ/K: α makes up for it."""
    X, y = data(20)
    weights = np.where(np.arange(20) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(20), weights.astype(int))
    longer = 1.0 if solver.name == "adam" else len(twice) / 20  # the length of d does not matter to Adam
    settings = {"lam": 3.0, "random_state": 0}
    weighted = SparseSVC("l2", solver=replace(solver, step=0.05), **settings)
    repeated = SparseSVC("l2", solver=replace(solver, step=0.05 * longer), **settings)
    for _ in range(5):
        weighted.partial_fit(X, y, [0, 1], weights, n_samples=20)
        repeated.partial_fit(X[twice], y[twice], [0, 1], n_samples=len(twice))
    assert np.allclose(theta(weighted), theta(repeated), rtol=1e-5, atol=1e-7)


def test_class_weights_are_weights():
    X, y = data()
    a = SparseSVC(solver="sgd", class_weight={1: 3.0}, random_state=0).partial_fit(X, y, [0, 1])
    b = SparseSVC(solver="sgd", random_state=0).partial_fit(X, y, [0, 1], np.where(y == 1, 3.0, 1.0))
    assert np.array_equal(theta(a), theta(b))


def test_rows_without_weight_teach_nothing():
    X, y = data()
    wrong = np.arange(len(y)) % 2 == 0
    settings = {"solver": Adam(batch_size=500), "random_state": 0}
    a = SparseSVC("none", **settings).partial_fit(X, np.where(wrong, 1 - y, y), [0, 1], 1.0 - wrong)
    b = SparseSVC("none", **settings).partial_fit(X[~wrong], y[~wrong], [0, 1])
    assert np.allclose(theta(a), theta(b), rtol=1e-5)
    assert (a.t_, b.t_) == (240, 120)


# Classes ----------------------------------------------------------------------------------------


def test_classes_come_in_order_whatever_order_they_are_named_in():
    X, y = data(n_classes=3)
    names = np.array(["pear", "apple", "fig"])
    model, other = (SparseSVC(solver="sgd", random_state=0) for _ in range(2))
    for X_part, y_part in parts(X, y):
        model.partial_fit(X_part, names[y_part], classes=["pear", "apple", "fig"])
        other.partial_fit(X_part, names[y_part].astype(object), classes=np.array(sorted(names), object))
    assert model.classes_.tolist() == other.classes_.tolist() == ["apple", "fig", "pear"]
    assert np.array_equal(theta(model), theta(other))
    assert model.coef_.shape == (3, 6)
    assert model.score(X, names[y]) > 0.5


def test_a_class_may_be_missing_for_a_while():
    X, y = data()
    order = np.argsort(y)
    model = SparseSVC(delta=1e-4, random_state=0)
    for _ in range(20):
        for part in parts(X[order], y[order], 20):
            model.partial_fit(*part, classes=(0, 1), n_samples=len(y))
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("n_classes", [3, 4])
def test_more_classes_are_one_against_the_rest(n_classes):
    X, y = data(n_classes=n_classes, p=8)
    model = SparseSVC(solver="momentum", random_state=0)
    single = [SparseSVC(solver="momentum", random_state=0) for _ in range(n_classes)]
    for X_part, y_part in parts(X, y):
        model.partial_fit(X_part, y_part, classes=range(n_classes))
        for label, one in enumerate(single):
            one.partial_fit(X_part, y_part == label, classes=[False, True])
    assert np.array_equal(theta(model), np.vstack([theta(one) for one in single]))


def test_labels_are_the_same_if_they_are_equal():
    X, y = data()
    model = SparseSVC(solver="sgd").partial_fit(X, y, [0, 1])
    model.partial_fit(X, y.astype(float)).partial_fit(X, y.astype(bool)).partial_fit(X, y.astype(object))
    with pytest.raises(ValueError, match=r"not among the classes \[0, 1\]: \['0', '1'\]"):
        model.partial_fit(X, y.astype(str))


# The state between calls ------------------------------------------------------------------------


@by_solver
def test_a_pickle_in_the_middle_of_a_stream_changes_no_bit(solver):
    X, y = data(n_classes=3)
    calls = list(parts(X, y))
    model = SparseSVC(solver=solver, zero_tol=0.01)
    for part in calls[:2]:
        model.partial_fit(*part, classes=range(3))
    twin = pickle.loads(pickle.dumps(model))
    for part in calls[2:]:
        model.partial_fit(*part)
        twin.partial_fit(*part)
    assert np.array_equal(theta(model), theta(twin))


def test_the_seed_repeats_a_stream():
    X, y = data()
    a, b, c = (SparseSVC(solver="adam", random_state=seed) for seed in (0, 0, 1))
    for model in (a, b, c):
        for part in parts(X, y, 150):
            model.partial_fit(*part, classes=[0, 1])
    assert np.array_equal(theta(a), theta(b))
    assert not np.array_equal(theta(a), theta(c))


@by_solver
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_memory_does_not_grow_with_the_rows(solver, kind):
    X, y = data(200, 300)
    X = kind(X)
    model = SparseSVC(solver=solver, random_state=0)
    for _ in range(5):
        model.partial_fit(X, y, classes=[0, 1])
    size = len(pickle.dumps(model))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(40):
            model.partial_fit(X, y)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 60_000  # X has 480,000 bytes, and was passed forty times
    assert len(pickle.dumps(model)) < size + 100


def test_what_is_there_after_partial_fit_and_what_is_not():
    X, y = data()
    model = SparseSVC(solver=SGD(batch_size=16), lam=2.0, max_iter=5)
    fit(model, X, y)
    model.partial_fit(X[:50], y[:50])
    for name in ("gap_", "objective_", "converged_", "status_", "stationarity_", "history_"):
        assert not hasattr(model, name)
    assert model.t_ == 290
    assert model.n_iter_ == 4
    assert model.lam_ == 2.0
    assert model.solver_ == SGD(batch_size=16)
    assert model.n_features_in_ == 6
    assert np.array_equal(model.support_, np.flatnonzero(model.coef_[0]))
    assert set(np.unique(model.predict(X))) == {0, 1}


def test_fit_begins_anew_and_partial_fit_goes_on_from_there():
    X, y = data()
    model = SparseSVC(delta=0.1, random_state=0)
    fitted = clone(model).fit(X, y)
    model.partial_fit(-X, y, [0, 1]).fit(X, y)
    assert np.array_equal(theta(model), theta(fitted))
    assert model.t_ == len(y)
    still = SGD(step=1e-12)
    model.set_params(solver=still).partial_fit(X[:50], y[:50])
    assert np.allclose(theta(model), theta(fitted), atol=1e-9)
    assert model.sparsify().partial_fit(X, y).t_ == 290 + len(y)


def test_partial_fit_after_a_sparsified_fit():
    X, y = data()
    model = SparseSVC("hyperbolic", lam=50.0, random_state=0).fit(X, y)
    twin = pickle.loads(pickle.dumps(model)).sparsify()
    assert np.array_equal(theta(model.partial_fit(X, y)), theta(twin.partial_fit(X, y)))


def test_small_coefficients_are_zero_in_coef_but_not_on_the_way():
    X, y = data()
    exact, rounded, automatic = (
        SparseSVC(solver=SGD(step=0.1), random_state=0, zero_tol=tol) for tol in (0.0, 0.1, "auto")
    )
    for part in parts(X, y):
        for model in (exact, rounded, automatic):
            model.partial_fit(*part, classes=[0, 1])
    expected = np.where(np.abs(exact.coef_) <= 0.1, 0.0, exact.coef_)
    assert np.array_equal(rounded.coef_, expected)
    assert 0 < len(rounded.support_) < 6
    assert np.array_equal(automatic.coef_, exact.coef_)


def test_another_solver_may_go_on():
    X, y = data()
    model = SparseSVC(solver="adam", random_state=0).partial_fit(X, y, [0, 1])
    before = theta(model)
    model.set_params(solver="momentum").partial_fit(X, y)
    assert model.solver_ == Momentum()
    assert not np.array_equal(theta(model), before)


def test_without_intercept():
    X, y = data()
    model = SparseSVC(fit_intercept=False).partial_fit(X, y, [0, 1])
    assert model.intercept_.tolist() == [0.0]


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_weight": "balanced"}, "compute_class_weight"),
        ({"max_features": 2}, "max_features=None"),
        ({"lam": -1.0}, "lam"),
    ],
)
def test_settings_that_need_all_rows(settings, message):
    X, y = data(n_classes=3)
    with pytest.raises(InvalidParameterError, match=message):
        SparseSVC(**settings).partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": "l1"}, "'l1' has a kink"),
        ({"penalty": "l1", "solver": "sgd"}, "'l1' has a kink"),
        ({"multi_class": "joint"}, "multi_class='ovr'"),
        ({"solver": "newton"}, "'newton' needs all rows at once.*'sgd', 'momentum', 'adam'"),
    ],
)
def test_there_is_no_partial_fit_where_it_cannot_work(settings, message):
    X, y = data()
    model = SparseSVC(**settings)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(UnsuitableSolverError, match=message):
        raise caught.value.__cause__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "first call of partial_fit needs the labels"),
        ({"classes": [1]}, "at least 2 labels"),
        ({"classes": [1, 2]}, r"not among the classes \[1, 2\]: \[0\]"),
        ({"classes": [0, 1], "n_samples": 0}, "n_samples must be a positive integer"),
        ({"classes": [0, 1], "n_samples": 1.5}, "n_samples must be a positive integer"),
        ({"classes": [0, 1], "sample_weight": -np.ones(240)}, "negative"),
    ],
)
def test_wrong_arguments_of_the_first_call(arguments, message):
    X, y = data()
    model = SparseSVC(solver="sgd")
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, **arguments)
    assert not hasattr(model, "classes_")
    model.partial_fit(X[:, :3], y, classes=[0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :-1], y, None), "features"),
        (lambda X, y: (X, y + 1, None), r"not among the classes \[0, 1\]: \[2\]"),
        (lambda X, y: (X, y, [0, 1, 2]), "not those of the calls before"),
        (lambda X, y: (np.where(X > 1, np.nan, X), y, None), "NaN"),
        (lambda X, y: (X * 1e200, y, None), "rescale the features"),
    ],
)
def test_wrong_rows_leave_the_stream_as_it_was(change, message):
    X, y = data()
    model, twin = (SparseSVC(solver="adam", random_state=0).partial_fit(X, y, [0, 1]) for _ in range(2))
    model.set_params(solver="sgd"), twin.set_params(solver="sgd")
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*change(X, y))
    assert np.array_equal(theta(model.partial_fit(X, y)), theta(twin.partial_fit(X, y)))


def test_a_step_that_is_too_large_is_said_to_be():
    X, y = data()
    model = SparseSVC(solver=SGD(step=1e9))

    def go_on():
        for _ in range(100):
            model.partial_fit(X, y, classes=[0, 1])

    with pytest.raises(ScaleError, match="smaller step"):
        go_on()


def test_names_of_features_are_compared():
    import pandas

    X, y = data()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = SparseSVC(solver="sgd").partial_fit(frame, y, classes=[0, 1])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"a": "z"}), y)
