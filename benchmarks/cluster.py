"""Training on a Dask cluster on this machine: round trips, workers, a kill, and what others take.

    python benchmarks/cluster.py [trips] [workers] [kill] [peers] [--rows 2000000] [--features 200]

Each part has a cluster of its own, of worker processes with one thread each.

- trips: milliseconds of a question to blocks of next to nothing, by the number of blocks.
- workers: the seconds of a fit on rows that are on the workers already, by the number of workers, and what
  the cost model of docs/scaling.md says, with constants that are measured first.
- kill: one of two workers is killed with SIGKILL in the middle of a fit: what it costs, and that the model is
  the same bit for bit.
- peers: `dask_ml.linear_model.LogisticRegression` (ℓ1, ADMM) on the same cluster, and
  `pyspark.ml.classification.LinearSVC` on as many cores, each with as few iterations as give our training
  accuracy less 0.0005, or as many as are tried. (pip install dask-ml pyspark; Spark needs Java.)
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster, wait

from majorant import SparseSVC
from majorant.blas import one_thread
from majorant.callbacks import Callback
from majorant.datasets import on_dask
from majorant.estimators.clusters import cluster_by_problem
from majorant.rows import MemoryRows, from_blocks
from majorant.rows.dask import Cluster
from majorant.rows.threads import use_one_thread
from majorant.solvers.newton.out_of_core import view

PER_BLOCK = 50_000
# Times the number of rows, with which the gradient grows: it selects.
STRENGTH = 0.002
SLACK = 0.0005
ROUNDS, FITS = 2, 3


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        yield client


def make(n: int, p: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with ten features that matter."""
    rng = np.random.default_rng(i)
    X = rng.standard_normal((n, p))
    w = np.where(np.arange(p) % (p // 10) == 0, 1.0, 0.0)
    return X, np.where(X @ w + 2.0 * rng.standard_normal(n) > 0.0, 1, -1)


def arrays(client: Client, rows: int, p: int) -> tuple[Any, Any]:
    """X and y on the workers, computed."""
    n = min(PER_BLOCK, rows // 8)
    blocks = [delayed(make, pure=True)(n, p, i) for i in range(rows // n)]
    X = da.concatenate([da.from_delayed(block[0], (n, p), float) for block in blocks])
    y = da.concatenate([da.from_delayed(block[1], (n,), int) for block in blocks])
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def estimator(rows: int) -> SparseSVC:
    return SparseSVC("l1", lam=STRENGTH * rows)


def timed(task: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = task()
    return time.perf_counter() - start, found


def trips(rows: int, p: int) -> None:
    print("Round trips on 2 workers, blocks of 20 rows: milliseconds, median and largest of 50")
    with cluster(2) as client:
        for n_blocks in (2, 8, 32):
            source = from_blocks(partial(make, 20, p), n_blocks)
            _, _, (there,) = cluster_by_problem(SparseSVC(), on_dask(source), None, None)
            there.loss(np.ones(p + 1))
            times = [timed(partial(there.loss, np.full(p + 1, 0.01 * k)))[0] for k in range(1, 51)]
            print(f"  {n_blocks:2d} blocks {1e3 * statistics.median(times):6.1f} {1e3 * max(times):6.1f}")
        del client


@dataclass
class Constants:
    """Seconds: of a trip, of a task, of a byte that comes back, and of a row, by what is asked of it."""

    trip: float
    task: float
    byte: float
    row_of_loss: float
    row_of_view: float

    def predicted(self, trips: dict[str, int], rows: int, p: int, n_blocks: int, n_workers: int) -> float:
        """Of a fit: docs/scaling.md."""
        at_once = min(n_workers, os.cpu_count() or 1)
        total = 0.0
        for kind, count in trips.items():
            size, row = (8 * p**2, self.row_of_view) if kind == "view" else (8 * p, self.row_of_loss)
            total += count * (self.trip + n_blocks * (self.task + size * self.byte) + rows * row / at_once)
        return total


def measured_constants(p: int) -> Constants:
    """By small blocks for the trip and the tasks, answers of 2 MB for a byte, a block of rows for a row."""
    with cluster(2):
        medians = []
        for n_blocks in (2, 32):
            _, _, (there,) = cluster_by_problem(
                SparseSVC(), on_dask(from_blocks(partial(make, 20, p), n_blocks)), None, None
            )
            there.loss(np.ones(p + 1))
            times = [timed(partial(there.loss, np.full(p + 1, 0.01 * k)))[0] for k in range(1, 31)]
            medians.append(statistics.median(times))
        task = (medians[1] - medians[0]) / 30
        trip = medians[0] - 2 * task
        size = 2_000_000
        large = [timed(lambda: there.store.one_pass(partial(_zeros, size // 8)))[0] for _ in range(9)]
        byte = max(0.0, statistics.median(large) - medians[1]) / (32 * size)
    X, y = make(PER_BLOCK, p, 0)
    block = MemoryRows(X, y.astype(float)).blocks[0]
    d = np.full(p + 1, 0.01)
    with one_thread(), ThreadPoolExecutor(1, initializer=use_one_thread) as pool:
        of_loss, of_view = (
            min(pool.submit(timed, partial(question, block)).result()[0] for _ in range(5)) / PER_BLOCK
            for question in (lambda block: block.loss(d), partial(view, None, d, d))
        )
    return Constants(trip, task, byte, of_loss, of_view)


def _zeros(size: int, block: Any) -> np.ndarray:
    return np.zeros(size)


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How many trips of each kind there are meanwhile."""
    trips: dict[str, int] = {}
    ask = Cluster.one_pass

    def counting(self: Cluster, question: Any) -> Any:
        kind = "view" if repr(view) in repr(question) else "loss"
        trips[kind] = trips.get(kind, 0) + 1
        return ask(self, question)

    Cluster.one_pass = counting  # type: ignore[method-assign]
    try:
        yield trips
    finally:
        Cluster.one_pass = ask  # type: ignore[method-assign]


def workers(rows: int, p: int) -> None:
    constants = measured_constants(p)
    print(
        f"A trip {1e3 * constants.trip:.1f} ms, a task {1e3 * constants.task:.2f} ms, "
        f"answers {1e-6 / constants.byte:,.0f} MB/s; a row of {p}: loss and gradient "
        f"{1e9 * constants.row_of_loss:.0f} ns, with H {1e9 * constants.row_of_view:.0f} ns"
    )
    fits = f"best of {FITS} fits in each of {ROUNDS} clusters"
    print(f"{rows:,} × {p} dense, ℓ1, tol 1e-6, rows on the workers: seconds of a fit ({fits})", flush=True)
    seconds = dict.fromkeys((1, 2, 4), math.inf)
    # One cluster at a time: others have hearts that beat. In turn, since the machine is faster at times.
    for n in [*seconds] * ROUNDS:
        with cluster(n) as client:
            X, y = arrays(client, rows, p)
            with counted() as trips:
                estimator(rows).fit(X, y)
            for _ in range(FITS):
                took, _ = timed(lambda X=X, y=y: estimator(rows).fit(X, y))
                seconds[n] = min(seconds[n], took)
    for n, took in seconds.items():
        said = constants.predicted(trips, rows, p, X.numblocks[0], n)
        print(
            f"  {n} workers {took:6.2f}, {seconds[1] / took:.2f} times as fast as one; "
            f"the model says {said:.2f} for {trips}"
        )


class KillOne(Callback):
    """Kills the first worker, once, after some iterations."""

    def __init__(self, client: Client, after: int) -> None:
        self.client, self.after = client, after

    def on_iterate(self, iterate: Any, record: Any) -> None:
        self.after -= 1
        if self.after == 0:
            pid = next(iter(self.client.run(os.getpid).values()))
            threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()


def kill(rows: int, p: int) -> None:
    rows //= 4
    print(f"{rows:,} × {p} dense on 2 workers, loaded by a source; one is killed: seconds of a fit")
    n = min(PER_BLOCK, rows // 8)
    source = from_blocks(partial(make, n, p), rows // n)
    costs = []
    for _ in range(3):
        with cluster(2) as client:
            for _ in range(2):  # the first time, much is imported and compiled
                quiet, undisturbed = timed(lambda: estimator(rows).fit(on_dask(source)))
            killer = KillOne(client, after=2)
            watched = estimator(rows).set_callbacks(killer)
            disturbed, model = timed(lambda watched=watched: watched.fit(on_dask(source)))
        same = np.array_equal(model.coef_, undisturbed.coef_) and killer.after <= 0
        costs.append(disturbed - quiet)
        print(f"  {quiet:6.2f} undisturbed, {disturbed:6.2f} with a kill, same bits: {same}", flush=True)
    print(f"  a kill costs {statistics.median(costs):.1f} s (median), {max(costs):.1f} at most")


def peers(rows: int, p: int) -> None:
    rows //= 4
    print(f"{rows:,} × {p} dense on 2 workers: seconds to the same training accuracy")
    with cluster(2) as client:
        X, y = arrays(client, rows, p)
        estimator(rows).fit(X, y)  # what is compiled or imported late
        seconds, model = timed(lambda: estimator(rows).fit(X, y))
        goal = accuracy(model.predict(X), y)
        print(f"  majorant, to a gap of 1e-6: {seconds:6.2f}, accuracy {goal:.4f}", flush=True)
        for tol in (0.1, 0.01, 1e-3):
            seconds, model = timed(lambda tol=tol: estimator(rows).set_params(tol=tol).fit(X, y))
            reached = accuracy(model.predict(X), y)
            if reached >= goal - SLACK:
                break
        print(f"  majorant, to a gap of {tol:g}: {seconds:6.2f}, accuracy {reached:.4f}", flush=True)
        others = [("dask-ml", partial(dask_ml, X, y))]
        report(others, goal, seconds)
    report([("pyspark", spark(rows, p))], goal, seconds)


def accuracy(predicted: Any, y: Any) -> float:
    return float((predicted == y).mean().compute())


def report(others: list[tuple[str, Callable[[int], tuple[float, float]]]], goal: float, ours: float) -> None:
    for name, run in others:
        for iterations in (1, 2, 5, 10, 20, 50, 100):
            seconds, reached = run(iterations)
            if reached >= goal - SLACK:
                break
        said = "" if reached >= goal - SLACK else ", not reached"
        print(
            f"  {name}, {iterations} iterations: {seconds:6.2f}, accuracy {reached:.4f}{said}; "
            f"{seconds / ours:.1f} times as long",
            flush=True,
        )


def dask_ml(X: Any, y: Any, iterations: int) -> tuple[float, float]:
    from dask_ml.linear_model import LogisticRegression

    labels = ((y + 1) // 2).persist()
    wait(labels)
    other = LogisticRegression(penalty="l1", solver="admm", C=1.0 / STRENGTH, max_iter=iterations)
    seconds, _ = timed(lambda: other.fit(X, labels))
    return seconds, accuracy(other.predict(X), labels)


def spark(rows: int, p: int) -> Callable[[int], tuple[float, float]]:
    import pandas as pd
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    n = min(PER_BLOCK, rows // 8)

    def blocks(numbers: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for part in numbers:
            for i in part["id"]:
                X, y = make(n, p, int(i))
                yield pd.DataFrame({"features": list(X), "label": (y + 1) / 2})

    numbered = session.range(0, rows // n, 1, 2)
    table = numbered.mapInPandas(blocks, "features array<double>, label double")
    table = table.select(array_to_vector("features").alias("features"), "label").cache()
    assert table.count() == rows // n * n

    def run(iterations: int) -> tuple[float, float]:
        seconds, model = timed(lambda: LinearSVC(maxIter=iterations, regParam=0.01).fit(table))
        predicted = model.transform(table)
        return seconds, predicted.filter("prediction = label").count() / rows

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = {"trips": trips, "workers": workers, "kill": kill, "peers": peers}
    parser.add_argument("parts", nargs="*", metavar="part", default=list(parts))
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=200)
    given = parser.parse_args()
    for part in given.parts:
        parts[part](given.rows, given.features)


if __name__ == "__main__":
    main()
