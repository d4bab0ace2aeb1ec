"""Many features on rows that are not in memory, all of them needed: fewer passes than first-order methods."""

import pickle
from functools import partial

import numpy as np
import pytest

from majorant.objective import Objective
from majorant.potentials import L2, Zero
from majorant.rows import MemoryRows
from majorant.solvers import MMSubspace, Newton, solve
from majorant.solvers.newton import out_of_core, subsample_start, tuning
from majorant.solvers.newton.out_of_core import newton_cg_pass_iterates
from majorant.status import Status
from tests.problems import ElsewhereRows
from tests.solvers.newton.test_out_of_core_few_features import CUTS, FEATURES, problem, streamed


@pytest.fixture(autouse=True)
def many_features(monkeypatch):
    for module in (out_of_core, subsample_start):
        monkeypatch.setattr(module, "all_may_move", lambda objective: False)
    monkeypatch.setattr(tuning, "SPARSE_SAMPLE_ENTRIES", 2000)


@pytest.fixture(params=["dense", "sparse"])
def rows(request):
    X, y, s = problem(request.param)
    return MemoryRows(X, y, s, cuts=CUTS)


SETTINGS = [
    {"potential": L2(30.0)},
    {"potential": L2(0.1)},
    {"potential": Zero(), "eta": 2.0},
    {"potential": L2(1.0), "penalty_factor": np.where(np.arange(FEATURES) % 9 == 4, 0.0, 1.5)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings))[:30])
def test_the_same_minimum_as_in_memory_in_fewer_passes_than_mm_subspace(rows, settings):
    elsewhere, slower = ElsewhereRows(rows), ElsewhereRows(rows)
    found = solve(Newton(), Objective(elsewhere, **settings))
    assert found.status is Status.CONVERGED
    values = found.history.column("objective")
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    known = solve(Newton(), Objective(rows, **settings), tol=1e-10)
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=2e-6)
    # (Of few features, mm-subspace asks for the Gram matrix once, as it would not of many.)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("majorant.majorants.GRAM_SIZE", 0)
        solve(MMSubspace(), Objective(slower, **settings))
    assert elsewhere.passes < 0.7 * slower.passes


def test_to_the_last_digits(rows):
    found, known = (
        solve(Newton(), Objective(each, L2(1.0)), tol=1e-11) for each in (ElsewhereRows(rows), rows)
    )
    assert found.status is Status.CONVERGED
    assert found.iterate.value == pytest.approx(known.iterate.value, rel=1e-10)


def test_a_product_is_that_with_the_active_rows(rows):
    rng = np.random.default_rng(2)
    theta, d = 0.2 * rng.standard_normal((2, FEATURES + 1))
    question = pickle.loads(pickle.dumps(partial(out_of_core._product, theta, d)))
    h = 1e-7
    difference = (rows.loss(theta + h * d).gradient - rows.loss(theta - h * d).gradient) / (2.0 * h)
    np.testing.assert_allclose(rows.sum_blocks(question), difference, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_stream_takes_the_same_way_bit_for_bit(kind):
    ways = []
    for rows in streamed(kind, 10**9):
        objective = Objective(rows, L2(1.0))
        iterates = newton_cg_pass_iterates(objective, objective.evaluate(objective.start()))
        ways.append([next(iterates) for _ in range(4)])
    for here, there in zip(*ways, strict=True):
        assert np.array_equal(here.theta, there.theta)
