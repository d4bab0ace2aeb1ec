"""Newton's method on rows that are not in memory: the same minimum, in few passes."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.datasets import load_svmlight_file

from majorant import SparseSVC
from majorant.datasets import from_arrays
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Welsch
from majorant.rows import MemoryRows
from majorant.rows.memory import joined, make_block
from majorant.solvers import Newton, choose_solver, solve
from majorant.solvers.newton import out_of_core, subsample_start, tuning
from majorant.solvers.newton.out_of_core import ModelSums, PassModel, model_sums, pass_model
from majorant.status import Provisional, Status
from tests.problems import ElsewhereRows


def problem(kind, n=600, p=12):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    return (sp.csr_array(X) if kind == "sparse" else X), y, rng.uniform(0.5, 2.0, n)


@pytest.fixture(params=["dense", "sparse"])
def rows(request):
    X, y, s = problem(request.param)
    return MemoryRows(X, y, s, cuts=[100, 250, 400])


@pytest.fixture(params=[50, 10**9], ids=["small sample", "all rows in the sample"])
def sampled(request, monkeypatch):
    monkeypatch.setattr("majorant.solvers.newton.tuning.SAMPLE_ENTRIES", 13 * request.param)


POTENTIALS = [L1(20.0), L1(0.1), L2(1.0), Hyperbolic(20.0, 1e-3), Hyperbolic(0.1, 1e-4)]


@pytest.mark.parametrize("potential", POTENTIALS, ids=repr)
def test_the_same_minimum_as_in_memory(rows, potential, sampled):
    elsewhere = ElsewhereRows(rows)
    found = solve(Newton(), Objective(elsewhere, potential), tol=1e-9)
    known = solve(Newton(), Objective(rows, potential), tol=1e-9)
    assert found.status is Status.CONVERGED
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-8)
    np.testing.assert_allclose(found.iterate.theta, known.iterate.theta, atol=1e-4)


@pytest.mark.parametrize("potential", [*POTENTIALS, Welsch(5.0, 0.1)], ids=repr)
def test_phi_never_rises(rows, potential, sampled):
    result = solve(Newton(), Objective(ElsewhereRows(rows), potential))
    values = np.array([record.objective for record in result.history])
    assert np.all(np.diff(values) <= 1e-9 * values[0])
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("potential", POTENTIALS, ids=repr)
def test_a_pass_for_each_step(rows, potential, sampled):
    """Loss at zero, sample, first model, certificate; and a pass for every step that is taken."""
    elsewhere = ElsewhereRows(rows)
    result = solve(Newton(), Objective(elsewhere, potential))
    steps = len({record.objective for record in result.history})
    assert elsewhere.passes <= steps + 5
    assert elsewhere.passes <= 16


def test_from_a_given_point_there_is_no_sample(rows):
    elsewhere = ElsewhereRows(rows)
    objective = Objective(elsewhere, L1(1.0))
    end = solve(Newton(), Objective(rows, L1(1.0)), tol=1e-10).iterate.theta
    objective.rows.stats_at_zero  # noqa: B018 - the pass that every fit begins with
    before = elsewhere.passes
    assert solve(Newton(), objective, end).status is Status.CONVERGED
    assert elsewhere.passes - before <= 2


def test_steps_that_are_too_long_are_cut(rows, monkeypatch):
    """A model that promises too much: its step is cut to where Φ falls, and more than one pass is needed."""
    objective = Objective(ElsewhereRows(rows), L2(1.0))
    honest = out_of_core._Passes._minimised

    def boastful(self, here):
        target = honest(self, here)
        return replace(target, theta=here.at.theta + 50.0 * (target.theta - here.at.theta))

    monkeypatch.setattr(out_of_core._Passes, "_minimised", boastful)
    iterates = out_of_core.descend(objective, objective.evaluate(np.zeros(13)))
    values = [next(iterates).value for _ in range(30)]
    assert np.all(np.diff(values) <= 0.0)
    assert values[-1] < values[0]


@pytest.mark.parametrize("potential", [L1(5.0), L2(5.0)], ids=repr)
@pytest.mark.parametrize("size", [0.05, 0.2, 0.4])
def test_what_a_step_with_another_curvature_leaves(potential, size):
    """No more than δ / (1 - δ) of the distance to the minimum, as long as all rows are active."""
    rng = np.random.default_rng(3)
    X = 0.1 * rng.standard_normal((300, 8))
    rows = MemoryRows(X, np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0.05, 1.0, -1.0))
    objective = Objective(rows, potential)
    minimum = solve(Newton(), objective, tol=1e-13).iterate.theta
    at = objective.evaluate(minimum + 0.1 * rng.standard_normal(9))
    for theta in (minimum, at.theta):
        assert max(rows.blocks[0].matvec(theta)) < 1.0
    (H,) = pass_model(objective, None, at.theta).hessians
    B = rng.standard_normal((9, 9))
    other = H + size * np.linalg.norm(H, -2) * (B + B.T) / np.linalg.norm(B + B.T, 2)
    delta = np.max(np.abs(eigh(other - H, H, eigvals_only=True)))
    here = out_of_core._Point(at, PassModel(at, None, other[np.newaxis], np.zeros(0)))
    target = out_of_core._Passes(objective, None)._minimised(here).theta

    def distance(theta):
        return np.sqrt((theta - minimum) @ H @ (theta - minimum))

    # (A model with a kink is minimised to a thousandth of what was violated.)
    assert distance(target) <= (delta / (1.0 - delta) + 0.01) * distance(at.theta)
    assert distance(target) >= 1e-3 * delta * distance(at.theta)  # and not at once


def test_a_sample_of_all_rows_knows_the_curvature_everywhere(rows):
    rng = np.random.default_rng(0)
    here, there = rng.standard_normal((2, 13))
    objective = Objective(rows, L2(1.0))
    seen = [pass_model(objective, None, theta) for theta in (here, there)]
    looks = [each.hessians for each in seen]
    passes = out_of_core._Passes(objective, sample=objective)
    fresh, stale = (out_of_core._Point(each.at, seen[0]) for each in seen)
    assert np.array_equal(passes._hessians(fresh), looks[0])
    assert not np.allclose(looks[0], looks[1], rtol=0.01)
    assert np.all(looks[1][0].diagonal() >= 0.5 * looks[0][0].diagonal())  # else it would not be asked
    np.testing.assert_allclose(passes._hessians(stale), looks[1], atol=1e-9)


def counted(rows, kinds):
    class Counted(ElsewhereRows):
        def map_blocks(self, question):
            kinds.append(getattr(question, "func", question))
            return super().map_blocks(question)

    return Counted(rows)


@pytest.mark.parametrize("potential", [L1(20.0), L2(10.0), Hyperbolic(20.0, 1e-3)], ids=repr)
def test_the_curvature_is_asked_for_once_or_twice(potential):
    X, y, s = problem("dense", n=6000, p=12)
    kinds = []
    result = solve(Newton(), Objective(counted(MemoryRows(X, y, s, cuts=[100, 250]), kinds), potential))
    assert result.status is Status.CONVERGED
    assert 1 <= kinds.count(model_sums) <= 2
    assert len(kinds) <= 9


@pytest.mark.parametrize("potential", [*POTENTIALS, Welsch(5.0, 0.1)], ids=repr)
@pytest.mark.parametrize("wrong", [0.01, 0.5, 30.0])
def test_a_curvature_that_is_wrong_is_found_out(rows, potential, wrong, monkeypatch):
    """Steps that do not keep their promise, or models that promise as much as before."""
    hessians = out_of_core._Passes._hessians

    def misled(self, here):
        return hessians(self, here) * (wrong if here.stale else 1.0)

    monkeypatch.setattr(out_of_core._Passes, "_hessians", misled)
    result = solve(Newton(), Objective(ElsewhereRows(rows), potential))
    values = np.array([record.objective for record in result.history])
    assert result.status is Status.CONVERGED
    assert np.all(np.diff(values) <= 1e-9 * values[0])


@pytest.mark.parametrize("potential", [L1(1.0), L2(1.0), Hyperbolic(1.0, 1e-3)], ids=repr)
@pytest.mark.parametrize("far", [100.0, -100.0])
def test_a_curvature_that_is_blind_is_found_out(potential, far):
    """Far out no row is active, and none has a curvature; all of them have, from the other end of a step."""
    rows = MemoryRows(np.ones((10, 1)), np.ones(10), intercept=False)
    result = solve(Newton(), Objective(ElsewhereRows(rows), potential), np.array([far, 0.0]))
    known = solve(Newton(), Objective(rows, potential))
    assert result.status is Status.CONVERGED
    assert result.iterate.value == pytest.approx(known.iterate.value, rel=1e-6)


@pytest.mark.parametrize("potential", [*POTENTIALS, Hyperbolic(30.0, 5e-3)], ids=repr)
def test_a_start_that_is_worse_than_none(rows, potential):
    start = 100.0 * np.random.default_rng(0).standard_normal(13)
    elsewhere = ElsewhereRows(rows)
    result = solve(Newton(), Objective(elsewhere, potential), start)
    values = [record.objective for record in result.history]
    at_zero = Objective(rows, potential)
    zero = at_zero.evaluate(np.zeros(13)).value + at_zero.constant
    assert values[0] > values[1] == pytest.approx(zero, rel=1e-12)
    assert result.status is Status.CONVERGED
    assert elsewhere.passes <= 17


def test_a_warm_start_that_is_far_too_large():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    source = from_arrays(X, X[:, 0] > 0, rows_per_block=100)
    model = SparseSVC("l1", lam=1.0, warm_start=True, solver="newton").fit(source)
    value = model.objective_
    model.coef_ *= 3000.0
    assert model.fit(source).status_ is Status.CONVERGED
    assert model.objective_ == pytest.approx(value, rel=1e-5)


def test_the_sample_holds_no_other_rows(monkeypatch):
    X, y, s = problem("sparse")
    monkeypatch.setattr(subsample_start, "sample_step", lambda rows: 10)
    problem_of_all = Objective(MemoryRows(X, y, s, cuts=[300]), L2(1.0))
    sample = subsample_start._sampled(problem_of_all).rows
    assert sample.n_samples == 60
    assert sum(len(block._entries[0]) for block in sample.blocks) < X.nnz / 5


def test_a_sample_that_leads_nowhere(monkeypatch):
    """Its solution is zero, where Φ is another sum of the same numbers: neither progress nor a halt."""
    X, y, s = problem("dense")
    rows = MemoryRows(X, y, s, cuts=[100, 250, 400])
    objective = Objective(ElsewhereRows(rows), L1(20.0))

    def nowhere(sample):
        yield sample.evaluate(np.zeros(13))

    lower = np.nextafter(rows.loss_at_zero.value, 0.0)
    sum_blocks = ElsewhereRows.sum_blocks

    def rounded(self, question):
        found = sum_blocks(self, question)
        if isinstance(found, ModelSums) and not question.args[1].any():
            found = replace(found, loss=lower)
        return found

    monkeypatch.setattr(ElsewhereRows, "sum_blocks", rounded)
    iterates = subsample_start.iterates_out_of_core(objective, np.zeros(13), nowhere)
    points = [at for at in (next(iterates) for _ in range(8)) if not isinstance(at, Provisional)]
    assert not points[0].theta.any()
    assert points[1].theta.any()
    assert points[1].value < points[0].value - 1.0


@pytest.mark.parametrize("kinds", ["dense", "sparse", "mixed"])
def test_joined_blocks_are_the_blocks(kinds):
    X, y, s = problem("dense")
    make = {
        "dense": [np.asarray] * 3,
        "sparse": [sp.csr_array] * 3,
        "mixed": [np.asarray, sp.csr_array, np.asarray],
    }
    cuts = [slice(0, 100), slice(100, 250), slice(250, 600)]
    blocks = [
        make_block(kind(X[cut]), y[cut], s[cut], intercept=True)
        for kind, cut in zip(make[kinds], cuts, strict=True)
    ]
    blocks[1] = blocks[1].rows(slice(None, None, 3))
    apart, one = MemoryRows.of(blocks), MemoryRows.of(joined(blocks))
    assert len(one.blocks) == (2 if kinds == "mixed" else 1)
    theta = np.linspace(-1, 1, X.shape[1] + 1)
    assert one.n_samples == apart.n_samples == 500
    assert one.loss(theta).value == pytest.approx(apart.loss(theta).value, rel=1e-13)
    assert np.allclose(one.gram(), apart.gram(), rtol=1e-12)


def test_a_sample_takes_no_more_than_its_part_of_the_memory():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 10))
    sizes = []
    sampled = subsample_start._sampled

    def watched(problem):
        sample = sampled(problem)
        sizes.append(sample.rows.n_samples * 11 * 8)
        return sample

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsample_start, "_sampled", watched)
        SparseSVC(lam=5.0, solver="newton").fit(
            from_arrays(X, X[:, 0] > 0, rows_per_block=100, memory="160KB")
        )
    assert 4_000 <= sizes[0] <= 11_000  # a block's rows are rounded up


@pytest.mark.parametrize("features", [tuning.PASS_FEATURES, tuning.PASS_FEATURES + 1])
def test_the_default_where_rows_are_elsewhere(features):
    X = sp.csr_array((np.ones(2), ([0, 1], [0, 1])), shape=(2, features))
    rows = ElsewhereRows(MemoryRows(X, np.array([1.0, -1.0])))
    many = features > tuning.PASS_FEATURES
    kinked = {L1(1.0): True, Hyperbolic(1.0): True, Hyperbolic(0.0): False, L2(1.0): False}
    for potential, few_matter in kinked.items():
        objective = Objective(rows, potential)
        assert choose_solver(objective).name == "newton"
        assert out_of_core.all_may_move(objective) is not many
        assert out_of_core.stays_at_zero(objective) is few_matter
    assert choose_solver(Objective(rows, Welsch(1.0))).name == ("mm-subspace" if many else "newton")


@pytest.mark.data
@pytest.mark.parametrize(("ratio", "most"), [(10, 10), (100, 13)])
def test_few_passes_over_text(data_dir, ratio, most, monkeypatch):
    """47,236 features, of which some hundred are needed; a sixteenth of the rows as the sample."""
    monkeypatch.setattr(tuning, "SPARSE_SAMPLE_ENTRIES", 110_000)
    X, y = load_svmlight_file(str(data_dir / "rcv1_subset.bz2"))
    shuffled = np.random.default_rng(0).permutation(len(y))
    rows = MemoryRows(X[shuffled], y[shuffled], cuts=range(1500, len(y), 1500))
    balanced = np.append(np.zeros(X.shape[1]), np.mean(y))
    lam = np.max(np.abs(rows.loss(balanced).gradient[:-1])) / ratio
    elsewhere = ElsewhereRows(rows)
    found = solve(Newton(), Objective(elsewhere, L1(lam)))
    assert found.status is Status.CONVERGED
    assert elsewhere.passes <= most
    known = solve(Newton(), Objective(rows, L1(lam)), tol=1e-9)
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-9)
