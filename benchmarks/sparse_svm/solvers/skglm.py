"""skglm's working-set coordinate descent with a squared hinge datafit."""

import warnings

import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver
from numba import njit
from skglm.datafits.base import BaseDatafit


@njit
def _slope(y, score):
    return -2.0 * y * max(0.0, 1.0 - y * score)


class SquaredHinge(BaseDatafit):
    """Σ_k max(0, 1 - y_k (Xw)_k)²."""

    def __init__(self):
        pass

    def get_spec(self):
        return ()

    def params_to_dict(self):
        return {}

    def initialize(self, X, y):
        pass

    def initialize_sparse(self, X_data, X_indptr, X_indices, y):
        pass

    def get_lipschitz(self, X, y):
        return 2.0 * (X**2).sum(axis=0)

    def get_lipschitz_sparse(self, X_data, X_indptr, X_indices, y):
        lipschitz = np.zeros(len(X_indptr) - 1)
        for j in range(len(lipschitz)):
            for i in range(X_indptr[j], X_indptr[j + 1]):
                lipschitz[j] += 2.0 * X_data[i] ** 2
        return lipschitz

    def value(self, y, w, Xw):
        return (np.maximum(0.0, 1.0 - y * Xw) ** 2).sum()

    def gradient_scalar(self, X, y, w, Xw, j):
        return X[:, j] @ (-2.0 * y * np.maximum(0.0, 1.0 - y * Xw))

    def gradient_scalar_sparse(self, X_data, X_indptr, X_indices, y, Xw, j):
        total = 0.0
        for i in range(X_indptr[j], X_indptr[j + 1]):
            k = X_indices[i]
            total += X_data[i] * _slope(y[k], Xw[k])
        return total

    def full_grad_sparse(self, X_data, X_indptr, X_indices, y, Xw):
        gradient = np.zeros(len(X_indptr) - 1)
        for j in range(len(gradient)):
            gradient[j] = self.gradient_scalar_sparse(X_data, X_indptr, X_indices, y, Xw, j)
        return gradient

    def intercept_update_step(self, y, Xw):
        return np.sum(-2.0 * y * np.maximum(0.0, 1.0 - y * Xw)) / (2.0 * len(y))


class Solver(BaseSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lam, penalty):
        from skglm.penalties import L1, L1_plus_L2
        from skglm.utils.jit_compilation import compiled_clone

        # The column form that it needs is not timed, nor is compiling.
        self.X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
        self.y = y
        self.datafit = compiled_clone(SquaredHinge())
        self.penalty = compiled_clone(L1(lam) if penalty == "l1" else L1_plus_L2(lam, 0.0))

    def warm_up(self):
        self.run(1.0)

    def run(self, tolerance):
        from skglm.solvers import AndersonCD

        warnings.simplefilter("ignore")
        # Its tolerance is absolute: make it relative to the gradient at zero.
        scale = 2.0 * len(self.y) ** 0.5
        solver = AndersonCD(tol=min(tolerance, 1.0) * scale, max_iter=200, max_epochs=5000)
        self.theta = solver.solve(self.X, self.y, self.datafit, self.penalty)[0]

    def get_result(self):
        return {"theta": self.theta}
