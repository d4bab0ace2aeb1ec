"""scikit-learn's LinearSVC; it penalises the intercept, less so the larger intercept_scaling is."""

import warnings

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "LinearSVC"
    requirements = ["scikit-learn"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lam, penalty):
        self.X, self.y, self.lam, self.penalty = X, y, lam, penalty

    def run(self, tolerance):
        from sklearn.svm import LinearSVC

        warnings.simplefilter("ignore")
        self.model = LinearSVC(
            penalty=self.penalty, C=1.0 / self.lam, dual=False, tol=min(tolerance, 0.9),
            intercept_scaling=100.0, max_iter=100_000, random_state=0,
        ).fit(self.X, self.y)  # fmt: skip

    def get_result(self):
        return {"theta": np.append(self.model.coef_[0], self.model.intercept_)}
