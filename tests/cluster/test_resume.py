"""A cluster that is lost in the middle of a fit, and the fit that goes on on another one."""

import re
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="needs dask (pip install 'majorant[dask]')")

from majorant import SparseSVC, load_model, save_model  # noqa: E402
from majorant.callbacks import Callback, Checkpoint  # noqa: E402
from majorant.datasets import on_dask  # noqa: E402
from majorant.errors import ClusterLostError  # noqa: E402
from majorant.rows import from_blocks  # noqa: E402
from tests.processes import environment  # noqa: E402

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

SOON = 30.0
"""Seconds within which it must be said that there is no cluster any more."""

LONG = {"lam": 5.0, "delta": 0.01, "solver": "mm", "tol": 1e-11}
"""A fit of many iterations to one minimum."""

LATE = 15
"""When the cluster is lost: after so many of them."""


def load(i, classes=2):
    rng = np.random.default_rng(i)
    X = rng.standard_normal((300, 8)) * np.geomspace(0.1, 5.0, 8)
    noisy = X[:, [2, 3, 4]] + 2.0 * rng.standard_normal((300, 3))
    return X, (np.argmax(noisy, axis=1) if classes == 3 else np.where(noisy[:, 1] > 0, "yes", "no"))


def load_and_close(i):
    if i == 2:
        distributed.Client.current().close()
    return load(i)


def load_three(i):
    return load(i, classes=3)


@contextmanager
def local_cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


class Watch(Callback):
    """Counts the iterations of all classes, and does something at one of them."""

    def __init__(self, at=None, act=None):
        self.at, self.act, self.count, self.last, self.acted = at, act, 0, None, None

    def on_iterate(self, iterate, record):
        self.count += record.iteration > 0
        self.last = iterate.theta
        if self.count == self.at and self.acted is None:
            self.acted = time.monotonic()
            self.act()


def watched_fit(model, loader, watch, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_callbacks(watch).fit(on_dask(from_blocks(loader, 3)), **options)
    return model


def lose_the_cluster(model, loader, at, **options):
    """A fit whose cluster goes away after so many iterations; what was raised, and who watched."""
    with local_cluster() as cluster:
        watch = Watch(at, cluster.close)
        with pytest.raises(ClusterLostError) as caught:
            watched_fit(model, loader, watch, **options)
    assert time.monotonic() - watch.acted < SOON
    return caught.value, watch


@pytest.fixture(scope="module")
def undisturbed():
    """Models that nothing happened to, and how many iterations they took."""
    with local_cluster():
        watches = {loader: Watch() for loader in (load, load_three)}
        return {
            loader: (watched_fit(SparseSVC(**LONG), loader, watch), watch.count)
            for loader, watch in watches.items()
        }


@pytest.mark.parametrize(
    ("loader", "way"),
    [
        pytest.param(load, "warm start", id="warm start"),
        pytest.param(load, "checkpoint", id="checkpoint"),
        pytest.param(load_three, "warm start", id="three classes, warm start", marks=pytest.mark.slow),
        pytest.param(load_three, "checkpoint", id="three classes, checkpoint", marks=pytest.mark.slow),
    ],
)
def test_a_fit_goes_on_on_another_cluster(undisturbed, tmp_path, loader, way):
    expected, needed = undisturbed[loader]
    lost_at = needed - 5
    options = {"checkpoint": tmp_path / "fit.npz"} if way == "checkpoint" else {}
    model = SparseSVC(**LONG)
    error, watch = lose_the_cluster(model, loader, lost_at, **options)
    assert any(np.array_equal(theta, watch.last) for theta in np.atleast_2d(error.theta))
    other = SparseSVC(**LONG)  # as another process would
    resumed = model.set_params(warm_start=True) if way == "warm start" else other
    with local_cluster():
        watch = Watch()
        watched_fit(resumed, loader, watch, **options)
    assert resumed.converged_
    assert resumed.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert np.allclose(resumed.coef_, expected.coef_, rtol=1e-4, atol=1e-6)
    assert watch.count <= 8 < lost_at - 5  # not all over again
    assert list(tmp_path.iterdir()) == []


def test_the_error_says_what_the_model_has_kept_and_where(tmp_path):
    path = tmp_path / "fit.npz"
    model = SparseSVC(**LONG)
    error, _ = lose_the_cluster(model, load_three, LATE, checkpoint=path)
    assert re.fullmatch(
        r"the Dask cluster is gone \([^()]+\): connect to a new one and fit again; with warm_start=True this "
        rf"model goes on from its last iterate, and with checkpoint='{re.escape(str(path))}' any other does",
        str(error),
    )
    assert error.theta.shape == (3, 9)
    assert np.array_equal(model.coef_, error.theta[:, :-1])
    assert np.array_equal(model.intercept_, error.theta[:, -1])
    assert list(model.classes_) == [0, 1, 2]
    # It predicts, and nothing is claimed that nobody could ask the rows.
    save_model(model, tmp_path / "kept.model")
    X, _ = load_three(0)
    assert np.array_equal(load_model(tmp_path / "kept.model").predict(X), model.predict(X))
    for name in ("status_", "gap_", "objective_", "converged_", "history_", "n_iter_"):
        assert not hasattr(model, name)


def test_a_fit_that_had_not_begun_has_nothing_to_go_on_from():
    model = SparseSVC(**LONG)
    with local_cluster():
        source = on_dask(from_blocks(load_and_close, 3))
        with pytest.raises(ClusterLostError, match=r"connect to a new one and fit again$") as caught:
            model.fit(source)
    assert caught.value.theta is None
    assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_with_max_features_nothing_is_promised():
    error, _ = lose_the_cluster(SparseSVC("l1", max_features=2), load, 2)
    assert str(error).endswith("connect to a new one and fit again")


def test_a_point_on_the_way_to_one_of_many_minima_is_not_gone_on_from():
    model = SparseSVC("welsch", lam=2.0, delta=0.1)
    error, watch = lose_the_cluster(model, load, 2)
    assert np.array_equal(error.theta, watch.last)
    assert not model.coef_.any()  # but the start


def test_a_client_that_is_closed_is_not_worked_with():
    with local_cluster():
        distributed.get_client().close()
        with pytest.raises(ClusterLostError, match="current Dask client is closed: leave its `with`"):
            SparseSVC().fit(on_dask(from_blocks(load, 3)))


def test_any_error_leaves_the_last_iterate_in_the_checkpoint(tmp_path):
    """Also in memory, and however long ago the last writing was."""

    def fail():
        raise LookupError

    path, watch = tmp_path / "fit.npz", Watch(8, fail)
    with pytest.raises(LookupError):
        SparseSVC(**LONG).set_callbacks(watch).fit(*load(0), checkpoint=Checkpoint(path, every=60.0))
    # Whoever was asked before it has seen one more.
    assert path.exists()
    watch = Watch()
    SparseSVC(**LONG).set_callbacks(watch).fit(*load(0), checkpoint=path)
    whole = Watch()
    SparseSVC(**LONG).set_callbacks(whole).fit(*load(0))
    assert watch.count <= whole.count - 7


# Processes that are killed --------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import distributed
from tests.cluster.test_resume import LONG, LATE, Checkpoint, SparseSVC, Watch, load
from tests.cluster.test_resume import local_cluster, watched_fit

with local_cluster():
    watch = Watch(LATE, lambda: os.kill(os.getpid(), signal.SIGKILL))
    watched_fit(SparseSVC(**LONG), load, watch, checkpoint=Checkpoint(sys.argv[1], every=0.0))
"""


@pytest.mark.slow
def test_a_client_that_was_killed_goes_on_on_another_cluster(undisturbed, tmp_path):
    path = tmp_path / "fit.npz"
    command = [sys.executable, "-c", KILLED, str(path)]
    ended = subprocess.run(command, env=environment(), timeout=120, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert path.exists()
    expected, needed = undisturbed[load]
    with local_cluster():
        watch = Watch()
        model = watched_fit(SparseSVC(**LONG), load, watch, checkpoint=path)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert watch.count <= needed - LATE + 1


class Processes:
    """A scheduler and its workers, each a process, at an address that stays."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.running = []
        self.start()

    def start(self):
        self.scheduler = self._run("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-show")
        for _ in range(2):
            self._run("worker", self.address, "--nthreads", "1", "--no-nanny")

    def restart(self):
        """The scheduler dies and another one is there at once; workers that lose theirs end by themselves."""
        self.scheduler.kill()
        self.scheduler.wait()
        self.start()

    def _run(self, what, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options, "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.running.append(subprocess.Popen(command, env=environment(), **quiet))
        return self.running[-1]

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["the same client", "a new client", "checkpoint"])
def test_a_scheduler_that_was_started_again(undisturbed, tmp_path, way):
    expected, needed = undisturbed[load]
    options = {"checkpoint": tmp_path / "fit.npz"} if way == "checkpoint" else {}
    processes = Processes()
    try:
        with distributed.Client(processes.address, timeout=90) as client:
            client.wait_for_workers(2, timeout=90)
            model, watch = SparseSVC(**LONG), Watch(LATE, processes.restart)
            with pytest.raises(ClusterLostError, match="is gone") as caught:
                watched_fit(model, load, watch, **options)
            assert time.monotonic() - watch.acted < SOON
            assert np.array_equal(caught.value.theta, watch.last)
            if way == "the same client":  # it connects again by itself
                client.wait_for_workers(1, timeout=90)
                watched_fit(model.set_params(warm_start=True), load, watch := Watch())
        if way != "the same client":
            with distributed.Client(processes.address, timeout=90):
                model = SparseSVC(**LONG) if options else model.set_params(warm_start=True)
                watched_fit(model, load, watch := Watch(), **options)
    finally:
        processes.end()
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert watch.count <= needed - LATE + 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_a_scheduler_that_does_not_answer_any_more(undisturbed, how):
    expected, needed = undisturbed[load]
    processes = Processes()
    try:
        with distributed.Client(processes.address, timeout=90) as client:
            client.wait_for_workers(2, timeout=90)
            model, watch = SparseSVC(**LONG), Watch(LATE, lambda: processes.scheduler.send_signal(how))
            with pytest.raises(ClusterLostError, match="its scheduler does not answer"):
                watched_fit(model, load, watch)
            assert time.monotonic() - watch.acted < SOON
    finally:
        processes.end()
    with local_cluster():
        watched_fit(model.set_params(warm_start=True), load, watch := Watch())
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert watch.count <= needed - LATE + 1
