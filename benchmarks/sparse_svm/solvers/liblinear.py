"""LIBLINEAR through its own package, -B 1 -R: the same objective, free intercept included."""

import ctypes

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "liblinear"
    requirements = ["pip::liblinear-official"]
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lam, penalty):
        from liblinear.liblinear import problem

        # Building LIBLINEAR's own structure is not timed.
        self.problem = problem(y, X, bias=1)
        kind = 5 if penalty == "l1" else 2
        self.options = f"-s {kind} -B 1 -R -c {1.0 / lam!r} -q"
        self.n_features = X.shape[1]

    def run(self, tolerance):
        from liblinear.liblinear import liblinear, parameter, toPyModel

        options = parameter(f"{self.options} -e {min(tolerance, 0.9)!r}")
        liblinear.set_print_string_function(options.print_func)
        self.problem.set_bias(options.bias)
        self.model = toPyModel(liblinear.train(ctypes.byref(self.problem), ctypes.byref(options)))

    def get_result(self):
        # Weights are those of the first label that the data have.
        sign = 1.0 if self.model.get_labels()[0] == 1 else -1.0
        w = np.array(self.model.get_decfun()[0])
        theta = np.zeros(self.n_features + 1)
        theta[: len(w)] = w
        theta[-1] = self.model.get_decfun()[1]
        return {"theta": sign * theta}
