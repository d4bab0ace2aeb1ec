"""Rows on a Dask cluster: the same bits, whatever happens to the workers."""

import gc
import os
import signal
import threading
import time
import warnings
from functools import partial
from itertools import chain
from weakref import ref

import numpy as np
import pytest
import scipy.sparse as sp

dask = pytest.importorskip("dask", reason="needs dask (pip install 'majorant[dask]')")
distributed = pytest.importorskip("distributed", reason="needs dask (pip install 'majorant[dask]')")

import dask.array as da  # noqa: E402
import pandas as pd  # noqa: E402

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path  # noqa: E402
from majorant.callbacks import Callback  # noqa: E402
from majorant.datasets import on_dask  # noqa: E402
from majorant.errors import ClusterLostError  # noqa: E402
from majorant.rows import from_blocks  # noqa: E402
from majorant.rows.dask import Cluster  # noqa: E402
from majorant.solvers.newton.tuning import PASS_FEATURES  # noqa: E402

pytestmark = pytest.mark.timeout(240)

ROWS, FEATURES, BLOCKS = 400, 6, 4


def load(i, classes=2, sparse=False):
    rng = np.random.default_rng(i)
    X = rng.standard_normal((ROWS, FEATURES))
    noisy = X[:, :3] + 0.5 * rng.standard_normal((ROWS, 3))
    y = np.argmax(noisy, axis=1) if classes == 3 else np.where(noisy[:, 0] > noisy[:, 1], 1, -1)
    X *= rng.random(X.shape) < 0.7
    return (sp.csr_array(X) if sparse else X), y, rng.uniform(0.5, 2.0, ROWS)


def load_sparse(i):
    return load(i, sparse=True)


def load_wide(i):
    """Too many features for a matrix of all of them."""
    X, y, s = load(i, sparse=True)
    rng = np.random.default_rng(i)
    return sp.csr_array(sp.hstack([X, sp.random(ROWS, PASS_FEATURES, 0.01, random_state=rng)])), y, s


def load_three(i):
    return load(i, classes=3)


def load_few(i):
    return tuple(part[:9] for part in load(i))


def load_slowly(i):
    time.sleep(0.3)
    return load(i)


def in_memory(loader=load):
    X, y, s = zip(*map(loader, range(BLOCKS)), strict=True)
    return (sp.vstack(X) if sp.issparse(X[0]) else np.concatenate(X)), np.concatenate(y), np.concatenate(s)


@pytest.fixture(scope="module")
def client():
    """A cluster inside of this process: quick, and it counts round trips like any other."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as c,
        distributed.Client(c) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def processes():
    """Worker processes, which can be killed; a nanny starts them again.

    On a busy machine that takes longer than the 15 seconds after which a LocalCluster gives a worker up.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        distributed.Client(c) as client,
    ):
        yield client


def fit(X, *y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseSVC(**options).fit(X, *y)


def same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)


@pytest.mark.parametrize(
    "loader",
    [load, *(pytest.param(other, marks=pytest.mark.slow) for other in (load_sparse, load_three))],
    ids=lambda loader: loader.__name__,
)
@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l1", "lam": 10.0},
        {"penalty": "l1", "lam": 10.0, "standardize": True},
        {"penalty": "hyperbolic", "solver": "mm-subspace", "max_iter": 3},
        {"penalty": "hyperbolic", "solver": "adam", "max_iter": 2},
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                {"penalty": "hyperbolic", "lam": 10.0},
                {"penalty": "l2", "class_weight": "balanced"},
                {"penalty": "welsch", "delta": 0.1},
                {"penalty": "hyperbolic", "solver": "gradient", "max_iter": 3},
                {"penalty": "hyperbolic", "solver": "mm", "max_iter": 3},
                {"penalty": "hyperbolic", "solver": "sgd", "max_iter": 2},
                {"penalty": "hyperbolic", "solver": "momentum", "max_iter": 2},
                {"penalty": "hyperbolic", "solver": "mm-inversion", "warmup": 2, "max_iter": 5},
            )
        ),
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_the_same_bits_as_a_stream(client, loader, options):
    source = from_blocks(loader, BLOCKS)
    options = options | {"random_state": 0}
    assert same(fit(on_dask(source), **options), fit(source, **options))


def test_large_questions_go_once_for_all_blocks(client, monkeypatch):
    source = from_blocks(load, BLOCKS)
    expected = fit(source, penalty="l1", lam=10.0)
    monkeypatch.setattr("majorant.rows.dask.SMALL_QUESTION_BYTES", 10)
    assert same(fit(on_dask(source), penalty="l1", lam=10.0), expected)


@pytest.mark.parametrize(
    "penalty", ["l1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hyperbolic", "l2"))]
)
def test_many_features_have_the_same_bits_as_a_stream(client, penalty):
    source = from_blocks(load_wide, BLOCKS)
    there, here = (fit(X, penalty=penalty, lam=20.0) for X in (on_dask(source), source))
    assert there.solver_.name == here.solver_.name == "newton"
    assert there.status_.converged
    assert same(there, here)
    X, y, s = in_memory(load_wide)
    known = SparseSVC(penalty, lam=20.0).fit(X, y, s)
    assert there.objective_ == pytest.approx(known.objective_, rel=2e-6)


def test_the_same_minimum_as_in_memory(client):
    there = fit(on_dask(from_blocks(load, BLOCKS)), penalty="l1", lam=5.0)
    X, y, s = in_memory()
    here = SparseSVC("l1", lam=5.0).fit(X, y, s)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert there.converged_


def collections(chunks):
    X, y, s = in_memory()
    return (
        da.from_array(X, chunks=(chunks, 4)),
        da.from_array(y, chunks=chunks),
        da.from_array(s, chunks=chunks),
    )


def test_dask_arrays(client):
    X, y, s = collections(ROWS)
    there = SparseSVC("l1", lam=5.0).fit(X, y, sample_weight=s)
    assert same(there, fit(from_blocks(load, BLOCKS), penalty="l1", lam=5.0))
    predicted = there.predict(X)
    assert isinstance(predicted, da.Array)
    assert np.array_equal(predicted.compute(), there.predict(in_memory()[0]))
    assert np.allclose(there.decision_function(X).compute(), there.decision_function(in_memory()[0]))


@pytest.mark.slow
def test_labels_in_other_chunks_are_brought_in_line(client):
    X, y, s = in_memory()
    there = SparseSVC("l1", lam=5.0).fit(
        da.from_array(X, chunks=(ROWS, -1)), da.from_array(y, chunks=100), da.from_array(s, chunks=7)
    )
    assert same(there, fit(from_blocks(load, BLOCKS), penalty="l1", lam=5.0))


@pytest.mark.slow
def test_dask_data_frames(client):
    dd = pytest.importorskip("dask.dataframe", reason="needs dask.dataframe")
    X, y, _ = in_memory()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=np.where(y > 0, "yes", "no"))
    there = dd.from_pandas(frame, npartitions=3)
    model = SparseSVC("l1", lam=5.0).fit(there[list("abcdef")], there["label"])
    here = SparseSVC("l1", lam=5.0).fit(frame[list("abcdef")], frame["label"])
    assert list(model.feature_names_in_) == list("abcdef")
    assert list(model.classes_) == ["no", "yes"]
    assert model.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert list(model.predict(there[list("abcdef")]).compute()) == list(here.predict(frame[list("abcdef")]))


def test_x_never_comes_to_the_client(client, monkeypatch):
    """What is gathered is made of answers: of the size of θ or of θ squared, never of the rows."""
    largest = []
    gather = client.gather

    async def watched(futures, **kwargs):
        results = await gather(futures, **kwargs)
        largest.append(max(len(distributed.protocol.pickle.dumps(result)) for result in results))
        return results

    monkeypatch.setattr(client, "gather", watched)
    monkeypatch.setattr("majorant.solvers.newton.tuning.SAMPLE_ENTRIES", 50 * FEATURES)
    X, y, _ = collections(ROWS)
    SparseSVC("l1", lam=5.0).fit(X, y)
    assert 0 < max(largest) < ROWS * FEATURES * 8 / 2


@pytest.fixture
def trips(monkeypatch):
    """How many round trips were made, by all clusters since the test began."""
    from majorant.rows import dask as module

    made = []
    original = module.Cluster.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(module.Cluster, "__init__", remember)
    return lambda: sum(cluster.passes for cluster in made)


@pytest.mark.slow
@pytest.mark.parametrize("loader", [load, load_wide], ids=lambda loader: loader.__name__)
def test_few_round_trips(client, trips, loader):
    fit(on_dask(from_blocks(loader, BLOCKS)), penalty="l1", lam=5.0)
    assert trips() <= 14


def test_many_blocks_share_tasks_where_they_are(client, monkeypatch):
    from majorant.rows import dask as module

    many = from_blocks(load, 23)
    expected = fit(many, penalty="l1", lam=5.0)
    trips = []
    grouped = module.Cluster._group_by_worker

    def watched(self, which):
        trips.append(grouped(self, which))
        return trips[-1]

    monkeypatch.setattr(module.Cluster, "_group_by_worker", watched)
    assert same(fit(on_dask(many), penalty="l1", lam=5.0), expected)
    assert all(sorted(chain(*groups)) == list(range(23)) for groups in trips)
    # In the first two, of labels and of rows, who is not there yet is alone. Then four tasks for each worker.
    assert len(trips) > 4
    assert all(len(groups) <= 2 * module.TASKS_PER_THREAD for groups in trips[2:])


def test_blocks_leave_the_workers_with_the_fit(client, monkeypatch):
    # However slow a pass is, and without the garbage collector.
    from majorant.rows import dask as module

    monkeypatch.setattr(module, "POLL_SECONDS", 1e-3)
    made, original = [], module.Cluster.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(ref(self))

    monkeypatch.setattr(module.Cluster, "__init__", remember)
    gc.disable()
    try:
        fit(on_dask(from_blocks(load, BLOCKS)))
        assert made
        assert not any(cluster() for cluster in made)
    finally:
        gc.enable()


def load_four(i):
    X, _, s = load(i)
    noisy = X[:, :4] + 0.5 * np.random.default_rng(100 + i).standard_normal((ROWS, 4))
    return X, np.argmax(noisy, axis=1), s


def load_one_of_four(label, i):
    X, y, s = load_four(i)
    return X, y == label, s


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l1", "lam": 10.0},
        pytest.param({"penalty": "l2", "solver": "mm", "max_iter": 9}, marks=pytest.mark.slow),
    ],
)
def test_all_classes_travel_together(client, trips, monkeypatch, options):
    """As many round trips as the slowest class takes, not as all of them; and none of them notices."""
    monkeypatch.setattr("majorant.rows.pass_batcher.PATIENCE", 1.0)  # also where the processor is busy
    model = fit(on_dask(from_blocks(load_four, BLOCKS)), **options)
    together = trips()
    alone = []
    for label in model.classes_:
        before = trips()
        fit(on_dask(from_blocks(partial(load_one_of_four, label), BLOCKS)), **options)
        alone.append(trips() - before)
    # At the end, each class may ask on its own whether what is faint is zero.
    assert together <= max(alone) + 4
    assert together < sum(alone) / 2
    assert same(model, fit(from_blocks(load_four, BLOCKS), **options))


@pytest.mark.parametrize("penalty", ["l1", pytest.param("hyperbolic", marks=pytest.mark.slow)])
def test_all_classes_at_once(client, trips, penalty):
    """Jointly: the bits of a stream, the minimum that there is in memory, and few round trips."""
    options = {"penalty": penalty, "lam": 20.0, "multi_class": "joint", "tol": 1e-9}
    there = fit(on_dask(from_blocks(load_four, BLOCKS)), **options)
    assert trips() <= 14
    assert same(there, fit(from_blocks(load_four, BLOCKS), **options))
    X, y, s = in_memory(load_four)
    assert there.objective_ == pytest.approx(SparseSVC(**options).fit(X, y, s).objective_, rel=1e-9)


def test_ctrl_c_ends_all_classes_and_keeps_where_they_are(client, monkeypatch):
    monkeypatch.setattr("majorant.rows.pass_batcher.PATIENCE", 1.0)  # also where the processor is busy
    pressed = threading.Lock()

    class Press(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 3 and pressed.acquire(blocking=False):
                os.kill(os.getpid(), signal.SIGINT)

    model = SparseSVC(**LONG).set_callbacks(Press())
    with pytest.raises(KeyboardInterrupt):
        model.fit(on_dask(from_blocks(load_four, BLOCKS)))
    assert model.coef_.shape == (4, FEATURES)
    assert 3 <= model.n_iter_ <= 5


def test_an_error_on_a_worker_ends_all_classes(client):
    """Also in the middle of the fit, where the classes' questions travel together."""

    class Fails(Callback):
        def on_begin(self, objective, tol):
            self.rows = objective.rows

        def for_problem(self, classes, positive):
            twin = Fails()
            twin.positive = positive
            return twin

        def on_iterate(self, iterate, record):
            if self.positive == 2:
                self.rows.sum_blocks(lambda block: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        SparseSVC("l1").set_callbacks(Fails()).fit(on_dask(from_blocks(load_four, BLOCKS)))


def test_the_task_of_a_block_is_as_small_with_many_blocks(client, monkeypatch):
    """In cross-validation too, where the folds of a block follow from how many rows were before it."""
    from majorant.estimators import clusters
    from majorant.estimators.sources import FoldSpec

    def size(blocks):
        made = []

        def remember(loads):
            made.append(loads)
            return Cluster(loads)

        monkeypatch.setattr(clusters, "Cluster", remember)
        clusters.cluster_by_problem(
            SparseSVC(), on_dask(from_blocks(load_few, blocks)), None, None, FoldSpec(3, seed=0)
        )
        task = made[-1][1]("a name", False)
        return len(distributed.protocol.pickle.dumps(dict(task.__dask_graph__())))

    assert size(60) == size(6)


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_cross_validation(client, multi_class):
    """The folds are the same wherever the rows are, and so is all that comes of them."""
    options = {"penalty": "l1", "lambdas": [100.0, 20.0, 5.0], "cv": 3, "multi_class": multi_class}
    source = from_blocks(load_three, BLOCKS)
    there = SparseSVCCV(**options, scoring="balanced_accuracy").fit(on_dask(source))
    here = SparseSVCCV(**options, scoring="balanced_accuracy").fit(source)
    assert same(there, here)
    for name, column in here.cv_results_.items():
        assert np.array_equal(there.cv_results_[name], column), name
    X, y, _ = collections(ROWS)
    assert SparseSVCCV("l1", lambdas=[20.0, 5.0], cv=2, scoring="roc_auc").fit(X, y).best_score_ > 0.7


@pytest.mark.slow
def test_paths(client):
    source = from_blocks(load, BLOCKS)
    there, here = (sparse_svc_path(X, None, "l1", lambdas=4) for X in (on_dask(source), source))
    assert np.array_equal(there.coefs, here.coefs)


def test_an_error_on_a_worker_is_an_error_here(client):
    def broken(i):
        X, y, s = load(i)
        return (X * np.nan if i == 2 else X), y, s

    with pytest.raises(ValueError, match="block 2"):
        fit(on_dask(from_blocks(broken, BLOCKS)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: (X, None), "y is missing"),
        (lambda X, y: (X, y.compute()), "must be one too"),
    ],
    ids=["no y", "y in memory"],
)
def test_what_is_missing_is_said(client, make, message):
    X, y, _ = collections(ROWS)
    with pytest.raises((TypeError, ValueError), match=message):
        SparseSVC().fit(*make(X, y))


@pytest.mark.slow
def test_without_a_cluster_it_is_said_how_to_get_one():
    code = (
        "import dask.array as da, numpy as np\nfrom majorant import SparseSVC\n"
        "SparseSVC().fit(da.ones((4, 2), chunks=2), da.from_array(np.array([0, 1, 0, 1]), chunks=2))"
    )
    import subprocess
    import sys

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "make a client first" in ended.stderr


# Workers that die --------------------------------------------------------------------------------

LONG = {"penalty": "hyperbolic", "lam": 5.0, "solver": "mm-subspace", "max_iter": 40, "tol": 0.0}


def kill(client, how_many=1):
    pids = client.run(os.getpid)
    for pid in list(pids.values())[:how_many]:
        os.kill(pid, signal.SIGKILL)


def wait_for_workers(client, n=2):
    """Until so many work, and their nannies know: a worker that is killed before that is never replaced."""

    def working(nanny):
        return nanny.process is not None and nanny.process.status is distributed.core.Status.running

    while (
        len(client.scheduler_info(n_workers=-1)["workers"]) < n
        or sum(map(working, client.cluster.workers.values())) < n
    ):
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 4], ids=["blocks share tasks", "a task each"])
@pytest.mark.parametrize(("times", "at_once"), [(1, 1), (1, 2), (6, 1)], ids=["one", "both", "six in turn"])
def test_killed_workers_change_nothing(processes, times, at_once, tasks, monkeypatch):
    monkeypatch.setattr("majorant.rows.dask.TASKS_PER_THREAD", tasks)
    wait_for_workers(processes)
    source = from_blocks(load, BLOCKS)
    expected = fit(source, **LONG)
    killed = threading.Event()

    def killer():
        for _ in range(times):
            time.sleep(0.5)
            wait_for_workers(processes)
            kill(processes, at_once)
        killed.set()

    thread = threading.Thread(target=killer)
    thread.start()
    fits = []
    while not killed.is_set():  # as many fits as it takes to see all of the killing
        fits.append(fit(on_dask(source), **LONG))
    thread.join()
    assert all(same(model, expected) for model in fits)


@pytest.mark.slow
def test_a_worker_killed_while_it_loads(processes):
    wait_for_workers(processes)
    expected = fit(from_blocks(load, BLOCKS), penalty="l1", lam=5.0)
    thread = threading.Timer(0.4, kill, [processes])
    thread.start()
    assert same(fit(on_dask(from_blocks(load_slowly, BLOCKS)), penalty="l1", lam=5.0), expected)
    thread.join()


@pytest.mark.slow
def test_a_worker_that_hangs_is_left_behind(processes, monkeypatch):
    wait_for_workers(processes)
    monkeypatch.setattr("majorant.rows.dask.RESPONSE_SECONDS", 6.0)
    expected = fit(from_blocks(load, BLOCKS), **LONG)
    pid = next(iter(processes.run(os.getpid).values()))

    class Stop(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 3:
                os.kill(pid, signal.SIGSTOP)

    model = SparseSVC(**LONG).set_callbacks(Stop())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(on_dask(from_blocks(load, BLOCKS)))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert same(model, expected)


@pytest.mark.slow
def test_a_scheduler_that_is_gone_leaves_the_last_iterate():
    """A typed error with θ, soon: what can be gone on from, on another cluster."""
    cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
    closed = []

    class Close(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 3:
                cluster.close()
                closed.append(time.monotonic())

    with distributed.Client(cluster):
        model = SparseSVC(solver="sgd", max_iter=10**6, random_state=0).set_callbacks(Close())
        with pytest.raises(ClusterLostError) as caught:
            model.fit(on_dask(from_blocks(load, BLOCKS)))
        assert time.monotonic() - closed[0] < 30.0
    assert np.all(np.isfinite(caught.value.theta))
    assert caught.value.theta.any()
