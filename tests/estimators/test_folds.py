"""Cross-validation of rows that are not in memory: the folds, and the same choice as in memory."""

import os
import pickle
import signal
import threading
import time
from copy import copy
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import StratifiedKFold

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path
from majorant.callbacks import Callback
from majorant.estimators import folds as module
from majorant.estimators.path import fit_path
from majorant.estimators.shared_passes import run_sharing_passes
from majorant.estimators.sources import stream_by_problem
from majorant.estimators.splitter import FoldsByPlace
from majorant.rows import from_arrays, pass_batcher
from majorant.rows.base import EveryKth
from majorant.rows.folds import Folds
from majorant.rows.sources import ArraySource
from majorant.solvers import Adam

N, FEATURES = 400, 8
LABELS = np.array(["ant", "bee", "cricket"])


def data(n_classes=2, sparse=False):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, FEATURES)) * (rng.random((N, FEATURES)) < 0.7)
    noisy = X[:, :n_classes] + 0.9 * rng.standard_normal((N, n_classes))
    y = LABELS[np.argmax(noisy - 0.4 * np.arange(n_classes), axis=1)]
    return (sp.csr_array(X) if sparse else X), y, rng.uniform(0.2, 3.0, N)


def fold_of_each(y, number, seed=0):
    """The fold of every row, all rows as one block."""
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, minlength=len(classes))[np.newaxis]
    return Folds.of_counts(number, seed, counts).of_block(0, codes)


def pairs(y, number, seed=0):
    """The same folds as scikit-learn wants them."""
    folds = fold_of_each(y, number, seed)
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(number)]


# The rule ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 3, 5, 10])
def test_every_fold_has_its_share_of_every_class(number):
    y = np.random.default_rng(0).choice(4, p=[0.6, 0.3, 0.07, 0.03], size=1003)
    folds = fold_of_each(y, number)
    assert folds.min() == 0
    assert folds.max() == number - 1
    for code in range(4):
        sizes = np.bincount(folds[y == code], minlength=number)
        assert sizes.max() - sizes.min() <= 1
    counts = np.bincount(y)
    assert np.array_equal(
        Folds.of_counts(number, 0, counts[np.newaxis]).sizes(counts), np.bincount(folds, minlength=number)
    )


@pytest.mark.parametrize("cuts", [(1,), (7, 8, 9, 100), tuple(range(13, 500, 13))])
def test_folds_do_not_depend_on_the_blocks(cuts):
    codes = np.random.default_rng(1).integers(0, 3, 500)
    parts = np.split(codes, cuts)
    folds = Folds.of_counts(5, 42, np.array([np.bincount(part, minlength=3) for part in parts]))
    found = np.concatenate([folds.of_block(i, part) for i, part in enumerate(parts)])
    assert np.array_equal(found, fold_of_each(codes, 5, seed=42))


@pytest.mark.parametrize("random_state", [None, 3])
def test_in_memory_the_same_folds_by_a_splitter(random_state):
    X, y, s = data(3)
    options = {"penalty": "l1", "lambdas": [20.0, 5.0], "tol": 1e-10, "random_state": random_state}
    found = SparseSVCCV(cv=3, **options).fit(from_arrays(X, y, s, rows_per_block=90))
    known = SparseSVCCV(cv=FoldsByPlace(3, random_state), **options).fit(X, y, sample_weight=s)
    assert_same(found, known)


def test_a_class_that_is_rarer_than_the_folds():
    y = np.repeat([0, 1], [12, 2])
    with pytest.warns(UserWarning, match=r"fewer rows \(2\) than there are folds \(4\)"):
        splits = list(FoldsByPlace(4).split(y, y))
    assert np.array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(14))
    assert [int(np.sum(y[test] == 0)) for _, test in splits] == [3] * 4
    with pytest.raises(ValueError, match="No class has 13 rows"):
        list(FoldsByPlace(13).split(y, y))


def test_a_block_knows_its_folds_without_the_others():
    codes = np.random.default_rng(1).integers(0, 3, 500)
    parts = np.split(codes, range(13, 500, 13))
    folds = Folds.of_counts(5, 42, np.array([np.bincount(part, minlength=3) for part in parts]))
    for i, part in enumerate(parts):
        alone = pickle.loads(pickle.dumps(folds.only(i)))
        assert np.array_equal(alone.of_block(i, part), folds.of_block(i, part))
        assert list(alone.before) == [i]


def test_folds_are_drawn_by_the_seed_and_not_periodic():
    """A period in the data, such as a row per day of the week, must not become a fold."""
    y = np.zeros(50_000, dtype=int)
    folds = fold_of_each(y, 5)
    assert not np.array_equal(folds, fold_of_each(y, 5, seed=1))
    for period in (5, 7, 10):
        shares = np.bincount((np.arange(len(y)) % period) * 5 + folds) * period * 5 / len(y)
        assert np.all(np.abs(shares - 1.0) < 0.1)
    again = np.mean(folds[5:] == folds[:-5])  # the same place in the next run
    assert abs(again - 0.2) < 0.02
    assert np.array_equal(np.sort(folds.reshape(-1, 5)), np.tile(np.arange(5), (10_000, 1)))


# The estimator -------------------------------------------------------------------------------------

STRENGTHS = np.geomspace(200.0, 1.0, 6)


def both(n_classes=2, *, sparse=False, weighted=True, cv=4, rows_per_block=90, **options):
    """Fitted on a source, and in memory with the same folds."""
    X, y, s = data(n_classes, sparse)
    s = s if weighted else None
    options = {"penalty": "l1", "lambdas": STRENGTHS, "tol": 1e-10, **options}
    found = SparseSVCCV(cv=cv, **options).fit(from_arrays(X, y, s, rows_per_block=rows_per_block))
    known = SparseSVCCV(cv=pairs(y, cv), **options).fit(X, y, sample_weight=s)
    return found, known


def assert_same(found, known):
    assert found.cv_results_.keys() == known.cv_results_.keys()
    for name, column in known.cv_results_.items():
        np.testing.assert_allclose(found.cv_results_[name], column, rtol=1e-9, err_msg=name)
    assert found.lam_ == known.lam_
    assert found.lam_1se_ == known.lam_1se_
    assert found.best_score_ == pytest.approx(known.best_score_, rel=1e-12)
    assert np.array_equal(found.selection_frequency_, known.selection_frequency_)
    assert np.array_equal(found.support_, known.support_)
    assert found.objective_ == pytest.approx(known.objective_, rel=1e-8)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"n_classes": 2},
        {"n_classes": 2, "sparse": True, "class_weight": "balanced", "scoring": "balanced_accuracy"},
        pytest.param({"n_classes": 3, "weighted": False, "selection": "1se"}, marks=pytest.mark.slow),
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"n_classes": 3, "class_weight": "balanced", "penalty": "l2"},
                {"n_classes": 3, "class_weight": {"bee": 3.0}, "multi_class": "joint", "cv": 3},
                {"n_classes": 2, "scoring": "roc_auc", "fit_intercept": False},
                {"n_classes": 3, "scoring": "f1_macro", "penalty": "hyperbolic"},
                {"n_classes": 2, "scoring": make_scorer(recall_score, pos_label="bee")},
            )
        ),
    ],
    ids=lambda options: "-".join(str(value)[:12] for value in options.values()),
)
def test_the_same_choice_as_in_memory(options):
    assert_same(*both(**options))


@pytest.mark.parametrize(
    "limit",
    ["MATRICES", *(pytest.param(name, marks=pytest.mark.slow) for name in ("COEFFICIENTS", "SCORES"))],
)
def test_with_little_room_the_answer_is_the_same(limit, monkeypatch):
    """One fold after the other, one model after the other: only the number of passes changes."""
    options = {"n_classes": 3, "scoring": "f1_micro" if limit == "SCORES" else None}
    expected = both(**options)[0]
    monkeypatch.setattr(module, limit, 1)
    found = both(**options)[0]
    for name, column in expected.cv_results_.items():
        assert np.array_equal(found.cv_results_[name], column), name
    assert np.array_equal(found.coef_, expected.coef_)


def test_the_strengths_of_a_source():
    X, y, s = data()
    found = SparseSVCCV("l1", lambdas=5, cv=3).fit(from_arrays(X, y, s, rows_per_block=90))
    known = SparseSVCCV("l1", lambdas=5, cv=3).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(found.lambdas_, known.lambdas_, rtol=1e-9)


def test_folds_share_their_passes(monkeypatch):
    """Far fewer passes than the same paths take one after the other."""
    monkeypatch.setattr(pass_batcher, "PATIENCE", 1.0)  # also where others keep the processor busy
    X, y, s = data(3)
    loads = []

    class Counting(ArraySource):
        def load(self, i):
            loads.append(i)
            return super().load(i)

    def passes(task, weight=s):
        source = Counting(X, y, weight, cuts=(100, 200, 300))
        source.memory = 2 * source.load(0).nbytes
        loads.clear()
        task(source)
        return loads.count(3)

    together = passes(lambda source: SparseSVCCV("l1", lambdas=STRENGTHS, cv=4).fit(source))
    alone = [
        passes(
            lambda source: sparse_svc_path(source, penalty="l1", lambdas=STRENGTHS),
            np.where(fold_of_each(y, 4) == k, 0.0, s),
        )
        for k in range(4)
    ]
    assert together < 0.6 * sum(alone)


def test_the_refit_is_the_fit_of_that_strength():
    X, y, s = data(3)
    source = from_arrays(X, y, s, rows_per_block=90)
    model = SparseSVCCV("l1", lambdas=STRENGTHS, cv=3).fit(source)
    assert np.array_equal(model.coef_, SparseSVC("l1", lam=model.lam_).fit(source).coef_)


def test_stochastic_solvers_take_the_folds_one_by_one():
    X, y, s = data()
    model = SparseSVCCV(
        "l2", lambdas=[10.0, 1.0], cv=3, solver=Adam(step=0.05, batch_size=32), max_iter=5, random_state=0
    )
    with pytest.warns(UserWarning, match="converge"):
        model.fit(from_arrays(X, y, s, rows_per_block=90))
    assert model.best_score_ > 0.6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cv": StratifiedKFold(3)}, TypeError, "needs rows that are in memory"),
        ({"cv": [([0, 1], [2, 3])]}, TypeError, "needs rows that are in memory"),
        ({"cv": 300}, ValueError, "No class has 300 rows"),
    ],
)
def test_what_a_source_cannot_do_is_said(options, error, message):
    X, y, s = data()
    with pytest.raises(error, match=message):
        SparseSVCCV(**options).fit(from_arrays(X, y, s, rows_per_block=90))


def test_a_class_without_weight_outside_of_a_fold_is_said():
    X, y, _ = data()
    s = np.ones(N)
    ants = np.flatnonzero(y == "ant")
    s[ants] = 0.0
    s[ants[fold_of_each(y, 3)[ants] == 1]] = 1.0
    with pytest.raises(ValueError, match="Without fold 1, class 'ant'"):
        SparseSVCCV(cv=3).fit(from_arrays(X, y, s, rows_per_block=90))


def test_an_error_in_one_fold_ends_all():
    X, y, s = data(3)
    loads = []

    class Fails(ArraySource):
        def load(self, i):
            loads.append(i)
            if len(loads) > 60:
                raise OSError("the disk is gone")
            return super().load(i)

    source = Fails(X, y, s, cuts=(100, 200, 300))
    source.memory = 2 * source.load(0).nbytes
    with pytest.raises(OSError, match="the disk is gone"):
        SparseSVCCV("l1", lambdas=STRENGTHS, cv=4).fit(source)


def test_an_error_in_one_fold_ends_the_others_at_once(monkeypatch):
    """They have 50 models to go; each may have asked its question, or be between two."""
    numbers, others = count(), []

    def failing(training, strengths):
        number = next(numbers)
        for model in fit_path(training, strengths):
            if number == 1:
                raise LookupError("in one fold")
            others.append(number)
            yield model

    monkeypatch.setattr(module, "fit_path", failing)
    X, y, s = data(3)
    with pytest.raises(LookupError, match="in one fold"):
        SparseSVCCV("l1", lambdas=np.geomspace(100.0, 0.1, 50), cv=4).fit(
            from_arrays(X, y, s, rows_per_block=90)
        )
    assert len(others) < 30


def test_an_error_in_one_class_ends_the_others_at_once():
    class Fails(Callback):
        def __init__(self):
            self.seen = []

        def for_problem(self, classes, positive):
            twin = copy(self)
            twin.positive = positive
            return twin

        def on_iterate(self, iterate, record):
            self.seen.append(self.positive)
            if self.positive == "cricket" and record.iteration == 2:
                raise LookupError("in one class")

    X, y, s = data(3)
    watch = Fails()
    model = SparseSVC("l2", solver="gradient", tol=0.0, max_iter=500).set_callbacks(watch)
    with pytest.raises(LookupError, match="in one class"):
        model.fit(from_arrays(X, y, s, rows_per_block=90))
    assert watch.seen.count("cricket") == 3
    assert len(watch.seen) < 60


def test_an_error_ends_the_pass_that_others_wait_for():
    """Whoever waits for an answer hears of it between two blocks, not when all of them have been read."""
    X, y, s = data()
    rows = stream_by_problem(SparseSVC(), from_arrays(X, y, s, rows_per_block=1), None, None)[1][0]
    begun, asked = threading.Event(), []

    def slow(block):
        asked.append(block)
        begun.set()
        deadline = time.monotonic() + 10.0
        while rows.store.batcher.error is None and time.monotonic() < deadline:
            time.sleep(1e-3)

    def waits():
        list(rows.map_blocks(slow))

    def fails():
        begun.wait(10.0)
        raise LookupError("meanwhile")

    with pytest.raises(LookupError, match="meanwhile"):
        run_sharing_passes(rows.store, [waits, fails])
    assert len(asked) < N // 2


def test_ctrl_c_ends_all_folds():
    X, y, s = data(3)
    pressed = threading.Lock()

    class Presses(ArraySource):
        loads = 0

        def load(self, i):
            self.loads += 1
            if self.loads > 60 and pressed.acquire(blocking=False):
                os.kill(os.getpid(), signal.SIGINT)
            return super().load(i)

    source = Presses(X, y, s, cuts=(100, 200, 300))
    source.memory = 2 * source.load(0).nbytes
    with pytest.raises(KeyboardInterrupt):
        SparseSVCCV("l1", lambdas=np.geomspace(100.0, 0.1, 50), cv=4).fit(source)
    assert source.loads < 200


def test_all_problems_share_one_sample():
    """The rows that a fit begins with are in memory once, not once for each class and fold."""
    X, y, s = data(3)
    _, parts = stream_by_problem(SparseSVC(), from_arrays(X, y, s, rows_per_block=90), None, None)
    sample = EveryKth(3)
    at_once = parts[0].subsample(parts, sample)
    in_threads = run_sharing_passes(
        parts[0].store, [lambda part=part: part.subsample([part], sample)[0] for part in parts]
    )
    for samples in (at_once, in_threads):
        for code, blocks in enumerate(samples):
            assert all(
                np.shares_memory(one.X, other.X) for one, other in zip(blocks, samples[0], strict=True)
            )
            thin = np.concatenate([np.arange(start, min(start + 90, N), 3) for start in range(0, N, 90)])
            assert np.array_equal(np.concatenate([block.y for block in blocks]) > 0, y[thin] == LABELS[code])
            assert np.allclose(np.concatenate([block.s for block in blocks]), 3.0 * s[thin])
    assert not np.shares_memory(at_once[0][0].X, X)
