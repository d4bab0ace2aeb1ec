"""Training on data that do not fit into the memory allowed: peak memory, time of a pass, and the same Φ.

    python benchmarks/out_of_core.py [--gigabytes 0.4] [--memory 128MB] [--directory /tmp]

Rows are made and written to X.npy and y.npy in a directory that is removed at the end. `majorant train` runs
on them with --memory in a process of its own, whose peak of resident memory is what the system says. In
another process, passes of a fit that keeps nothing take turns with plain reading of the same blocks. At last,
Φ is compared with that of a fit in memory, by another method.

All the work is done in child processes: the peak of a process is never below that of the one that started it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = 200
CHUNK = 50_000
# A strength that selects: the gradient at zero grows with the number of rows.
STRENGTH, DELTA, TOL = 0.05, 1e-2, 1e-8


def make(directory: Path, gigabytes: float) -> int:
    """Rows with ten features that matter, of unequal scales."""
    n = int(gigabytes * 1e9 / (8 * FEATURES))
    rng = np.random.default_rng(0)
    scales = np.geomspace(0.5, 2.0, FEATURES)
    w = np.where(np.arange(FEATURES) % 20 == 0, 1.0, 0.0)
    X = np.lib.format.open_memmap(directory / "X.npy", mode="w+", dtype=np.float64, shape=(n, FEATURES))
    y = np.empty(n, dtype=np.int8)
    for start in range(0, n, CHUNK):
        part = slice(start, min(start + CHUNK, n))
        rows = rng.standard_normal((part.stop - start, FEATURES)) * scales
        y[part] = np.where(rows @ w + 2.0 * rng.standard_normal(len(rows)) > 0.0, 1, -1)
        X[part] = rows
    X.flush()
    np.save(directory / "y.npy", y)
    np.savez(directory / "Xy.npz", X=X, y=y)
    return n


def options(n: int) -> list[str]:
    return ["--lam", repr(STRENGTH * n), "--delta", repr(DELTA), "--tol", repr(TOL)]


def train(directory: Path, n: int, memory: str | None) -> dict[str, float]:
    """`majorant train` in a process of its own; its facts, and the peak of its memory in bytes."""
    code = (
        "import resource, sys; from majorant.cli import run; code = run(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    if memory is not None:
        data = [str(directory / "X.npy"), "--memory", memory]
    else:
        data = [str(directory / "Xy.npz")]
    command = ["train", *data, str(directory / "model"), "--force", "--json", *options(n)]
    done = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True)
    facts, peak = done.stdout.strip().splitlines()
    return json.loads(facts) | {"peak": 1024 * int(peak)}


def turns(path: str) -> list[list[float]]:
    """Seconds of plain reading, of a pass, and of the processor for each, in turn; nothing is kept."""
    from majorant import SparseSVC
    from majorant.blas import one_thread
    from majorant.datasets import open_source
    from majorant.estimators.sources import stream_by_problem

    source = open_source(path)
    source.memory = 2 * max(source.size(i) for i in range(source.n_blocks))
    _, (rows,) = stream_by_problem(SparseSVC(), source, None, None)
    found = []
    with one_thread():
        rows.stats_at_zero  # noqa: B018
        for k in range(5):
            clocks = [clock()]
            for i in range(source.n_blocks):
                source.load(i)
            clocks.append(clock())
            rows.loss(np.full(source.n_features + 1, 0.01 + 0.01 * k))
            clocks.append(clock())
            found.append(np.diff(clocks, axis=0).T.ravel().tolist())
    return found


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=0.4)
    parser.add_argument("--memory", default="128MB")
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--turns", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make or given.turns:
        print(json.dumps(make(Path(given.make), given.gigabytes) if given.make else turns(given.turns)))
        return
    directory = Path(tempfile.mkdtemp(dir=given.directory))
    try:
        compare(directory, given)
    finally:
        shutil.rmtree(directory)


def compare(directory: Path, given: argparse.Namespace) -> None:
    n = itself("--make", str(directory), "--gigabytes", str(given.gigabytes))
    size = os.path.getsize(directory / "X.npy")
    print(f"{n:,} rows × {FEATURES} features, {size / 1e9:.2f} GB on disk, --memory {given.memory}")
    pairs = itself("--turns", str(directory / "X.npy"))
    reading, passing, busy, busier = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"reading the blocks   {reading:8.2f} s   {size / reading / 1e9:.2f} GB/s, processor {busy:.2f} s")
    print(
        f"a pass, nothing kept {passing:8.2f} s   {size / passing / 1e9:.2f} GB/s, processor {busier:.2f} s"
    )
    print(f"throughput of a pass {reading / passing:8.0%}     of the reading (medians of {len(pairs)})")
    stream = train(directory, n, given.memory)
    print(
        f"fit, {stream['n_iter']} iterations  {stream['seconds']:8.2f} s   {stream['passes']} passes of "
        f"{stream['seconds_per_pass']:.2f} s, gap {stream['gap']:.1e}"
    )
    print(f"peak of memory       {stream['peak'] / 1e9:8.2f} GB")
    memory = train(directory, n, None)
    difference = abs(stream["objective"] - memory["objective"]) / memory["objective"]
    print(f"Φ                    {stream['objective']:.10g}, in memory {memory['objective']:.10g}")
    print(f"relative difference  {difference:8.1e}")
    print(f"in memory, the peak  {memory['peak'] / 1e9:8.2f} GB, {memory['seconds']:.2f} s")


def itself(*arguments: str) -> Any:
    """What this program prints in another process."""
    command = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
