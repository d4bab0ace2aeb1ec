"""Sparse data with few true features, for machines without the files."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_samples, n_features": [(2_000, 200)]}

    def get_data(self):
        rng = np.random.default_rng(0)
        X = sp.random_array((self.n_samples, self.n_features), density=0.05, rng=rng, format="csr")
        w = np.where(np.arange(self.n_features) < 10, 3.0, 0.0)
        y = np.where(X @ w + 0.3 * rng.standard_normal(self.n_samples) > 0.5, 1.0, -1.0)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return {"X": sp.csr_matrix(X), "y": y}
