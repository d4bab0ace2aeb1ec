"""cyanure's LinearSVC: its objective is ours divided by 2K."""

import logging
import warnings

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cyanure"
    requirements = ["pip::cyanure"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lam, penalty):
        self.X, self.y, self.penalty = X, y, penalty
        self.lambda_1 = lam / (2 * len(y))

    def run(self, tolerance):
        from cyanure.estimators import LinearSVC

        logging.getLogger("cyanure").setLevel(logging.CRITICAL)
        warnings.simplefilter("ignore")
        # n_threads = 1, as ours: with 2 on two shared cores it was slower more often than not.
        self.model = LinearSVC(
            loss="sqhinge", penalty=self.penalty, lambda_1=self.lambda_1, tol=min(tolerance, 0.9),
            max_iter=2000, fit_intercept=True, n_threads=1, verbose=False,
        ).fit(self.X, self.y)  # fmt: skip

    def get_result(self):
        return {"theta": np.append(np.ravel(self.model.coef_), self.model.intercept_)}
