"""Rows that are read block by block answer as rows in memory do, bit for bit."""

import gc
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from majorant import SparseSVC, lambda_max, sparse_svc_path
from majorant.callbacks import Callback
from majorant.errors import MajorantError
from majorant.estimators.sources import stream_by_problem
from majorant.objective import Objective
from majorant.potentials import Hyperbolic
from majorant.rows import MemoryRows, PartitionedRows, pass_batcher
from majorant.rows.memory import make_block
from majorant.rows.pass_hooks import between_blocks
from majorant.rows.sources import ArraySource, from_arrays, from_blocks, n_bytes
from majorant.rows.stream import Reader
from majorant.solvers import MM, Adam, Gradient, MMInversion, MMSubspace, solve
from majorant.status import Status
from tests import ROOT
from tests.problems import random_problem

CUTS = (7, 23, 24, 60)
MANY = "1GB"


def data(sparse=False, n=90):
    return random_problem(n=n, sparse=sparse)[:3]


def both(sparse=False, memory=10**9):
    """The same rows in memory and from a source, cut at the same places."""
    X, y, s = data(sparse)
    source = ArraySource(X, y, s, cuts=CUTS)

    def prepare(i, raw):
        return make_block(raw.X, raw.y, raw.weight, intercept=True)

    stream = PartitionedRows(Reader(source, prepare, memory), len(y), X.shape[1])
    return MemoryRows(X, y, s, cuts=CUTS), stream


QUESTIONS = {
    "loss": lambda rows, theta, D: (rows.loss(theta).value, rows.loss(theta).gradient),
    "loss_by_class": lambda rows, theta, D: (rows.loss_by_class(theta, lengths=True).squares,),
    "stats_at_zero": lambda rows, theta, D: (rows.stats_at_zero.loss.value, rows.stats_at_zero.loss.gradient),
    "gram": lambda rows, theta, D: (rows.gram(),),
    "gram_product": lambda rows, theta, D: (rows.gram_product(theta),),
    "gram_along": lambda rows, theta, D: (rows.gram_along(D),),
    "gram_diagonal": lambda rows, theta, D: (rows.gram_diagonal,),
    "largest_row": lambda rows, theta, D: (rows.largest_row(),),
    "design": lambda rows, theta, D: (rows.design(),),
    "columns": lambda rows, theta, D: (rows.columns(np.array([0, 3])).gram(),),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_every_answer_has_the_same_bits(question, sparse):
    rng = np.random.default_rng(1)
    theta, D = 0.3 * rng.standard_normal(7), rng.standard_normal((7, 3))
    answers = [QUESTIONS[question](rows, theta, D) for rows in both(sparse)]
    for one, other in zip(*answers, strict=True):
        assert np.array_equal(one, other)


SOLVERS = [Gradient(), MM(), MMInversion(), MMSubspace(), Adam(step=0.05, batch_size=8)]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("memory", [5000, 10**9], ids=["little", "enough"])
def test_every_solver_takes_the_same_way(solver, sparse, memory):
    results = [
        solve(solver, Objective(rows, Hyperbolic(0.5, 1e-2)), max_iter=20, tol=1e-12, seed=3)
        for rows in both(sparse, memory)
    ]
    assert np.array_equal(results[0].iterate.theta, results[1].iterate.theta)
    assert results[0].iterate.value == results[1].iterate.value
    assert results[0].n_iter == results[1].n_iter >= 2


def test_another_partition_ends_at_the_same_objective():
    X, y, s = data(n=200)
    fits = [
        SparseSVC("hyperbolic", delta=0.1, solver="mm", tol=1e-11).fit(
            from_arrays(X, y, s, rows_per_block=rows)
        )
        for rows in (3, 50, 200)
    ]
    for other in fits[1:]:
        assert other.objective_ == pytest.approx(fits[0].objective_, rel=1e-9)


class Counting(ArraySource):
    """Counts how often each block is loaded."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.loads = [0] * self.n_blocks

    def load(self, i):
        self.loads[i] += 1
        return super().load(i)


def counted(memory, n_blocks=10, rows=100, p=20):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_blocks * rows, p))
    source = Counting(X, X[:, 0] > 0, cuts=range(rows, n_blocks * rows, rows))
    prepare = lambda i, raw: make_block(raw.X, 2.0 * raw.y - 1.0, np.ones(rows), intercept=True)  # noqa: E731
    reader = Reader(source, prepare, memory)
    return source, PartitionedRows(reader, len(X), p), source.load(0).nbytes


def test_what_fits_is_kept_and_the_rest_read_once_a_pass():
    size = counted(1)[2]
    source, stream, _ = counted(8 * size)
    source.loads = [0] * 10
    for step in range(5):
        stream.loss(np.full(21, 1.0 + step))
    # A quarter is left to the solver, and two are on their way.
    assert source.loads == [1] * 4 + [5] * 6
    assert stream.store.passes == 5


def test_classes_whose_matrices_have_no_room_go_one_after_the_other(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    source = from_arrays(
        X, np.argmax(X[:, :3] + 0.5 * rng.standard_normal((300, 3)), axis=1), rows_per_block=50
    )
    together = SparseSVC("l1", lam=5.0).fit(source)
    monkeypatch.setattr("majorant.estimators.fit_problem.MATRICES", 1)
    in_turn = SparseSVC("l1", lam=5.0).fit(source)
    assert np.array_equal(together.coef_, in_turn.coef_)


@pytest.mark.parametrize("step", [3, 40, 1000])
def test_a_thinned_block_weighs_as_much_as_the_whole(step):
    block = make_block(np.ones((40, 2)), np.ones(40), np.ones(40), intercept=True)
    thin = block.every(step)
    assert thin.n_samples == -(-40 // min(step, 40))
    assert abs(thin.s.sum() - 40.0) < min(step, 40)


def test_nothing_is_read_again_if_all_fits():
    source, stream, _ = counted(n_bytes(MANY))
    source.loads = [0] * 10
    for step in range(3):
        stream.loss(np.full(21, 1.0 + step))
    assert source.loads == [1] * 10


def test_never_more_blocks_alive_than_the_budget_allows():
    """One that is worked on, one that is being read: not a third."""
    loaded, most = [], 0

    class Tracked(np.ndarray):
        pass

    def load(i):
        X = np.random.default_rng(i).standard_normal((500, 20)).view(Tracked)
        loaded.append(weakref.ref(X))
        return X, np.arange(500) % 2

    def prepare(i, raw):
        return make_block(raw.X, 2.0 * raw.y - 1.0, np.ones(500), intercept=True)

    size = 500 * 20 * 8 + 16 * 500
    stream = PartitionedRows(Reader(from_blocks(load, 12, n_features=20), prepare, 2 * size), 6000, 20)

    def question(block):
        nonlocal most
        time.sleep(0.005)  # the reader has time to go too far ahead
        most = max(most, sum(each() is not None for each in loaded))
        return block.loss(np.ones(21))

    stream.sum_blocks(question)
    assert most == 2


def test_a_block_that_is_too_large_is_an_error():
    source = from_arrays(np.ones((100, 10)), np.arange(100) % 2, rows_per_block=50, memory="5KB")
    with pytest.raises(MajorantError, match=r"block 0 takes .* do not fit into memory"):
        SparseSVC().fit(source)


def test_the_next_block_is_read_while_one_is_worked_on():
    reading = [threading.Event() for _ in range(4)]

    def load(i):
        reading[i].set()
        return np.eye(2) + i, np.array([0, 1])

    def question(block):
        i = int(block.X[0, 1])
        assert i == 3 or reading[i + 1].wait(timeout=10.0)
        return block.loss(np.ones(3))

    source = from_blocks(load, 4, n_features=2)
    prepare = lambda i, raw: make_block(raw.X, 2.0 * raw.y - 1, np.ones(2), intercept=True)  # noqa: E731
    PartitionedRows(Reader(source, prepare, 200), 8, 2).sum_blocks(question)


def test_an_error_of_the_reader_reaches_the_caller():
    def load(i):
        if i == 2:
            raise OSError("the disk is gone")
        return np.eye(3), np.array([0, 1, 1])

    with pytest.raises(OSError, match="the disk is gone"):
        SparseSVC().fit(from_blocks(load, 4))


def test_after_an_error_nothing_goes_on():
    _, stream = both(memory=5000)
    begun, ended = [], []

    def question(block):
        begun.append(block)
        if block.n_samples == CUTS[0]:  # the first one, in whichever thread
            raise ZeroDivisionError
        time.sleep(0.02)
        ended.append(block)

    with pytest.raises(ZeroDivisionError):
        stream.sum_blocks(question)
    assert len(begun) < 5
    assert len(ended) == len(begun) - 1
    stream.gram()  # and the next pass is a whole one


def test_threads_end_with_the_rows():
    before = set(threading.enumerate())
    _, stream = both()
    stream.gram()
    ours = set(threading.enumerate()) - before
    assert ours
    del stream
    gc.collect()
    for thread in ours:
        thread.join(timeout=10.0)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((np.array([[1.0, np.nan]]), [0]), r"block 1: X has missing \(NaN\) or infinite values"),
        ((np.array([[1.0, np.inf]]), [0]), "infinite values"),
        ((np.ones((1, 3)), [0]), r"shape \(1, 3\), but must have 2 columns"),
        ((np.ones((2, 2)), [0]), "2 rows, but labels"),
        ((np.ones((0, 2)), []), "has no rows"),
        ((np.ones((1, 2)), [0], [-1.0]), "weights must be finite and not negative"),
        ((np.array([["a", "b"]]), [0]), "must be made of numbers"),
        (([[1.0, 2.0]], [0]), "must be an array"),
        ((np.ones((1, 2)), ["yes"]), "labels are text in some blocks"),
        (
            (sp.csr_array((np.ones(1), np.array([7], np.int32), np.array([0, 1], np.int32)), (1, 2)), [0]),
            "corrupt sparse matrix",
        ),
        (
            (sp.csc_array((np.ones(0), np.zeros(0, np.int32), np.array([0, 2, 0], np.int32)), (1, 2)), [0]),
            "corrupt sparse matrix",
        ),
    ],
)
def test_what_is_wrong_with_a_block_is_said(block, message):
    good = np.eye(2), np.array([0, 1])
    source = from_blocks(lambda i: block if i else good, 2)
    with pytest.raises((MajorantError, ValueError), match=message):
        SparseSVC().fit(source)


def test_rows_that_change_between_two_passes_are_noticed():
    calls = []

    def load(i):
        calls.append(i)
        return np.eye(2), np.array([0, 1 + len(calls) // 3])

    with pytest.raises(MajorantError, match="did not have in the first pass"):
        SparseSVC().fit(from_blocks(load, 2, n_features=2))


def test_a_sparse_block_in_disorder_is_put_in_order():
    X = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    untidy = sp.csr_array(
        (np.array([1.0, 1.0, 2.0, 2.0]), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    y = np.array([0, 1])
    expected = SparseSVC("l2", solver="mm").fit(from_blocks(lambda i: (X, y), 1))
    found = SparseSVC("l2", solver="mm").fit(from_blocks(lambda i: (untidy, y), 1))
    assert np.allclose(found.coef_, expected.coef_, atol=1e-9)


# The estimator -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((240, 5))
    labels = np.array(["ant", "bee", "cricket"])
    return X, labels[np.argmax(X[:, :3] + 0.3 * rng.standard_normal((240, 3)), axis=1)]


@pytest.mark.parametrize("class_weight", [None, "balanced", {"bee": 3.0}])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [2, 3])
def test_a_source_gives_what_arrays_give(three_classes, class_weight, weighted, kind):
    X, y = three_classes
    if kind == 2:
        X, y = X[y != "cricket"], y[y != "cricket"]
    s = np.random.default_rng(0).uniform(0.1, 2.0, len(y)) if weighted else None
    model = SparseSVC("l2", lam=2.0, solver="mm", class_weight=class_weight, tol=1e-10)
    expected = model.fit(X, y, s).coef_
    source = from_arrays(X, y, s, rows_per_block=50, memory="20KB")
    model.fit(source)
    assert np.allclose(model.coef_, expected, atol=1e-6)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert model.t_ == len(y)
    assert model.n_features_in_ == 5
    assert np.array_equal(model.predict(source), model.predict(X))
    assert np.allclose(model.decision_function(source), model.decision_function(X))
    assert model.score(source) == pytest.approx(model.score(X, y, s))


def test_classes_share_their_passes_and_none_of_them_notices(three_classes, monkeypatch):
    monkeypatch.setattr(pass_batcher, "PATIENCE", 1.0)  # also where others keep the processor busy
    X, y = three_classes
    source = Counting(X, y, cuts=range(50, 240, 50))
    source.memory = 6000
    together = SparseSVC("l2", solver="mm", tol=1e-9).fit(source)
    passes = source.loads[-1]
    alone = [
        SparseSVC("l2", solver="mm", tol=1e-9).fit(ArraySource(X, y == label, cuts=range(50, 240, 50)))
        for label in together.classes_
    ]
    assert np.array_equal(together.coef_, np.vstack([model.coef_ for model in alone]))
    assert [trace[-1].iteration for trace in together.history_] == [model.n_iter_ for model in alone]
    # The labels, the Gram matrix; for each class the loss at zero, its last point and its zeros.
    longest = max(model.n_iter_ for model in alone)
    assert passes <= longest + 12 < sum(model.n_iter_ for model in alone)


def test_an_error_in_a_shared_pass_ends_all_classes(three_classes):
    X, y = three_classes
    passes = []

    def load(i):
        passes.append(i)
        if len(passes) > 30:
            raise OSError("the disk is gone")
        return X[i::4], y[i::4]

    with pytest.raises(OSError, match="the disk is gone"):
        SparseSVC("l2", solver="mm", tol=1e-12).fit(from_blocks(load, 4, memory="8KB"))


def test_a_callback_that_fails_in_one_class_ends_the_fit(three_classes):
    class Fails(Callback):
        def for_problem(self, classes, positive):
            twin = Fails()
            twin.positive = positive
            return twin

        def on_iterate(self, iterate, record):
            if self.positive == "bee" and record.iteration == 2:
                raise ZeroDivisionError

    model = SparseSVC("l2", solver="mm").set_callbacks(Fails())
    with pytest.raises(ZeroDivisionError):
        model.fit(from_arrays(*three_classes, rows_per_block=50))


def test_stochastic_solvers_take_the_classes_one_by_one(three_classes):
    X, y = three_classes
    solver = Adam(step=0.05, batch_size=16)
    source = from_arrays(X, y, rows_per_block=50)
    with pytest.warns(ConvergenceWarning):
        model = SparseSVC("l2", solver=solver, max_iter=3, random_state=0).fit(source)
    assert model.score(source) > 0.7


def test_classes_share_the_gram_matrix(three_classes):
    source = from_arrays(*three_classes, rows_per_block=50)
    _, rows = stream_by_problem(SparseSVC(), source, None, None)
    grams = [part.gram() for part in rows]
    assert rows[0].store.passes == 2  # and the loss at zero, of all classes at once
    assert np.array_equal(grams[0], grams[2])
    X, y = three_classes
    assert np.array_equal(
        grams[1], MemoryRows(X, np.where(y == "bee", 1, -1), cuts=range(50, 240, 50)).gram()
    )
    assert rows[0].columns(np.arange(4)).gram().shape == (5, 5)


def test_labels_of_some_blocks_may_be_missing_in_others():
    X = np.random.default_rng(0).standard_normal((90, 3))
    y = np.sort(np.arange(90) % 3)
    model = SparseSVC("l2", solver="mm").fit(from_arrays(X, y, rows_per_block=30))
    assert model.classes_.tolist() == [0, 1, 2]


def test_auto_and_a_kink():
    X, y, s = data(n=300)
    for penalty in ("hyperbolic", "l1", "l2"):
        expected = SparseSVC(penalty, lam=3.0).fit(X, y, s)
        found = SparseSVC(penalty, lam=3.0, max_iter=20_000).fit(from_arrays(X, y, s, rows_per_block=70))
        assert found.converged_
        assert found.objective_ == pytest.approx(expected.objective_, rel=3e-6)


def test_the_path_and_its_strengths():
    X, y, s = data(n=300)
    source = from_arrays(X, y, s, rows_per_block=70)
    factor = np.array([0.0, 1, 1, 1, 1, 1])
    assert lambda_max(source) == pytest.approx(lambda_max(X, y, sample_weight=s), rel=1e-6)
    found = lambda_max(source, penalty_factor=factor)
    assert found == pytest.approx(lambda_max(X, y, sample_weight=s, penalty_factor=factor), rel=1e-4)
    path = sparse_svc_path(source, lambdas=3, ratio=0.1, tol=1e-4, delta=1e-2)
    memory = sparse_svc_path(X, y, sample_weight=s, lambdas=path.lambdas, delta=1e-2)
    assert np.allclose(
        [model.objective_ for model in path.models], [model.objective_ for model in memory.models], rtol=2e-4
    )
    limited = SparseSVC(max_features=2, lam=20.0, delta=1e-2, tol=1e-3).fit(source)
    assert 1 <= len(limited.support_) <= 2


def test_what_a_source_cannot_do_is_said(three_classes):
    X, y = three_classes
    source = from_arrays(X, y, rows_per_block=100)
    with pytest.raises(TypeError, match="its own labels"):
        SparseSVC().fit(source, y)
    with pytest.raises(ValueError, match="has 4 features"):
        SparseSVC("l2", solver="mm").fit(source).predict(from_arrays(X[:, 1:], y, rows_per_block=100))
    with pytest.raises(ValueError, match="1 class"):
        SparseSVC().fit(from_arrays(X, np.zeros(len(X)), rows_per_block=100))


def test_a_source_is_pickled_without_harm(three_classes):
    source = pickle.loads(pickle.dumps(from_arrays(*three_classes, rows_per_block=100)))
    assert source.n_blocks == 3
    assert source.load(2).X.shape == (40, 5)


def test_sizes():
    assert [n_bytes(size) for size in ("2GB", "1.5 MiB", "10k", 7, "512")] == [
        2 * 10**9, 3 * 2**19, 10_000, 7, 512,
    ]  # fmt: skip
    for wrong in ("", "2 parsecs", "-1GB", 0, "0.0001"):
        with pytest.raises(MajorantError, match="no size in memory"):
            n_bytes(wrong)


# Between two blocks --------------------------------------------------------------------------------


def test_watchers_see_how_far_a_pass_is():
    seen = []
    _, stream = both()
    with between_blocks(seen.append):
        stream.loss(np.ones(7))
    stream.gram()
    assert [(state.number, state.done, state.blocks) for state in seen] == [(1, k, 5) for k in range(1, 6)]
    assert all(state.expected >= state.seconds >= 0.0 for state in seen)


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ctrl_c_ends_a_pass_between_two_blocks(classes):
    """The first one, in a process of its own; the iterate before the pass is what is left."""
    code = """
import os, signal
import numpy as np
from majorant import SparseSVC
from majorant.callbacks import Callback
from majorant.rows import from_blocks

after = []

class Begun(Callback):
    def on_iterate(self, iterate, record):
        after.append(record.iteration)

loads = 0
def load(i):
    global loads
    loads += 1
    if len(after) == (2 if CLASSES == 2 else 6) and i == 3:
        os.kill(os.getpid(), signal.SIGINT)
        global pressed
        pressed = loads
        after.append("pressed")
    X = np.random.default_rng(i).standard_normal((50, 3))
    return X, np.digitize(X[:, 0], [-0.3, 0.3] if CLASSES == 3 else [0.3])

model = SparseSVC(solver="mm-subspace", tol=0.0, delta=1e-2).set_callbacks(Begun())
try:
    model.fit(from_blocks(load, 50, memory="4KB"))
except KeyboardInterrupt:
    print(after, model.status_.name, loads - pressed < 50 * 8)
""".replace("CLASSES", str(classes))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    first = "0, 1" if classes == 2 else "0, 0, 0, 1, 1, 1"
    expected = f"[{first}, 'pressed'] INTERRUPTED True"
    assert done.stdout.strip() == expected, done.stderr


# Killed and resumed --------------------------------------------------------------------------------


def test_a_checkpoint_is_gone_when_the_fit_has_ended(tmp_path):
    X, y, _ = data()
    path = tmp_path / "fit.npz"
    SparseSVC(lam=2.0).fit(X, y, checkpoint=path)
    assert not path.exists()


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    from majorant.callbacks import Checkpoint

    X, y, s = data()
    path = tmp_path / "fit.npz"
    SparseSVC(lam=2.0).fit(X, y, checkpoint=Checkpoint(path))
    content = path.read_bytes()
    for options, args in [({"lam": 3.0}, (X, y)), ({"lam": 2.0}, (X, -y)), ({"lam": 2.0}, (X, y, s)),
                          ({"lam": 2.0}, (X[:, :4], y)), ({"lam": 2.0, "eta": 1.0}, (X, y))]:  # fmt: skip
        with pytest.raises(MajorantError, match="checkpoint of another problem"):
            SparseSVC(**options).fit(*args, checkpoint=path)
    path.write_bytes(content[:100])
    with pytest.raises(MajorantError, match="is no checkpoint to resume from"):
        SparseSVC(lam=2.0).fit(X, y, checkpoint=path)
    with pytest.raises(ValueError, match="max_features"):
        SparseSVC(max_features=2).fit(X, y, checkpoint=path)
    with pytest.raises(MajorantError, match="no directory"):
        SparseSVC().fit(X, y, checkpoint=tmp_path / "nowhere" / "fit.npz")


def test_a_checkpoint_is_good_for_the_same_rows_in_other_blocks(tmp_path):
    from majorant.callbacks import Checkpoint

    X, y, s = data(n=200)
    path = tmp_path / "fit.npz"
    whole = SparseSVC(delta=1e-2, solver="mm").fit(X, y, s, checkpoint=Checkpoint(path))
    again = SparseSVC(delta=1e-2, solver="mm").fit(from_arrays(X, y, s, rows_per_block=30), checkpoint=path)
    assert whole.n_iter_ > 3
    assert again.n_iter_ == 1  # that is, none
    assert again.objective_ == pytest.approx(whole.objective_, rel=1e-9)


KILLED = """
import os, signal, sys
import numpy as np
from majorant import SparseSVC
from majorant.callbacks import Callback, Checkpoint
from majorant.rows import from_arrays

class Kill(Callback):
    def on_iterate(self, iterate, record):
        if record.iteration == 8 and sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)

rng = np.random.default_rng(0)
X = rng.standard_normal((600, 8)) * np.geomspace(0.1, 5.0, 8)
y = np.where(X[:, 0] + X[:, 3] + 2 * rng.standard_normal(600) > 0, 1, -1)
source = from_arrays(X, y, rows_per_block=100, memory="50KB")
model = SparseSVC(lam=5.0, delta=0.1, solver="mm", tol=1e-11).set_callbacks(Kill())
every = 0.0 if sys.argv[2] == "killed" else 60.0
model.fit(source, checkpoint=Checkpoint(sys.argv[1], every=every, resume=True))
print(repr(model.objective_), model.n_iter_)
"""


def test_a_fit_that_was_killed_goes_on_to_the_same_solution(tmp_path, monkeypatch, capsys):
    def fit(path):
        monkeypatch.setattr(sys, "argv", ["killed.py", str(path), "to the end"])
        exec(KILLED, {})
        objective, iterations = capsys.readouterr().out.split()
        return float(objective), int(iterations)

    path = tmp_path / "fit.npz"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), "killed"], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert path.exists()
    undisturbed, resumed = fit(tmp_path / "other.npz"), fit(path)
    assert resumed[0] == pytest.approx(undisturbed[0], rel=1e-9)
    assert undisturbed[1] > 12
    assert resumed[1] < undisturbed[1] - 5  # not all over again


def test_every_class_resumes(three_classes, tmp_path):
    from majorant.callbacks import Checkpoint

    X, y = three_classes
    saving = Checkpoint(tmp_path / "fit.npz", resume=True)
    first = SparseSVC(lam=2.0, tol=1e-9).fit(X, y, checkpoint=saving)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"fit-{k}.npz" for k in range(3)]
    again = SparseSVC(lam=2.0, tol=1e-9).fit(X, y, checkpoint=saving)
    assert again.objective_ == pytest.approx(first.objective_, rel=1e-9)
    saving.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_point_on_the_way_of_a_non_convex_fit_is_not_saved(tmp_path):
    """Where there are many minima, the way decides which one is found."""
    from majorant.callbacks import Callback, Checkpoint

    X, y, _ = data(n=300)
    path = tmp_path / "fit.npz"
    saved = []

    class Look(Callback):
        def on_iterate(self, iterate, record):
            saved.append((bool(np.isfinite(iterate.loss_gradient).all()), path.exists()))

    model = SparseSVC("welsch", lam=2.0, delta=0.1).set_callbacks(Look())
    model.fit(X, y, checkpoint=Checkpoint(path, every=0.0))
    underway = [exists for somewhere, exists in saved[1:] if not somewhere]
    assert underway  # there is a way
    assert model.status_ is Status.CONVERGED


def test_documentation_names_what_exists():
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8")
    assert "open_source" in text
