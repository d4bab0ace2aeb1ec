"""The theorems: a majorant touches Φ, lies above it, and its minimiser does not increase Φ."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.linsolve import FLAT, solve_positive
from majorant.majorants import DescentLemma, HalfQuadratic, Spectral, squared_norm_bound
from majorant.objective import Objective
from majorant.potentials import L2, Hyperbolic, Potential, Welsch
from majorant.rows import MemoryRows
from tests.problems import all_examples, random_objective, random_problem

MAJORANTS = [DescentLemma, HalfQuadratic, Spectral]
SHAPES = [(40, 6), (5, 12)]
SMOOTH = [p for p in all_examples(Potential.registry) if p.values[0].smooth]


def curvature(majorant, theta):
    """A(θ) by the formulas on top of `majorants.py`."""
    if isinstance(majorant, HalfQuadratic):
        return majorant.matrix(theta)
    eye = np.eye(len(theta))
    if isinstance(majorant, DescentLemma):
        return majorant.mu * eye
    design = majorant.objective.rows.design()
    return 2.0 * design.T @ design + majorant.sigma(theta) * eye


@pytest.mark.parametrize("shape", SHAPES, ids=["tall", "wide"])
@pytest.mark.parametrize("kind", MAJORANTS)
@pytest.mark.parametrize("potential", SMOOTH)
def test_touches_dominates_and_decreases(potential, kind, shape):
    objective = random_objective(potential, n=shape[0], p=shape[1])
    majorant = kind(objective)
    rng = np.random.default_rng(3)
    for scale in (1e-3, 0.3, 3.0):
        at = objective.evaluate(scale * rng.standard_normal(objective.size))
        gradient, A = objective.gradient(at), curvature(majorant, at.theta)
        for length in (1e-4, 1e-2, 1.0, 30.0):
            d = length * rng.standard_normal(objective.size)
            h = at.value + gradient @ d + 0.5 * d @ A @ d
            assert h >= objective.evaluate(at.theta + d).value - 1e-10 * max(1.0, at.value)
        best = majorant.minimiser(at)
        d = best - at.theta
        lowest = at.value + gradient @ d + 0.5 * d @ A @ d
        assert lowest <= at.value + 1e-10 * at.value
        assert objective.evaluate(best).value <= lowest + 1e-10 * at.value


@pytest.mark.parametrize("kind", [HalfQuadratic, Spectral])
def test_the_minimiser_of_the_majorant_is_its_minimiser(kind):
    objective = random_objective(Hyperbolic(0.7, 0.3))
    majorant = kind(objective)
    at = objective.evaluate(np.linspace(-1, 1, objective.size))
    d = majorant.minimiser(at) - at.theta
    gradient = objective.gradient(at)
    slopes = gradient + curvature(majorant, at.theta) @ d
    assert np.max(np.abs(slopes)) <= 1e-7 * np.max(np.abs(gradient))


def test_spectral_dominates_half_quadratic_dominates_the_hessian():
    objective = random_objective(Hyperbolic(0.7, 0.3), duplicate=False, constant=False)
    theta = np.linspace(-1, 1, objective.size)
    half = HalfQuadratic(objective)
    A = half.matrix(theta)
    spectral = Spectral(objective)
    A_bar = half.loss_curvature + spectral.sigma(theta) * np.eye(objective.size)
    assert np.linalg.eigvalsh(A_bar - A)[0] >= -1e-8
    h = 1e-5

    def gradient(t):
        return objective.gradient(objective.evaluate(t))

    hessian = np.array(
        [(gradient(theta + h * e) - gradient(theta - h * e)) / (2 * h) for e in np.eye(objective.size)]
    )
    assert np.linalg.eigvalsh(A - (hessian + hessian.T) / 2)[0] >= -1e-5


@pytest.mark.parametrize("p", [6, 1500], ids=["gram", "lanczos"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_norm_bound_is_above_and_tight(p, seed):
    rng = np.random.default_rng(seed)
    X = sp.random(400, p, density=0.05, random_state=seed, format="csr")
    s = rng.uniform(0.1, 2.0, 400)
    rows = MemoryRows(X, np.ones(400), s)
    exact = np.linalg.norm(rows.design(), 2) ** 2
    assert exact * (1 - 1e-13) <= squared_norm_bound(rows) <= exact * (1 + 1e-6)


def test_norm_bound_of_nothing():
    assert squared_norm_bound(MemoryRows(sp.csr_matrix((3, 2000)), np.ones(3), intercept=False)) == 0.0


@pytest.mark.parametrize("sigma", [1e-6, 1e-2, 10.0])
def test_the_thin_inverse_equals_the_full_one(sigma):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 39))
    design = np.column_stack([X, np.ones(7)])
    g = rng.standard_normal(40)  # has a part outside the range of the design's transpose
    full = np.linalg.solve(2 * design.T @ design + sigma * np.eye(40), g)
    thin = Spectral(Objective(MemoryRows(X, np.ones(7)), L2(1.0)))
    assert thin.P.shape == (40, 7)
    assert np.allclose(thin.solve(sigma, g), full, rtol=1e-8, atol=1e-8 * np.max(np.abs(full)))
    # The same rows, and 40 that have no weight.
    weights = np.repeat([1.0, 0.0], [7, 40])
    more = MemoryRows(np.vstack([X, np.ones((40, 39))]), np.ones(47), weights)
    square = Spectral(Objective(more, L2(1.0)))
    assert square.P.shape == (40, 40)
    assert np.allclose(square.solve(sigma, g), full, rtol=1e-6, atol=1e-6 * np.max(np.abs(full)))


def test_solve_survives_singular_and_badly_scaled_curvature():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((10, 4)) * np.array([1e8, 1.0, 1e-8, 1.0])
    Z = np.column_stack([Z, Z[:, 1], np.zeros(10)])  # a duplicate and an empty column
    A = Z.T @ Z
    x = np.array([1e-8, 2.0, 3e8, 4.0, 2.0, 0.0])
    d = solve_positive(A.copy(), A @ x, noise=1e-12)
    assert np.allclose(d, x, rtol=1e-6)
    assert d[1] == pytest.approx(d[4])  # no flat part: twins move together
    assert d[5] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_of_a_singular_system_is_the_shortest_in_the_scaled_space(seed):
    rng = np.random.default_rng(seed)
    p, rank = 30, int(rng.integers(1, 30))
    Z = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, p)) * 10 ** rng.uniform(-6, 6, p)
    A = Z.T @ Z
    x = rng.standard_normal(p) / np.sqrt(np.diagonal(A))
    scale = np.sqrt(np.diagonal(A))
    shortest = (
        np.linalg.pinv(A / np.outer(scale, scale), rcond=1e-9, hermitian=True) @ (A @ x / scale) / scale
    )
    noise = 1e-11
    assert np.allclose(solve_positive(A, A @ x, noise) * scale, shortest * scale, rtol=0, atol=1e-5)
    # What is more than noise in a flat direction is divided by the floor, and leads far down.
    flat = np.linalg.eigh(A / np.outer(scale, scale))[1][:, 0]
    d = solve_positive(A, A @ x + 1e-3 * flat * scale, noise)
    assert flat @ (d * scale) == pytest.approx(1e-3 / FLAT, rel=1e-3)


def test_welsch_with_vanished_weights_still_has_a_step():
    X, y, s, factor = random_problem(n=5, p=12)
    objective = Objective(MemoryRows(X, y, s), Welsch(1e-4, 1e-6), 0.0, factor)
    at = objective.evaluate(np.linspace(1, 2, 13))
    for kind in (HalfQuadratic, Spectral):
        step = kind(objective).minimiser(at)
        assert np.all(np.isfinite(step))
        assert objective.evaluate(step).value <= at.value
