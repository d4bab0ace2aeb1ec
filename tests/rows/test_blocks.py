"""Every kind of block answers every question as the plain dense matrices do."""

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC, blas
from majorant.rows import MemoryRows, threads
from majorant.rows.columns import Columns
from majorant.rows.quadratic import ActiveQuadratic
from majorant.rows.sparse import corruption, is_canonical, is_sound_csr
from majorant.rows.threads import parallel_map
from tests.problems import random_problem

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
    assert np.allclose(block.matvec(theta), L @ theta)
    active = L @ theta < 1
    A = L[active]
    H, c = np.zeros((7, 7)), np.zeros(7)
    block.rank_update(np.flatnonzero(active), 1.0, H, c)
    block.symmetrize(H)
    assert np.allclose(H, 2 * A.T @ (s[active, None] * A))
    assert np.allclose(c, 2 * A.T @ s[active])
    assert np.allclose(block.active_product(active, theta), H @ theta)
    assert np.allclose(block.loss_by_class(theta, lengths=True).squares, np.diag(H) / 2)
    assert np.allclose(block.loss_by_class(theta, lengths=False).loss.gradient, block.loss(theta).gradient)
    block.rank_update(np.flatnonzero(active), -1.0, H, c)
    block.symmetrize(H)
    assert np.allclose(H, 0, atol=1e-10)
    assert np.allclose(c, 0, atol=1e-10)
    assert np.allclose(block.squared_norms(), np.sum(X**2, axis=1))
    chosen = np.array([1, 4])
    assert np.allclose(block.columns(chosen).gram(), (L.T @ (s[:, None] * L))[np.ix_([1, 4, 6], [1, 4, 6])])
    part = block.columns(chosen)
    assert np.allclose(part.matvec(theta[[1, 4, 6]]), L[:, [1, 4, 6]] @ theta[[1, 4, 6]])


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
def test_the_parts_are_all_rows_and_add_up_to_the_loss(layout, cuts):
    X, y, s, _ = random_problem(n=50)
    rows = MemoryRows(LAYOUTS[layout](X), y, s, cuts=cuts)
    theta = np.linspace(-0.5, 0.5, 7)
    assert rows.n_batch_blocks == len(cuts) + 1
    seen = rows.fold_blocks([], lambda state, block: [*state, block], range(rows.n_batch_blocks)[::-1])
    assert sum(block.n_samples for block in seen) == 50
    total = sum(block.loss(theta).gradient for block in seen)
    assert np.allclose(total, rows.loss(theta).gradient, rtol=1e-12)


def sparse_problem(n=20_000, p=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=0.4, rng=rng, format="csr")
    return X, np.where(X @ np.linspace(-1, 1, p) + 0.1 * rng.standard_normal(n) > 0, 1.0, -1.0)


def test_soundness_is_what_the_slower_checks_say():
    """Of small CSR matrices whose pointers and indices were changed at random."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(400):
        X = sp.random_array((5, 4), density=0.5, rng=rng, format="csr")
        if rng.random() < 0.7:
            array = X.indptr if rng.random() < 0.4 else X.indices
            array[rng.integers(len(array))] = rng.integers(-1, 6)
        sound = corruption(X) is None and X.indptr[-1] == len(X.indices) and is_canonical(X)
        assert is_sound_csr(X) == sound
        seen.add(sound)
    assert seen == {True, False}


@pytest.mark.parametrize("layout", ["c", "fortran", "csr"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_number_of_threads_changes_no_bit(layout, penalty, monkeypatch):
    """Of a fit on rows that are cut into four blocks or parts, by one, two, three and eight threads."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 45)) * (rng.random((40_000, 45)) < 0.7)
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    X = LAYOUTS[layout](X)
    monkeypatch.setattr(threads, "ENTRIES_PER_BLOCK", 150_000)
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES", 300_000)
    found = []
    for cores in (1, 2, 3, 8):
        monkeypatch.setattr(threads._this_thread, "cores", cores, raising=False)
        model = SparseSVC(penalty, lam=3.0).fit(X, y)
        found.append(np.append(model.coef_, [model.intercept_[0], model.objective_, model.gap_]))
    if layout == "csr":
        assert len(MemoryRows(X, y).blocks) == 4
    assert all(np.array_equal(each, found[0]) for each in found)


def test_large_sparse_rows_are_halved_and_answer_the_same(monkeypatch):
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES", 300_000)
    X, y = sparse_problem()
    whole, halves = MemoryRows(X, y, cuts=()), MemoryRows(X, y)
    assert (len(whole.blocks), len(halves.blocks)) == (1, 2)
    theta = np.linspace(-1.0, 1.0, 41)
    assert np.isclose(whole.loss(theta).value, halves.loss(theta).value, rtol=1e-12)
    assert np.allclose(whole.loss(theta).gradient, halves.loss(theta).gradient, rtol=1e-9)
    assert np.allclose(whole.gram(), halves.gram(), rtol=1e-12)
    # Batches are drawn from all rows all the same.
    assert whole.n_batch_blocks == halves.n_batch_blocks == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_dense_rows_are_halved_inside_and_answer_the_same(order, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.standard_normal((10_000, 50)), order=order)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    theta = np.linspace(-0.1, 0.1, 51)
    halved = MemoryRows(X, y)
    monkeypatch.setattr("majorant.rows.dense.LEAST_ENTRIES", 10**9)
    whole = MemoryRows(X, y)
    for question in (
        lambda rows: rows.gram(),
        lambda rows: rows.loss(theta).gradient,
        lambda rows: rows.loss_by_class(theta, lengths=True).squares,
        lambda rows: rows.gram_product(theta),
    ):
        assert np.allclose(question(halved), question(whole), rtol=1e-10, atol=1e-9)


def test_an_error_in_another_thread_is_the_callers_error():
    def fail():
        raise ZeroDivisionError("in the second half")

    with pytest.raises(ZeroDivisionError, match="second half"):
        parallel_map([lambda: 1, fail])
    assert parallel_map([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork processes")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_hires_its_own_threads():
    parallel_map([lambda: 1, lambda: 2])
    child = os.fork()
    if child == 0:
        os._exit(0 if parallel_map([lambda: 1, lambda: 2]) == [1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_blas_gets_its_threads_back():
    def numbers():
        return [library.get_num_threads() for library in blas._libraries()]

    before = numbers()
    with blas.one_thread():
        with blas.one_thread():
            assert set(numbers()) == {1}
        assert set(numbers()) == {1}
    assert numbers() == before


def test_blas_is_held_by_whichever_thread_begins():
    """Also if the main thread has held it before: threadpoolctl would listen to that one alone."""
    own = [library.get_num_threads() for library in blas._libraries()]
    blas._set([2] * len(own))
    several = [library.get_num_threads() for library in blas._libraries()]  # some can have one alone
    seen = []

    def work():
        with blas.one_thread():
            seen.append([library.get_num_threads() for library in blas._libraries()])

    try:
        with blas.one_thread():
            pass
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen.append([library.get_num_threads() for library in blas._libraries()])
    finally:
        blas._set(own)
    assert max(several) == 2
    assert seen == [[1] * len(own), several]


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_by_themselves_are_those_of_the_design(sparse):
    X, y, s, _ = random_problem(n=50)
    rows = MemoryRows(sp.csr_matrix(X) if sparse else X, y, s, cuts=(20,))
    chosen = np.array([0, 3, 5])
    columns = Columns.of(rows, chosen)
    design = rows.design()
    for j, start, stop in zip(chosen, columns.starts, columns.starts[1:], strict=False):
        dense = np.zeros(50)
        dense[columns.indices[start:stop]] = columns.data[start:stop]
        assert np.allclose(dense, design[:, j])


def test_rows_of_ones_answer_as_any_others():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 6)) < 0.4).astype(float)
    y, s = np.where(rng.random(60) < 0.5, 1.0, -1.0), rng.uniform(0.5, 2.0, 60)
    ones, dense = MemoryRows(sp.csr_matrix(X), y, s), MemoryRows(X, y, s)
    assert ones.blocks[0]._csr[0] is None
    theta, D = np.linspace(-0.5, 0.5, 7), rng.standard_normal((7, 2))
    for question in QUESTIONS.values():
        assert np.allclose(question(ones, theta, D), question(dense, theta, D))
    assert np.allclose(ones.columns(np.array([1, 4])).gram(), dense.columns(np.array([1, 4])).gram())
    by_class = [rows.loss_by_class(theta, lengths=True) for rows in (ones, dense)]
    assert np.allclose(by_class[0].squares, by_class[1].squares)
    quadratics = [ActiveQuadratic([rows], theta) for rows in (ones, dense)]
    assert np.isclose(*[quadratic.advance(-theta) for quadratic in quadratics])
    for quadratic in quadratics:
        quadratic.commit(np.zeros(7))
    assert np.allclose(quadratics[0].H, quadratics[1].H)


def test_whole_numbers_are_known_to_be_exact():
    y = np.array([1.0, -1.0])
    blocks = [MemoryRows(sp.csr_matrix(X), y, s).blocks[0] for X, s in (
        ([[1.0, 0], [0, 3.0]], [1.0, 2.0]), ([[1.0, 0], [0, 0.5]], None), ([[1.0, 0], [0, 3.0]], [1.0, 0.5]),
        ([[1.0, 0], [0, 2.0**30]], None))]  # fmt: skip
    assert [block.exact for block in blocks] == [True, False, False, False]


@pytest.mark.parametrize("order", ["C", "F"])
def test_squares_of_single_precision_are_summed_in_double(order):
    """Squares beyond single precision, in either order of the array."""
    X = np.asarray([[1e25, 1.0], [1.0, 1e-25], [3.0, 2.0]], dtype=np.float32, order=order)
    y = np.array([1.0, -1.0, 1.0])
    for weights in (None, np.array([1.0, 2.0, 3.0])):
        squares = MemoryRows(X, y, weights).gram_diagonal[:-1]
        s = np.ones(3) if weights is None else weights
        assert np.allclose(squares, s @ X.astype(float) ** 2, rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_class_without_an_active_row_adds_exactly_nothing(layout):
    """Rounding in its place would be taken for dual variables, and prove what is not so."""
    rng = np.random.default_rng(0)
    # With 4,200 columns the loss is summed up in chunks of rows, whose rounding is not that of one product.
    X, y = 1e4 + rng.standard_normal((200, 4200)), np.where(np.arange(200) % 2, 1.0, -1.0)
    for label in (-1.0, 1.0):
        rows = MemoryRows(LAYOUTS[layout](X), y, rng.random(200))
        theta = np.append(np.full(4200, 1e-9), 3.0 * label)
        loss = rows.loss_by_class(theta, lengths=False)
        silent, other = (loss.positive, loss.negative)[:: int(label)]
        assert silent.value == 0.0
        assert not silent.gradient.any()
        assert np.array_equal(other.gradient, rows.loss(theta).gradient)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_loss_of_a_class_that_weighs_next_to_nothing_is_accurate(layout):
    rng = np.random.default_rng(0)
    X, y = 1e4 + rng.standard_normal((200, 40)), np.where(np.arange(200) % 2, 1.0, -1.0)
    for label in (-1.0, 1.0):
        s = np.where(y == label, 1e-12, 1.0) * rng.random(200)
        loss = MemoryRows(LAYOUTS[layout](X), y, s).loss_by_class(np.append(np.zeros(40), 0.1), lengths=False)
        light = (loss.positive, loss.negative)[:: int(label)][0]
        mine = y == label
        slopes = -2.0 * (s * y * (1.0 - y * 0.1))[mine]
        np.testing.assert_allclose(light.gradient[:-1], slopes @ X[mine], rtol=1e-10)


def test_renumbering_columns_ignores_what_stands_behind_the_rows():
    """A copy of some columns has a place to spare, with any number in it."""
    from majorant.rows.csr import CsrBlock

    data, indices = np.array([1.0, 2.0, np.nan]), np.array([0, 2, 2**32 - 1], dtype=np.uint32)
    ends = np.array([0, 1, 2], dtype=np.uint64)
    y = np.array([1.0, -1.0])
    block = CsrBlock((data, indices, ends[:-1], ends[1:]), 3, y, np.ones(2), intercept=True, ones=False)
    narrow = block.renumbered(np.array([0, 2]))
    assert narrow.n_features == 2
    assert np.array_equal(
        narrow.matvec(np.array([3.0, 5.0, 7.0])), block.matvec(np.array([3.0, 0.0, 5.0, 7.0]))
    )
    assert np.array_equal(narrow.design(), block.design()[:, [0, 2, 3]])


def test_rows_of_another_class_are_in_the_same_blocks(monkeypatch):
    """A large matrix for each block makes fewer blocks: also of the other classes of a joint problem."""
    X, y, s, _ = random_problem(n=4000, sparse=True)
    monkeypatch.setattr("majorant.rows.memory.LEAST_ENTRIES", 2000)
    part = MemoryRows(X, y, s)
    assert len(part.blocks) == 2
    part.blocks = part.partition(10**6)
    assert len(part.blocks) == 1
    twin = part.relabelled(-y, s)
    assert [block.n_samples for block in twin.blocks] == [block.n_samples for block in part.blocks]
