"""What "the same model" means, and rows to train on: shared by the tests of model files."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from majorant import save_model
from majorant.solvers import Descent
from majorant.status import History
from tests.processes import environment


def differences(a, b, where="model"):
    """Where two models, or parts of them, are not the same to the last bit and type."""
    if isinstance(a, np.ndarray):
        same = isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        if same and a.dtype == object:
            return differences(a.tolist(), b.tolist(), where)
        return [] if same and a.tobytes() == b.tobytes() else [where]
    if sp.issparse(a):
        same = sp.issparse(b) and type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype
        parts = ("data", "indices", "indptr")
        return [] if same and all(not differences(getattr(a, p), getattr(b, p)) for p in parts) else [where]
    if isinstance(a, np.random.Generator):
        return differences(a.bit_generator.state, b.bit_generator.state, where)
    if isinstance(a, np.random.RandomState):
        return differences(a.get_state(), b.get_state(), where)
    if isinstance(a, float | np.floating) and type(a) is not bool:
        return [] if np.float64(a).tobytes() == np.float64(b).tobytes() else [where]
    if type(a) is not type(b):
        return [where]
    if isinstance(a, Descent) or type(a).__name__ == "Record":
        return differences(vars(a), vars(b), where)
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return [f"{where}: {sorted(a.keys() ^ b.keys(), key=str)}"]
        return [found for key in a for found in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list | tuple | History):
        if len(a) != len(b):
            return [where]
        pairs = enumerate(zip(a, b, strict=True))
        return [found for k, (x, y) in pairs for found in differences(x, y, f"{where}[{k}]")]
    if not hasattr(a, "__dict__") or a == b:
        return [] if a == b else [where]
    return [] if vars(a) == vars(b) else [where]


def assert_same_model(a, b):
    assert type(a) is type(b)
    watchers = ("_callbacks", "_skl_callbacks")  # which a file does not keep
    kept = [{key: value for key, value in vars(one).items() if key not in watchers} for one in (a, b)]
    assert differences(*kept) == []


def rows(n_classes=2, dtype=np.float64, seed=0):
    """Rows of four features, and the number of the class of each."""
    rng = np.random.default_rng(seed)
    codes = np.arange(40) % n_classes
    X = rng.standard_normal((40, 4)) + 1.5 * np.eye(max(4, n_classes))[codes, :4]
    return X.astype(dtype), codes


def save(model, path, **options):
    save_model(model, path, **options)
    return path


def run_script(name, *arguments):
    """A program of this directory."""
    return subprocess.run(
        [sys.executable, str(Path(__file__).parent / name), *map(str, arguments)],
        capture_output=True, text=True, env=environment(), timeout=250,
    )  # fmt: skip
