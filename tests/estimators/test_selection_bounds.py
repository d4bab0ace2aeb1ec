"""The bounds on false selections: theorems, published values, and the worst cases themselves."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from majorant.estimators.selection_bounds import (
    concave_tail,
    false_selections,
    halves_needed,
    most_selected,
    smallest_threshold,
)

# Printed by the R package stabs 0.6 (its tests/regtest-inference.Rout.save): p = 100, τ = 0.6, B = 50.
R_CONCAVE = [0.006971364, 0.03342845, 0.08691176, 0.1637231, 0.2605329, 0.3820466, 0.5295188, 0.7042719,
             0.9077127, 1.141338]  # fmt: skip
UNIMODAL = [0.02631579, 0.1052632, 0.2368421, 0.4210526, 0.6578947, 0.9473684, 1.289474, 1.684211, 2.131579,
            2.631579]  # fmt: skip
CASES = [(q, p, count / (2 * B), B) for B in (5, 50) for p, q in ((50, 2), (200, 20), (1000, 30), (40, 12))
         for count in range(B + 1, 2 * B + 1, max(1, B // 5))]  # fmt: skip


@pytest.mark.parametrize("q", range(1, 11))
def test_bounds_are_the_published_ones(q):
    assert false_selections(q, 100, 0.6, 50, "unimodal") == pytest.approx(UNIMODAL[q - 1], rel=1e-6)
    # The package stops its search for a at 1e-5, so its values for small q are a little too small.
    bound = false_selections(q, 100, 0.6, 50, "r-concave")
    assert bound == pytest.approx(R_CONCAVE[q - 1], rel=4e-3)
    assert bound >= R_CONCAVE[q - 1]


def test_other_published_values():
    # Of the same file, and of the package's documentation (p = 9, q = 2).
    assert false_selections(20, 88, 0.8, 50, "unimodal") == pytest.approx(3.743316, rel=1e-6)
    assert false_selections(2, 9, 0.75, 50, "unimodal") == pytest.approx(0.454, abs=5e-4)
    assert false_selections(7, 200, 0.62, 50, "r-concave") == pytest.approx(0.196, abs=5e-4)
    assert false_selections(7, 200, 0.61, 50, "r-concave") == pytest.approx(0.219, abs=5e-4)
    assert most_selected(200, 0.6, 0.2, 50, "r-concave") == 6
    assert most_selected(200, 0.6, 0.2, 50, "unimodal") == 3
    assert smallest_threshold(7, 200, 0.2, 50, "r-concave") == 0.62
    assert smallest_threshold(7, 200, 0.2, 50, "unimodal") == 0.81
    assert false_selections(8, 100, 0.6, 50, "none") == pytest.approx(3.2)


@pytest.mark.parametrize(("q", "p", "threshold", "pairs"), CASES)
def test_more_assumptions_give_smaller_bounds(q, p, threshold, pairs):
    none, unimodal, concave = (
        false_selections(q, p, threshold, pairs, kind) for kind in ("none", "unimodal", "r-concave")
    )
    assert none == pytest.approx(min(p, q / threshold, q**2 / ((2 * threshold - 1) * p)))
    assert concave <= unimodal * (1 + 1e-9) <= none * (1 + 2e-9)


@pytest.mark.parametrize("assumption", ["none", "unimodal", "r-concave"])
def test_bounds_fall_with_the_threshold_and_grow_with_the_number_selected(assumption):
    thresholds = [count / 40 for count in range(21, 41, 3)]
    bounds = np.array(
        [[false_selections(q, 100, t, 20, assumption) for t in thresholds] for q in (1, 3, 9, 27)]
    )
    assert np.all(np.diff(bounds, axis=1) <= 1e-12)
    assert np.all(np.diff(bounds, axis=0) >= -1e-12)


def test_the_unimodal_bound_is_continuous_where_its_cases_meet():
    # For many pairs, both cases tend to q²/p at τ = 3/4.
    for threshold in (0.75, 0.7500001):
        assert false_selections(10, 1000, threshold, 10**7, "unimodal") == pytest.approx(0.1, rel=1e-5)
    # and for τ = 1 only the mass at 1 of the uniform distribution is left
    assert false_selections(10, 1000, 1.0, 50, "unimodal") == pytest.approx(0.1 * (4 / 100) / (1 + 1 / 50))


def worst_unimodal_tail(mean, count, steps):
    """The largest P(X ≥ count) over all unimodal distributions on 0, …, steps with at most this mean."""
    i = np.arange(steps + 1)
    rises = np.diff(np.eye(steps + 1), axis=0)
    found = []
    for mode in range(steps + 1):
        signs = np.where(i[:-1] < mode, -1.0, 1.0)  # f rises up to the mode, and falls after it
        answer = linprog(
            -(i >= count).astype(float), np.vstack([signs[:, None] * rises, i]), [0.0] * steps + [mean],
            np.ones((1, steps + 1)), [1.0],
        )  # fmt: skip
        if answer.status == 0:
            found.append(-answer.fun)
    return max(found)


@pytest.mark.parametrize(("theta", "pairs"), [(0.1, 6), (0.3, 6), (0.05, 11), (0.5, 8)])
def test_the_unimodal_bound_is_the_worst_case(theta, pairs):
    p, exact = 100, 0
    for count in range(pairs + 1, 2 * pairs + 1):
        worst = worst_unimodal_tail(theta**2 * pairs, count - pairs, pairs)
        bound = false_selections(theta * p, p, count / (2 * pairs), pairs, "unimodal") / p
        worst = min(worst, theta / (count / (2 * pairs)))  # Markov's inequality for single halves
        assert bound >= worst * (1 - 1e-9)
        exact += bound == pytest.approx(worst, rel=1e-7)
    assert exact >= pairs - 2


def random_concave(rng, steps, r):
    """Probabilities whose power r is convex: the largest of random lines, on a random support."""
    i = np.arange(steps + 1)
    lines = rng.exponential(size=(3, 1)) * i + rng.normal(size=(3, 1)) * rng.exponential(5.0, size=(3, 1))
    power = np.maximum(lines.max(axis=0), rng.exponential(0.3) + 1e-6)
    f = np.where(i <= rng.integers(1, steps + 1), power ** (1.0 / r), 0.0)
    return f / f.sum()


@pytest.mark.parametrize("r", [-0.5, -0.25])
def test_no_r_concave_distribution_has_a_larger_tail(r):
    rng, steps = np.random.default_rng(0), 20
    reached = 0.0
    for _ in range(20):
        f = random_concave(rng, steps, r)
        mean = float(f @ np.arange(steps + 1)) / steps
        for count in range(math.ceil(2 * mean * steps) + 1, steps + 1, 3):
            bound = concave_tail(mean, count, steps, r)
            assert f[count:].sum() <= bound * (1 + 1e-6)
            reached = max(reached, f[count:].sum() / bound)
    assert reached > 0.5


def test_r_concavity_tends_to_unimodality():
    """As r → -∞: r-concave probabilities are unimodal, and those with a mode at 0 are approached."""
    mean, steps = 0.01, 10
    worst = worst_unimodal_tail(mean * steps, 6, steps)
    tails = [concave_tail(mean, 6, steps, r) for r in (-0.25, -0.5, -2.0, -5.0, -20.0)]
    assert np.all(np.diff([*tails, worst]) > 0)
    assert tails[-1] == pytest.approx(worst, rel=0.02)


def test_thresholds_are_numbers_of_halves():
    assert halves_needed(0.6, 50) == 60
    assert halves_needed(0.601, 50) == 61
    assert halves_needed(math.inf, 50) == 101
    assert false_selections(5, 100, math.inf, 50, "none") == 0.0
    assert false_selections(0, 100, 0.8, 50, "none") == 0.0
    assert smallest_threshold(50, 60, 0.01, 50, "none") == math.inf
