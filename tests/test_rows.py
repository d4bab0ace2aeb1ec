"""Every kind of block answers every question as the plain dense matrices do."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import random_problem

from majorant.rows import MemoryRows

QUESTIONS = {
    "loss": lambda rows, theta, D: np.append(rows.loss(theta).gradient, rows.loss(theta).value),
    "gram": lambda rows, theta, D: rows.gram(),
    "gram_product": lambda rows, theta, D: rows.gram_product(theta),
    "gram_along": lambda rows, theta, D: rows.gram_along(D),
    "gram_diagonal": lambda rows, theta, D: rows.gram_diagonal,
    "loss_at_zero": lambda rows, theta, D: np.array([rows.loss_at_zero.value]),
    "largest_row": lambda rows, theta, D: np.array([rows.largest_row()]),
    "design": lambda rows, theta, D: rows.design().T @ rows.design(),
}


def oracle(X, y, s, b, theta, D):
    L = y[:, None] * np.column_stack([X, np.full(len(y), b)])
    gram = L.T @ (s[:, None] * L)
    slack = np.maximum(1 - L @ theta, 0)
    return {
        "loss": np.append(L.T @ (-2 * s * slack), s @ slack**2),
        "gram": gram,
        "gram_product": gram @ theta,
        "gram_along": D.T @ gram @ D,
        "gram_diagonal": np.diag(gram),
        "loss_at_zero": np.array([s.sum()]),
        "largest_row": np.array([np.max(s * np.sum(L**2, axis=1))]),
        "design": gram,
    }


def int64_indices(X):
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


LAYOUTS = {
    "c": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_matrix,
    "csr-array": sp.csr_array,
    "csr-int64": int64_indices,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cuts", [(), (7, 23)], ids=["whole", "cut"])
def test_answers_equal_the_plain_matrices(question, layout, intercept, cuts):
    X, y, s, _ = random_problem(n=50)
    rng = np.random.default_rng(1)
    theta, D = 0.3 * rng.standard_normal(7), rng.standard_normal((7, 3))
    rows = MemoryRows(LAYOUTS[layout](X), y, s, intercept=intercept, cuts=cuts)
    expected = oracle(X, y, s, float(intercept), theta, D)[question]
    assert np.allclose(QUESTIONS[question](rows, theta, D), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", [True, False])
def test_what_newton_asks_equals_the_plain_matrices(layout, intercept):
    X, y, s, _ = random_problem(n=50)
    theta = np.linspace(-0.5, 0.5, 7)
    L = y[:, None] * np.column_stack([X, np.full(50, float(intercept))])
    (block,) = MemoryRows(LAYOUTS[layout](X), y, s, intercept=intercept).blocks
    assert np.allclose(block.image(theta), L @ theta)
    active = L @ theta < 1
    A = L[active]
    H, c = np.zeros((7, 7)), np.zeros(7)
    block.add_rows(np.flatnonzero(active), 1.0, H, c)
    block.mirror(H)
    assert np.allclose(H, 2 * A.T @ (s[active, None] * A))
    assert np.allclose(c, 2 * A.T @ s[active])
    assert np.allclose(block.active_product(active, theta), H @ theta)
    assert np.allclose(block.audit(theta, lengths=True).squares, np.diag(H) / 2)
    assert np.allclose(block.audit(theta, lengths=False).loss.gradient, block.loss(theta).gradient)
    block.add_rows(np.flatnonzero(active), -1.0, H, c)
    block.mirror(H)
    assert np.allclose(H, 0, atol=1e-10)
    assert np.allclose(c, 0, atol=1e-10)
    assert np.allclose(block.squared_norms(), np.sum(X**2, axis=1))
    chosen = np.array([1, 4])
    assert np.allclose(block.columns(chosen).gram(), (L.T @ (s[:, None] * L))[np.ix_([1, 4, 6], [1, 4, 6])])
    part = block.columns(chosen)
    assert np.allclose(part.image(theta[[1, 4, 6]]), L[:, [1, 4, 6]] @ theta[[1, 4, 6]])


@pytest.mark.parametrize("layout", ["c", "csr"])
def test_single_precision_is_summed_in_double(layout):
    X, y, s, _ = random_problem(n=5000)
    X32 = X.astype(np.float32)
    theta = np.linspace(-0.3, 0.3, 7)
    single = MemoryRows(LAYOUTS[layout](X32), y, s).loss(theta)
    double = MemoryRows(X32.astype(np.float64), y, s).loss(theta)
    assert np.isclose(single.value, double.value, rtol=1e-13)
    assert np.allclose(single.gradient, double.gradient, rtol=1e-11)


@pytest.mark.parametrize("layout", ["c", "csr"])
def test_the_same_partition_gives_the_same_bits(layout):
    X, y, s, _ = random_problem(n=300)
    X = LAYOUTS[layout](X)
    theta = np.linspace(-1, 1, 7)
    a, b = (MemoryRows(X, y, s, cuts=(100, 200)).loss(theta) for _ in range(2))
    parts = [MemoryRows(X[i : i + 100], y[i : i + 100], s[i : i + 100]).loss(theta) for i in (0, 100, 200)]
    assert a.value == b.value == parts[0].value + parts[1].value + parts[2].value
    assert np.array_equal(a.gradient, parts[0].gradient + parts[1].gradient + parts[2].gradient)


@pytest.mark.parametrize("layout", ["c", "csr"])
@pytest.mark.parametrize("cuts", [(), (33,)])
def test_an_epoch_sees_every_row_once_and_adds_up_to_the_loss(layout, cuts):
    X, y, s, _ = random_problem(n=50)
    rows = MemoryRows(LAYOUTS[layout](X), y, s, cuts=cuts)
    theta = np.linspace(-0.5, 0.5, 7)
    batches = list(rows.batches(np.random.default_rng(0), 8))
    assert sum(len(batch.indices) for batch in batches) == 50
    total = sum(batch.loss(theta).gradient for batch in batches)
    assert np.allclose(total, rows.loss(theta).gradient, rtol=1e-12)
    assert not np.array_equal(batches[0].indices, next(rows.batches(np.random.default_rng(1), 8)).indices)
