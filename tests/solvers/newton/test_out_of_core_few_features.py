"""Many features on rows that are not in memory, few of them needed: the same minimum, in few small passes."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC
from majorant.losses import SquaredHinge
from majorant.objective import Objective
from majorant.potentials import L1, Hyperbolic
from majorant.rows import MemoryRows, PartitionedRows
from majorant.rows.memory import make_block
from majorant.rows.sources import ArraySource, from_arrays
from majorant.rows.stream import Reader
from majorant.solvers import Newton, solve
from majorant.solvers.newton import out_of_core, subsample_start, tuning
from majorant.status import Evaluated, Status
from tests.problems import ElsewhereRows

CUTS = [100, 250, 400]
FEATURES = 80


def problem(kind, n=600, p=FEATURES):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]  # two that go together
    score = X[:, 0] - X[:, 2] + 0.5 * X[:, 3:9].sum(axis=1)
    y = np.where(score + 0.7 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    return (sp.csr_array(X) if kind == "sparse" else X), y, rng.uniform(0.5, 2.0, n)


@pytest.fixture(params=["dense", "sparse"])
def rows(request):
    X, y, s = problem(request.param)
    return MemoryRows(X, y, s, cuts=CUTS)


@pytest.fixture(
    params=[
        pytest.param(1, id="small sample"),
        pytest.param(300, id="large sample", marks=pytest.mark.slow),
    ],
    autouse=True,
)
def many_features(request, monkeypatch):
    """Eighty features are many, ten at a time; samples of about so many rows."""
    for module in (out_of_core, subsample_start):
        monkeypatch.setattr(module, "all_may_move", lambda objective: False)
    monkeypatch.setattr(tuning, "PASS_FIRST", 10)
    monkeypatch.setattr(tuning, "PASS_ENTRIES", FEATURES**2)
    monkeypatch.setattr(tuning, "SPARSE_SAMPLE_ENTRIES", 25 * request.param)


@pytest.fixture
def crowded(monkeypatch):
    """Fewer features at a time than the solutions of weak penalties have."""
    monkeypatch.setattr(tuning, "PASS_ENTRIES", 20**2)


def objective(rows, lam, delta=0.0, **options):
    return Objective(rows, Hyperbolic(lam, delta) if delta else L1(lam), **options)


def views(elsewhere):
    """All that blocks have answered to the steps' question."""
    answers = (answer for answers in elsewhere.answers for answer in answers)
    return [answer for answer in answers if isinstance(answer, out_of_core.ModelSums)]


SETTINGS = [
    {"lam": 60.0},
    {"lam": 10.0},
    {"lam": 0.5},
    {"lam": 10.0, "eta": 3.0},
    {"lam": 10.0, "penalty_factor": np.where(np.arange(FEATURES) % 9 == 4, 0.0, 1.5)},
    {"lam": 60.0, "delta": 1e-4},
    {"lam": 10.0, "delta": 1e-3},
    {"lam": 10.0, "delta": 1e-3, "eta": 3.0},
]
IDS = ["strong", "middle", "faint", "ridge", "factors", "sharp", "rounded", "rounded, ridge"]
WEAK = [settings for settings in SETTINGS if settings["lam"] < 60.0]


@pytest.mark.parametrize("settings", SETTINGS, ids=IDS)
def test_the_same_minimum_as_in_memory(rows, settings):
    found = solve(Newton(), objective(ElsewhereRows(rows), **settings), tol=1e-10)
    known = solve(Newton(), objective(rows, **settings), tol=1e-10)
    assert found.status is Status.CONVERGED
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-9)
    np.testing.assert_allclose(found.iterate.theta, known.iterate.theta, atol=1e-4)


@pytest.mark.parametrize("settings", SETTINGS, ids=IDS)
def test_a_pass_for_each_step_and_never_upwards(rows, settings):
    elsewhere = ElsewhereRows(rows)
    result = solve(Newton(), objective(elsewhere, **settings))
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert result.status is Status.CONVERGED
    # Loss at zero, sample, the model at its solution, certificate; three more for features without a penalty.
    assert elsewhere.passes <= len(set(values)) + (8 if "factor" in str(settings) else 5)
    assert elsewhere.passes <= 14


@pytest.mark.parametrize("settings", WEAK, ids=str)
def test_more_features_than_there_is_room_for_take_their_turn(rows, settings, crowded):
    elsewhere = ElsewhereRows(rows)
    result = solve(Newton(), objective(elsewhere, **settings))
    values = result.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert result.status is Status.CONVERGED
    assert max(len(view.triangle) for view in views(elsewhere)) == 21 * 22 // 2


def test_answers_are_small(rows):
    elsewhere = ElsewhereRows(rows)
    solve(Newton(), objective(elsewhere, 10.0))
    assert len(views(elsewhere)) >= 3 * len(CUTS)
    for view in views(elsewhere):
        W = np.sqrt(2.0 * len(view.triangle))
        assert W <= FEATURES + 2
        assert len(pickle.dumps(view)) <= 8 * (W**2 / 2 + FEATURES + 1) + 1000


def test_a_view_is_what_it_says(rows):
    rng = np.random.default_rng(2)
    theta, d = 0.2 * rng.standard_normal((2, FEATURES + 1))
    chosen = np.array([0, 3, 4, 50])
    question = pickle.loads(pickle.dumps(partial(out_of_core.model_sums, chosen, theta, d)))
    view = rows.sum_blocks(question)
    loss = rows.loss(theta)
    assert view.loss == pytest.approx(loss.value, rel=1e-13)
    np.testing.assert_allclose(view.gradient, loss.gradient, rtol=1e-12, atol=1e-10)
    for t, shorter in zip(tuning.SHORTER_PARTS, view.shorter, strict=True):
        assert shorter == pytest.approx(rows.loss(theta - (1.0 - t) * d).value, rel=1e-12)
    L = rows.design()  # S^½L
    s = np.concatenate([block.s for block in rows.blocks])
    active = L @ theta < np.sqrt(s)
    part = L[active][:, [*chosen, FEATURES]]
    expected = SquaredHinge.curvature_bound * part.T @ part
    np.testing.assert_allclose(view.hessian(), expected, rtol=1e-12, atol=1e-10)


def test_who_violates_comes_in(rows):
    """A start that claims that no feature is pulled: nobody is chosen, and the first step finds out."""
    problem = objective(rows, 10.0)
    known = solve(Newton(), problem, tol=1e-10).iterate.value
    start = problem.start()
    iterates = out_of_core.descend(problem, Evaluated(start, np.inf, np.zeros(FEATURES + 1)))
    reached = [next(iterates) for _ in range(12)]
    assert reached[-1].value == pytest.approx(known, rel=1e-9)
    assert np.all(np.diff([at.value for at in reached]) <= 1e-12 * known)


def test_at_the_minimum_it_ends(rows):
    """Further than rounding allows: the run stalls, it does not go round and round."""
    elsewhere = ElsewhereRows(rows)
    result = solve(Newton(), objective(elsewhere, 10.0), tol=0.0, max_iter=10_000)
    assert result.status in (Status.STALLED, Status.CONVERGED)
    assert elsewhere.passes <= 300


def test_steps_that_are_too_long_are_cut(rows, monkeypatch):
    problem = objective(rows, 10.0)
    honest = out_of_core._Passes._minimised

    def boastful(self, here):
        target = honest(self, here)
        return replace(target, theta=here.at.theta + 50.0 * (target.theta - here.at.theta))

    monkeypatch.setattr(out_of_core._Passes, "_minimised", boastful)
    iterates = out_of_core.descend(problem, problem.evaluate(problem.start()))
    values = [next(iterates).value for _ in range(30)]
    assert np.all(np.diff(values) <= 0.0)
    assert values[-1] < values[0]


def streamed(kind, memory):
    """The same rows in memory and from a source, cut at the same places."""
    X, y, s = problem(kind)
    reader = Reader(
        ArraySource(X, y, s, cuts=CUTS),
        lambda i, raw: make_block(raw.X, raw.y, raw.weight, intercept=True),
        memory,
    )
    return MemoryRows(X, y, s, cuts=CUTS), PartitionedRows(reader, len(y), FEATURES)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("memory", [300_000, 10**9], ids=["little", "enough"])
@pytest.mark.parametrize("delta", [0.0, 1e-3], ids=["kink", "rounded"])
def test_a_stream_takes_the_same_way_bit_for_bit(kind, memory, delta):
    ways = []
    for rows in streamed(kind, memory):
        whole = objective(rows, 10.0, delta)
        iterates = out_of_core.descend(whole, whole.evaluate(whole.start()))
        ways.append([next(iterates) for _ in range(8)])
    for here, there in zip(*ways, strict=True):
        assert np.array_equal(here.theta, there.theta)
        assert here.value == there.value


def test_a_sample_has_as_many_entries_as_asked_for(rows, monkeypatch):
    monkeypatch.setattr(tuning, "SPARSE_SAMPLE_ENTRIES", 2000)
    sample = subsample_start._sampled(objective(rows, 1.0)).rows
    entries = sum(
        block.n_samples * block.n_features if block.dense else block.sparse_entries for block in sample.blocks
    )
    assert 1000 <= entries <= 2600
    weight, whole = (sum(block.s.sum() for block in part.blocks) for part in (sample, rows))
    assert weight == pytest.approx(whole, rel=0.2)


@pytest.mark.parametrize("penalty", ["l1", "hyperbolic"])
def test_the_intercept_moves_if_no_feature_does(penalty):
    """Of 3,100 features, more than a Hessian has room for, none is pulled hard enough to be chosen."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 3100), density=0.01, rng=rng, format="csr")
    y = np.where(np.arange(400) % 4 == 0, -1, 1)
    model = SparseSVC(penalty, lam=1e4).fit(from_arrays(X, y, rows_per_block=100))
    assert model.converged_
    assert model.intercept_[0] == pytest.approx(0.5)  # the mean label
