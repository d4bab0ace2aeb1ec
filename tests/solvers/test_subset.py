"""The search for the best features of a number: what it finds, what it claims, and what must not matter."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.callbacks import Callback
from majorant.errors import UnsuitableSolverError
from majorant.interrupts import ending_on
from majorant.objective import Objective
from majorant.potentials import L1, L2, Zero
from majorant.rows import MemoryRows
from majorant.rows.scaled import scaled_rows, standard_deviations
from majorant.solvers import choose_solver, solve
from majorant.solvers.subset import REMOVED, TRIED, SubsetSearch
from majorant.solvers.subset_run import find_subset, on_support
from majorant.solvers.ties import largest, ordered
from majorant.status import Status
from tests.problems import ElsewhereRows, random_problem


def correlated(seed, n=80, p=10, k=3, rho=0.7, flips=0.05):
    """Rows whose neighbouring features are correlated, and labels that k of the features decide."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    w = np.zeros(p)
    w[np.linspace(0, p - 1, k + 2)[1:-1].round().astype(int)] = rng.choice([-1.0, 1.0], k)
    y = np.where(X @ w + 0.3 * rng.standard_normal(n) > 0.0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flips, -y, y)


def objective_of(X, y, s=None, *, ridge=1e-3, intercept=True, factor=None):
    """Φ with a ridge in standard deviations, relative to the weight of the rows."""
    rows = MemoryRows(X, y, s, intercept=intercept)
    total = rows.loss_at_zero.value
    (rows,) = scaled_rows([rows], 1.0 / standard_deviations(rows))
    return Objective(rows, L2(ridge * total) if ridge else Zero(), penalty_factor=factor)


def run(objective, size, theta=None, **options):
    return find_subset(SubsetSearch(objective), size, theta, **options)


def support_of(result):
    return np.flatnonzero(result.iterate.theta[:-1]).tolist()


def minimum(objective, support):
    """Φ at its minimum over some features, by the solver for all problems."""
    part = objective.columns(np.array(support, dtype=np.intp))
    return solve(choose_solver(part), part, tol=1e-12).iterate.value


def forward(objective, size):
    """Φ after forward selection: the feature that lowers Φ most, one after the other."""
    support = []
    for _ in range(size):
        rest = [j for j in range(objective.rows.n_features) if j not in support]
        support.append(min(rest, key=lambda j: minimum(objective, [*support, j])))
    return minimum(objective, support)


# What is found ---------------------------------------------------------------------------------------------


def test_the_best_support_is_found_in_nearly_all_cases():
    found = 0
    for seed in range(6):
        search = SubsetSearch(objective_of(*correlated(seed, p=10, k=3)))
        for size in (1, 2, 3):
            value = find_subset(search, size).iterate.value
            every = [np.array(chosen) for chosen in combinations(range(10), size)]
            best = min(search.columns.refit(chosen, np.zeros((1, size + 1))).value for chosen in every)
            assert value >= (1.0 - 1e-9) * best
            found += value <= (1.0 + 1e-9) * best
    assert found >= 17


@pytest.mark.parametrize("seed", range(6))
def test_forward_selection_finds_nothing_better(seed):
    objective = objective_of(*correlated(seed, n=60, p=12, k=5, rho=0.9))
    for size in (2, 4, 6):
        assert run(objective, size).iterate.value <= (1.0 + 1e-9) * forward(objective, size)


def test_phi_never_rises_with_the_size():
    objective = objective_of(*correlated(0, n=60, p=30, k=6, rho=0.9))
    search, theta, values = SubsetSearch(objective), None, []
    for size in range(13):
        result = find_subset(search, size, theta)
        theta = result.iterate.theta
        assert len(support_of(result)) == size
        values.append(result.iterate.value)
    assert np.all(np.diff(values) <= 1e-12 * values[0])


@pytest.mark.parametrize("start", [(), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_a_search_never_ends_above_where_it_has_come_by(start):
    objective = objective_of(*correlated(3, p=15, k=4))
    theta = np.zeros(16)
    theta[list(start)] = 0.1
    result = run(objective, 4, theta)
    sizes, values = result.history.column("nonzeros"), result.history.column("objective")
    assert sizes[0] == len(start)
    assert sizes[-1] == 4
    for size, change in zip(np.diff(sizes), np.diff(values), strict=True):
        assert (change > 0.0) == (size < 0)  # a smaller support costs, a larger or swapped one pays


@pytest.mark.parametrize("seed", range(4))
def test_no_swap_that_the_status_speaks_of_lowers_phi(seed):
    """Refits by another solver: the weakest features, each for the best others at the point without it."""
    objective = objective_of(*correlated(seed, n=60, p=25, k=12, rho=0.8))
    result = run(objective, 11)
    assert result.status is Status.NO_SWAP
    assert f"the {REMOVED} weakest" in result.status.value
    assert f"the {TRIED} best" in result.status.value
    support, value = support_of(result), result.iterate.value
    # The true rises of Φ may order the features a little otherwise than the quadratic model: half of them.
    rises = {j: minimum(objective, [i for i in support if i != j]) for j in support}
    for removed in sorted(support, key=rises.get)[: REMOVED // 2]:
        rest = [j for j in support if j != removed]
        part = objective.columns(np.array(rest))
        theta = np.zeros(objective.width)
        theta[np.append(rest, -1)] = solve(choose_solver(part), part, tol=1e-12).iterate.theta
        gradient = objective.evaluate(theta).loss_gradient[:-1]
        others = [j for j in np.argsort(-np.abs(gradient)).tolist() if j not in (*rest, removed)]
        for joined in others[:TRIED]:
            assert minimum(objective, [*rest, joined]) >= (1.0 - 1e-9) * value


# What is claimed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-3, 0.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_coefficients_are_the_minimiser_on_the_support(ridge, intercept, sparse):
    X, y, s, _ = random_problem(seed=1, n=60, p=12)
    objective = objective_of(sp.csr_matrix(X) if sparse else X, y, s, ridge=ridge, intercept=intercept)
    result = run(objective, 4)
    value = minimum(objective, support_of(result))
    assert result.status is Status.NO_SWAP
    assert result.iterate.value == pytest.approx(value, rel=1e-10)
    assert result.iterate.value == objective.evaluate(result.iterate.theta).value
    assert result.certificate.gap <= 1e-6
    assert result.iterate.lower_bound <= (1.0 + 1e-12) * value
    assert result.history[-1].gap == result.certificate.gap
    assert intercept or result.iterate.theta[-1] == 0.0


def test_features_without_penalty_are_on_every_support_and_not_counted():
    X, y = correlated(0)
    factor = np.ones(10)
    factor[[0, 9]] = 0.0
    objective = objective_of(X, y, factor=factor)
    result = run(objective, 3)
    support = support_of(result)
    assert {0, 9} < set(support)
    assert len(support) == 5
    best = min(minimum(objective, [0, 9, *chosen]) for chosen in combinations(range(1, 9), 3))
    assert result.iterate.value == pytest.approx(best, rel=1e-9)


def test_several_classes_at_once_share_a_support():
    X, _ = correlated(0, n=120, p=12)
    codes = np.digitize(X[:, 2] - X[:, 7], [-0.6, 0.6])
    classes = [MemoryRows(X, np.where(codes == c, 1.0, -1.0)) for c in range(3)]
    objective = Objective.joint(classes, L2(0.1))
    result = run(objective, 2)
    support = np.flatnonzero(objective.lengths(result.iterate.theta))
    best = min(minimum(objective, chosen) for chosen in combinations(range(12), 2))
    assert support.tolist() == [2, 7]
    assert result.iterate.value == pytest.approx(best, rel=1e-9)
    assert result.certificate.gap <= 1e-6


def test_separable_rows_have_finite_coefficients():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 40))
    y = np.where(X[:, 5] > 0.0, 1.0, -1.0)
    X[:, 5] += y
    search, theta = SubsetSearch(objective_of(X, y)), None
    for size in range(6):
        result = find_subset(search, size, theta)
        theta = result.iterate.theta
        assert result.status is Status.NO_SWAP
        assert np.abs(theta).max() < 100.0
    assert 5 in support_of(result)


def test_no_more_features_than_lower_phi():
    X = np.zeros((10, 4))
    X[:, 1] = np.repeat([1.0, -1.0], 5)
    X[:, 3] = 7.0  # constant
    objective = objective_of(X, X[:, 1])
    assert support_of(run(objective, 4)) == [1]
    assert support_of(run(objective, 0)) == []


# What must not matter --------------------------------------------------------------------------------------


def coefficients(X, y, s=None, size=5, units=None):
    objective = objective_of(X, y, s)
    theta = run(objective, size).iterate.theta[:-1]
    deviations = standard_deviations(MemoryRows(X, y, s))
    w = theta / deviations
    return w if units is None else w * units


def assert_same(found, expected):
    assert np.flatnonzero(found).tolist() == np.flatnonzero(expected).tolist()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sparse", [True, False])
def test_weights_units_and_the_order_of_rows_do_not_matter(seed, sparse):
    rng = np.random.default_rng(seed)
    X, y = correlated(seed, n=70, p=40, k=8, rho=0.9)
    X[:, 30:] = X[:, :10]  # ties, which the lower index wins
    if sparse:
        X[np.abs(X) < 0.5] = 0.0
    counts = rng.integers(1, 4, len(y))
    kind = sp.csr_matrix if sparse else np.asarray
    expected = coefficients(kind(X), y, counts.astype(float))
    assert np.all(expected[30:] == 0.0)
    repeated = np.repeat(np.arange(len(y)), counts)
    assert_same(coefficients(kind(X[repeated]), y[repeated]), expected)
    order = rng.permutation(len(y))
    assert_same(coefficients(kind(X[order]), y[order], counts[order].astype(float)), expected)
    twice = np.concatenate([X, X]), np.concatenate([y, y]), 0.5 * np.concatenate([counts, counts])
    assert_same(coefficients(kind(twice[0]), *twice[1:]), expected)
    units = 10.0 ** rng.uniform(-1.0, 1.0, 40)
    assert_same(coefficients(kind(X * units), y, counts.astype(float), units=units), expected)


def test_features_far_from_zero_are_as_good_as_others():
    X, y = correlated(1, p=30, k=5)
    assert_same(coefficients(X + 1e6, y), coefficients(X, y))


def test_a_sparse_matrix_in_blocks_gives_what_a_dense_one_gives(monkeypatch):
    X, y = correlated(2, n=200, p=20)
    X[np.abs(X) < 0.8] = 0.0
    expected = coefficients(X, y)
    assert_same(coefficients(sp.csr_matrix(X), y), expected)
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES", 100)
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES_PER_FEATURE", 1)
    assert len(MemoryRows(sp.csr_matrix(X), y).blocks) > 1
    assert_same(coefficients(sp.csr_matrix(X), y), expected)


@pytest.mark.parametrize(("name", "value"), [("ENTRIES", 1), ("SHORTLIST", 4)])
def test_little_memory_changes_nothing(monkeypatch, name, value):
    X, y = correlated(4, p=20, k=5)
    expected = coefficients(X, y)
    monkeypatch.setattr(f"majorant.solvers.subset.{name}", value)
    monkeypatch.setattr(MemoryRows, "copy_budget", 1)
    assert_same(coefficients(X, y), expected)


def test_equal_values_are_ordered_by_their_features():
    values = np.array([1.0, 3.0, 1.0 + 1e-12, 2.0, 3.0 - 1e-12])
    assert ordered(values).tolist() == [1, 4, 3, 0, 2]
    assert ordered(values, np.array([9, 8, 7, 6, 5])).tolist() == [4, 1, 3, 2, 0]
    assert ordered(-values).tolist() == [0, 2, 3, 1, 4]
    assert largest(values, 3).tolist() == [1, 3, 4]
    assert largest(values, 4).tolist() == [0, 1, 3, 4]
    assert largest(np.array([0.0, 1.0, 0.0]), 2).tolist() == [1]


# Ends and refusals -----------------------------------------------------------------------------------------


def test_the_budget_ends_a_search():
    objective = objective_of(*correlated(0, p=20))
    result = run(objective, 10, max_iter=4)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == 4
    assert len(support_of(result)) <= 4
    assert result.certificate.gap <= 1e-6


class Stop(Callback):
    def __init__(self, after, status=None):
        self.after, self.status, self.seen = after, status, []

    def on_iterate(self, iterate, record):
        self.seen.append((record, iterate))
        if len(self.seen) <= self.after:
            return None
        if self.status is None:
            raise KeyboardInterrupt
        return self.status

    def on_end(self, result):
        self.result = result


def test_callbacks_see_every_step_and_may_stop_it():
    objective = objective_of(*correlated(0, p=20))
    watcher = Stop(3, Status.STOPPED)
    result = run(objective, 10, callbacks=[watcher])
    assert result.status is Status.STOPPED
    assert watcher.result is result
    assert [record.iteration for record, _ in watcher.seen] == [0, 1, 2, 3]
    for record, iterate in watcher.seen:
        assert record.objective == pytest.approx(objective.evaluate(iterate.theta).value, rel=1e-12)
    assert np.array_equal(result.iterate.theta, watcher.seen[-1][1].theta)


def test_an_interruption_keeps_the_last_step(monkeypatch):
    objective = objective_of(*correlated(0, p=20))
    search, steps = SubsetSearch(objective), []
    monkeypatch.setattr(search, "grown", lambda at: steps.append(at) or SubsetSearch.grown(search, at))
    with ending_on(lambda: len(steps) > 2):
        result = find_subset(search, 10)
    assert result.status is Status.INTERRUPTED
    assert len(support_of(result)) == 2
    assert result.certificate.gap <= 1e-6


def test_the_rows_must_be_in_memory_and_the_penalty_quadratic():
    rows = MemoryRows(*correlated(0))
    with pytest.raises(UnsuitableSolverError, match="needs rows that are in memory"):
        SubsetSearch(Objective(ElsewhereRows(rows), L2(1.0)))
    with pytest.raises(UnsuitableSolverError, match="'l1'"):
        SubsetSearch(Objective(rows, L1(1.0)))


def test_a_point_on_a_support_goes_there_and_back():
    objective = objective_of(*correlated(0))
    theta = np.zeros(11)
    theta[[2, 5, 10]] = [1.0, -2.0, 0.5]
    part = on_support(objective, theta)
    assert np.array_equal(part.narrow(theta), [1.0, -2.0, 0.5])
    at = objective.evaluate(theta)
    narrow = part.narrow_point(at)
    assert narrow.loss_gradient.shape == (3,)
    assert np.array_equal(part.widen_point(narrow).theta, theta)
