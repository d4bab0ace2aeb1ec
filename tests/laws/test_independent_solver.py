"""Convex cases against an independent solver: Clarabel, through cvxpy, to 1e-8 in Φ."""

import cvxpy as cp
import numpy as np
import pytest

from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Zero
from majorant.rows import MemoryRows
from majorant.solvers import MM, Gradient, MMInversion, MMSubspace, Newton, solve
from tests.problems import random_problem

POTENTIALS = [Hyperbolic(0.8, 0.2), L1(2.0), L2(1.5), Zero()]


def clarabel_minimum(X, y, s, factor, potential, eta):
    w, beta = cp.Variable(X.shape[1]), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, X @ w + beta))
    loss = cp.sum(cp.multiply(s, cp.square(slack)))
    match potential:
        case Hyperbolic(lam, delta):
            f = lam * sum(factor[i] * cp.norm(cp.hstack([w[i], delta])) for i in range(X.shape[1]))
        case L1(lam):
            f = lam * cp.sum(cp.multiply(factor, cp.abs(w)))
        case L2(lam):
            f = lam / 2 * cp.sum(cp.multiply(factor, cp.square(w)))
        case _:
            f = 0
    problem = cp.Problem(cp.Minimize(loss + f + eta / 2 * cp.sum_squares(w)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return (
        Objective(MemoryRows(X, y, s), potential, eta, factor).evaluate(np.append(w.value, beta.value)).value
    )


@pytest.mark.filterwarnings(
    "ignore:Solution may be inaccurate"
)  # it is asked for more digits than it promises
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "potential",
    # With no penalty at all the other solver takes ten seconds.
    [pytest.param(p, marks=pytest.mark.slow if p.name == "none" else (), id=p.name) for p in POTENTIALS],
)
def test_same_minimum(potential, seed):
    X, y, s, factor = random_problem(seed)
    eta = 0.05
    reference = clarabel_minimum(X, y, s, factor, potential, eta)
    objective = Objective(MemoryRows(X, y, s), potential, eta, factor)
    solvers = [Gradient(), Newton()]
    if potential.smooth:
        solvers += [MM(), MMInversion(), MMSubspace()]
    for solver in solvers:
        result = solve(solver, objective, tol=1e-8, max_iter=200_000)
        assert result.status.converged, solver.name
        assert abs(result.iterate.value - reference) <= 1e-8 * reference, solver.name
    for engine in (Newton(), Newton(gram_features=0)):
        result = solve(engine, objective, tol=1e-10, max_iter=5000)
        assert result.status.converged, engine
        assert abs(result.iterate.value - reference) <= 1e-9 * reference, engine
