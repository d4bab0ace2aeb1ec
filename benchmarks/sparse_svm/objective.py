"""Σ_k max(0, 1 - y_k (w·x_k + β))² + λ‖w‖₁ or λ/2 ‖w‖², with a free intercept."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "Sparse SVM"
    url = "https://pypi.org/project/majorant/"
    min_benchopt_version = "1.6"
    # λ for ℓ1 is a fraction of the value above which all coefficients are zero.
    parameters = {
        "penalty, strength": [("l1", 1e-1), ("l1", 1e-2), ("l1", 1e-3), ("l2", 1.0), ("l2", 1e-2)],
    }

    def skip(self, X, y, missing=None):
        return missing is not None, missing

    def set_data(self, X, y, missing=None):
        self.X, self.y = X, y
        self.lam = self.strength * lambda_max(X, y) if self.penalty == "l1" else self.strength

    def evaluate_result(self, theta):
        w, beta = theta[:-1], theta[-1]
        slack = np.maximum(0.0, 1.0 - self.y * (self.X @ w + beta))
        norm = np.abs(w).sum() if self.penalty == "l1" else 0.5 * (w @ w)
        return {"value": float(slack @ slack + self.lam * norm), "nonzeros": int(np.count_nonzero(w))}

    def get_one_result(self):
        return {"theta": np.zeros(self.X.shape[1] + 1)}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lam": self.lam, "penalty": self.penalty}


def lambda_max(X, y):
    """The smallest λ for which w = 0 is optimal: the intercept is then the mean label."""
    slack = 1.0 - y * y.mean()
    return float(np.max(np.abs(X.T @ (2.0 * y * slack))))
