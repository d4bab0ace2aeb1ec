"""The gap is a proof: the dual value is never above the minimum, and reaches it."""

import math

import numpy as np
import pytest

from majorant.duality import Dual
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Potential, Welsch, Zero
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from tests.problems import random_problem


class Fair(Potential):
    """φ(w) = |w| - log(1 + |w|): convex, with neither `max_slope` nor `conjugate` of its own."""

    name = property(lambda self: "fair")  # no name of the class, so it is not registered
    convex = True
    lipschitz = 1.0

    def value(self, w):
        return np.abs(w) - np.log1p(np.abs(w))

    def weight(self, w):
        return 1.0 / (1.0 + np.abs(w))

    def curvature(self, w):
        return 1.0 / (1.0 + np.abs(w)) ** 2


CASES = [
    (Hyperbolic(1.0, 1e-2), 0.0), (Hyperbolic(1.0, 1.0), 0.3), (L1(1.0), 0.0), (L1(1.0), 0.3),
    (L2(0.5), 0.0), (L2(0.5), 0.3), (Zero(), 0.3), (L2(0.0), 0.3), (Fair(), 0.0), (Fair(), 0.3),
]  # fmt: skip


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("potential", "eta"), CASES)
def test_the_dual_value_is_below_the_minimum_and_reaches_it(potential, eta, intercept):
    X, y, s, factor = random_problem()
    if eta > 0:
        factor[0] = 0.0
    rows = MemoryRows(X, y, s, intercept=intercept, cuts=(17,))
    objective = Objective(rows, potential, eta, np.maximum(factor, 0.1 if eta == 0 else 0.0))
    best = solve(Newton(), objective, tol=1e-11, max_iter=3000)
    assert best.certificate.gap <= 1e-9
    rng = np.random.default_rng(1)
    for distance in (0.0, 1e-8, 1e-4, 1e-2, 0.3, 3.0):
        for _ in range(20):
            theta = best.iterate.theta + distance * rng.standard_normal(7)
            theta[-1] *= intercept
            at, certificate = objective.certify(theta)
            assert 0.0 <= certificate.gap <= 1.0
            assert (1.0 - certificate.gap) * at.value <= best.iterate.value * (1.0 + 1e-12)
        if distance == 1e-4:
            assert certificate.gap < 1e-2, "the bound is no use near the optimum"


@pytest.mark.parametrize(("potential", "eta"), [(L1(1.0), 0.0), (L1(1.0), 0.3), (L2(1.0), 0.0)])
def test_a_negative_sum_of_dual_variables_proves_nothing(potential, eta):
    """What features without penalty take off the sum may be more than the sum: no scale is negative."""
    theta, pull = np.zeros((1, 3)), np.full((1, 3), 1e-3)
    assert Dual(potential, np.ones(2), eta).value(theta, -1.0, 1.0, pull) == 0.0
    assert Dual(potential, np.ones(2), eta).value(theta, 1.0, 1.0, pull) > 0.0


def test_the_estimate_is_the_gap_where_the_intercept_is_at_its_best():
    X, y, s, _ = random_problem(duplicate=False, constant=False)
    objective = Objective(MemoryRows(X, y, s), L1(1.0))
    at = solve(Newton(), objective, tol=1e-2).iterate
    for _ in range(100):  # Newton's method for β alone
        margins = y * (X @ at.theta[:-1] + at.theta[-1])
        at = objective.evaluate(at.theta - np.eye(7)[-1] * at.loss_gradient[-1] / (2 * s[margins < 1].sum()))
    assert abs(at.loss_gradient[-1]) < 1e-9
    assert objective.estimate(at).gap == pytest.approx(objective.certify(at.theta)[1].gap, rel=1e-6)


def test_no_gap_without_convexity():
    X, y, s, _ = random_problem()
    _, certificate = Objective(MemoryRows(X, y, s), Welsch(1.0, 0.1)).certify(np.zeros(7))
    assert math.isnan(certificate.gap)
    assert certificate.error == certificate.stationarity


@pytest.mark.parametrize(("potential", "factor"), [(Zero(), None), (L1(1.0), np.array([0, 0, 1, 1, 1, 1.0]))])
def test_features_without_penalty_are_constraints_of_the_dual(potential, factor):
    X, y, s, _ = random_problem(duplicate=False, constant=False)
    objective = Objective(MemoryRows(X, y, s), potential, 0.0, factor)
    best = solve(Newton(), objective, tol=1e-11).iterate
    rng = np.random.default_rng(1)
    for distance in (0.0, 1e-6, 1e-3, 0.3, 3.0):
        for _ in range(10):
            at, certificate = objective.certify(best.theta + distance * rng.standard_normal(7))
            assert at.lower_bound <= best.value * (1.0 + 1e-11)
            assert certificate.gap == pytest.approx((at.value - at.lower_bound) / at.value)
        if distance == 1e-6:
            assert certificate.gap < 1e-4, "the bound is no use near the optimum"


def test_features_that_nearly_depend_on_each_other_and_have_no_penalty_have_no_bound():
    """A direction along which a coefficient could go far is told from an exact dependence."""
    X, y, s, _ = random_problem(duplicate=False, constant=False)
    rng = np.random.default_rng(2)
    for noise, bounded in ((0.0, True), (1e-9, False), (1e-2, True)):
        twice = np.column_stack([X, X[:, 0] + noise * rng.standard_normal(len(X))])
        objective = Objective(MemoryRows(twice, y, s), Zero())
        theta = np.append(
            solve(Newton(), Objective(MemoryRows(X, y, s), Zero()), tol=1e-11).iterate.theta, 0.0
        )
        theta[-1], theta[-2] = theta[-2], 0.0
        at, _ = objective.certify(theta)
        assert (at.lower_bound > 0.0) == bounded


def test_a_class_without_active_rows_leaves_the_trivial_bound():
    X = np.array([[1.0], [2.0], [-3.0]])
    objective = Objective(MemoryRows(X, np.array([1.0, 1.0, -1.0])), L1(0.1))
    _, certificate = objective.certify(np.array([0.0, 5.0]))
    assert certificate.gap == 1.0


@pytest.mark.parametrize(("potential", "eta"), [(L2(0.5), 0.0), (L2(0.5), 0.3), (Zero(), 0.3)])
def test_the_dual_value_of_a_quadratic_penalty_is_the_best_of_all_scales(potential, eta):
    rng = np.random.default_rng(2)
    factor = np.array([0.5, 1.0, 2.0])
    gradient, theta = rng.standard_normal((2, 1, 4))
    linear, square = 3.0, 0.7
    D = factor * potential.weight(np.zeros(3)) + eta
    scales = np.linspace(0.0, 4.0, 40_001)
    values = scales * linear - scales**2 * (square + 0.5 * float(np.sum(gradient[0, :-1] ** 2 / D)))
    value = Dual(potential, factor, eta).value(theta, linear, square, gradient)
    assert value == pytest.approx(values.max(), rel=1e-6)


def test_a_column_that_is_nearly_constant_over_the_active_rows_proves_nothing():
    """Without a penalty, its coefficient may become so large that differences of 1e-10 matter."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    noise = np.where(rng.random(60) < 0.8, y, -y)
    column = 3e4 + 1e-6 * noise
    objective = Objective(MemoryRows(column[:, np.newaxis], y), Zero())
    best = solve(Newton(), Objective(MemoryRows(noise[:, np.newaxis], y), Zero()), tol=1e-9).iterate.value
    at, certificate = objective.certify(np.zeros(2))
    assert at.value > 1.2 * best
    assert (1.0 - certificate.gap) * at.value <= best * (1.0 + 1e-6)
    # A column that is constant depends on the intercept exactly, and costs no proof.
    exact = Objective(MemoryRows(np.full((60, 1), 3e4), y), Zero())
    assert exact.certify(np.zeros(2))[1].gap <= 1e-12
