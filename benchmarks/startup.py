"""What importing the package, asking the command line for help, and the first fit of a process cost.

    python benchmarks/startup.py

The first fit loads numba and the compiled kernels: from their cache on disk, or, with an empty cache, after
compiling them. What is shown is how much longer it takes than the fastest of the three that follow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

CASES = {
    "python -c pass": "pass",
    "import sklearn.svm": "import sklearn.svm",
    "import majorant": "import majorant",
    "from majorant import SparseSVC": "from majorant import SparseSVC",
    "import sklearn.svm, then SparseSVC": "import sklearn.svm; from majorant import SparseSVC",
    "majorant --help": "import sys; sys.argv = ['majorant', '--help']; from majorant.cli import main; main()",
}

FIRST_FIT = """
import sys, time
import numpy as np, scipy.sparse as sp
from majorant import SparseSVC
penalty, shape, features = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
X = sp.random_array((4000, features), density=20 / features, rng=rng, format="csr")
y = np.where(X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(4000) > 0.4 * 200 / features, 1, -1)
X = X if shape == "sparse" else X.toarray()
times = []
for _ in range(4):
    start = time.perf_counter()
    SparseSVC(penalty, lam=1.0).fit(X, y)
    times.append(time.perf_counter() - start)
print(times[0] - min(times[1:]))
"""


def run(code, *arguments, **environment):
    command = [sys.executable, "-c", code, *arguments]
    answer = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return answer.stdout


def main():
    times = {name: [] for name in CASES}
    for _ in range(7):
        for name, code in CASES.items():
            start = time.perf_counter()
            run(code)
            times[name].append(time.perf_counter() - start)
    for name, seconds in times.items():
        print(f"{name:36} {sorted(seconds)[len(seconds) // 2]:.3f} s")
    print("\nfirst fit, over a warm one                cached   compiled")
    for case in (
        ("l1", "sparse", "200"), ("l2", "sparse", "200"), ("hyperbolic", "sparse", "200"),
        ("l1", "sparse", "2000"), ("l2", "sparse", "2000"), ("l1", "dense", "200"), ("l2", "dense", "200"),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory() as cache:
            compiled = float(run(FIRST_FIT, *case, NUMBA_CACHE_DIR=cache))
            cached = sorted(float(run(FIRST_FIT, *case, NUMBA_CACHE_DIR=cache)) for _ in range(5))[2]
        print(f"{' '.join(case):40} {cached:6.2f} s {compiled:6.2f} s")


if __name__ == "__main__":
    main()
