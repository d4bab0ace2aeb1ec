"""Data that are made here: for machines without the files, and kinds of data that no file has."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


def small(rng):
    """2,000 × 200, sparse, with ten true features."""
    return sparse(rng, 2_000, 200, density=0.05)


def sparse(rng, n_samples, n_features, density):
    """Uniform sparse entries; the first ten features count."""
    X = sp.random_array((n_samples, n_features), density=density, rng=rng, format="csr")
    w = np.where(np.arange(n_features) < 10, 3.0, 0.0)
    score = X @ w + 0.3 * rng.standard_normal(n_samples)
    return X, score - np.quantile(score, 0.6)


def text(rng, n_samples, n_features, words):
    """Words whose frequency falls as 1/rank, in rows of length 1; every 50th of them counts."""
    frequency = 1.0 / np.arange(10, n_features + 10)
    rank = rng.choice(n_features, size=n_samples * words, p=frequency / frequency.sum())
    X = sp.csr_array(
        (np.ones(rank.size), (np.repeat(np.arange(n_samples), words), rank)), (n_samples, n_features)
    )
    X.data = np.log1p(X.data) * np.log(1.0 / frequency[X.indices])
    X.data /= np.sqrt((X * X).sum(axis=1))[np.repeat(np.arange(n_samples), np.diff(X.indptr))]
    w = np.where(np.arange(n_features) % 50 == 0, rng.standard_normal(n_features), 0.0)
    score = X @ w
    return X, score / score.std() + 0.5 * rng.standard_normal(n_samples)


def dense(rng, n_samples, n_features):
    """Normal numbers; the first twenty features count, and noise."""
    X = rng.standard_normal((n_samples, n_features))
    return X, X[:, :20].sum(axis=1) + 4.0 * rng.standard_normal(n_samples)


KINDS = {
    "small": small,
    "text": lambda rng: text(rng, 6_000, 20_000, 60),
    "wide": lambda rng: text(rng, 800, 100_000, 200),
    "sparse": lambda rng: sparse(rng, 3_800, 1_600, 0.02),
    "dense": lambda rng: dense(rng, 2_600, 500),
    "tall": lambda rng: dense(rng, 60_000, 40),
}


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"kind": list(KINDS)}

    def get_data(self):
        X, y = load(self.kind)
        return {"X": X, "y": y}


def load(kind):
    """CSR with 32-bit indices (some peers take no others), or dense; labels ±1."""
    X, score = KINDS[kind](np.random.default_rng(0))
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        X.sort_indices()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.where(score > 0.0, 1.0, -1.0)
