"""Newton's engines: what they carry is what it claims to be, and they agree with each other."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.callbacks import Callback
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Potential, Welsch, Zero
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers import Newton, newton, solve
from majorant.solvers.newton import costs, tuning
from majorant.solvers.newton.cd import cd_iterates
from majorant.solvers.newton.dual_newton import _dense_kernel, _sparse_kernel, dual_newton_applies
from majorant.solvers.newton.newton_cg import dual_start, newton_cg_iterates
from majorant.status import Status
from majorant.testing import check_potential
from tests.problems import random_problem


def wide(n=40, p=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("cuts", [(), (17,)])
def test_the_quadratic_follows_theta_exactly(sparse, cuts):
    X, y, s, _ = random_problem(n=60)
    rows = MemoryRows(sp.csr_matrix(X) if sparse else X, y, s, cuts=cuts)
    rng = np.random.default_rng(0)
    theta = 0.3 * rng.standard_normal(7)
    quadratic = ActiveQuadratic([rows], theta)
    for _ in range(20):
        d, t = rng.standard_normal(7), rng.uniform(0.0, 1.0)
        assert np.isclose(quadratic.advance(d), rows.loss(theta + d).value)
        quadratic.move(-1.0)
        assert np.isclose(quadratic.loss_at(t), rows.loss(theta + t * d).value)
        quadratic.move(t)
        quadratic.commit(theta + t * d)
        theta = theta + t * d
        assert np.allclose(quadratic.gradient(theta), rows.loss(theta).gradient, rtol=1e-9, atol=1e-9)
        assert np.allclose(quadratic.H[0] @ d, quadratic.product(d), rtol=1e-9, atol=1e-9)
    carried = quadratic.H.copy()
    quadratic.refresh(theta)
    assert np.allclose(quadratic.H, carried, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e6, 1e8, 1e10])
def test_a_huge_row_that_leaves_takes_no_digits_along(size):
    X, y, s, _ = random_problem(n=60, duplicate=False, constant=False)
    s[:] = 1.0
    X[0] = size * X[1]
    rows = MemoryRows(X, y, s)
    quadratic = ActiveQuadratic([rows], np.zeros(7))
    d = np.append(y[0] * X[1], 0.0)
    quadratic.advance(0.1 * d)
    quadratic.commit(0.1 * d)
    fresh = ActiveQuadratic([rows], 0.1 * d)
    assert not quadratic.parts[0].active[0]
    assert np.allclose(quadratic.H, fresh.H, rtol=1e-8)


@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("potential", [Hyperbolic(1.0, 1e-4), L1(1.0), L2(1.0)], ids=lambda p: p.name)
def test_an_outlier_does_not_end_the_search_early(potential, outlier):
    X, y, s, _ = random_problem(n=100, duplicate=False, constant=False)
    s[:] = 1.0
    X[0, 0] = outlier * y[0]
    objective = Objective(MemoryRows(X, y, s), potential)
    result = solve(Newton(), objective, tol=1e-6)
    without = Objective(MemoryRows(X[1:], y[1:], s[1:]), potential)
    bound = solve(Newton(), without, tol=1e-9).iterate
    assert result.status.converged
    # Removing a row can only lower the minimum, and this one costs nothing where its margin is met.
    assert result.iterate.value >= bound.value * (1 - 1e-6)
    reference = solve(Newton(), objective, bound.theta, tol=1e-9).iterate.value
    assert result.iterate.value <= reference * (1 + 1e-6)


@pytest.mark.parametrize("potential", [Hyperbolic(0.3, 1e-2), L1(0.3), L2(0.3)], ids=lambda p: p.name)
@pytest.mark.parametrize("eta", [0.0, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_engines_agree(potential, eta, sparse):
    X, y = wide()
    X = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0)) if sparse else X
    objective = Objective(MemoryRows(X, y), potential, eta)
    a, b = (solve(Newton(gram_features=limit), objective, tol=1e-7, max_iter=3000) for limit in (0, 1000))
    assert a.status.converged
    assert b.status.converged
    assert np.isclose(a.iterate.value, b.iterate.value, rtol=1e-7)


@pytest.mark.parametrize("shift", [10.0, 1e3, 1e4])
@pytest.mark.parametrize("potential", [L1(1.0), L2(1.0), Hyperbolic(1.0, 1e-3)], ids=lambda p: p.name)
def test_columns_far_from_zero_cost_nothing_but_digits(potential, shift):
    """A free intercept makes Φ blind to a shift of the columns."""
    X, y, s, _ = random_problem(n=100, duplicate=False, constant=False)
    plain, shifted = (
        solve(Newton(), Objective(MemoryRows(Z, y, s), potential), tol=1e-6) for Z in (X, X + shift)
    )
    assert shifted.status.converged
    assert np.isclose(shifted.iterate.value, plain.iterate.value, rtol=1e-6)


def test_fewer_rows_than_features_and_hardly_any_penalty():
    X = np.random.default_rng(5).standard_normal((3, 30))
    objective = Objective(MemoryRows(X, np.array([1.0, -1.0, 1.0])), Hyperbolic(1e-4, 1e-4))
    result = solve(Newton(), objective)
    assert result.status.converged
    assert result.iterate.value < 7.6e-5


@pytest.mark.parametrize("solver", [Newton(), Newton(gram_features=0)], ids=["gram", "large"])
def test_the_way_over_surrogates_never_rises_and_obeys_the_budget(solver):
    X, y = wide()
    objective = Objective(MemoryRows(X, y), Welsch(0.3, 1e-3))

    class Count(Callback):
        calls = 0

        def on_iterate(self, iterate, record):
            self.calls += 1

    result = solve(solver, objective, max_iter=2000)
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])
    assert result.status.converged
    count = Count()
    stopped = solve(solver, objective, max_iter=3, callbacks=[count])
    assert (stopped.n_iter, count.calls) == (3, 4)


def test_welsch_ends_far_below_where_it_is_caught_from_zero():
    X, y = wide(n=200, p=20)
    objective = Objective(MemoryRows(X, y), Welsch(1.0, 1e-4))
    for tol in (1e-2, 1e-6):  # a loose tolerance must not end the search on a wide surrogate
        result = solve(Newton(), objective, tol=tol, max_iter=2000)
        assert result.iterate.value < 0.6 * objective.evaluate(objective.start()).value
        large = np.abs(result.iterate.theta[:-1]) > 3e-4
        assert 2 <= large.sum() <= 12


def test_a_start_given_by_the_user_is_where_a_non_convex_fit_begins():
    X, y = wide(n=200, p=20)
    objective = Objective(MemoryRows(X, y), Welsch(1.0, 1e-4))
    start = solve(Newton(), objective, max_iter=2000).iterate.theta
    again = solve(Newton(), objective, start)
    assert again.n_iter <= 1


@dataclass(frozen=True)
class LogSum(Potential):
    """φ(w) = λ log(1 + |w|/δ): concave, with a kink; has no name, so it is not registered."""

    lam: float = 1.0
    delta: float = 0.5

    convex = False
    concave = True

    @property
    def name(self):
        return "log-sum"

    def value(self, w):
        return self.lam * np.log1p(np.abs(w) / self.delta)

    def weight(self, w):
        with np.errstate(divide="ignore"):
            return self.lam / (np.abs(w) * (self.delta + np.abs(w)))

    @property
    def lipschitz(self):
        return np.inf

    @property
    def slope_at_zero(self):
        return self.lam / self.delta


@pytest.mark.parametrize("solver", [Newton(), Newton(gram_features=0)], ids=["gram", "large"])
def test_a_concave_potential_with_a_kink_is_solved_by_its_tangents(solver):
    check_potential(LogSum())
    X, y = wide(n=200, p=20)
    result = solve(solver, Objective(MemoryRows(X, y), LogSum(5.0)), max_iter=2000)
    assert result.status is Status.CONVERGED
    assert 0 < np.count_nonzero(result.iterate.theta[:-1]) < 15
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])


def test_more_unpenalised_features_than_a_gram_matrix_holds(monkeypatch):
    monkeypatch.setattr("majorant.solvers.newton.tuning.CD_HESSIAN_ENTRIES", 11**2)
    X, y = wide(n=200, p=20)
    objective = Objective(MemoryRows(X, y), L1(1.0), 1.0, np.zeros(20))
    result = solve(Newton(gram_features=0), objective, tol=1e-8, max_iter=20_000)
    reference = solve(Newton(), Objective(MemoryRows(X, y), Zero(), 1.0), tol=1e-9)
    assert np.isclose(result.iterate.value, reference.iterate.value, rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("potential", [L2(0.3), L2(1e-6), Zero()], ids=["l2", "l2-tiny", "none"])
def test_the_row_side_agrees_with_the_feature_side(potential, sparse, intercept):
    X, y = wide()
    rng = np.random.default_rng(1)
    s = rng.uniform(0.5, 2.0, len(y))
    s[:4] = 0.0
    factor = rng.uniform(0.5, 2.0, X.shape[1])
    rows = MemoryRows(sp.csr_matrix(X) if sparse else X, y, s, intercept=intercept, cuts=(11,))
    objective = Objective(rows, potential, 0.01, factor)
    assert dual_newton_applies(objective, rows)
    row, feature = (
        solve(Newton(gram_features=limit), objective, tol=1e-9, max_iter=3000) for limit in (0, 1000)
    )
    assert row.status.converged
    assert np.isclose(row.iterate.value, feature.iterate.value, rtol=1e-8)
    warm = solve(Newton(gram_features=0), objective, row.iterate.theta, tol=1e-6)
    assert (warm.status, warm.n_iter) == (Status.CONVERGED, 0)
    near = solve(Newton(gram_features=0), objective, 1.001 * row.iterate.theta, tol=1e-9, max_iter=3000)
    assert np.all(np.diff(near.history.column("objective")) <= 0)
    assert near.status.converged


def test_the_row_side_is_for_quadratic_penalties_on_all_features():
    X, y = wide()
    rows = MemoryRows(X, y)
    assert not dual_newton_applies(Objective(rows, Hyperbolic(1.0, 0.1)), rows)
    assert not dual_newton_applies(Objective(rows, Zero()), rows)
    assert not dual_newton_applies(Objective(rows, L2(1.0), 0.0, np.append(0.0, np.ones(89))), rows)
    tall = MemoryRows(X.T, np.ones(90))
    assert not dual_newton_applies(Objective(tall, L2(1.0)), tall)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("potential", [Hyperbolic(5.0, 1e-3), L1(5.0), L2(5.0)], ids=lambda p: p.name)
def test_a_start_on_a_sample_changes_nothing_but_the_way(potential, sparse, monkeypatch):
    X, y = wide(n=8000, p=6)
    X = sp.csr_matrix(X) if sparse else X
    objective = Objective(MemoryRows(X, y), potential)
    sampled = solve(Newton(), objective, tol=1e-8)
    monkeypatch.setattr("majorant.solvers.newton.tuning.SUBSAMPLE_STEP", 10**9)
    whole = solve(Newton(), objective, tol=1e-8)
    assert sampled.status.converged
    assert np.isclose(sampled.iterate.value, whole.iterate.value, rtol=1e-10)
    values = sampled.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])


def test_a_sample_that_misleads_is_thrown_away():
    """Every 16th row says the opposite of the others."""
    X, y = wide(n=8000, p=6)
    y[::16] = -y[::16]
    result = solve(Newton(), Objective(MemoryRows(X, y), L2(1.0)))
    assert result.status.converged
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])


# The rule that picks the engine, on either side of its borders ----------------------------------


def engine_of(X, potential, *, start=False, eta=0.0, factor=None, gram_features=1000):
    rows = MemoryRows(X, np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0))
    objective = Objective(rows, potential, eta, factor)
    theta = np.full(objective.size, 1.0 if start else 0.0)
    return Newton(gram_features).choose_engine(objective, theta).__name__.removesuffix("_iterates")


def problem_of(X, potential, factor=None, eta=0.0):
    return Objective(MemoryRows(X, np.where(np.arange(X.shape[0]) % 2, 1.0, -1.0)), potential, eta, factor)


@pytest.fixture
def any_condition(monkeypatch):
    """The number of products of conjugate gradients is a constant, whatever the condition number."""
    monkeypatch.setattr(tuning, "CG_PRODUCTS_PER_ROOT", 1e12)


def random_sparse(n, p, density=0.1):
    return sp.csr_matrix(sp.random_array((n, p), density=density, rng=np.random.default_rng(0)))


def test_costs_count_flops_and_entries():
    X = random_sparse(40, 30)
    sparse, dense = (problem_of(each, L2(1.0)) for each in (X, X.toarray()))
    filled = X.toarray() != 0.0
    rows, columns = filled.sum(axis=1), filled.sum(axis=0)
    t = tuning
    assert costs.pass_ns(sparse.rows) == t.PASS_NS * X.nnz
    assert costs.pass_ns(dense.rows) == t.DENSE_PASS_NS * 40 * 30
    for objective, build, dual_build in (
        (sparse, t.UPDATE_NS * np.sum(rows**2) / 2, t.UPDATE_NS * np.sum(columns**2) / 2),
        (dense, t.FLOP_NS * 40 * 30**2, t.FLOP_NS * 40**2 * 30),
    ):
        classes, once = [objective.rows], costs.pass_ns(objective.rows)
        factorise = t.FLOP_NS * 30**3 / 3
        assert np.isclose(
            costs.gram_cost(objective, classes).total, build + t.GRAM_STEPS * (once + factorise)
        )
        sweeps = t.MODEL_SWEEP_NS * t.LEAST_SWEEPS * 30**2
        kinked = replace(objective, potential=L1(1.0))
        assert np.isclose(
            costs.gram_cost(kinked, classes).total, build + t.GRAM_STEPS * (once + factorise + sweeps)
        )
        factorise = t.FLOP_NS * 40**3 / 3
        assert np.isclose(costs.dual_cost(classes).total, dual_build + t.DUAL_STEPS * (once + factorise))
        assert np.isclose(costs.product_ns(objective, classes), 2 * once + t.VECTOR_NS * 30)
        entries = X.nnz if objective is sparse else 40 * 30
        sweeps = t.SWEEP_NS * t.CD_SWEEPS_PER_GRADIENT * entries
        assert np.isclose(costs.cd_cost(classes).total, t.CD_GRADIENTS * (2 * once + sweeps))
    # Of several classes, as many times as much.
    joint = Objective.joint([sparse.rows] * 3, L2(1.0))
    three, one = [sparse.rows] * 3, [sparse.rows]
    assert np.isclose(costs.gram_cost(joint, three).total, 3 * costs.gram_cost(sparse, one).total)
    assert np.isclose(costs.product_ns(joint, three), 3 * costs.product_ns(sparse, one))


@pytest.mark.parametrize(("potential", "engine"), [(L1(1.0), "cd"), (L2(1.0), "newton_cg")])
def test_the_gram_matrix_is_for_a_thousand_features_at_most(potential, engine, monkeypatch):
    monkeypatch.setattr(tuning, "FLOP_NS", 0.0)  # so that it is cheapest wherever it may be used
    X = np.zeros((3000, 1001))
    assert engine_of(X[:, :1000], potential) in ("gram", "working_set")
    assert engine_of(X, potential) == engine
    assert engine_of(X[:, :7], potential, gram_features=7) == "gram"
    assert engine_of(X[:, :8], potential, gram_features=7) == engine


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_quadratic_penalty_has_the_cheapest_engine(sparse, any_condition, monkeypatch):
    X = random_sparse(400, 50)
    X = X if sparse else X.toarray()
    objective = problem_of(X, L2(1.0))
    classes = [objective.rows]
    border = costs.gram_cost(objective, classes).total / costs.product_ns(objective, classes)
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 1.001 * border)
    assert engine_of(X, L2(1.0)) == "gram"
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 0.999 * border)
    assert engine_of(X, L2(1.0)) == "newton_cg"
    # A feature without penalty, and a potential that is neither quadratic nor kinked, have the Gram matrix.
    some = np.append(0.0, np.ones(49))
    assert engine_of(X, L2(1.0), factor=some) == "gram"
    assert engine_of(X, L2(1.0), factor=some, eta=0.1) == "newton_cg"
    for smooth in (Hyperbolic(1.0, 0.1), Welsch(1.0, 0.1)):
        assert engine_of(X, smooth) == "gram"


@pytest.mark.parametrize("lam", [0.5, 20.0])
def test_well_conditioned_problems_need_few_products(lam, monkeypatch):
    """With the penalty λ/2 ‖w‖², κ = 1 + 2 ‖XᵀX‖/λ, and 2√κ products are counted."""
    X = random_sparse(400, 50)
    objective = problem_of(X, L2(lam))
    classes = [objective.rows]
    kappa = 1.0 + 2.0 * np.linalg.norm(X.toarray(), 2) ** 2 / lam
    monkeypatch.setattr(tuning, "CONDITION_STEPS", 200)
    product = costs.product_ns(objective, classes)
    dear = costs.Cost(0.0, 500.0 * product, 1.0)
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 1e3)
    assert np.isclose(costs.cg_cost(objective, classes, dear).steps, 2.0 * np.sqrt(kappa), rtol=1e-6)
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 0.5 * np.sqrt(kappa))  # no more than that
    assert costs.cg_cost(objective, classes, dear).steps == 0.5 * np.sqrt(kappa)
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 1e3)
    cheap = costs.Cost(0.0, product, 1.0)  # less than the estimate of κ would cost
    assert costs.cg_cost(objective, classes, cheap).steps == 1e3


def test_a_budget_is_spent_in_all_and_by_the_last_iteration():
    budget = costs.Budget.beside(costs.Cost(once=10.0, step=4.0, steps=5.0))
    assert budget == costs.Budget(total=15.0, iteration=2.0)
    assert budget.is_spent(15.1, 2.1)
    assert not budget.is_spent(14.9, 2.1)
    assert not budget.is_spent(1e9, 1.9)
    assert not costs.NO_LIMIT.is_spent(1e300, 1e300)


def test_a_kink_on_sparse_rows_has_the_cheaper_engine(monkeypatch):
    X = random_sparse(400, 50)
    objective = problem_of(X, L1(1.0))
    classes = [objective.rows]
    border = tuning.CD_GRADIENTS * costs.gram_cost(objective, classes).total / costs.cd_cost(classes).total
    monkeypatch.setattr(tuning, "CD_GRADIENTS", 1.001 * border)
    assert engine_of(X, L1(1.0)) == "gram"
    monkeypatch.setattr(tuning, "CD_GRADIENTS", 0.999 * border)
    assert engine_of(X, L1(1.0)) == "cd"
    assert engine_of(X, L1(1.0), factor=np.append(0.0, np.ones(49))) == "gram"
    assert engine_of(X.toarray(), L1(1.0)) == "gram"


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("features", [90, 130])
def test_few_rows_and_a_quadratic_penalty_have_the_cheapest_engine(
    sparse, features, any_condition, monkeypatch
):
    X = random_sparse(90, features)
    X = X if sparse else X.toarray()
    objective = problem_of(X, L2(1.0))
    classes = [objective.rows]
    dual, gram = costs.dual_cost(classes).total, costs.gram_cost(objective, classes).total
    cheaper = "dual_newton" if dual <= gram else "gram"
    border = min(dual, gram) / costs.product_ns(objective, classes)
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 1.001 * border)
    assert engine_of(X, L2(1.0)) == cheaper
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 0.999 * border)
    assert engine_of(X, L2(1.0)) == "newton_cg"


def test_the_dual_equations_are_for_a_quadratic_penalty_and_as_many_rows_as_features_at_most(
    any_condition, monkeypatch
):
    monkeypatch.setattr(tuning, "CG_PRODUCTS", 1e12)
    monkeypatch.setattr(tuning, "DUAL_ROWS", 95)
    X = np.zeros((96, 96))
    assert engine_of(X[:90, :90], L2(1.0)) == "dual_newton"
    assert engine_of(X[:91, :90], L2(1.0)) == "gram"
    assert engine_of(X[:95], L2(1.0), gram_features=0) == "dual_newton"
    assert engine_of(X, L2(1.0), gram_features=0) == "newton_cg"
    assert engine_of(X[:90], Hyperbolic(1.0, 0.1)) == "gram"
    assert engine_of(X[:90], L1(1.0)) == "cd"


@pytest.mark.parametrize(("potential", "engine"), [(L1(1.0), "cd"), (L2(1.0), "newton_cg")])
def test_the_gram_matrices_of_four_classes_are_for_half_as_many_features(potential, engine, any_condition):
    rows = MemoryRows(np.zeros((3000, 11)), np.where(np.arange(3000) % 2, 1.0, -1.0))
    for features, expected in ((10, "gram"), (11, engine)):
        part = rows.columns(np.arange(features))
        chosen = Newton(20).choose_engine(
            Objective.joint([part] * 4, potential), np.zeros(4 * (features + 1))
        )
        assert chosen.__name__ == f"{expected}_iterates"


def test_a_working_set_is_for_dense_rows_a_kink_and_many_features_or_a_start(any_condition):
    X = np.zeros((3000, 200))
    assert engine_of(X, L1(1.0)) == "working_set"
    assert engine_of(X, L2(1.0)) == "gram"
    assert engine_of(X[:, :199], L1(1.0)) == "gram"
    X = X[:, :50]
    assert engine_of(X, L1(1.0), start=True) == "working_set"
    assert engine_of(X, L1(1.0)) == "gram"
    assert engine_of(X, L2(1.0), start=True) == "gram"
    assert engine_of(random_sparse(3000, 50), L1(1.0), start=True) == "gram"


@pytest.mark.parametrize("warm", [False, True])
def test_a_run_that_goes_on_from_another_has_the_gram_matrix_of_all_features(warm):
    X, y = wide(n=900, p=220)
    rows = MemoryRows(X, y)
    strong = Objective(rows, L1(60.0))
    start = solve(Newton(), strong).iterate.theta if warm else np.zeros(221)
    rows.warm_cache.clear()
    solve(Newton(), Objective(rows, L1(50.0)), start)
    assert (ActiveQuadratic in rows.warm_cache) == warm


def test_columns_are_for_kinks_where_the_gram_matrix_is_singular_and_not_small():
    X = np.zeros((200, 60))
    assert engine_of(X[:120], L1(1.0)) == "cd"
    assert engine_of(X[:121], L1(1.0)) == "gram"
    assert engine_of(X[:120], L1(1.0), factor=np.append(0.0, np.ones(59))) == "gram"
    assert engine_of(X[:100, :50], L1(1.0)) == "gram"


@pytest.mark.parametrize("potential", [L1(0.01), L2(0.01)], ids=lambda p: p.name)
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.1])
def test_an_engine_that_has_spent_its_budget_hands_over_to_one_that_factorises(potential, share, monkeypatch):
    """Columns that are nearly the same take conjugate gradients and coordinate descent many steps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + 0.05 * rng.standard_normal((300, 40))
    y = np.where(X[:, 0] - X[:, 1] + 0.05 * rng.standard_normal(300) > 0.0, 1.0, -1.0)
    objective = Objective(MemoryRows(sp.csr_matrix(X), y), potential)
    for steps in ("GRAM_STEPS", "DUAL_STEPS"):  # so that the others are chosen first
        monkeypatch.setattr(tuning, steps, 1e3)
    assert Newton().choose_engine(objective, np.zeros(41)) in (cd_iterates, newton_cg_iterates)
    handed = []
    gram = newton.gram_iterates
    monkeypatch.setattr(newton, "gram_iterates", lambda *given: handed.append(given[2]) or gram(*given))
    monkeypatch.setattr(tuning, "HAND_OVER_SHARE", share)
    found = solve(Newton(), objective, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert len(handed) <= 1
    if share == 0.0:
        assert len(handed) == 1
    alone = solve(Newton(gram_features=0), objective, tol=1e-9, max_iter=20_000)
    assert np.isclose(found.iterate.value, alone.iterate.value, rtol=1e-8)


def test_the_dual_kernel_of_sparse_rows_is_that_of_dense_ones():
    rng = np.random.default_rng(1)
    X = random_sparse(30, 70)
    y, s = np.where(rng.random(30) > 0.5, 1.0, -1.0), rng.random(30)
    s[4] = 0.0
    D, used = 0.5 + rng.random(70), np.flatnonzero(s > 0.0)
    scale = y[used] / np.sqrt(s[used])
    (K, pull), (L, push) = (
        kernel(MemoryRows(each, y, s), D, used, scale)
        for kernel, each in ((_sparse_kernel, X), (_dense_kernel, X.toarray()))
    )
    expected = (X / D @ X.T).toarray()[np.ix_(used, used)]
    assert np.allclose(K, expected, rtol=1e-12, atol=1e-14)
    assert np.allclose(L, expected, rtol=1e-12, atol=1e-14)
    a = rng.standard_normal(len(used))
    assert np.allclose(pull(a), X[used].T @ a)
    assert np.allclose(push(a), X[used].T @ a)


@pytest.mark.parametrize("intercept", [True, False])
def test_every_step_of_a_dual_epoch_raises_the_dual(intercept):
    """D(α) = Σ (α - α²/4s) - ½ ‖D^-½ Lᵀα‖²; a step is right for its row if α/2s + v = 1."""
    X = random_sparse(60, 25, 0.3)
    y = np.where(np.arange(60) % 3, 1.0, -1.0)
    s = np.where(np.arange(60) == 7, 0.0, 1.0 + np.arange(60) % 2)
    block = MemoryRows(X, y, s, intercept=intercept).blocks[0]
    L = y[:, np.newaxis] * np.column_stack([X.toarray(), np.full(60, block.b)])
    inverse = 1.0 / (1.0 + np.arange(26))
    theta, dual = np.zeros(26), 0.0
    for k in range(60):
        before = theta.copy()
        block.dual_epoch(np.array([k]), inverse, theta)
        moved = L[k] @ (theta - before)
        if s[k] == 0.0 or L[k] @ before >= 1.0:
            assert np.array_equal(theta, before)
            continue
        alpha = moved / (L[k] @ (inverse * L[k]))
        assert np.allclose(theta - before, alpha * inverse * L[k])
        assert np.isclose(alpha / (2.0 * s[k]) + L[k] @ theta, 1.0)
        after = dual + alpha - alpha**2 / (4.0 * s[k])
        after -= 0.5 * (theta @ (theta / inverse) - before @ (before / inverse))
        assert after > dual
        dual = after
    # A whole epoch is these steps in the order given.
    whole = np.zeros(26)
    block.dual_epoch(np.arange(60), inverse, whole)
    assert np.array_equal(whole, theta)
    assert (theta[-1] != 0.0) == intercept


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_dual_start_is_lower_than_zero_and_at_its_best_scale(lam, intercept):
    rng = np.random.default_rng(2)
    X = random_sparse(200, 80, 0.2)
    y = np.where(X[:, :5] @ np.ones(5) + 0.1 * rng.standard_normal(200) > 0.3, 1.0, -1.0)
    objective = Objective(
        MemoryRows(X, y, rng.random(200), intercept=intercept), L2(lam), 0.1, 0.5 + rng.random(80)
    )
    theta = dual_start(objective, [objective.rows])
    value = objective.evaluate(theta).value
    assert value < objective.loss_at_zero
    for t in (0.5, 0.9, 1.1, 2.0):
        assert value < objective.evaluate(t * theta).value


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("cuts", [(), (17,)])
def test_without_a_gram_matrix_a_step_brings_the_gradient(sparse, cuts):
    X, y, s, _ = random_problem(n=60)
    rows = MemoryRows(sp.csr_matrix(X) if sparse else X, y, s, cuts=cuts)
    theta, d = 0.3 * np.ones(7), np.linspace(-1.0, 1.0, 7)
    quadratic = ActiveQuadratic([rows], theta, gram=False)
    assert not quadratic.knows_gradient
    loss, expected = quadratic.advance(d), rows.loss(theta + d)
    assert quadratic.knows_gradient
    assert np.isclose(loss, expected.value)
    assert np.allclose(quadratic.gradient(theta + d), expected.gradient)
    quadratic.move(-1.0)
    assert not quadratic.knows_gradient


@pytest.mark.parametrize("potential", [L1, lambda lam: Hyperbolic(lam, 1e-9)], ids=["l1", "hyperbolic"])
def test_a_faint_penalty_on_fewer_rows_than_features_takes_few_iterations(potential):
    """With the Gram matrix of all features, this took 45 seconds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 900))
    y = np.where(X[:, :10].sum(axis=1) + rng.standard_normal(300) > 0, 1.0, -1.0)
    rows = MemoryRows(X, y)
    largest = float(np.max(Objective(rows, L1(1.0)).gradient_norms_at_zero))
    result = solve(Newton(), Objective(rows, potential(1e-4 * largest)))
    assert result.status.converged
    assert result.n_iter <= 100


def test_a_working_set_that_misses_a_feature_takes_it_in():
    """At the start, the loss does not pull the second feature; once the first is in, it does."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 40))
    X[:, 1] = X[:, 0] + 0.5 * rng.standard_normal(500)
    y = np.where(1.5 * X[:, 0] - 1.0 * X[:, 1] + 0.3 * rng.standard_normal(500) > 0, 1.0, -1.0)
    objective = Objective(MemoryRows(X, y), L1(20.0))
    start = np.zeros(41)
    start[5] = 1e-3
    result = solve(Newton(), objective, start, tol=1e-9)
    reference = solve(Newton(), objective, tol=1e-9)
    assert result.status.converged
    assert np.isclose(result.iterate.value, reference.iterate.value, rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_supports_larger_than_the_rank_are_shed(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 1100))
    y = np.where(X[:, :5].sum(axis=1) + rng.standard_normal(30) > 0, 1.0, -1.0)
    result = solve(Newton(), Objective(MemoryRows(X, y), L1(1e-3)))
    assert result.status.converged
    assert np.count_nonzero(result.iterate.theta[:-1]) <= 30


# Laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [Newton(), Newton(gram_features=0)], ids=["gram", "large"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("potential", [L1(0.5), L2(0.5), Hyperbolic(0.5, 1e-2)], ids=lambda p: p.name)
def test_the_minimum_does_not_depend_on_how_the_rows_are_written_down(potential, sparse, solver):
    X, y = wide(n=80, p=30)
    rng = np.random.default_rng(2)
    s = rng.integers(1, 4, 80).astype(float)
    rows, columns = rng.permutation(80), rng.permutation(30)

    def minimum(X, y, s):
        objective = Objective(MemoryRows(sp.csr_matrix(X) if sparse else X, y, s), potential)
        result = solve(solver, objective, tol=1e-10, max_iter=5000)
        assert result.status.converged
        return result.iterate

    reference = minimum(X, y, s)
    others = {
        "rows in another order": minimum(X[rows], y[rows], s[rows]),
        "features in another order": minimum(X[:, columns], y, s),
        "labels the other way round": minimum(X, -y, s),
        "features the other way round": minimum(-X, y, s),
        "rows repeated instead of weighted": minimum(
            *(np.repeat(part, s.astype(int), axis=0) for part in (X, y)), np.ones(int(s.sum()))
        ),
    }
    for name, other in others.items():
        assert np.isclose(other.value, reference.value, rtol=1e-9), name
    assert np.allclose(others["labels the other way round"].theta, -reference.theta, atol=1e-4)
    assert np.allclose(others["features in another order"].theta[:-1], reference.theta[columns], atol=1e-4)


class WithoutSurrogates(Hyperbolic):
    """A potential like that of a user who knows of no surrogates; not registered."""

    name = property(lambda self: "plain")

    def surrogates(self, scale):
        return ()


@pytest.mark.parametrize("lam", [1e-1, 1e-3, 1e-5])
def test_a_smooth_potential_needs_no_surrogates(lam):
    """Duplicate indicators are flat directions of the loss, along which nothing but φ decides."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 20)) < 0.3).astype(float)
    X = np.hstack([X, X[:, :10]])
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(300) > 1.2, 1.0, -1.0)
    rows = MemoryRows(sp.csr_matrix(X), y)
    plain, warm = (
        solve(Newton(), Objective(rows, kind(lam, 1e-4))) for kind in (WithoutSurrogates, Hyperbolic)
    )
    assert plain.status.converged
    assert warm.status.converged
    assert np.isclose(plain.iterate.value, warm.iterate.value, rtol=2e-6)


def test_a_faint_penalty_starts_from_a_faint_ridge_and_never_rises():
    X, y = wide(n=300, p=20)
    objective = Objective(MemoryRows(X, y), Hyperbolic(1e-6, 1e-4))
    result = solve(Newton(), objective)
    assert result.status.converged
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[:-1])


@pytest.mark.parametrize("start", ["zero", "elsewhere"])
@pytest.mark.parametrize("potential", [L1(0.5), L2(0.1), Hyperbolic(0.5, 1e-2)])
@pytest.mark.parametrize("cuts", [None, (30,)])
def test_features_that_no_row_has_are_left_out(potential, start, cuts, monkeypatch):
    """Callbacks and results have all features all the same."""
    X, y = wide(n=80, p=60)
    X[np.abs(X) < 0.8] = 0.0
    X[:, 1::3] = X[:, 2::3] = 0.0
    X = sp.csr_array(X)
    rows, seen = MemoryRows(X, y, cuts=cuts), []
    narrowed = MemoryRows.without_empty_columns

    def spy(self, chosen):
        seen.append(narrowed(self, chosen))
        return seen[-1]

    monkeypatch.setattr(MemoryRows, "without_empty_columns", spy)
    objective = Objective(rows, potential, penalty_factor=np.linspace(0.5, 1.5, 60))
    theta = np.zeros(61)
    theta[0 if start == "zero" else 1] = 0.1  # of a feature that occurs, or of one that does not
    solver, shown = Newton(gram_features=0), []

    class Watch(Callback):
        def on_iterate(self, at, record):
            shown.append((at, record))

    result = solve(solver, objective, theta, tol=1e-9, callbacks=[Watch()])
    assert result.status is Status.CONVERGED
    assert bool(seen) == (start == "zero")
    assert shown
    for at, record in shown:
        assert record.objective == pytest.approx(objective.evaluate(at.theta).value + objective.constant)
    assert np.allclose(result.iterate.loss_gradient, rows.loss(result.iterate.theta).gradient, atol=1e-9)
    for part in seen:
        assert part.n_features == 20
        assert np.shares_memory(part.batch_blocks[0]._entries[0], X.data)
        assert np.array_equal(
            part.stats_at_zero.squares, rows.stats_at_zero.squares[np.append(np.arange(0, 60, 3), 60)]
        )
    dense = solve(solver, Objective(MemoryRows(X.toarray(), y), potential, 0.0, objective.factor), tol=1e-9)
    assert result.iterate.value == pytest.approx(dense.iterate.value, rel=1e-8)
    if start == "zero":
        assert not result.iterate.theta[:-1].reshape(-1, 3)[:, 1:].any()


@pytest.mark.parametrize("fall", [0.0, 1e-7, np.inf])
@pytest.mark.parametrize("potential", [L1(2.0), L2(0.5)])
@pytest.mark.parametrize("sparse", [False, True])
def test_margins_that_stay_behind_the_last_step_are_brought_along(sparse, potential, fall, monkeypatch):
    """Whether no step, those near the end, or all are taken for the last: Φ falls to the same minimum."""
    monkeypatch.setattr(tuning, "LAST_STEP_FALL", fall)
    X, y = wide(n=300, p=30)
    rows = MemoryRows(sp.csr_array(X) if sparse else X, y)
    theta = None
    for factor in (1.0, 0.7, 0.5):  # as along a path: each run begins where the last one ended
        weaker = replace(potential, lam=factor * potential.lam)
        result = solve(Newton(), Objective(rows, weaker), theta, tol=1e-11)
        cold = solve(Newton(), Objective(MemoryRows(X, y), weaker), tol=1e-11)
        assert result.status is Status.CONVERGED
        values = result.history.column("objective")
        assert np.all(np.diff(values) <= 1e-12 * values[:-1])
        assert result.iterate.value == pytest.approx(cold.iterate.value, rel=1e-10)
        theta = result.iterate.theta


def test_a_step_that_is_likely_the_last_leaves_the_margins_behind():
    X, y = wide(n=300, p=30)
    rows = MemoryRows(sp.csr_array(X), y)
    result = solve(Newton(), Objective(rows, L2(0.5)))
    quadratic = rows.warm_cache[ActiveQuadratic]
    assert quadratic.is_behind(result.iterate.theta)
    assert not quadratic.is_at(result.iterate.theta)
    assert not result.iterate.carried


def test_classes_share_the_column_numbers_of_the_features_that_occur():
    X, y = wide(n=80, p=60)
    X[np.abs(X) < 0.8] = X[:, ::2] = 0.0
    rows = MemoryRows(sp.csr_array(X), y)
    occurring = np.arange(1, 60, 2)
    parts = [each.without_empty_columns(occurring) for each in (rows, rows.relabelled(-y, np.ones(80)))]
    assert np.shares_memory(*(part.batch_blocks[0]._entries[1] for part in parts))
    assert rows.without_empty_columns(occurring) is parts[0]


@pytest.mark.parametrize("scale", [1e-139, 1e152])
def test_columns_near_the_limits_of_numbers_select_the_same_features(scale):
    """The squares of coefficients, or of what pulls them, leave the range of numbers."""
    X, y = wide(300, 600)
    results = []
    for unit in (1.0, scale):
        rows = MemoryRows(unit * X, y)
        assert Newton().choose_engine(Objective(rows, L1(1.0)), np.zeros(601)) is cd_iterates
        strength = float(np.max(np.abs(rows.loss_at_zero.gradient[:-1]))) / 20.0
        results.append(solve(Newton(), Objective(rows, L1(strength))))
    expected, found = results
    assert found.status is Status.CONVERGED
    assert found.iterate.value == pytest.approx(expected.iterate.value, rel=1e-6)
    assert np.array_equal(found.iterate.theta != 0.0, expected.iterate.theta != 0.0)
