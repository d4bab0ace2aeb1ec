"""Many classes: accuracy against the number of selected features, one-versus-rest against all at once.

    MAJORANT_DATA=… python benchmarks/news20.py [--out DIRECTORY]

News20 (20 classes, 62,061 words), the logarithm of the counts, rows of unit length; 20 % held out. Both with
ℓ1: a path of strengths each; the accuracy of "ovr" is interpolated at the numbers of features of "joint".
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from majorant import lambda_max, sparse_svc_path

RATIOS = np.geomspace(0.5, 0.003, 14)


def load():
    X, y = load_svmlight_file(str(Path(os.environ["MAJORANT_DATA"]) / "news20.bz2"))
    X.data = np.log1p(X.data)
    return train_test_split(normalize(X), y, test_size=0.2, random_state=0, stratify=y)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    X, X_test, y, y_test = load()
    curves = {}
    for kind in ("ovr", "joint"):
        strengths = RATIOS * lambda_max(X, y, "l1", multi_class=kind)
        start = time.perf_counter()
        path = sparse_svc_path(X, y, "l1", lambdas=strengths, multi_class=kind)
        seconds = time.perf_counter() - start
        sizes = np.array([len(model.support_) for model in path.models])
        accuracies = np.array([model.score(X_test, y_test) for model in path.models])
        curves[kind] = sizes, accuracies
        print(f"{kind}: {len(path)} models in {seconds:.1f} s, all converged: "
              f"{all(model.converged_ for model in path.models)}")  # fmt: skip
    sizes, accuracies = curves["joint"]
    others = np.interp(np.log(sizes), np.log(curves["ovr"][0]), curves["ovr"][1])
    lines = ["| features | joint | ovr | difference |", "|---|---|---|---|"]
    lines += [
        f"| {size} | {ours:.4f} | {theirs:.4f} | {ours - theirs:+.4f} |"
        for size, ours, theirs in zip(sizes, accuracies, others, strict=True)
    ]
    print("\n".join(lines))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "news20.md").write_text("\n".join(lines) + "\n")
    picture(curves, options.out / "news20.png")


def picture(curves, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for kind, (sizes, accuracies) in curves.items():
        axes.semilogx(sizes, accuracies, "o-", label={"ovr": "one against the rest", "joint": "joint"}[kind])
    axes.set(xlabel="selected features (words)", ylabel="accuracy on held-out rows", title="News20, ℓ1")
    axes.legend()
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    main()
