"""Factorisations: right, with the same bits on any number of cores, None where there is none."""

import numpy as np
import pytest

from majorant import linsolve
from majorant.linsolve import cholesky_solve
from majorant.rows.threads import one_core


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(linsolve, "LARGE", 20)
    monkeypatch.setattr(linsolve, "TILE", 8)


def positive(n, seed=0):
    B = np.random.default_rng(seed).standard_normal((n, n + 5))
    return B @ B.T


@pytest.mark.parametrize("n", [1, 8, 19, 20, 24, 25, 39, 40, 41])
@pytest.mark.parametrize("overwrite", [False, True])
def test_solutions_by_tiles(n, overwrite, small_tiles):
    A, b = positive(n), np.arange(1.0, n + 1.0)
    given = np.where(np.tri(n, dtype=bool), A, np.nan)  # only the lower triangle is looked at
    x = cholesky_solve(given, b, overwrite=overwrite)
    assert np.allclose(A @ x, b, rtol=1e-8)
    if not overwrite:
        assert np.array_equal(given, np.where(np.tri(n, dtype=bool), A, np.nan), equal_nan=True)
    both = cholesky_solve(A, np.stack([b, -b], axis=1))
    assert np.allclose(both, np.stack([x, -x], axis=1), rtol=1e-12)


@pytest.mark.parametrize("at", [0, 7, 8, 30])
def test_no_solution_where_a_pivot_is_not_positive(at, small_tiles):
    A = positive(31)
    A[at, at] = -1.0
    assert cholesky_solve(A, np.ones(31)) is None


def test_no_solution_where_less_than_the_floor_is_left_of_a_pivot(small_tiles):
    A = np.eye(30)
    A[29, 28] = A[28, 29] = np.sqrt(1.0 - 1e-8)
    assert cholesky_solve(A, np.ones(30), floor=1e-9) is not None
    assert cholesky_solve(A, np.ones(30), floor=1e-7) is None


def test_one_thread_has_the_same_bits_as_several():
    A, b = positive(1100), np.ones(1100)
    several = cholesky_solve(A, b)
    with one_core():
        assert np.array_equal(cholesky_solve(A, b), several)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 512, 700, 1024, 1500])
def test_tiles_have_all_rows_once(length):
    tiles = linsolve._row_tiles(length)
    rows = np.concatenate([np.arange(length)[tile] for tile in tiles])
    assert np.array_equal(np.sort(rows), np.arange(length))
