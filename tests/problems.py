"""Problems that several tests solve, and rows that count the passes over them."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.objective import Objective
from majorant.rows import MemoryRows, Rows


class ElsewhereRows(Rows):
    """Rows that can only be asked; keeps the questions' answers, and so knows how often."""

    def __init__(self, rows):
        self.rows, self.answers = rows, []
        self.n_samples, self.n_features = rows.n_samples, rows.n_features

    @property
    def passes(self):
        return len(self.answers)

    def map_blocks(self, question):
        self.answers.append([question(block) for block in self.rows.blocks])
        return self.answers[-1]

    def columns(self, chosen):
        return ElsewhereRows(self.rows.columns(chosen))

    @property
    def n_batch_blocks(self):
        return self.rows.n_batch_blocks

    def fold_blocks(self, state, through, order):
        return self.rows.fold_blocks(state, through, order)


def random_problem(seed=0, n=40, p=6, *, duplicate=True, constant=True, sparse=False):
    """Rows with weights (some zero), penalty factors (one zero), a duplicate and a constant column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(0.3, 3.0, p)
    X[np.abs(X) < 0.4] = 0.0
    if duplicate:
        X[:, -1] = X[:, 0]
    if constant:
        X[:, -2] = 1.5
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    s = rng.uniform(0.2, 2.0, n)
    s[:3] = 0.0
    factor = rng.uniform(0.5, 1.5, p)
    factor[1] = 0.0
    return (sp.csr_matrix(X) if sparse else X), y, s, factor


def random_objective(potential, seed=0, *, eta=0.05, intercept=True, **options):
    X, y, s, factor = random_problem(seed, **options)
    return Objective(MemoryRows(X, y, s, intercept=intercept), potential, eta, factor)


def all_examples(registry):
    """Instances of everything registered, with readable ids."""
    return [
        pytest.param(example, id=f"{name}-{i}")
        for name, kind in registry.items()
        for i, example in enumerate(kind.examples())
    ]
