"""Random training problems that are hard in one or several ways, each made from a seed alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

ROUTES = ("memory", "source", "joint", "warm", "path")


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, labels, weights, the parameters of `SparseSVC`, and the way in which it is to be fitted."""

    seed: int
    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[Any] | None
    settings: dict[str, Any]
    route: str
    traits: list[str]
    first_lam: float = math.nan
    """Where a warm start or a path begins."""
    rows_per_block: int = 0

    @property
    def joint(self) -> bool:
        """Whether one problem is solved for all classes."""
        return self.settings.get("multi_class") == "joint" and len(np.unique(self.y)) > 2

    @property
    def dense(self) -> NDArray[np.float64]:
        """X as a dense array of doubles, which holds the same numbers."""
        X = self.X.toarray() if sp.issparse(self.X) else self.X
        return np.ascontiguousarray(X, dtype=np.float64)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of every row: its sample weight times its class weight."""
        n = self.X.shape[0]
        s = np.ones(n) if self.sample_weight is None else np.asarray(self.sample_weight, dtype=np.float64)
        by_class = self.settings.get("class_weight")
        return s if by_class is None else s * np.array([by_class[label] for label in self.y.tolist()])

    @property
    def signs(self) -> NDArray[np.float64]:
        """±1 for every problem (one for two classes, else one per class) and row."""
        classes = np.unique(self.y)
        positive = classes[1:] if len(classes) == 2 else classes
        return np.where(self.y == positive[:, None], 1.0, -1.0)

    @property
    def factor(self) -> NDArray[np.float64]:
        """The penalty factor of every feature."""
        factor = self.settings.get("penalty_factor")
        return np.ones(self.X.shape[1]) if factor is None else np.asarray(factor, dtype=np.float64)


def make_problem(seed: int) -> Problem:
    """The problem of this seed."""
    rng = np.random.default_rng(seed)
    traits: list[str] = []
    route = str(rng.choice(ROUTES, p=[0.7, 0.09, 0.07, 0.07, 0.07]))
    n, p = _shape(rng)
    n_classes = 2
    if route == "joint":
        n_classes = int(rng.integers(3, 5))
        n, p = min(max(n, 12), 200), min(p, 100)
    elif rng.random() < 0.04:
        n_classes, n, p = 3, min(max(n, 12), 200), min(p, 100)
        traits.append("three classes")
    X = _features(rng, n, p, traits)
    y = _labels(rng, X, n_classes, traits)
    X = _columns(rng, X, traits)
    X, y = _rows(rng, X, y, n_classes, traits)
    X = _storage(rng, X, traits)
    weight = _weights(rng, y, traits)
    settings = _settings(rng, X, y, weight, n_classes, route, traits)
    first_lam = float(
        settings["lam"] * 10.0 ** rng.uniform(*((0.2, 2.0) if route == "path" else (-2.0, 2.0)))
    )
    rows_per_block = int(rng.integers(1, X.shape[0] + 1)) if rng.random() < 0.3 else -(-X.shape[0] // 3)
    return Problem(seed, X, y, weight, settings, route, traits, first_lam, rows_per_block)


def _log_uniform(rng: np.random.Generator, low: float, high: float, size: Any = None) -> Any:
    return 10.0 ** rng.uniform(low, high, size)


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    kind = rng.random()
    if kind < 0.015:
        return int(rng.integers(500, 1200)), int(rng.integers(20, 180))
    if kind < 0.03:
        return int(rng.integers(10, 40)), int(rng.integers(500, 3000))
    return int(_log_uniform(rng, 1.0, 2.48)), int(_log_uniform(rng, 0.31, 2.3))


def _features(rng: np.random.Generator, n: int, p: int, traits: list[str]) -> NDArray[np.float64]:
    kind = str(
        rng.choice(
            ["gaussian", "binary", "counts", "heavy-tailed", "correlated"], p=[0.4, 0.15, 0.15, 0.15, 0.15]
        )
    )
    traits.append(kind)
    if kind == "gaussian":
        return rng.standard_normal((n, p))
    if kind == "binary":
        return (rng.random((n, p)) < rng.beta(0.5, 2.0, p)).astype(float)
    if kind == "counts":
        return rng.poisson(_log_uniform(rng, -1.0, 2.0, p), (n, p)).astype(float)
    if kind == "heavy-tailed":
        return rng.standard_t(1.2, (n, p))
    return rng.standard_normal((n, p)) + 3.0 * rng.standard_normal((n, 1))


def _labels(rng: np.random.Generator, X: NDArray[Any], n_classes: int, traits: list[str]) -> NDArray[Any]:
    n, p = X.shape
    few = rng.choice(p, min(p, 1 + int(rng.integers(8))), replace=False)
    Z = X[:, few] - np.median(X[:, few], axis=0)
    scores = Z @ rng.standard_normal((len(few), 1 if n_classes == 2 else n_classes))
    spread = float(np.median(np.abs(scores))) or 1.0
    kind = str(rng.choice(["separable", "noisy", "random labels"], p=[0.3, 0.5, 0.2]))
    traits.append(kind)
    noise = {"separable": 0.0, "noisy": 10.0 ** rng.uniform(-1.0, 0.5), "random labels": 1e3}[kind]
    scores = scores + noise * spread * rng.standard_normal(scores.shape)
    if n_classes > 2:
        y = np.argmax(scores, axis=1)
        y[:n_classes] = np.arange(n_classes)
        return y
    share = 0.5
    if rng.random() < 0.15:
        traits.append("unbalanced")
        share = 0.95
    y = np.where(scores[:, 0] > np.quantile(scores[:, 0], share), 1, -1)
    if rng.random() < 0.05:
        traits.append("one positive row")
        y[:] = -1
        y[int(rng.integers(n))] = 1
    if len(np.unique(y)) < 2:
        y[0] = -y[0]
    return y


def _columns(rng: np.random.Generator, X: NDArray[np.float64], traits: list[str]) -> NDArray[np.float64]:
    n, p = X.shape

    def some() -> NDArray[np.intp]:
        return rng.choice(p, max(1, int(p * rng.random() ** 2)), replace=False)

    if rng.random() < 0.12 and p > 2:
        traits.append("dependent columns")
        basis = rng.choice(p, max(1, p // 2), replace=False)
        for i in some():
            X[:, i] = X[:, basis] @ np.round(rng.standard_normal(len(basis)))
    if rng.random() < 0.15:
        traits.append("duplicated columns")
        X[:, some()] = X[:, [int(rng.integers(p))]]
    if rng.random() < 0.12:
        traits.append("nearly duplicated columns")
        chosen = some()
        noise = rng.standard_normal((n, len(chosen)))
        X[:, chosen] = X[:, [int(rng.integers(p))]] + _log_uniform(rng, -9.0, -2.0) * noise
    if rng.random() < 0.25:
        everywhere = rng.random() < 0.5
        traits.append("scaled columns" if everywhere else "a few scaled columns")
        chosen = np.arange(p) if everywhere else some()
        widest = 6.0 if rng.random() < 0.6 else 2.0
        X[:, chosen] *= _log_uniform(rng, -widest, widest, len(chosen))
    if rng.random() < 0.2:
        traits.append("offset columns")
        chosen = np.arange(p) if rng.random() < 0.5 else some()
        X[:, chosen] += _log_uniform(rng, 2.0, 6.0, len(chosen)) * rng.choice([-1.0, 1.0], len(chosen))
    if rng.random() < 0.1:
        traits.append("constant columns")
        X[:, some()] = rng.choice([1.0, 1.5, -3.0, 1e5])
    if rng.random() < 0.1:
        traits.append("zero columns")
        X[:, some()] = 0.0
    return X


def _rows(
    rng: np.random.Generator, X: NDArray[np.float64], y: NDArray[Any], n_classes: int, traits: list[str]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    n = X.shape[0]
    if rng.random() < 0.12:
        traits.append("duplicated rows")
        chosen = rng.integers(n, size=int(rng.integers(1, n + 1)))
        X, y = np.vstack([X, X[chosen]]), np.append(y, y[chosen])
    if rng.random() < 0.1:
        traits.append("contradictory rows")
        chosen = rng.integers(n, size=int(rng.integers(1, max(2, n // 3))))
        other = -y[chosen] if n_classes == 2 else (y[chosen] + 1) % n_classes
        X, y = np.vstack([X, X[chosen]]), np.append(y, other)
    return X, y


def _storage(rng: np.random.Generator, X: NDArray[np.float64], traits: list[str]) -> Any:
    kind = str(
        rng.choice(["double", "single", "fortran", "sparse", "sparse single"], p=[0.55, 0.1, 0.1, 0.2, 0.05])
    )
    if kind != "double":
        traits.append(kind)
    if "sparse" in kind:
        X = np.where(rng.random(X.shape) < rng.choice([1.0, 0.5, 0.1]), X, 0.0)
    if "single" in kind:
        X = X.astype(np.float32)
    if kind == "fortran":
        return np.asfortranarray(X)
    return sp.csr_matrix(X) if "sparse" in kind else np.ascontiguousarray(X)


def _weights(rng: np.random.Generator, y: NDArray[Any], traits: list[str]) -> NDArray[np.float64] | None:
    n, kind = len(y), rng.random()
    if kind < 0.6:
        return None
    if kind < 0.68:
        traits.append("equal weights")
        s = np.full(n, float(_log_uniform(rng, -6.0, 6.0)))
    elif kind < 0.78:
        traits.append("random weights")
        s = rng.uniform(0.1, 3.0, n)
    elif kind < 0.94:
        traits.append("wide weights")
        s = _log_uniform(rng, math.log10(2e-5), math.log10(6e4), n)
    else:
        traits.append("very wide weights")
        s = _log_uniform(rng, -10.0, 10.0, n)
    if rng.random() < 0.2:
        traits.append("zero weights")
        s[rng.random(n) < 0.3] = 0.0
        for label in np.unique(y):  # every class keeps some weight
            if not s[y == label].any():
                s[np.flatnonzero(y == label)[0]] = 1.0
    return s


def _settings(
    rng: np.random.Generator,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    n_classes: int,
    route: str,
    traits: list[str],
) -> dict[str, Any]:
    p = X.shape[1]
    penalty = str(rng.choice(["l1", "hyperbolic", "l2", "none", "welsch"], p=[0.3, 0.3, 0.15, 0.08, 0.17]))
    if route == "path" and penalty in ("l2", "none"):
        penalty = "l1"
    settings: dict[str, Any] = {"penalty": penalty}
    if penalty in ("hyperbolic", "welsch"):
        settings["delta"] = 1e-4 if rng.random() < 0.6 else float(_log_uniform(rng, -8.0, 0.0))
    factor = None
    if rng.random() < 0.25 and penalty != "none":
        factor = _log_uniform(rng, -3.0, 3.0, p) if rng.random() < 0.4 else rng.uniform(0.2, 2.0, p)
        traits.append("penalty factors")
        if rng.random() < 0.4:
            traits.append("unpenalised features")
            factor[rng.random(p) < rng.choice([0.05, 0.3])] = 0.0
        settings["penalty_factor"] = factor
    if rng.random() < 0.15:
        traits.append("no intercept")
        settings["fit_intercept"] = False
    if n_classes == 2 and rng.random() < 0.05:
        traits.append("class weights")
        settings["class_weight"] = {-1: 1.0, 1: float(_log_uniform(rng, -2.0, 2.0))}
    if n_classes > 2:
        settings["multi_class"] = "joint" if route == "joint" else "ovr"
    settings["lam"] = _strength(rng, X, y, weight, factor, settings, traits)
    if rng.random() < 0.25:
        traits.append("elastic net")
        settings["eta"] = float(_log_uniform(rng, -6.0, 4.0))
    kind = rng.random()
    if kind < 0.1:
        traits.append("zero_tol=0")
        settings["zero_tol"] = 0.0
    elif kind < 0.13:
        traits.append("zero_tol=1e-3")
        settings["zero_tol"] = 1e-3
    return settings


def _strength(
    rng: np.random.Generator,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    factor: NDArray[np.float64] | None,
    settings: dict[str, Any],
    traits: list[str],
) -> float:
    """λ on a scale that the data have: from far below to above what makes every coefficient zero."""
    kind = rng.random()
    if kind < 0.015:
        traits.append("lam=1e12")
        return 1e12
    if kind < 0.03:
        traits.append("lam=0")
        return 0.0
    s = np.ones(len(y)) if weight is None else weight
    sign = np.where(y == np.max(y), 1.0, -1.0)
    mean = float(s @ sign / s.sum()) if settings.get("fit_intercept", True) else 0.0
    Z = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    c = np.ones(Z.shape[1]) if factor is None else factor
    if settings["penalty"] in ("l1", "hyperbolic"):
        scales = np.abs(2.0 * ((s * (sign - mean)) @ Z))
    elif settings["penalty"] == "l2":
        scales = 2.0 * (s @ (Z * Z))
    else:
        scales = np.full(Z.shape[1], s.sum())
    known = (c > 0.0) & (scales > 0.0)
    scales = scales[known] / c[known] if known.any() else np.ones(1)
    if kind < 0.5:
        return float(np.max(scales) * _log_uniform(rng, -3.0, 0.1))
    if kind < 0.6:
        return float(np.max(scales) * rng.choice([0.999, 1.0, 1.001, 1.1]))
    return float(np.quantile(scales, rng.random()) * _log_uniform(rng, -4.0, 4.0 if kind > 0.9 else 0.5))
