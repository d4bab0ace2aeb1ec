"""What a path of 100 strengths costs: against 100 fits from zero, and against the fit of its last strength.

    MAJORANT_DATA=… python benchmarks/path.py [name …]

From `lambda_max` down to a thousandth of it, through the public functions, best of three.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from pathlib import Path

from majorant import SparseSVC, sparse_svc_path

DATA = ["w8a", "leukemia", "a9a", "cina0"]


def reader():
    file = Path(__file__).parent / "sparse_svm" / "datasets" / "files.py"
    spec = importlib.util.spec_from_file_location("files", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


def best(function, times=3):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


def main():
    warnings.simplefilter("ignore")
    load = reader()
    print("| data | penalty | path, s | 100 fits, s | ratio | last fit, s | path / last fit |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or DATA:
        X, y = load(name)
        for penalty in ("l1", "hyperbolic"):
            sparse_svc_path(X, y, penalty, lambdas=3)
            on_path, path = best(lambda X=X, y=y, penalty=penalty: sparse_svc_path(X, y, penalty))
            start = time.perf_counter()
            for lam in path.lambdas:
                SparseSVC(penalty, lam=lam).fit(X, y)
            cold = time.perf_counter() - start
            last, _ = best(
                lambda X=X, y=y, lam=path.lambdas[-1], penalty=penalty: SparseSVC(penalty, lam=lam).fit(X, y),
                7,
            )
            print(
                f"| {name} | {penalty} | {on_path:.3f} | {cold:.3f} | {cold / on_path:.1f} | {last:.4f} | "
                f"{on_path / last:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
