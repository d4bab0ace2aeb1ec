"""Rows in other units answer as rows with a scaled copy of X do."""

import numpy as np
import pytest
import scipy.sparse as sp

from majorant.rows import MemoryRows
from majorant.rows.columns import Columns
from majorant.rows.quadratic import ActiveQuadratic
from majorant.rows.scaled import ScaledBlock, scaled_rows, standard_deviations
from tests.problems import random_problem

UNITS = np.array([0.5, 3.0, 1.0, 0.01, 7.0, 2.0])
THETA = np.array([0.3, -0.2, 0.1, 0.4, 0.0, -0.1, 0.05])
CHOSEN = np.array([1, 4])


def scaled_and_copied(sparse, cuts=None):
    X, y, s, _ = random_problem(sparse=sparse)
    copied = X.multiply(UNITS).tocsr() if sparse else X * UNITS
    (scaled,) = scaled_rows([MemoryRows(X, y, s, cuts=cuts)], UNITS)
    return scaled, MemoryRows(copied, y, s, cuts=cuts)


QUESTIONS = {
    "loss": lambda rows: np.append(rows.loss(THETA).gradient, rows.loss(THETA).value),
    "loss_by_class": lambda rows: rows.loss_by_class(THETA, lengths=True).positive.gradient,
    "lengths": lambda rows: rows.loss_by_class(THETA, lengths=True).squares,
    "stats_at_zero": lambda rows: np.append(rows.loss_at_zero.gradient, rows.gram_diagonal),
    "gram": lambda rows: rows.gram(),
    "gram_product": lambda rows: rows.gram_product(THETA),
    "gram_along": lambda rows: rows.gram_along(np.outer(THETA, [1.0, 2.0])),
    "curvature": lambda rows: rows.curvature(THETA, CHOSEN),
    "largest_row": lambda rows: rows.largest_row(),
    "design": lambda rows: rows.design(),
    "columns": lambda rows: rows.columns(CHOSEN).gram(),
    "every": lambda rows: rows.every(3).gram(),
    "sample": lambda rows: rows.blocks[0].every(3).gram(),
    "relabelled": lambda rows: rows.relabelled(np.ones(rows.n_samples), np.full(rows.n_samples, 2.0)).gram(),
    "copied columns": lambda rows: Columns.of(rows, CHOSEN).data,
    "batch": lambda rows: rows.blocks[0].loss(THETA, np.arange(5)).gradient,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("cuts", [None, (9, 20)], ids=["one block", "three blocks"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_scaled_rows_answer_as_a_scaled_copy(question, cuts, sparse):
    scaled, copied = (QUESTIONS[question](rows) for rows in scaled_and_copied(sparse, cuts))
    assert np.allclose(scaled, copied, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gram", [True, False], ids=["with H", "without H"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_steps_on_scaled_rows_carry_the_same_quadratic(gram, sparse):
    found = []
    for rows in scaled_and_copied(sparse, (9, 20)):
        quadratic = ActiveQuadratic([rows], np.zeros(7), gram=gram)
        loss = quadratic.advance(5.0 * THETA)
        product = quadratic.product(THETA).copy() if not gram else quadratic.H[0] @ THETA
        if gram:
            quadratic.move(-0.5)
            quadratic.commit(2.5 * THETA)
        found.append([loss, product, quadratic.gradient(2.5 * THETA)])
    for scaled, copied in zip(*found, strict=True):
        assert np.allclose(scaled, copied, rtol=1e-11, atol=1e-11)


def test_scaled_blocks_share_x_and_weights():
    X, y, s, _ = random_problem()
    (rows,) = scaled_rows([MemoryRows(X, y, s)], UNITS)
    (block,) = rows.blocks
    assert isinstance(block, ScaledBlock)
    assert np.shares_memory(block.block.X, X)
    block.s = np.ones(len(y))
    assert block.loss(np.zeros(7)).value == len(y)


def test_an_epoch_of_dual_coordinate_descent_is_that_of_a_scaled_copy():
    thetas, inverse = [], np.full(7, 2.0)
    for rows in scaled_and_copied(sparse=True):
        theta = np.zeros(7)
        rows.blocks[0].dual_epoch(np.arange(rows.n_samples), inverse, theta)
        thetas.append(theta)
    assert thetas[0].any()
    assert np.allclose(*thetas, rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_standard_deviations_weigh_rows_as_the_loss_does(sparse, intercept):
    X, y, s, _ = random_problem(sparse=sparse)
    dense = X.toarray() if sparse else X
    means = np.average(dense, axis=0, weights=s)
    expected = np.sqrt(np.average((dense - means) ** 2, axis=0, weights=s))
    expected[-2] = 1.0  # the column is constant
    found = standard_deviations(MemoryRows(X, y, s, intercept=intercept))
    assert np.allclose(found, expected, rtol=1e-12)


def test_standard_deviations_of_columns_far_from_zero_have_all_digits():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((500, 3))
    X = np.column_stack([1e9 + noise[:, 0], 1e5 * noise[:, 1] + 1.6e9, noise[:, 2]])
    y = np.where(noise.sum(axis=1) > 0, 1.0, -1.0)
    for rows in (X, sp.csr_array(X)):
        found = standard_deviations(MemoryRows(rows, y, cuts=(100, 333)))
        assert np.allclose(found, X.std(axis=0), rtol=1e-9)
