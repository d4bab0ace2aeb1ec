"""How time and memory grow with the number of rows and of features, on synthetic sparse data.

    python benchmarks/scaling.py [rows] [features]

Rows: 10,000 doubled to 1,280,000, 1,000 features, 20 entries a row. Features: 1,000 doubled to 256,000,
20,000 rows, 20 entries a row. Twenty features are true. Each fit is in a process of its own, after a small
one that loads the compiled kernels. Memory is what the process needed at most during the fit beyond what it
had before, plus the data, over the data (Linux only). λ is a hundredth of the smallest that makes all
coefficients zero.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SIZES = {
    "rows": [(10_000 * 2**k, 1_000) for k in range(8)],
    "features": [(20_000, 1_000 * 2**k) for k in range(9)],
}


def simulate(n, p, entries=20, seed=0):
    """A row has one of the true features, or two, among `entries` of all."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(20, p, (n, entries))
    indices[:, :2] = rng.integers(0, 20, (n, 2))
    data = rng.uniform(0.5, 1.5, (n, entries))
    X = sp.csr_matrix((data.ravel(), indices.ravel(), np.arange(0, n * entries + 1, entries)), shape=(n, p))
    X.sum_duplicates()
    w = np.zeros(p)
    w[:20] = np.where(np.arange(20) % 2, 1.0, -1.0)
    y = np.where(X @ w + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


def resident(what):
    """Bytes of memory in use now (VmRSS) or at most (VmHWM), as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def measure(file):
    from majorant import SparseSVC

    with np.load(file) as arrays:
        X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"])
        y = arrays["y"]
    n, p = X.shape
    SparseSVC("l1", lam=5.0).fit(*simulate(1_000, p))
    slack = 1.0 - y * y.mean()
    lam = 0.01 * float(np.max(np.abs(X.T @ (2.0 * y * slack))))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = resident("VmRSS")
    seconds = np.inf
    for _ in range(3):
        start = time.perf_counter()
        model = SparseSVC("l1", lam=lam).fit(X, y)
        seconds = min(seconds, time.perf_counter() - start)
    peak = resident("VmHWM")
    return {
        "rows": n, "features": p, "seconds": seconds, "converged": bool(model.converged_),
        "gap": model.gap_, "nonzeros": len(model.support_), "memory": 1.0 + (peak - before) / size,
    }  # fmt: skip


def main():
    for name in sys.argv[1:] or SIZES:
        results = []
        for n, p in SIZES[name]:
            with tempfile.TemporaryDirectory() as folder:
                file = str(Path(folder) / "rows.npz")
                X, y = simulate(n, p)
                np.savez(file, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
                command = [sys.executable, __file__, "measure", file]
                answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            results.append(json.loads(answer))
            print(
                "{rows:9d} rows {features:7d} features {seconds:8.3f} s  memory {memory:4.2f} × data  "
                "non-zeros {nonzeros}  gap {gap:.0e}".format(**results[-1]),
                flush=True,
            )
        x = np.log([result[name] for result in results])
        t = np.log([result["seconds"] for result in results])
        print(f"slope of log time on log {name}: {np.polyfit(x, t, 1)[0]:.2f}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main()
