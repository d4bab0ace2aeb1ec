"""Blocks of rows from files: the same rows as `read` gives, whatever the format and the cuts."""

import gzip
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC
from majorant.datasets import from_arrays, from_blocks, open_source, read, write_libsvm
from majorant.datasets.sources import libsvm_text
from majorant.errors import DataFileError, MajorantError


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((300, 7)), 3)
    X[np.abs(X) < 0.8] = 0.0
    X[:, 6] = 1.0
    return X, np.where(X[:, 0] + X[:, 1] + rng.standard_normal(300) > 0, 1, -1)


def gathered(source):
    """All rows of all blocks, one after the other."""
    blocks = [source.load(i) for i in range(source.n_blocks)]
    X = np.vstack([block.X.toarray() if sp.issparse(block.X) else block.X for block in blocks])
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return X, y


def saved(kind, directory, X, y):
    """The rows in a file or directory of that kind, and how to open it."""
    if kind == "npy":
        np.save(directory / "X.npy", X)
        np.save(directory / "y.npy", y)
        return directory / "X.npy", {"rows_per_block": 64}
    if kind == "csr":
        matrix = sp.csr_array(X)
        for name in ("data", "indices", "indptr"):
            np.save(directory / f"{name}.npy", getattr(matrix, name))
        np.save(directory / "y.npy", y)
        return directory, {"block_bytes": 6000}
    if kind == "libsvm":
        write_libsvm(directory / "rows.svm", X, y)
        return directory / "rows.svm", {"block_bytes": 6000}
    if kind == "npz":
        cuts = [0, 100, 130, len(y)]
        for k in range(3):
            part = slice(cuts[k], cuts[k + 1])
            np.savez(directory / f"{k}.npz", X=X[part], y=y[part])
        return [directory / f"{k}.npz" for k in range(3)], {}
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({**{f"f{j}": X[:, j] for j in range(X.shape[1])}, "label": y})
    parquet.write_table(table, directory / "rows.parquet", row_group_size=50)
    return directory / "rows.parquet", {"block_bytes": 8000}


KINDS = ["npy", "csr", "libsvm", "npz", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_come_in_order(kind, rows, tmp_path):
    path, options = saved(kind, tmp_path, *rows)
    source = open_source(path, **options)
    assert source.n_blocks >= 3
    assert source.n_features == 7
    X, y = gathered(source)
    assert np.array_equal(X, rows[0])
    assert np.array_equal(y, rows[1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_can_be_loaded_again_and_anywhere(kind, rows, tmp_path):
    path, options = saved(kind, tmp_path, *rows)
    source = open_source(path, **options)
    dumped = pickle.dumps(source)
    assert len(dumped) < 5000  # a description, no data
    (tmp_path / "source.pickle").write_bytes(dumped)
    code = (
        "import pickle, sys; source = pickle.load(open(sys.argv[1], 'rb')); "
        "print(source.load(1).X.sum(), source.load(1).y.sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "source.pickle")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    again = source.load(1)
    assert done.stdout.split() == [str(again.X.sum()), str(again.y.sum())]


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_and_sizes_are_those_of_the_blocks(kind, rows, tmp_path):
    path, options = saved(kind, tmp_path, *rows)
    source = open_source(path, **options)
    for i in range(source.n_blocks):
        block, tally = source.load(i), source.tally(i)
        labels, counts = np.unique(block.y, return_counts=True)
        assert np.array_equal(tally.labels, labels)
        assert np.array_equal(tally.rows, counts)
        assert np.array_equal(tally.weights, counts)
        assert source.size(i) is None or abs(source.size(i) - block.nbytes) <= 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_that_in_memory(kind, rows, tmp_path):
    path, options = saved(kind, tmp_path, *rows)
    expected = SparseSVC("l2", solver="mm", tol=1e-10).fit(*rows)
    model = SparseSVC("l2", solver="mm", tol=1e-10).fit(open_source(path, memory="60KB", **options))
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    names = getattr(model, "feature_names_in_", None)
    assert (names is not None) == (kind == "parquet")


def test_the_default_size_of_a_block_follows_from_the_memory(rows, tmp_path):
    path, _ = saved("npy", tmp_path, *rows)
    assert open_source(path).n_blocks == 1
    small = open_source(path, memory=16_000)
    assert small.memory == 16_000
    assert max(small.size(i) for i in range(small.n_blocks)) <= 2000


# .npy ----------------------------------------------------------------------------------------------


def test_npy_in_single_precision_stays_so(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    source = open_source(tmp_path)
    assert source.load(0).X.dtype == np.float32
    assert SparseSVC("l2", solver="mm").fit(source).coef_.dtype == np.float32


def test_npy_of_integers_labels_and_weights_elsewhere(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "table.npy", X.astype(np.int16))
    np.save(tmp_path / "labels.npy", np.where(y > 0, "yes", "no"))
    np.save(tmp_path / "w.npy", np.arange(300) % 4)
    source = open_source(
        tmp_path / "table.npy",
        label=str(tmp_path / "labels.npy"),
        weight=str(tmp_path / "w.npy"),
        rows_per_block=90,
    )
    model = SparseSVC("l2", solver="mm").fit(source)
    expected = SparseSVC("l2", solver="mm").fit(
        X.astype(np.int16), np.where(y > 0, "yes", "no"), np.arange(300) % 4
    )
    assert np.allclose(model.coef_, expected.coef_, atol=1e-5)
    assert model.classes_.tolist() == ["no", "yes"]


def test_csr_width_by_shape_features_or_the_widest(rows, tmp_path):
    path, _ = saved("csr", tmp_path, rows[0][:, :6], rows[1])
    assert open_source(path).n_features == 6
    assert open_source(path, features=9).n_features == 9
    np.save(tmp_path / "shape.npy", [300, 8])
    assert open_source(path).n_features == 8
    assert open_source(path, rows_per_block=100).n_blocks == 3


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(5), np.arange(5), "a matrix of numbers belongs here"),
        (np.array([["a"]]), np.arange(1), "a matrix of numbers belongs here"),
        (np.asfortranarray(np.ones((5, 2))), np.arange(5), "column by column"),
        (np.ones((5, 2)), np.arange(4), "one entry for each of the 5 rows"),
        (np.ones((0, 2)), np.arange(0), "no rows"),
    ],
)
def test_what_is_wrong_with_npy_files(X, y, message, tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    with pytest.raises(DataFileError, match=message):
        open_source(tmp_path / "X.npy")


def test_damaged_and_missing_files(rows, tmp_path):
    path, _ = saved("npy", tmp_path, *rows)
    with pytest.raises(DataFileError, match="no such file"):
        open_source(tmp_path / "none.npy", label=str(tmp_path / "y.npy"))
    with pytest.raises(DataFileError, match="no such file"):
        open_source(tmp_path / "none.svm")
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(DataFileError, match="a part of the file is missing"):
        open_source(path)
    path.write_bytes(b"no array")
    with pytest.raises(DataFileError, match=r"not a readable \.npy file"):
        open_source(path)
    np.save(path, np.array([[1, "a"]], dtype=object))
    with pytest.raises(DataFileError, match="Python objects"):
        open_source(path)
    (tmp_path / "y.npy").unlink()
    with pytest.raises(DataFileError, match="where are the labels"):
        open_source(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_is_noticed(kind, rows, tmp_path):
    path, options = saved(kind, tmp_path, *rows)
    source = open_source(path, **options)
    changed = path[0] if kind == "npz" else path / "data.npy" if kind == "csr" else path
    os.utime(changed, ns=(1, 1))
    with pytest.raises(DataFileError, match="has changed since it was opened"):
        source.load(0)


def test_values_that_are_not_finite_are_found_in_the_first_pass(rows, tmp_path):
    X = rows[0].copy()
    X[250, 3] = np.nan
    path, options = saved("npy", tmp_path, X, rows[1])
    with pytest.raises(MajorantError, match=r"X\.npy, block 3: X has missing"):
        SparseSVC().fit(open_source(path, **options))


# LIBSVM text ----------------------------------------------------------------------------------------


def test_libsvm_blocks_are_those_of_read(tmp_path):
    text = "# a comment\n1 1:2 3:1\n\n-1 2:1 # another\r\n1 1:1\n" * 40 + "# the end\n\n" * 50
    path = tmp_path / "rows.svm"
    path.write_text(text)
    data = read(path)
    for size in (100, 500, 2000, 10**6):
        source = open_source(path, block_bytes=size)
        X, y = gathered(source)
        assert np.array_equal(X, data.X.toarray())
        assert np.array_equal(y, data.y)
    assert open_source(path, block_bytes=500).n_blocks > 2


def test_libsvm_without_a_last_line_end(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2\n-1 2:3")
    X, y = gathered(open_source(path))
    assert X.tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert y.tolist() == [1, -1]


def test_libsvm_errors_have_their_line(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2\n" * 1000 + "1 1:x\n")
    with pytest.raises(DataFileError, match=r"rows\.svm:1001:5: the value 'x' is not a number"):
        open_source(path, block_bytes=500)
    path.write_text("")
    with pytest.raises(DataFileError, match="no rows"):
        open_source(path)
    path.write_text("1 9:1\n-1 1:1\n")
    with pytest.raises(DataFileError, match="index 9 is beyond the 4 features"):
        open_source(path, features=4)
    assert open_source(path, features=12).n_features == 12


def test_libsvm_counts_from_zero(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 0:2\n-1 2:3\n")
    assert gathered(open_source(path, zero_based=True))[0].tolist() == [[2, 0, 0], [0, 0, 3]]


def test_libsvm_is_indexed_once_and_again_when_it_changes(rows, tmp_path, cache, monkeypatch):
    path, options = saved("libsvm", tmp_path, *rows)
    made = []

    def make_index(*args, make=libsvm_text._make_index):
        made.append(args)
        return make(*args)

    monkeypatch.setattr(libsvm_text, "_make_index", make_index)
    first = open_source(path, **options)
    again = open_source(path, **options)
    assert len(made) == 1
    assert np.array_equal(gathered(first)[0], gathered(again)[0])
    path.write_text(path.read_text() + "1 1:5\n")
    assert gathered(open_source(path, **options))[0].shape[0] == 301
    assert len(made) == 2
    (kept,) = cache.rglob("*.npz")
    kept.write_bytes(b"damaged")
    assert gathered(open_source(path, **options))[0].shape[0] == 301
    assert len(made) == 3
    open_source(path, block_bytes=9000)  # other blocks are another index
    assert len(made) == 4


def test_a_cache_that_cannot_be_written_is_no_error(rows, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path, options = saved("libsvm", tmp_path, *rows)
    assert gathered(open_source(path, **options))[0].shape == (300, 7)


def test_without_labels(tmp_path, rows):
    path = tmp_path / "rows.svm"
    path.write_text("1:2\n2:3\n")
    X, y = gathered(open_source(path, labelled=None))
    assert X.tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert y is None
    with pytest.raises(DataFileError, match="no labels"):
        SparseSVC().fit(open_source(path, labelled=None))
    np.save(tmp_path / "X.npy", rows[0])
    X, y = gathered(open_source(tmp_path / "X.npy", labelled=None))
    assert y is None
    with pytest.raises(DataFileError, match="no labels"):
        SparseSVC().fit(open_source(tmp_path / "X.npy", labelled=None))


# Lists, shards, tables ------------------------------------------------------------------------------


def test_several_libsvm_files_have_the_features_of_all(tmp_path):
    for name, text in (("a", "1 1:1\n-1 2:1\n"), ("b", "1 5:1\n-1 1:2\n")):
        (tmp_path / name).write_text(text)
    source = open_source([tmp_path / "a", tmp_path / "b"])
    assert source.n_features == 5
    assert gathered(source)[0].shape == (4, 5)


def test_shards_may_be_compressed_but_must_fit_together(rows, tmp_path):
    X, y = rows
    write_libsvm(tmp_path / "a.svm.gz", X[:200], y[:200])
    write_libsvm(tmp_path / "b.svm.gz", X[200:], y[200:])
    source = open_source([tmp_path / "a.svm.gz", tmp_path / "b.svm.gz"])
    assert source.n_blocks == 2
    assert np.array_equal(gathered(source)[0], X)
    write_libsvm(tmp_path / "c.svm.gz", X[:, :5], y)
    with pytest.raises(DataFileError, match=r"5 features, where .*a\.svm\.gz has 7"):
        open_source([tmp_path / "a.svm.gz", tmp_path / "c.svm.gz"])
    (tmp_path / "d.gz").write_bytes(gzip.compress(os.urandom(5000)))
    with pytest.raises(DataFileError, match="compressed files are read whole"):
        open_source(tmp_path / "d.gz", memory="8KB")
    with pytest.raises(MajorantError, match="no file in the list"):
        open_source([])


def test_parquet_columns(rows, tmp_path):
    import pandas as pd

    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdefg")).assign(kind=np.where(y > 0, "x", "y"), w=np.arange(300))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    source = open_source(tmp_path / "t.parquet", label="kind", weight="w", drop=["g"], block_bytes=6000)
    assert source.feature_names == ("a", "b", "c", "d", "e", "f")
    block = source.load(1)
    assert np.array_equal(block.X, X[100:200, :6])
    assert block.weight.tolist() == list(range(100, 200))
    assert source.tally(0).labels.tolist() == ["x", "y"]
    assert open_source(tmp_path / "t.parquet", label="kind").n_blocks == 1  # small groups come together
    with pytest.raises(DataFileError, match="no column 'v' for the weights"):
        open_source(tmp_path / "t.parquet", label="kind", weight="v")
    with pytest.raises(DataFileError, match="which column has the labels"):
        open_source(tmp_path / "t.parquet")
    model = SparseSVC("l2", solver="mm").fit(source)
    other = frame[["b", "a", "c", "d", "e", "f", "kind"]]
    other.to_parquet(tmp_path / "o.parquet")
    with pytest.raises(ValueError, match="in another order"):
        model.predict(open_source(tmp_path / "o.parquet", label="kind"))
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataFileError, match="not a readable parquet file"):
        open_source(tmp_path / "t.parquet")


def test_options_that_do_not_apply(rows, tmp_path):
    path, _ = saved("libsvm", tmp_path, *rows)
    for options, message in [
        ({"format": "xls"}, "is not known"),
        ({"rows_per_block": 0}, "must be at least 1"),
        ({"rows_per_block": 10}, "cut by block_bytes"),
        ({"weight": "w"}, "sample weights are read from"),
        ({"label": "y"}, "columns of LIBSVM text have no names"),
        ({"drop": ["a"]}, "columns of LIBSVM text have no names"),
        ({"memory": "lots"}, "no size in memory"),
        ({"block_bytes": "-3"}, "no size in memory"),
    ]:
        with pytest.raises(MajorantError, match=message):
            open_source(path, **options)
    np.save(tmp_path / "X.npy", rows[0])
    np.save(tmp_path / "y.npy", rows[1])
    with pytest.raises(DataFileError, match="drop is for tables"):
        open_source(tmp_path / "X.npy", drop=["a"])
    with pytest.raises(DataFileError, match="7 features, where 3 are expected"):
        open_source(tmp_path / "X.npy", features=3)


def test_from_blocks_and_arrays(rows):
    X, y = rows
    source = from_blocks(lambda i: (X[i::2], y[i::2]), 2, memory="3GB")
    assert (source.n_blocks, source.n_features, source.memory) == (2, 7, 3 * 10**9)
    assert from_arrays(X, y, rows_per_block=100).n_blocks == 3
    assert repr(source) == "<FunctionSource function: 2 blocks, 7 features>"
    with pytest.raises(MajorantError, match="at least 1"):
        from_blocks(lambda i: None, 0)
