"""All classes at once, on rows that are not in memory: the same minimum, in few passes."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC, lambda_max, sparse_svc_path
from majorant.objective import Objective
from majorant.potentials import L1, L2, Hyperbolic, Welsch, Zero
from majorant.rows import MemoryRows, Rows, from_arrays
from majorant.rows.sources import ArraySource
from majorant.solvers import Newton, solve
from majorant.solvers.newton import tuning
from majorant.status import Status

CLASSES, FEATURES, CUTS = 4, 15, (130, 300, 420)
POTENTIALS = [L1(40.0), L1(0.5), L2(1.0), Hyperbolic(20.0, 1e-3), Zero()]
FACTOR = np.append(np.zeros(2), np.linspace(0.5, 2.0, FEATURES - 2))


def data(sparse=False, n=600):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, FEATURES)) * (rng.random((n, FEATURES)) < 0.6)
    directions = rng.standard_normal((FEATURES, CLASSES)) * (np.arange(FEATURES) % 3 == 0)[:, np.newaxis]
    y = np.argmax(X @ directions + 0.8 * rng.standard_normal((n, CLASSES)), axis=1)
    return (sp.csr_array(X) if sparse else X), y, rng.uniform(0.5, 2.0, n)


class Elsewhere(Rows):
    """Rows in memory that can only be asked."""

    def __init__(self, rows):
        self.rows, self.n_samples, self.n_features = rows, rows.n_samples, rows.n_features

    def map_blocks(self, question):
        return [question(block) for block in self.rows.blocks]

    def columns(self, chosen):
        return Elsewhere(self.rows.columns(chosen))

    n_batch_blocks = len(CUTS) + 1

    def fold_blocks(self, state, through, order):
        raise NotImplementedError


def problems(potential, sparse=False, **options):
    """The same problem with rows in memory, and with rows that can only be asked."""
    X, y, s = data(sparse)
    labels = [np.where(y == code, 1.0, -1.0) for code in range(CLASSES)]
    first = MemoryRows(X, labels[0], s, cuts=CUTS)
    rows = [first, *(first.relabelled(others, s) for others in labels[1:])]
    asked = [Elsewhere(part) for part in rows]
    return Objective.joint(rows, potential, **options), Objective.joint(asked, potential, **options)


@pytest.fixture(params=["all move", pytest.param("some move", marks=pytest.mark.slow)])
def room(request, monkeypatch):
    """Room for the curvature of all features, or of so few that not even the support may move at once."""
    if request.param == "some move":
        monkeypatch.setattr(tuning, "PASS_ENTRIES", CLASSES * 7**2)


@pytest.fixture(params=[40, 10**9], ids=["small sample", "all rows in the sample"])
def sampled(request, monkeypatch):
    monkeypatch.setattr("majorant.solvers.newton.tuning.SAMPLE_ENTRIES", (FEATURES + 1) * request.param)


@pytest.mark.parametrize(
    "options", [{}, {"eta": 2.0, "penalty_factor": FACTOR}], ids=["plain", "elastic net"]
)
@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["dense", "csr"])
@pytest.mark.parametrize("potential", POTENTIALS, ids=repr)
def test_the_same_minimum_as_in_memory(potential, sparse, options, room, sampled):
    inside, outside = problems(potential, sparse, **options)
    known = solve(Newton(), inside, tol=1e-9)
    found = solve(Newton(), outside, tol=1e-9)
    assert found.status is Status.CONVERGED
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-9)
    np.testing.assert_allclose(found.iterate.theta, known.iterate.theta, atol=1e-4)


@pytest.mark.parametrize("potential", [*POTENTIALS, Welsch(5.0, 0.1)], ids=repr)
def test_phi_never_rises(potential, room, sampled):
    result = solve(Newton(), problems(potential)[1])
    values = np.array([record.objective for record in result.history])
    assert np.all(np.diff(values) <= 1e-13 * values[0])
    assert result.status is Status.CONVERGED


def counted(source, **options):
    """A fit, and how many passes it took."""
    loads = []

    class Counting(type(source)):
        def load(self, i):
            loads.append(i)
            return super().load(i)

    source.__class__ = Counting
    source.memory = 2 * max(source.load(i).nbytes for i in range(source.n_blocks))
    loads.clear()
    model = SparseSVC(multi_class="joint", **options).fit(source)
    return model, loads.count(source.n_blocks - 1)


@pytest.mark.parametrize(
    "options", [{"penalty": "l1", "lam": 40.0}, {"penalty": "l2"}, {"penalty": "hyperbolic", "lam": 10.0}]
)
def test_one_pass_for_all_classes(options):
    """The labels, the loss at zero, the sample, the first model, the certificate, zeros; and a few steps."""
    model, n_passes = counted(ArraySource(*data(), cuts=CUTS), **options)
    known = SparseSVC(multi_class="joint", **options).fit(*data())
    assert model.converged_
    assert model.objective_ == pytest.approx(known.objective_, rel=1e-6)
    assert np.array_equal(model.support_, known.support_)
    assert n_passes <= 13


@pytest.mark.parametrize("potential", [L1(40.0), Hyperbolic(20.0, 1e-3)], ids=repr)
def test_the_same_bits_wherever_the_rows_are(potential, room):
    """From a source, and from memory cut at the same places, by the same way."""
    expected = solve(Newton(), problems(potential)[1])
    settings = {name: getattr(potential, name) for name in ("lam", "delta") if hasattr(potential, name)}
    source = ArraySource(*data(), cuts=CUTS)
    model = SparseSVC(potential.name, **settings, multi_class="joint", zero_tol=0.0).fit(source)
    theta = expected.iterate.theta.reshape(CLASSES, -1)
    assert np.array_equal(model.coef_, theta[:, :-1])
    assert np.array_equal(model.intercept_, theta[:, -1])


def test_a_feature_that_was_missed_comes_in_later(monkeypatch):
    """Of 15 features 6 may move, and those that matter are not those that the first look shows."""
    monkeypatch.setattr(tuning, "PASS_ENTRIES", CLASSES * 7**2)
    monkeypatch.setattr(tuning, "WATCHED_SLOPE_SHARE", 1.0)
    inside, outside = problems(L1(90.0))
    start = np.zeros(outside.size)
    start.reshape(CLASSES, -1)[:, 1:3] = 0.5  # a start without the features that matter
    known = solve(Newton(), inside, tol=1e-9)
    found = solve(Newton(), outside, start, tol=1e-9)
    assert 0 < outside.nonzeros(found.iterate.theta) < FEATURES
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-9)


def test_paths_and_limits():
    X, y, s = data()
    source = from_arrays(X, y, s, rows_per_block=170)
    joint = {"multi_class": "joint", "tol": 1e-9}
    largest = lambda_max(source, penalty="l1", **joint)
    assert largest == pytest.approx(lambda_max(X, y, "l1", sample_weight=s, **joint), rel=1e-9)
    found = sparse_svc_path(source, penalty="l1", lambdas=4, ratio=0.05, **joint)
    known = sparse_svc_path(X, y, "l1", sample_weight=s, lambdas=found.lambdas, **joint)
    for one, other in zip(found.models, known.models, strict=True):
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    limited = SparseSVC("l1", lam=1.0, max_features=5, multi_class="joint").fit(source)
    assert 1 <= len(limited.support_) <= 5
