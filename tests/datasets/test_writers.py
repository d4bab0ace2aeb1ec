"""What is written as LIBSVM text is read back, to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from majorant.datasets import read, write_libsvm
from majorant.errors import MajorantError, OutputError

FIXED = settings(deadline=None, derandomize=True)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def sparse_data(draw):
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    places = draw(st.sets(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)), min_size=1))
    values = draw(st.lists(FINITE, min_size=len(places), max_size=len(places)))
    r, c = zip(*sorted(places), strict=True)
    largest = 2**53 - 1
    integers, numbers = st.integers(-largest, largest), st.floats(-float(largest), float(largest))
    y = np.array(draw(st.lists(draw(st.sampled_from([integers, numbers])), min_size=rows, max_size=rows)))
    return sp.csr_array((values, (r, c)), shape=(rows, columns)), y


@FIXED
@given(sparse_data(), st.sampled_from(["d.txt", "d.gz", "d.txt.bz2", "d.xz"]))
def test_what_is_written_is_read_back(tmp_path_factory, problem, name):
    X, y = problem
    path = tmp_path_factory.mktemp("written") / name
    write_libsvm(path, X, y)
    data = read(path, features=X.shape[1])
    for part in ("data", "indices", "indptr"):
        assert same_bits(getattr(data.X, part), getattr(X, part).astype(getattr(data.X, part).dtype))
    whole = np.all(y == np.floor(y))
    assert np.array_equal(data.y, y)
    assert data.y.dtype == (np.int64 if whole else np.float64)


def test_dense_arrays_are_written_with_their_signs_of_zero(tmp_path):
    X = np.array([[0.0, -0.0, 1.0], [0.1, 0.0, 0.0]])
    write_libsvm(tmp_path / "a", X, np.array([True, False]))
    assert (tmp_path / "a").read_text() == "1 2:-0 3:1\n0 1:0.1\n"
    assert same_bits(read(tmp_path / "a").X.toarray() + 0.0, X + 0.0)


def test_unsorted_and_repeated_entries_are_put_in_order(tmp_path):
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), [2, 0, 2], [0, 3]), shape=(1, 3))
    write_libsvm(tmp_path / "a", X, [1])
    assert (tmp_path / "a").read_text() == "1 1:2 3:4\n"
    assert X.nnz == 3


def test_the_same_data_give_the_same_compressed_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_libsvm(tmp_path / name, [[1.0]], [1])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan]], [1], "missing"),
        ([[np.inf]], [1], "infinite"),
        ([1.0], [1], "rows and columns"),
        ([[1.0]], ["a"], "number the classes"),
        ([[1.0]], [1, 2], "1 rows and 2 labels"),
        (np.empty((0, 2)), [], "at least one"),
        ([[1.0]], [np.nan], "not finite"),
        ([[1.0]], [2**60], "beyond"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, y, message):
    with pytest.raises(MajorantError, match=message):
        write_libsvm(tmp_path / "a", X, y)
    assert not (tmp_path / "a").exists()


def test_an_existing_file_is_kept_if_asked(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        write_libsvm(tmp_path / "a", [[1.0]], [1], overwrite=False)
    assert (tmp_path / "a").read_text() == "mine"
