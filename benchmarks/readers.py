"""Reading LIBSVM text: ours against scikit-learn's loader, on the same files, in turn.

    python benchmarks/readers.py [--megabytes 100] [--repeat 3]

Three kinds of rows are made and repeated up to the size: indicators as of categories, numbers of six digits
as of text statistics, numbers of all seventeen digits. With MAJORANT_DATA set, so are a9a and rcv1_subset.
"""

from __future__ import annotations

import argparse
import bz2
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from majorant.datasets import read


def made(kind, rows=3000):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(rows):
        count = 14 if kind == "indicators" else 60
        columns = np.sort(rng.choice(123 if kind == "indicators" else 47_236, count, replace=False)) + 1
        x = rng.random(count)
        values = {
            "indicators": ["1"] * count,
            "six digits": [f"{v:.6f}" for v in x],
            "all digits": [repr(float(v)) for v in x],
        }[kind]
        pairs = " ".join(f"{column}:{value}" for column, value in zip(columns, values, strict=True))
        lines.append(f"{rng.choice(['+1', '-1'])} {pairs}\n")
    return "".join(lines).encode()


def texts():
    for kind in ("indicators", "six digits", "all digits"):
        yield kind, made(kind)
    if directory := os.environ.get("MAJORANT_DATA"):
        for name in ("a9a", "rcv1_subset"):
            yield name, bz2.decompress((Path(directory) / f"{name}.bz2").read_bytes())


def seconds(function, path):
    start = time.perf_counter()
    function(path)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{'rows':14} {'size':>8} {'majorant':>10} {'scikit-learn':>13} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "data.txt")
        Path(path).write_bytes(b"1 1:1\n")
        read(path)  # compiles, or loads what is compiled
        for name, text in texts():
            size = Path(path).write_bytes(text * max(1, round(options.megabytes * 1e6 / len(text))))
            pairs = [(seconds(read, path), seconds(load_svmlight_file, path)) for _ in range(options.repeat)]
            ours, theirs = (min(times) for times in zip(*pairs, strict=True))
            data, (X, y) = read(path), load_svmlight_file(path)
            assert data.X.data.tobytes() == X.data.tobytes()
            assert np.array_equal(data.X.indices, X.indices)
            assert np.array_equal(data.y, y)
            print(
                f"{name:14} {size / 1e6:5.0f} MB {ours:8.2f} s {theirs:11.2f} s {theirs / ours:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
