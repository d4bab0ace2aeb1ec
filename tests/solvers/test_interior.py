"""The interior-point method and its coordinates: the minimum, proven, whatever the conditioning."""

import math
from itertools import pairwise

import numpy as np
import pytest

from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Welsch, Zero
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from majorant.solvers.dense import DenseRidge, ScaledRows, _line_search, equations, small_enough
from majorant.solvers.interior import interior_point, or_interior_point, suits
from majorant.status import Evaluated, Provisional

POTENTIALS = [L1(0.5), L1(1e-3), Hyperbolic(0.5, 1e-4), Hyperbolic(2.0, 10.0), L2(1e-3), Zero()]


def hard_rows(n=40, p=12, seed=0, intercept=True, labels=2):
    """Columns far from zero and of very different lengths, weights over many orders of magnitude.

    With more features than rows, over fewer: next to the loss, a penalty must not be less than rounding.
    """
    decades = 4 if n > p else 1.5
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    code = np.digitize(X[:, 0] - X[:, 1] + rng.standard_normal(n), np.linspace(-0.7, 0.7, labels - 1))
    X += 10.0**decades * rng.standard_normal(p) * (rng.random(p) < 0.5)
    X *= 10.0 ** rng.uniform(-decades, decades, p)
    s = 10.0 ** rng.uniform(-decades, decades, n)
    return [
        MemoryRows(X, np.where(code == c, 1.0, -1.0), s, intercept=intercept)
        for c in range(1 if labels == 2 else labels)
    ]


def last_point(objective):
    *_, last = interior_point(objective)
    return last


@pytest.mark.parametrize("shape", [(40, 12), (15, 40)], ids=["tall", "wide"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("potential", POTENTIALS, ids=str)
def test_the_bound_meets_the_value_on_hard_rows(potential, intercept, shape):
    (rows,) = hard_rows(*shape, intercept=intercept)
    objective = Objective(rows, potential)
    at = last_point(objective)
    assert at.value == pytest.approx(objective.evaluate(at.theta).value, rel=1e-12, abs=1e-300)
    assert objective.relative_gap(at.value, at.lower_bound) <= 1e-6
    assert intercept or at.theta[-1] == 0.0


@pytest.mark.parametrize("potential", [L1(0.5), Hyperbolic(0.5, 1e-4), L2(1e-3)], ids=str)
def test_all_classes_at_once(potential):
    objective = Objective.joint(hard_rows(60, 8, labels=3), potential, 0.01)
    at = last_point(objective)
    assert objective.relative_gap(at.value, at.lower_bound) <= 1e-6


def test_the_bound_is_below_the_minimum_with_features_that_nothing_penalises():
    (rows,) = hard_rows(seed=3)
    factor = np.ones(12)
    factor[:2] = 0.0  # not penalised at all
    objective = Objective(rows, L1(0.5), penalty_factor=factor)
    at = last_point(objective)
    assert at.lower_bound <= at.value * (1.0 + 1e-10)
    assert objective.relative_gap(at.value, at.lower_bound) <= 1e-6


def test_the_same_minimum_as_newton_on_easy_rows():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 10))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0, 1.0, -1.0)
    objective = Objective(MemoryRows(X, y), L1(3.0), 0.1)
    newton = solve(Newton(), objective, tol=1e-12).iterate
    at = last_point(objective)
    assert at.value == pytest.approx(newton.value, rel=1e-10)
    np.testing.assert_array_equal(at.theta != 0.0, newton.theta != 0.0)


def test_it_takes_over_from_a_method_that_stands_still():
    (rows,) = hard_rows()
    objective = Objective(rows, L1(0.5))
    start = objective.evaluate(objective.start())

    def standing_still(theta):
        while True:
            yield Evaluated(theta, start.value, start.loss_gradient)

    iterates = or_interior_point(objective, start.theta, standing_still)
    values = []
    for at in iterates:
        values.append(at.value)
        if isinstance(at, Evaluated) and len(values) > 1:
            break
    assert isinstance(at, Evaluated)
    assert objective.relative_gap(at.value, at.lower_bound) <= 1e-6
    assert all(after <= before for before, after in pairwise(values))


def test_a_method_that_moves_is_left_alone():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 10))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    objective = Objective(MemoryRows(X, y), L1(3.0))
    result = solve(Newton(), objective, tol=1e-6)
    assert result.status.converged
    assert result.n_iter < 12


def test_what_it_does_not_know_or_is_too_large_for_it():
    rows = MemoryRows(np.ones((10, 2)), np.tile([1.0, -1.0], 5))
    assert suits(Objective(rows, L1(1.0)))
    assert not suits(Objective(rows, Welsch(1.0, 0.1)))
    large = MemoryRows(np.ones((2000, 600)), np.tile([1.0, -1.0], 1000))
    assert not small_enough(Objective(large, L1(1.0)))


# The coordinates ---------------------------------------------------------------------------------


def test_scaled_coordinates_and_back():
    (rows,) = hard_rows()
    scaled = ScaledRows(Objective(rows, L1(1.0)))
    assert np.einsum("ki,ki->i", scaled.Z[:, :-1], scaled.Z[:, :-1]) == pytest.approx(1.0)
    assert scaled.e @ scaled.Z[:, :-1] == pytest.approx(0.0, abs=1e-12)
    theta = np.random.default_rng(1).standard_normal(13)
    np.testing.assert_allclose(scaled.raw(scaled.scaled(theta)), theta, rtol=1e-9)


@pytest.mark.parametrize("shape", [(30, 6), (6, 30)], ids=["features", "rows"])
def test_equations_of_either_side(shape):
    rng = np.random.default_rng(2)
    n, p = shape
    Z, weight = rng.standard_normal((n, p)), rng.uniform(0.5, 2.0, (n, 2))
    roots = rng.standard_normal((p - 1, 2, 2))
    curvature = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(2)
    right = rng.standard_normal((p, 2))
    d = equations(Z, weight, curvature)(right)
    image = Z.T @ (weight * (Z @ d))
    image[:-1] += np.einsum("icd,id->ic", curvature, d[:-1])
    np.testing.assert_allclose(image, right, atol=1e-9)


def test_the_line_search_is_exact():
    rng = np.random.default_rng(3)
    for _ in range(50):
        slack, image = rng.standard_normal((2, 20))
        linear, square = -2.0 * rng.random(), rng.random()

        def value(t, slack=slack, image=image, linear=linear, square=square):
            return np.sum(np.maximum(slack - t * image, 0.0) ** 2) + linear * t + 0.5 * square * t * t

        slope = linear - 2.0 * np.maximum(slack, 0.0) @ image
        t = _line_search(slack, image, linear, square)
        if slope >= 0.0:
            assert t == 0.0
            continue
        assert t > 0.0
        around = [value(t * (1.0 + h)) for h in (-1e-3, 1e-3)]
        assert value(t) <= min(around)


@pytest.mark.parametrize("shape", [(60, 8), (12, 30)], ids=["tall", "wide"])
def test_a_ridge_is_minimised_exactly(shape):
    (rows,) = hard_rows(*shape, seed=4)
    objective = Objective(rows, L2(1.0), penalty_factor=np.geomspace(1e-6, 1e6, shape[1]))
    theta = DenseRidge(objective).minimise(objective, objective.start(), 0.0)
    reference = last_point(objective)
    assert objective.evaluate(theta).value <= reference.value * (1.0 + 1e-9)


def test_a_proximal_term_keeps_it_near():
    (rows,) = hard_rows(seed=4)
    objective = Objective(rows, L2(1.0), penalty_factor=np.ones(12))
    ridge = DenseRidge(objective)
    start = ridge.minimise(objective, objective.start(), 0.0)
    free = Objective(rows, L2(1.0), penalty_factor=np.full(12, 1e-9))
    near = ridge.minimise(free, start, 1e3)
    far = ridge.minimise(free, start, 1e-6)
    assert np.linalg.norm(near - start) < np.linalg.norm(far - start)
    values = [free.evaluate(theta).value for theta in (start, near, far)]
    assert values == sorted(values, reverse=True)
    assert math.isfinite(values[-1])


def test_underway_points_hold_the_best_so_far():
    (rows,) = hard_rows()
    objective = Objective(rows, L1(0.5))
    seen = []
    for at in or_interior_point(
        objective, objective.start(), lambda theta: iter([objective.evaluate(theta)])
    ):
        seen.append(at)
        if len(seen) > 1 and isinstance(at, Evaluated):
            break
    assert any(isinstance(at, Provisional) for at in seen)
