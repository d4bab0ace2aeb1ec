"""The claims of a fit, on thousands of random problems: `python -m tests.torture` tells more of each."""

import pytest

from tests.torture.claims import check_claims
from tests.torture.problems import make_problem
from tests.torture.runner import run

CHUNK = 20
EVERYDAY = 200
FIRST, MANY = 1000, 5000


def described(outcomes):
    return "\n".join(f"{outcome}\n    " + "\n    ".join(outcome.false_claims) for outcome in outcomes)


def test_a_seed_is_a_problem():
    for seed in range(20):
        one, same = make_problem(seed), make_problem(seed)
        assert (one.dense == same.dense).all()
        assert (one.y == same.y).all()
        assert one.settings.keys() == same.settings.keys()
        assert one.settings["lam"] == same.settings["lam"]
        assert one.X.shape[0] * one.X.shape[1] < 1_000_000


@pytest.mark.parametrize("first", range(0, EVERYDAY, CHUNK))
def test_every_claim_is_true(first):
    outcomes = [check_claims(make_problem(seed)) for seed in range(first, first + CHUNK)]
    false = [outcome for outcome in outcomes if outcome.false_claims]
    assert not false, described(false)


# The seed of a problem, and what was wrong with it once.
CURED = {
    3582: "the estimate of unpenalised features was taken for the certificate",
    4260: "the estimate of a fit without any penalty was taken for the certificate",
    4659: "the proximal term of a Welsch fit held it back at ten times the minimum of its majorant",
    4038: "eigenvectors of a singular model took 30 seconds",
    2690: "rows of a source: 1,000 iterations underway",
}


@pytest.mark.parametrize("seed", CURED)
def test_claims_that_were_false_once_are_true(seed):
    outcome = check_claims(make_problem(seed))
    assert not outcome.false_claims, described([outcome])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_claims_of_thousands_are_true():
    outcomes = run(range(FIRST, FIRST + MANY), jobs=2)
    false = [outcome for outcome in outcomes if outcome.false_claims]
    # Rounding differs from machine to machine, and some problems are at its border: at most one in 1,000.
    # The aim is none; `python -m tests.torture` lists them.
    assert len(false) <= 0.001 * MANY, described(false)
    # A zero_tol that costs more than the tolerance is obeyed all the same.
    waiting = [one for one in outcomes if not (one.converged or one.status == "ZERO_TOL")]
    assert len(waiting) <= 0.02 * MANY, described(waiting)
    assert all(outcome.message for outcome in waiting)
