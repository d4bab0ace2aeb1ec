"""LIBLINEAR on the same problem, for the figure of gaps against time."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from majorant.experiments.protocol import Task
from majorant.experiments.splits import Split

__all__ = ["liblinear_trace"]

TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(11))
# LIBLINEAR penalises the intercept as the weight of a feature that is constant; of a large one, hardly.
CONSTANT = 10.0


def liblinear_trace(task: Task, split: Split) -> dict[str, Any]:
    """Φ and time of a fit from the start at each of some falling tolerances: LIBLINEAR shows no iterates."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    from majorant.experiments.cells import count_zeros, make_objective

    objective = make_objective(split, task.regulariser)
    phi, times, zeros = [], [], []
    for tol in TOLERANCES:
        model = LinearSVC(
            C=1.0 / task.regulariser.eta, dual=False, tol=tol, intercept_scaling=CONSTANT, max_iter=2000
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.process_time()
            model.fit(split.X, split.y)
            times.append(time.process_time() - start)
        theta = np.append(model.coef_.ravel(), model.intercept_)
        phi.append(objective.evaluate(theta).value + objective.constant)
        zeros.append(count_zeros(theta, task.zero_below))
    certificate = objective.certify(theta)[1]
    return {
        "status": "MAX_ITER",
        "seconds": times[-1],
        "objective": phi[-1],
        "gap": None if np.isnan(certificate.gap) else certificate.gap,
        "stationarity": certificate.stationarity,
        "phi": phi,
        "time": times,
        "zeros": zeros,
        "positives": [],
        "theta": theta,
    }
