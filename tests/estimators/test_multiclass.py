"""More than two classes: one against the rest, and all at once."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import scale

from majorant import SparseSVC, lambda_max
from majorant.duality import column_norms
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Potential
from majorant.rows import MemoryRows
from majorant.rows.quadratic import ActiveQuadratic
from majorant.solvers import Newton, solve
from majorant.solvers.newton.newton_equations import PenaltyCurvature, tied_matrix
from majorant.status import Status

ALL = [potential for kind in Potential.registry.values() for potential in kind.examples()]
SOLVABLE = [potential for potential in ALL if potential.smooth or potential.concave]


def problem(n=80, p=6, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X[:, :classes] + 0.5 * rng.standard_normal((n, classes))
    return X, scores.argmax(axis=1), rng.uniform(0.5, 2.0, n)


def joint(potential, *, eta=0.0, factor=None, intercept=True, sparse=False, **shape):
    X, codes, s = problem(**shape)
    labels = [np.where(codes == c, 1.0, -1.0) for c in range(codes.max() + 1)]
    X = sp.csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X)) if sparse else X
    rows = MemoryRows(X, labels[0], s, intercept=intercept)
    return Objective.joint([rows, *(rows.relabelled(y, s) for y in labels[1:])], potential, eta, factor)


# The objective -----------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.0, 0.3])
@pytest.mark.parametrize("potential", ALL, ids=repr)
def test_classes_that_are_alike_are_one_class_with_a_longer_coefficient(potential, eta):
    """Two classes with the same labels and coefficients: the same problem with φ(√2 w) and twice the loss."""
    rows = joint(potential).rows
    one, two = Objective(rows, potential, eta), Objective.joint([rows, rows], potential, eta)
    for theta in (np.zeros(7), np.array([0.5, -0.2, 0.0, 1.0, 0.0, -0.01, 0.1])):
        single, double = one.evaluate(theta), two.evaluate(np.tile(theta, 2))
        loss = single.value - one.penalty(theta)
        assert np.isclose(double.value, 2.0 * loss + one.penalty(np.sqrt(2.0) * theta))
        assert np.allclose(double.loss_gradient, np.tile(single.loss_gradient, 2))
        assert np.allclose(two.lengths(np.tile(theta, 2)), np.sqrt(2.0) * one.lengths(theta))


@pytest.mark.parametrize("potential", [p for p in ALL if p.smooth], ids=repr)
def test_the_gradient_is_that_of_the_value(potential):
    objective = joint(potential, eta=0.2, factor=np.array([1.0, 0.5, 2.0, 0.0, 1.0, 1.0]))
    theta = np.random.default_rng(1).standard_normal(objective.size)
    gradient = objective.gradient(objective.evaluate(theta))
    for i, step in enumerate(1e-6 * np.eye(objective.size)):
        ahead, behind = (objective.evaluate(theta + sign * step).value for sign in (1, -1))
        assert np.isclose(gradient[i], (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("potential", [p for p in ALL if p.smooth], ids=repr)
def test_the_half_quadratic_weights_majorise_the_penalty_of_lengths(potential):
    objective = joint(potential)
    rng = np.random.default_rng(2)
    for _ in range(50):
        W, V = (rng.standard_normal((3, 6)) * rng.choice([1e-3, 0.1, 1.0]) for _ in range(2))
        t, u = column_norms(W), column_norms(V)
        majorant = objective.majorant(np.column_stack([W, np.zeros(3)]).ravel())
        bound = potential.value(t) + 0.5 * majorant.factor * (u**2 - t**2)
        assert np.all(potential.value(u) <= bound + 1e-12 * (1 + np.abs(bound)))


@pytest.mark.parametrize("eta", [0.0, 0.3])
@pytest.mark.parametrize("potential", [p for p in ALL if p.convex and p.max_slope > 0], ids=repr)
def test_the_gap_is_never_less_than_the_distance_to_the_minimum(potential, eta):
    objective = joint(potential, eta=eta)
    best = solve(Newton(), objective, tol=1e-10, max_iter=3000).iterate.value
    rng = np.random.default_rng(3)
    for size in (0.0, 0.01, 0.3, 1.0):
        at, certificate = objective.certify(size * rng.standard_normal(objective.size))
        assert certificate.gap * at.value >= at.value - best - 1e-9 * best


@pytest.mark.parametrize("potential", [Hyperbolic(2.0, 0.3), L2(0.7)], ids=repr)
def test_the_hessian_is_that_of_the_gradient(potential):
    objective = joint(potential, eta=0.2, factor=np.array([1.0, 0.5, 2.0, 0.0, 1.0, 1.0]))
    rng = np.random.default_rng(4)
    theta, d = 0.1 * rng.standard_normal(objective.size), rng.standard_normal(objective.size)
    quadratic, penalty = ActiveQuadratic(objective.in_memory, theta), PenaltyCurvature(objective, theta)
    product = penalty.add_product(d, quadratic.product(d))
    if penalty.tied:
        assert np.allclose(tied_matrix(quadratic.H, penalty) @ d, product)
    ahead, behind = (objective.gradient(objective.evaluate(theta + h * d)) for h in (1e-6, -1e-6))
    assert np.allclose(product, (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-3)


# The solver --------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("potential", [L1(1.0), Hyperbolic(1.0, 1e-3)], ids=repr)
def test_large_problems_take_other_ways_to_the_same_point(potential, intercept, monkeypatch):
    def minimum(gram_features=1000):
        return solve(
            Newton(gram_features), joint(potential, sparse=True, p=40, n=200, intercept=intercept), tol=1e-9
        )

    small = minimum()
    monkeypatch.setattr("majorant.solvers.newton.tuning.DIRECT_UNKNOWNS", 0)
    monkeypatch.setattr("majorant.solvers.newton.tuning.CD_HESSIAN_ENTRIES", 0)
    monkeypatch.setattr("majorant.solvers.newton.tuning.CD_FIRST", 5)
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES", 10)
    large = minimum(0)
    assert small.status.converged
    assert large.status.converged
    assert np.isclose(small.iterate.value, large.iterate.value, rtol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("potential", SOLVABLE, ids=repr)
def test_every_potential_is_solved_monotonically(potential, sparse):
    objective = joint(potential, eta=0.05, factor=np.array([1.0, 0.5, 2.0, 0.0, 1.0, 1.0]), sparse=sparse)
    result = solve(Newton(), objective, tol=1e-7, max_iter=3000)
    assert result.status.converged
    values = result.history.column("objective")
    assert all(after <= before + 1e-12 * abs(before) for before, after in pairwise(values))
    assert np.max(objective.violations(objective.evaluate(result.iterate.theta))) < 1e-3


def test_l1_agrees_with_proximal_gradient_descent():
    objective = joint(L1(20.0), sparse=True)
    W = np.zeros((3, 7))
    bound = 2.0 * np.linalg.eigvalsh(objective.classes[0].gram())[-1]
    step = 1.0 / bound
    for _ in range(20_000):
        at = objective.evaluate(W.ravel())
        W = W - step * objective.matrix(at.loss_gradient)
        t = column_norms(W[:, :-1])
        W[:, :-1] *= np.maximum(1.0 - step * 20.0 / np.maximum(t, 1e-300), 0.0)
    result = solve(Newton(), objective, tol=1e-12)
    assert np.isclose(result.iterate.value, objective.evaluate(W.ravel()).value, rtol=1e-9)
    ours = objective.lengths(result.iterate.theta)
    assert 0 < np.count_nonzero(ours) < 6
    assert np.array_equal(ours == 0.0, column_norms(W[:, :-1]) == 0.0)


def test_the_hyperbolic_solution_tends_to_the_group_lasso():
    sharp = solve(Newton(), joint(L1(3.0)), tol=1e-10).iterate.value
    falls = [
        solve(Newton(), joint(Hyperbolic(3.0, delta)), tol=1e-10).history[-1].objective - sharp
        for delta in (1e-1, 1e-2, 1e-3)
    ]
    assert all(0.0 < fall < 3.0 * 6 * delta for fall, delta in zip(falls, (1e-1, 1e-2, 1e-3), strict=True))


# The estimator -----------------------------------------------------------------------------------


def test_with_l2_joint_and_ovr_are_the_same():
    X, y = load_iris(return_X_y=True)
    models = [SparseSVC("l2", lam=0.5, multi_class=kind, tol=1e-12).fit(X, y) for kind in ("ovr", "joint")]
    assert np.allclose(models[0].coef_, models[1].coef_, atol=1e-5)
    assert np.isclose(models[0].objective_, models[1].objective_, rtol=1e-10)


def test_ovr_is_a_binary_fit_per_class():
    X, y = load_iris(return_X_y=True)
    model = SparseSVC("l1", lam=1.0, tol=1e-9).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (150, 3)
    for c in range(3):
        single = SparseSVC("l1", lam=1.0, tol=1e-9).fit(X, y == c)
        assert np.allclose(model.coef_[c], single.coef_[0], atol=1e-6)
        assert np.allclose(model.intercept_[c], single.intercept_[0], atol=1e-6)
    assert len(model.history_) == 3
    assert 0.0 <= model.gap_ <= 1e-9


def test_joint_features_are_in_for_all_classes_or_out_for_all():
    X, y = load_digits(return_X_y=True)
    X = scale(X)
    lam = 0.2 * lambda_max(X, y, "l1", multi_class="joint")
    for penalty in ("l1", "hyperbolic"):
        model = SparseSVC(penalty, lam=lam, multi_class="joint").fit(X, y)
        assert model.converged_
        inside = model.coef_ != 0.0
        assert np.array_equal(inside.all(axis=0), inside.any(axis=0))
        assert 0 < len(model.support_) < 64
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
@pytest.mark.parametrize("penalty", ["l1", "hyperbolic"])
def test_lambda_max_is_where_the_first_feature_enters(penalty, multi_class):
    X, y, s = problem(classes=4, p=8)
    settings = {"multi_class": multi_class, "penalty_factor": [1, 2, 0.5, 1, 1, 0, 3, 1]}
    strength = lambda_max(X, y, penalty, sample_weight=s, **settings)
    above, below = (
        SparseSVC(penalty, lam=factor * strength, **settings).fit(X, y, sample_weight=s)
        for factor in (1.0001, 0.98)
    )
    assert above.support_.tolist() == [5]  # which is not penalised
    assert len(below.support_) > 1


def test_threads_share_the_work_and_change_nothing():
    X, y = load_digits(return_X_y=True)
    models = [SparseSVC("l1", lam=5.0, n_jobs=jobs).fit(X, y) for jobs in (None, 2, -1)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].coef_, models[2].coef_)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_weights_are_repetitions(multi_class):
    X, y, _ = problem()
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = SparseSVC("l1", lam=3.0, multi_class=multi_class, tol=1e-11).fit(X, y, sample_weight=counts)
    repeated = SparseSVC("l1", lam=3.0, multi_class=multi_class, tol=1e-11).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-7)


def test_balanced_classes_weigh_the_same_whatever_their_sample_weights():
    X, y, s = problem(classes=3)
    factors = np.array([s.sum() / (3 * s[y == c].sum()) for c in range(3)])
    one = SparseSVC("l2", class_weight="balanced").fit(X, y, sample_weight=s)
    other = SparseSVC("l2").fit(X, y, sample_weight=s * factors[y])
    assert np.allclose(one.coef_, other.coef_)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_a_warm_start_is_already_there(multi_class):
    X, y, _ = problem()
    model = SparseSVC("l1", lam=3.0, multi_class=multi_class, warm_start=True).fit(X, y)
    first = model.coef_.copy()
    model.fit(X, y)
    assert model.n_iter_ <= 2
    assert np.allclose(model.coef_, first, atol=1e-4)


@pytest.mark.parametrize("solver", ["mm", "adam"])
def test_joint_says_which_solvers_take_it(solver):
    X, y, _ = problem()
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        SparseSVC(multi_class="joint", solver=solver).fit(X, y)


def test_string_labels_and_order_of_classes():
    X, y, _ = problem()
    names = np.array(["wolf", "ape", "bear"])[y]
    model = SparseSVC("l1", lam=0.1).fit(X, names)
    assert model.classes_.tolist() == ["ape", "bear", "wolf"]
    assert np.mean(model.predict(X) == names) > 0.7


def test_ctrl_c_keeps_what_there_is():
    X, y, _ = problem()
    from majorant.callbacks import Callback

    class Interrupt(Callback):
        def on_iterate(self, iterate, record):
            return Status.INTERRUPTED if record.iteration == 1 else None

    model = SparseSVC("l1", lam=0.1).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert model.coef_[0].any()
    assert not model.coef_[1:].any()


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
@pytest.mark.parametrize(("lam", "tol"), [(1e-3, 1e-6), (1e-5, 1e-6), (1e-6, 1e-5)])
def test_a_faint_penalty_on_separable_data(multi_class, lam, tol):
    """Φ falls to a billionth of where it began; rounding leaves the fewer digits of it, the fainter λ is."""
    X, y, _ = problem(p=8)
    model = SparseSVC("l1", lam=lam, multi_class=multi_class, tol=tol).fit(X + 30.0 * np.eye(8)[:3][y], y)
    assert model.converged_


@pytest.mark.parametrize("size", [1e-200, 1e-120, 1.0, 1e120, 1e200])
def test_lengths_whose_squares_leave_the_range(size):
    W = np.array([[3.0, 0.0, 1.0], [4.0, 0.0, 0.0]])
    assert np.allclose(column_norms(size * W) / size, [5.0, 0.0, 1.0])


def test_what_the_gap_proves():
    X, y, _ = problem()
    model = SparseSVC("hyperbolic", lam=5.0, delta=0.05).fit(X, y)
    exact = SparseSVC("hyperbolic", lam=5.0, delta=0.05, tol=1e-12, zero_tol=0.0).fit(X, y)
    assert model.lower_bound_ <= exact.objective_ <= model.objective_
    assert np.isnan(SparseSVC("welsch").fit(X, y).lower_bound_)
