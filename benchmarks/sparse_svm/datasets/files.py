"""The data sets of the directory MAJORANT_DATA."""

import os
from pathlib import Path

import numpy as np
import scipy.io
from benchopt import BaseDataset
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler

FILES = {"ijcnn1": "ijcnn1.trn.bz2", "cina0": "cina0.mat"}
DENSE = {"leukemia", "colon-cancer"}


class Dataset(BaseDataset):
    name = "files"
    parameters = {
        "data": ["w8a", "cina0", "a9a", "ijcnn1", "mushrooms", "rcv1_subset", "leukemia"],
    }

    def get_data(self):
        # benchopt asks solvers and objectives whether to skip, not data sets: the objective says why.
        missing = self.why_not()
        X, y = load(self.data) if missing is None else (None, None)
        return {"X": X, "y": y, "missing": missing}

    def why_not(self):
        """Why the data cannot be had; None if they can."""
        if not os.environ.get("MAJORANT_DATA"):
            return "MAJORANT_DATA does not name the directory that has the files"
        return None if path_of(self.data).exists() else f"there is no file {path_of(self.data)}"


def path_of(name):
    return Path(os.environ["MAJORANT_DATA"]) / FILES.get(name, f"{name}.bz2")


def load(name):
    """CSR with 32-bit indices (some peers take no others), or dense where the data are; labels ±1."""
    path = path_of(name)
    if name == "cina0":
        file = scipy.io.loadmat(path)
        return StandardScaler().fit_transform(file["A"].astype(float)), file["b"].ravel().astype(float)
    X, y = load_svmlight_file(str(path))
    y = np.where(y == y.max(), 1.0, -1.0)
    if name in DENSE:
        return X.toarray(), y
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y
