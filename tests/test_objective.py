import math

import numpy as np
import pytest

from majorant.errors import ScaleError
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Potential, Welsch, Zero
from majorant.rows import MemoryRows
from majorant.solvers import Newton, solve
from tests.problems import all_examples, random_objective, random_problem

THETA = np.array([0.4, -0.3, 0.2, 0.5, -0.1, 0.6, 0.2])


@pytest.mark.parametrize("potential", all_examples(Potential.registry))
def test_the_gradient_is_that_of_the_value(potential):
    objective = random_objective(potential)
    gradient = objective.gradient(objective.evaluate(THETA))
    h = 1e-6
    for i, e in enumerate(np.eye(len(THETA))):
        slope = (objective.evaluate(THETA + h * e).value - objective.evaluate(THETA - h * e).value) / (2 * h)
        assert np.isclose(gradient[i], slope, rtol=1e-5, atol=1e-5)


def test_the_intercept_is_never_penalised():
    objective = random_objective(L2(3.0))
    raised = THETA.copy()
    raised[-1] += 100.0
    assert objective.penalty(THETA) == objective.penalty(raised)
    assert objective.penalty_gradient(raised)[-1] == 0.0


def test_without_an_intercept_its_gradient_is_zero():
    objective = random_objective(L2(1.0), intercept=False)
    assert objective.gradient(objective.evaluate(THETA))[-1] == 0.0


def test_the_subgradient_has_the_smallest_norm():
    objective = random_objective(L1(2.0))
    theta = THETA.copy()
    theta[[0, 3]] = 0.0
    at = objective.evaluate(theta)
    subgradient = objective.subgradient(at)
    smooth = at.loss_gradient[:-1] + objective.eta * theta[:-1]
    for i in (0, 3):
        slopes = smooth[i] + objective.factor[i] * 2.0 * np.linspace(-1, 1, 100_001)
        assert np.isclose(np.min(np.abs(slopes)), abs(subgradient[i]), atol=1e-4)


def test_stationarity_ignores_units_weights_and_repetition():
    X, y, s, _ = random_problem(constant=False)
    w = THETA[:-1]

    def stationarity(X, s, y=y, theta=THETA):
        objective = Objective(MemoryRows(X, y, s), Zero())
        return objective.certify(theta)[1].stationarity

    reference = stationarity(X, s)
    units = np.array([1e10, 1.0, 1e-3, 7.0, 1.0, 1.0])
    assert np.isclose(stationarity(X * units, s, theta=np.append(w / units, THETA[-1])), reference)
    assert np.isclose(stationarity(X, 1e6 * s), reference)
    assert np.isclose(stationarity(np.vstack([X, X]), np.tile(s, 2) / 2, np.tile(y, 2)), reference)


@pytest.mark.parametrize("potential", [L1(0.5), L2(0.5), Hyperbolic(0.5, 0.1)], ids=lambda p: p.name)
def test_stationarity_is_a_fall_of_the_objective_along_a_coordinate(potential):
    """A step along one coordinate lowers Φ by no less than what is promised."""
    objective = random_objective(potential)
    at = objective.evaluate(THETA)
    promised = objective.stationarity(at) * at.value
    steps = np.concatenate([np.geomspace(1e-6, 10.0, 200), -np.geomspace(1e-6, 10.0, 200)])
    axes = np.eye(len(THETA))
    lowest = min(objective.evaluate(THETA + t * axis).value for axis in axes for t in steps)
    assert 0.0 < promised <= (at.value - lowest) * (1.0 + 1e-2)


def test_stationarity_of_a_penalty_that_is_not_convex_bounds_the_fall_of_its_majorant():
    objective = random_objective(Welsch(0.5, 0.3))
    _, certificate = objective.certify(THETA)
    majorant = objective.majorant(THETA)
    before, after = majorant.evaluate(THETA), solve(Newton(), majorant, THETA, tol=1e-12).iterate
    value = objective.evaluate(THETA).value
    assert math.isnan(certificate.gap)
    assert certificate.stationarity >= (before.value - after.value) / value * (1.0 - 1e-9)
    # Φ falls at least as far as its majorant, which touches it at θ.
    assert value - objective.evaluate(after.theta).value >= before.value - after.value


def test_a_constant_takes_no_part():
    X, y, s, _ = random_problem()
    objective = Objective(MemoryRows(X, y, s), Hyperbolic(1e18, 1.0))
    at = objective.evaluate(np.zeros(7))
    assert objective.constant == 6e18
    assert at.value == pytest.approx(s.sum())


def test_stationarity_of_balanced_classes_and_useless_features_is_zero_at_zero():
    objective = Objective(MemoryRows(np.zeros((4, 2)), np.array([1.0, -1, 1, -1])), L2(1.0))
    assert objective.certify(np.zeros(3))[1].stationarity == 0.0


@pytest.mark.parametrize(("X", "s"), [(1e200, 1.0), (1.0, 1e308)])
def test_overflow_is_refused_in_words(X, s):
    rows = MemoryRows(np.full((4, 2), X), np.array([1.0, -1, 1, -1]), np.full(4, s))
    with pytest.raises(ScaleError, match=r"rescale|divide"):
        Objective(rows, L2(1.0)).check_scale()
