"""What one iteration of each algorithm costs, in product pairs (X @ v and X.T @ u).

    MAJORANT_DATA=… python benchmarks/iteration_cost.py

The pair is measured by scipy and numpy in the same run, alternating with the algorithm, so that a busy
machine slows both; the median ratio of several rounds is printed. For `mm-inversion` the two products with
its square factor are measured too and taken off; `mm` is shown for comparison.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import scipy.io
from sklearn.datasets import load_svmlight_file

from majorant.objective import Objective
from majorant.potentials import Hyperbolic
from majorant.rows import MemoryRows
from majorant.solvers import MM, Gradient, MMInversion, MMSubspace, solve

ROUNDS = 15
ITERATIONS = 30
LIMITS = {"gradient": "≤ 2", "mm-subspace": "≤ 4", "mm-inversion": "≤ 2 + 2 (N+1)² products", "mm": ""}


def load(name):
    directory = Path(os.environ["MAJORANT_DATA"])
    if name == "cina0":
        file = scipy.io.loadmat(directory / "cina0.mat")
        return np.asarray(file["A"], dtype=float), file["b"].ravel().astype(float)
    X, y = load_svmlight_file(str(directory / f"{name}.bz2"))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def per_call(function):
    """The median time of a call, over as many as the algorithm has iterations: the same for both."""
    times = []
    for _ in range(ITERATIONS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def per_iteration(solver, objective):
    """The median time of an iteration, setting up and measuring left out."""
    history = solve(solver, objective, tol=0.0, max_iter=ITERATIONS).history
    return float(np.median(np.diff(history.column("time"))))


def main():
    print(f"{'data':8} {'solver':13} {'pair':>9} {'iteration':>10} {'ratio':>6}  limit")
    for name in ("w8a", "cina0"):
        X, y = load(name)
        objective = Objective(MemoryRows(X, y), Hyperbolic(1e-4, 1e-4))
        p = objective.size
        v, u = np.linspace(-1, 1, p - 1), np.linspace(-1, 1, len(y))
        P, g = np.random.default_rng(0).standard_normal((p, p)), np.ones(p)

        def pair(X=X, u=u, v=v):
            return X @ v, X.T @ u

        def squares(P=P, g=g):
            return P @ (P.T @ g)

        for solver in (Gradient(), MMSubspace(), MMInversion(), MM()):
            per_iteration(solver, objective)  # compile
            rounds = [
                (per_call(pair), per_iteration(solver, objective), per_call(squares)) for _ in range(ROUNDS)
            ]
            pairs, iterations, products = (np.array(column) for column in zip(*rounds, strict=True))
            spent = iterations - products if solver.name == "mm-inversion" else iterations
            ratio = float(np.median(spent / pairs))
            print(
                f"{name:8} {solver.name:13} {1e3 * np.median(pairs):6.3f} ms "
                f"{1e3 * np.median(iterations):7.3f} ms {ratio:6.2f}  {LIMITS[solver.name]}"
            )
            assert math.isfinite(ratio)


if __name__ == "__main__":
    main()
