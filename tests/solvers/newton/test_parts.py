"""The parts that Newton's method is made of, each by itself: subproblems, working set, line search, start."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from majorant.duality import column_norms
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic
from majorant.rows import MemoryRows
from majorant.rows.columns import Columns
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers import newton as newton_module
from majorant.solvers import solve
from majorant.solvers.continuation import Continuation
from majorant.solvers.line_search import step_towards
from majorant.solvers.newton import Newton, cd_kernels, costs, tuning
from majorant.solvers.newton import quadratic_subproblem as subproblem
from majorant.solvers.newton.newton_equations import newton_direction
from majorant.solvers.newton.proximal_start import proximal_start
from majorant.solvers.newton.working_set import features_to_watch
from majorant.status import Evaluated, Provisional, Status

FEATURES = 12
FACTOR = np.append(0.0, np.linspace(0.5, 2.0, FEATURES - 1))


def problem(potential, classes=1, *, sparse=False, n=300, **options):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, FEATURES)) * (rng.random((n, FEATURES)) < 0.7)
    X[:, 1] += 0.9 * X[:, 0]
    scores = X[:, :classes] + 0.5 * rng.standard_normal((n, classes))
    codes = scores.argmax(axis=1) if classes > 1 else (scores[:, 0] < 0).astype(int)
    s = rng.uniform(0.5, 2.0, n)
    X = sp.csr_array(X) if sparse else X
    first = MemoryRows(X, np.where(codes == 0, 1.0, -1.0), s)
    others = [first.relabelled(np.where(codes == c, 1.0, -1.0), s) for c in range(1, classes)]
    return Objective.joint([first, *others], potential, **options)


def model_at(objective, size=0.3):
    """A point, and the Hessians of the loss there."""
    theta = size * np.random.default_rng(1).standard_normal(objective.size)
    at = objective.evaluate(theta)
    return ActiveQuadratic(objective.in_memory, theta).H.copy(), at


def model_value(objective, H, at, theta):
    d = objective.matrix(theta - at.theta)
    quadratic = np.sum(objective.matrix(at.loss_gradient) * d) + 0.5 * np.einsum("ci,cij,cj->", d, H, d)
    return quadratic + objective.penalty(theta) - objective.penalty(at.theta)


def violation(objective, H, at, theta):
    """The largest entry of the model's subgradient of smallest norm, feature by feature."""
    moved = objective.matrix(theta - at.theta)
    gradient = at.loss_gradient + np.einsum("cij,cj->ci", H, moved).ravel()
    there = Evaluated(theta, np.nan, gradient)
    return float(np.max(column_norms(objective.matrix(objective.subgradient(there)))))


@pytest.mark.parametrize("options", [{}, {"eta": 0.5, "penalty_factor": FACTOR}], ids=["plain", "elastic"])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("potential", [L1(8.0), L2(3.0), Hyperbolic(8.0, 0.01)], ids=repr)
def test_a_subproblem_is_minimised_as_far_as_asked(potential, classes, options):
    objective = problem(potential, classes, **options)
    H, at = model_at(objective)
    for accuracy in (0.05, 1e-3, 1e-6):
        theta, fall = subproblem.minimise_model(objective, H, at, accuracy)
        assert fall == pytest.approx(-model_value(objective, H, at, theta), rel=1e-6)
        assert fall > 0.0
        # The units of the violation are those of the features, which are alike here.
        left = violation(objective, H, at, theta) / violation(objective, H, at, at.theta)
        assert left <= 3.0 * accuracy


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("potential", [L2(3.0), Hyperbolic(8.0, 0.3)], ids=repr)
def test_a_smooth_subproblem_agrees_with_scipy(potential, classes):
    objective = problem(potential, classes, eta=0.1)
    H, at = model_at(objective)
    found, fall = subproblem.minimise_smooth(objective, H, at, accuracy=1e-9)
    known = minimize(lambda theta: model_value(objective, H, at, theta), at.theta, method="BFGS")
    assert -fall <= known.fun + 1e-6 * abs(known.fun)
    np.testing.assert_allclose(found, known.x, atol=1e-3)


@pytest.mark.parametrize("classes", [1, 3])
def test_equations_that_are_too_large_are_solved_by_products(classes, monkeypatch):
    objective = problem(Hyperbolic(4.0, 0.2), classes, eta=0.1)
    H, at = model_at(objective)
    gradient = objective.gradient(at)
    known = newton_direction(objective, H, at.theta, gradient)
    if classes > 1:  # those of one class are always factorised where there is a matrix
        monkeypatch.setattr(tuning, "DIRECT_UNKNOWNS", 0)
        found = newton_direction(objective, H, at.theta, gradient, 1e-10)
        np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-8)
    products = ActiveQuadratic(objective.in_memory, at.theta, gram=False)
    found = newton_direction(objective, products, at.theta, gradient, 1e-10)
    np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-8)


def test_models_of_large_supports_have_fewer_rounds_and_fits_the_same_minimum(monkeypatch):
    monkeypatch.setattr(tuning, "LEAST_SWEEPS", 1)  # so that sweeps alone do not end a model
    monkeypatch.setattr(tuning, "MOST_SWEEPS", 1)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 30)) + rng.standard_normal((200, 1))
    y = np.sign(X[:, 0] + rng.standard_normal(200))
    objective = Objective(MemoryRows(X, y), L1(0.3))
    H, at = model_at(objective)
    solve_on_support, rounds = subproblem._KinkedModel.solve_on_support, []

    def counted(model, theta, r):
        rounds.append(np.count_nonzero(theta))
        return solve_on_support(model, theta, r)

    monkeypatch.setattr(subproblem._KinkedModel, "solve_on_support", counted)
    values = []
    for large, most in ((500, tuning.MODEL_ROUNDS), (1, tuning.LARGE_MODEL_ROUNDS)):
        monkeypatch.setattr(tuning, "LARGE_SUPPORT", large)
        rounds.clear()
        _, fall = subproblem.minimise_kinked(objective, H[0], at, 1e-12)
        assert fall > 0.0
        assert 1 <= len(rounds) <= most - 1
        result = solve(Newton(), objective, tol=1e-9)
        assert result.status is Status.CONVERGED
        values.append(result.iterate.value)
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_on_the_support_zeros_stay_and_the_others_are_at_rest():
    objective = problem(L1(40.0))
    H, at = model_at(objective)
    theta = 1.1 * subproblem.minimise_kinked(objective, H[0], at, 1e-6)[0]  # no sign will change
    zero = np.flatnonzero(theta == 0.0)
    at = Evaluated(theta, np.nan, at.loss_gradient + H[0] @ (theta - at.theta))
    found, fall = subproblem.minimise_on_support(objective, H[0], at)
    assert fall > 0.0
    assert len(zero)
    assert not found[zero].any()
    gradient = at.loss_gradient + H[0] @ (found - theta)
    moving = found[:-1] != 0.0
    np.testing.assert_allclose(gradient[:-1][moving], -40.0 * np.sign(found[:-1][moving]), atol=1e-6)


def test_a_sharp_kink_is_minimised_from_the_kinked_surrogate():
    objective = problem(Hyperbolic(30.0, 1e-7))
    H, at = model_at(objective)
    _, plain = subproblem.minimise_smooth(objective, H, at, steps=3)
    found, fall = subproblem.minimise_from_kink(objective, H, at)
    assert fall == pytest.approx(-model_value(objective, H, at, found), rel=1e-9)
    assert fall > plain


# The quadratic that is carried along ------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_the_quadratic_of_several_classes_is_that_of_each(sparse):
    objective = problem(L2(1.0), 3, sparse=sparse)
    rng = np.random.default_rng(0)
    theta, d = 0.3 * rng.standard_normal((2, objective.size))
    together = ActiveQuadratic(objective.in_memory, theta)
    apart = [
        ActiveQuadratic([rows], row)
        for rows, row in zip(objective.in_memory, objective.matrix(theta), strict=True)
    ]
    for _ in range(2):
        assert np.array_equal(together.H, np.concatenate([each.H for each in apart]))
        assert together.loss == pytest.approx(sum(each.loss for each in apart), rel=1e-14)
        np.testing.assert_allclose(
            together.gradient(theta), objective.evaluate(theta).loss_gradient, atol=1e-9
        )
        together.advance(d)
        theta = theta + d
        together.commit(theta)
        for each, row, step in zip(apart, objective.matrix(theta), objective.matrix(d), strict=True):
            each.advance(step)
            each.commit(row)


# The line search -------------------------------------------------------------------------------------------


def test_a_step_is_cut_until_phi_falls_and_uphill_there_is_none():
    objective = problem(L2(1.0))
    theta = np.zeros(objective.size)
    at = objective.evaluate(theta)
    gradient = objective.gradient(at)
    quadratic = ActiveQuadratic(objective.in_memory, theta)
    downhill = theta - 10.0 * gradient
    moved, value = step_towards(objective, quadratic, theta, at.value, downhill, 10.0 * gradient @ gradient)
    assert value < at.value
    assert value == pytest.approx(objective.evaluate(moved).value, rel=1e-12)
    assert quadratic.theta is moved
    uphill = moved + objective.gradient(objective.evaluate(moved))
    stayed, same = step_towards(objective, quadratic, moved, value, uphill, 1.0)
    assert np.array_equal(stayed, moved)
    assert same == value


# The working set -------------------------------------------------------------------------------------------


def test_features_in_use_are_watched_and_the_most_violated_of_the_others():
    objective = problem(L1(20.0), penalty_factor=FACTOR)
    theta = np.zeros(objective.size)
    theta[[4, 9]] = 0.1
    at = objective.evaluate(theta)
    pulls, held = np.abs(at.loss_gradient[:-1]), objective.kink_slopes[:-1]
    everyone = features_to_watch(objective, at, FEATURES, 1)
    assert {0, 4, 9} <= set(everyone)  # feature 0 has no penalty
    assert set(np.flatnonzero(pulls > 0.8 * held)) <= set(everyone)
    few = features_to_watch(objective, at, 4, 1)
    assert len(few) == 4
    assert {0, 4, 9} <= set(few)
    violations = objective.violations(at)[:-1]
    (chosen,) = set(few) - {0, 4, 9}
    others = set(everyone) - set(few)
    assert all(violations[chosen] >= violations[j] for j in others)


def test_where_the_support_leaves_no_room_the_worst_take_their_turn():
    objective = problem(L1(0.1))
    at = objective.evaluate(0.2 * np.ones(objective.size))
    chosen = features_to_watch(objective, at, 3, 2, most=5)
    worst = np.argsort(-objective.violations(at)[:-1])[:5]
    assert set(chosen) == set(worst)


# Coordinate descent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
def test_sweeps_never_raise_phi_and_end_at_the_goal(classes):
    objective = problem(L1(15.0), classes, sparse=True, eta=0.2)
    rows = objective.in_memory
    y = np.stack([np.concatenate([block.y for block in part.blocks]) for part in rows])
    s = np.concatenate([block.s for block in rows[0].blocks])
    codes, source = None, rows[0]
    if classes > 1:
        codes, source = y.argmax(axis=0), rows[0].relabelled(np.ones(len(s)), s)
    columns = Columns.of(source, np.arange(FEATURES))
    u = np.repeat(np.sqrt(s), classes)
    theta = np.zeros((FEATURES + 1, classes))
    intercept = np.sqrt(s) * (y[0] if classes == 1 else 1.0)
    workspace = cd_kernels.workspace(FEATURES, len(s), classes)
    value = objective.evaluate(objective.start()).value
    goal = 1e-6
    for _ in range(200):
        violated, visited = cd_kernels.descend_along(
            columns.data, columns.indices, columns.starts, codes, intercept, u, theta,
            np.full(FEATURES, 15.0), 0.2, objective.violation_scale[:-1], *workspace, 0.01, goal, 0.0, 1,
        )  # fmt: skip
        reached = objective.evaluate(np.ascontiguousarray(theta.T).ravel())
        # The slacks that were carried along are those of θ.
        assert reached.value == pytest.approx(
            np.sum(np.maximum(u, 0.0) ** 2) + objective.penalty(reached.theta), rel=1e-10
        )
        assert reached.value <= value * (1.0 + 1e-12)
        assert visited >= len(columns.data)
        value = reached.value
        if violated <= goal:
            break
    assert np.max(objective.violations(reached)) <= 10.0 * goal


# The start -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 3])
def test_the_way_over_surrogates_never_leads_upwards(classes):
    objective = problem(Hyperbolic(10.0, 1e-4), classes)
    start = objective.evaluate(objective.start())
    way = Continuation(objective, start, Newton().descend)
    values = [at.value for at in way.over_surrogates()]
    assert values
    assert all(isinstance(at, Provisional) for at in way.over_surrogates())
    assert np.all(np.diff([start.value, *values, way.end.value]) <= 1e-12 * start.value)
    assert objective.estimate(way.end).error < 1e-3


@pytest.mark.parametrize("classes", [1, 3])
def test_what_coordinate_descent_keeps_does_not_keep_the_rows_alive(classes):
    objective = problem(L1(2.0), classes, sparse=True)
    rows = weakref.ref(objective.rows)
    gc.collect()
    gc.disable()
    try:
        assert solve(Newton(gram_features=0), objective, tol=1e-8).status is Status.CONVERGED
        del objective
        assert rows() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("gram_features", [0, 1000], ids=["coordinate descent", "Gram matrix"])
def test_what_a_joint_run_has_left_is_not_for_one_of_its_classes(gram_features):
    solver = Newton(gram_features=gram_features)
    joint = problem(L1(2.0), 3, sparse=True)
    fresh = solve(solver, Objective(problem(L1(2.0), 3, sparse=True).rows, L1(2.0)), tol=1e-8)
    solve(solver, joint, tol=1e-8)
    after = solve(solver, Objective(joint.rows, L1(2.0)), tol=1e-8)
    assert after.n_iter == fresh.n_iter
    assert np.array_equal(after.iterate.theta, fresh.iterate.theta)


def test_a_support_as_large_as_allowed_has_a_newton_step(monkeypatch):
    """Hessians have a row more than the support has features."""
    objective = problem(L1(0.5), sparse=True)
    reference = solve(Newton(), objective, tol=1e-9)
    count = np.count_nonzero(reference.iterate.theta[:-1])
    for size in (count, count + 1):
        monkeypatch.setattr(tuning, "CD_HESSIAN_ENTRIES", size**2)
        for cost in ("STEP_NS", "PASS_NS", "UPDATE_NS", "FLOP_NS"):  # Newton steps are due at once
            monkeypatch.setattr(tuning, cost, 0.0)
        found = solve(Newton(gram_features=0), problem(L1(0.5), sparse=True), tol=1e-9, max_iter=10_000)
        assert found.iterate.value == pytest.approx(reference.iterate.value, rel=1e-8)


@pytest.mark.parametrize("potential", [L2(1.0), Hyperbolic(0.1, 1e-2)])
def test_models_without_an_intercept_are_minimised(potential):
    """Its row of the Hessian is zero: Cholesky must not fail for that."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    objective = Objective(MemoryRows(X, y, intercept=False), potential)
    H, at = model_at(objective, size=0.0)
    theta, fall = subproblem.minimise_model(objective, H, at, 1e-6)
    assert fall > 0.0
    assert theta[-1] == 0.0
    assert violation(objective, H, at, theta) < 1e-4 * violation(objective, H, at, at.theta)


@pytest.mark.parametrize("options", [{}, {"eta": 0.5, "penalty_factor": FACTOR}], ids=["plain", "elastic"])
def test_a_proximal_start_is_near_the_minimum_and_indifferent_to_units(options, monkeypatch):
    objective = problem(L1(8.0), **options)
    least = solve(Newton(), objective, tol=1e-10).iterate.value
    zero = objective.evaluate(objective.start()).value
    reached = objective.evaluate(proximal_start(objective).theta).value
    assert reached - least <= 0.1 * (zero - least)
    monkeypatch.setattr(tuning, "PROXIMAL_STEPS", 200)
    far = proximal_start(objective)
    assert objective.evaluate(far.theta).value <= (1 + 1e-6) * least
    np.testing.assert_allclose(far.loss_gradient, objective.evaluate(far.theta).loss_gradient, atol=1e-2)
    units = 10.0 ** np.linspace(-3, 3, FEATURES)
    (block,) = objective.rows.blocks
    rows = MemoryRows(block.X / units, block.y, block.s)
    # The ridge has units of its own, so that it is left out.
    scaled = Objective(rows, L1(8.0), penalty_factor=objective.factor / units)
    whole = Objective(objective.rows, L1(8.0), penalty_factor=objective.factor)
    monkeypatch.setattr(tuning, "PROXIMAL_STEPS", 8)
    first, second = proximal_start(whole).theta[:-1], proximal_start(scaled).theta[:-1] / units
    np.testing.assert_allclose(second, first, rtol=1e-6, atol=1e-9)


def test_a_proximal_start_is_for_many_features_in_play(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 220))
    y = np.where(X[:, :200].sum(axis=1) + rng.standard_normal(900) > 0.0, 1.0, -1.0)
    objective = Objective(MemoryRows(X, y), L1(1.0))
    pulled = np.count_nonzero(objective.gradient_norms_at_zero > 1.0)
    passes = 2 * (tuning.PROXIMAL_STEPS + tuning.POWER_STEPS) * costs.pass_ns(objective.rows)
    border = passes / (tuning.FLOP_NS * 900 * pulled**2)
    calls = []
    monkeypatch.setattr(
        newton_module, "proximal_start", lambda objective: calls.append(1) or proximal_start(objective)
    )
    found = {}
    for share in (0.999 * border, 1.001 * border):
        monkeypatch.setattr(tuning, "PROXIMAL_START_SHARE", share)
        objective = Objective(MemoryRows(X, y), L1(1.0))
        found[share] = solve(Newton(), objective, tol=1e-9).iterate
    assert calls == [1]
    first, second = found.values()
    np.testing.assert_allclose(second.theta, first.theta, atol=1e-5)
