"""This library: its default, and every method of the paper."""

import warnings

import numpy as np
from benchopt import BaseSolver

from majorant import SparseSVC
from majorant.errors import UnsuitableSolverError
from majorant.solvers import Solver as Algorithm


class Solver(BaseSolver):
    name = "majorant"
    parameters = {"solver": ["auto", *(name for name in Algorithm.registry if name != "newton")]}
    sampling_strategy = "tolerance"

    def skip(self, X, y, lam, penalty):
        if self.solver == "auto":
            return False, None
        try:
            self._model(penalty, lam, 0.5, max_iter=1).fit(X, y)
        except UnsuitableSolverError as error:
            return True, str(error)
        return False, None

    def set_objective(self, X, y, lam, penalty):
        self.X, self.y, self.lam, self.penalty = X, y, lam, penalty

    def _model(self, penalty, lam, tol, max_iter=100_000):
        warnings.simplefilter("ignore")
        return SparseSVC(penalty, lam=lam, solver=self.solver, tol=tol, max_iter=max_iter, random_state=0)

    def warm_up(self):
        self.run(0.5)

    def run(self, tolerance):
        self.model = self._model(self.penalty, self.lam, min(tolerance, 0.5)).fit(self.X, self.y)

    def get_result(self):
        return {"theta": np.append(self.model.coef_[0], self.model.intercept_)}
