"""Every solver on every potential: it solves to tolerance, or says why not and what would."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.errors import MajorantError, UnsuitableSolverError
from majorant.majorants import HalfQuadratic
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Potential, Zero
from majorant.rows import MemoryRows
from majorant.solvers import (
    MM,
    SGD,
    Adam,
    Gradient,
    Hybrid,
    MMGradient,
    MMInversion,
    MMSubspace,
    Momentum,
    Solver,
    make_solver,
    memory_gradient,
    solve,
)
from majorant.testing import check_solver, small_problem
from tests.problems import all_examples, random_objective


@pytest.mark.parametrize("potential", all_examples(Potential.registry))
@pytest.mark.parametrize("solver", all_examples(Solver.registry))
def test_every_solver_on_every_potential(solver, potential):
    check_solver(solver, potential)


@pytest.mark.parametrize("first", [SGD(), Momentum(), Adam(step=0.02)], ids=lambda s: s.name)
@pytest.mark.parametrize("then", [Gradient(), MM(), MMInversion(), MMSubspace()], ids=lambda s: s.name)
def test_hybrids_are_a_chain_of_two(first, then):
    objective = random_objective(Hyperbolic(0.3, 0.1))
    hybrid = solve(Hybrid(first, then, 5), objective, tol=0, max_iter=12, seed=3)
    warm = solve(first, objective, tol=0, max_iter=5, seed=3)
    rest = solve(then, objective, warm.iterate.theta, tol=0, max_iter=7)
    assert np.array_equal(hybrid.iterate.theta, rest.iterate.theta)
    values = np.append(warm.history.column("objective"), rest.history.column("objective")[1:])
    # The last one of a run is evaluated afresh, in another order of sums.
    assert np.allclose(hybrid.history.column("objective"), values, rtol=1e-14, atol=0.0)
    assert np.all(np.diff(hybrid.history.column("objective")[5:]) <= 1e-12 * values[5])


def test_a_warm_up_of_no_epochs_is_no_warm_up():
    objective = random_objective(L2(0.3))
    a = solve(Hybrid(SGD(), MM(), 0), objective, tol=0, max_iter=5)
    b = solve(MM(), objective, tol=0, max_iter=5)
    assert np.array_equal(a.iterate.theta, b.iterate.theta)


def test_mm_is_newton_for_a_quadratic():
    """One sample per class and a small penalty: both rows stay active, one step is exact."""
    objective = Objective(MemoryRows(np.array([[0.1], [-0.1]]), np.array([1.0, -1.0])), L2(1.0))
    result = solve(MM(), objective, tol=1e-9)
    assert result.n_iter == 1


def test_the_first_subspace_step_is_the_mm_gradient_step():
    objective = random_objective(Hyperbolic(0.3, 0.1))
    start = np.linspace(-1, 1, objective.size)
    a, b = (solve(kind(), objective, start, tol=0, max_iter=1) for kind in (MMSubspace, MMGradient))
    assert np.array_equal(a.iterate.theta, b.iterate.theta)


def test_the_subspace_of_all_directions_is_exact_mm():
    objective = random_objective(Hyperbolic(0.3, 0.1), duplicate=False, constant=False)
    everything = MMSubspace(subspace=lambda gradient, steps: np.eye(len(gradient)))
    a = solve(everything, objective, tol=0, max_iter=5)
    b = solve(MM(), objective, tol=0, max_iter=5)
    assert np.allclose(a.iterate.theta, b.iterate.theta, rtol=1e-8, atol=1e-10)


def test_a_larger_subspace_has_a_lower_minimum_of_the_majorant():
    """From one point with one past, four directions cannot do worse than two on the same majorant."""
    objective = random_objective(Hyperbolic(0.3, 0.1))
    past = solve(MMSubspace(), objective, tol=0, max_iter=4)
    at, majorant = past.iterate, HalfQuadratic(objective)
    gradient = objective.gradient(at)
    rng = np.random.default_rng(0)
    steps = [rng.standard_normal(objective.size) for _ in range(3)]

    def lowest(D):
        u = np.linalg.solve(majorant.along(at.theta, D), D.T @ gradient)
        return -0.5 * u @ (D.T @ gradient)

    assert lowest(np.column_stack([-gradient, *steps])) <= lowest(memory_gradient(gradient, steps)) + 1e-12


@pytest.mark.parametrize("kind", [SGD, Momentum, Adam])
def test_unbiased_stochastic_steps_converge_to_the_minimiser_and_the_papers_do_not(kind):
    X, y, s = small_problem(n=200)
    objective = Objective(MemoryRows(X, y, s), L2(20.0))
    best = solve(MM(), objective, tol=1e-10).iterate.value
    step = {"step": 0.1} if kind is Adam else {}
    unbiased, paper = (
        solve(kind(schedule="inverse", batch_size=8, weighting=weighting, **step), objective, max_iter=400)
        for weighting in ("unbiased", "paper")
    )
    assert unbiased.iterate.value - best < 1e-3 * best
    assert paper.iterate.value - best > 5 * (unbiased.iterate.value - best)


@pytest.mark.parametrize("weighting", ["unbiased", "paper"])
@pytest.mark.parametrize("cuts", [(), (64,), (1, 3)])
def test_the_estimates_of_an_epoch_add_up_to_the_gradient(cuts, weighting):
    """A rule that remembers what it is given and does not move."""
    X, y, s = small_problem(n=65)
    rows = MemoryRows(X, y, s, cuts=cuts)
    objective = Objective(rows, L2(2.0))
    given = []

    class Still(SGD):
        def update(self, memory, d, alpha):
            given.append(d)
            return np.zeros_like(d)

    theta = np.linspace(-0.3, 0.3, 5)
    solve(Still(batch_size=16, weighting=weighting), objective, theta, tol=0, max_iter=1)
    at = objective.evaluate(theta)
    times = 1.0 if weighting == "unbiased" else 65.0
    expected = at.loss_gradient + times * objective.penalty_gradient(theta)
    assert np.allclose(16 * np.sum(given, axis=0), expected)


@pytest.mark.parametrize("schedule", ["constant", "inverse", "sqrt", lambda epochs: 0.5**epochs])
def test_schedules(schedule):
    objective = random_objective(L2(0.3))
    steps = [
        solve(SGD(schedule=schedule), objective, max_iter=max_iter, tol=0).iterate.theta
        for max_iter in (4, 5)
    ]
    assert np.all(np.isfinite(steps[1]))
    assert not np.array_equal(*steps)


def test_seeds_repeat_and_differ():
    objective = random_objective(L2(0.3), n=200)
    a, b, c = (solve(Adam(), objective, max_iter=3, tol=0, seed=seed).iterate.theta for seed in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("name", ["mm", "mm-inversion"])
def test_too_many_features_are_refused_at_once_with_alternatives(name):
    X = sp.eye_array(30_000, 40_000, format="csr")
    objective = Objective(MemoryRows(X, np.where(np.arange(30_000) % 2, 1.0, -1.0)), Hyperbolic())
    with pytest.raises(UnsuitableSolverError, match=r"GiB.*'mm-subspace'"):
        solve(make_solver(name), objective)


def test_inversion_accepts_many_features_when_there_are_few_rows():
    X = sp.eye_array(20, 50_000, format="csr")
    objective = Objective(MemoryRows(X, np.where(np.arange(20) % 2, 1.0, -1.0)), L2(1.0))
    assert MMInversion().objection(objective) is None
    assert MM().objection(objective) is not None


def test_l1_by_proximal_gradient_has_exact_zeros():
    objective = random_objective(L1(8.0))
    result = solve(Gradient(), objective, tol=1e-8, max_iter=50_000)
    assert result.status.converged
    assert 0 < np.count_nonzero(result.iterate.theta[:-1]) < 6


def test_no_penalty_at_all_on_separable_data_ends():
    X = np.array([[-1.0], [1.0]])
    objective = Objective(MemoryRows(X, np.array([-1.0, 1.0])), Zero())
    assert solve(MM(), objective).iterate.value < 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gradient(relative_step=2.0), "relative_step"),
        (lambda: SGD(step=-1.0), "step"),
        (lambda: SGD(batch_size=0), "batch_size"),
        (lambda: Adam(schedule="cosine"), "schedule"),
        (lambda: Adam(weighting="mine"), "weighting"),
        (lambda: make_solver("lbfgs"), "'mm-inversion'"),
    ],
)
def test_impossible_settings(make, message):
    with pytest.raises(MajorantError, match=message):
        make()
