"""LIBSVM text: the same bits as `float`, strict, with positions; compression, standard input."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from majorant.datasets import Data, read, write_libsvm
from majorant.errors import DataFileError, MajorantError


def read_text(tmp_path, text, **options):
    path = tmp_path / "data.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_hard_numbers_in_a_file(tmp_path):
    hard = "1.00000000000000011102230246251565404236316680908203126"
    data = read_text(tmp_path, f"{hard} 1:-{hard} 3:2\n-1 2:{hard}\n")
    assert data.X.data.tolist() == [-float(hard), 2.0, float(hard)]
    assert data.y.tolist() == [float(hard), -1.0]


# What is accepted


def test_a_plain_file(tmp_path):
    text = "+1 1:0.5 3:-2e-3\n-1 2:+7\n"
    data = read_text(tmp_path, text)
    assert isinstance(data, Data)
    assert isinstance(data.X, sp.csr_array)
    assert data.X.toarray().tolist() == [[0.5, 0, -2e-3], [0, 7, 0]]
    assert data.y.tolist() == [1, -1]
    assert data.y.dtype == np.int64
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert data.X.has_canonical_format
    assert data.feature_names is None
    assert data.source == str(tmp_path / "data.txt")
    assert data.sha256 == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2 2:3\n2 2:4\n",
        "1 1:2 2:3\n2 2:4",
        "1 1:2 2:3\r\n2 2:4\r\n",
        "1 1:2 2:3\r\n2 2:4\r",
        " 1\t1:2  2:3 \t\n\n   \n2 2:4 \n\n",
        "# both rows\n1 1:2 2:3 # caf\u00e9\n2 2:4#end",
        "1.0 1:2.0 2:3.\n2e0 2:+4",
        "1 1:2 2:3\n2 1:0 2:4\n",
    ],
)
def test_spaces_line_ends_and_comments(tmp_path, text):
    data = read_text(tmp_path, text)
    assert data.X.toarray().tolist() == [[2, 3], [0, 4]]
    assert data.y.tolist() == [1, 2]
    assert data.y.dtype == np.int64


def test_labels_that_are_not_integers(tmp_path):
    assert read_text(tmp_path, "1.5 1:1\n2 1:1\n").y.tolist() == [1.5, 2.0]


def test_rows_without_features_and_the_number_of_features(tmp_path):
    data = read_text(tmp_path, "1\n-1 2:1\n", features=5)
    assert data.X.toarray().tolist() == [[0] * 5, [0, 1, 0, 0, 0]]


def test_zero_based(tmp_path):
    assert read_text(tmp_path, "1 0:1 2:3\n", zero_based=True).X.toarray().tolist() == [[1, 0, 3]]


def test_files_larger_than_a_chunk_and_lines_longer_than_one(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random_array((3, 300_000), density=0.4, rng=rng, format="csr")
    X.resize((2000, 300_000))
    y = rng.integers(0, 3, 2000)
    write_libsvm(tmp_path / "long.txt", X, y)
    assert (tmp_path / "long.txt").stat().st_size > 5 << 20
    data = read(tmp_path / "long.txt", features=300_000)
    assert same_bits(data.X.data, X.data)
    assert np.array_equal(data.X.indices, X.indices)
    assert np.array_equal(data.X.indptr, X.indptr)
    assert np.array_equal(data.y, y)
    with (tmp_path / "long.txt").open("ab") as file:
        file.write(b"1 2:x\n")
    with pytest.raises(DataFileError, match=r"long\.txt:2001:5: "):
        read(tmp_path / "long.txt")


# Labels or none


def test_rows_without_labels(tmp_path):
    text = "1:2 2:3\n2:4\n"
    for labelled in (None, False):
        data = read_text(tmp_path, text, labelled=labelled)
        assert data.y is None
        assert data.X.toarray().tolist() == [[2, 3], [0, 4]]


@pytest.mark.parametrize("comments", [1, 30_000], ids=["a line", "more than a chunk"])
def test_comments_in_a_file_without_labels(tmp_path, comments):
    """More than a megabyte of them, before the first row says that there are no labels."""
    text = "# what 1:1 this is, and where it came from\n" * comments + "1:2 2:3\n # between\n2:4 # after\n"
    data = read_text(tmp_path, text, labelled=None)
    assert data.y is None
    assert data.X.toarray().tolist() == [[2, 3], [0, 4]]


@pytest.mark.parametrize("start", ["\n", "# c\n\n", "# c\n" * 300_000 + "\n"], ids=["1", "2", "300001"])
def test_empty_lines_before_the_first_row(tmp_path, start, request):
    """Nothing where there are labels, and a row that may be meant where there are none."""
    assert read_text(tmp_path, start + "7 1:2\n", labelled=None).y.tolist() == [7]
    line = request.node.callspec.id
    with pytest.raises(DataFileError, match=rf"data\.txt:{line}:1: an empty line"):
        read_text(tmp_path, start + "1:2\n", labelled=None)


@pytest.mark.parametrize("labelled", [True, None, False])
def test_only_comments_are_no_rows(tmp_path, labelled):
    with pytest.raises(DataFileError, match="there are no rows"):
        read_text(tmp_path, "# nothing\n\n", labelled=labelled)


def test_labels_are_numbers_however_they_are_spelt(tmp_path):
    assert read_text(tmp_path, "01 1:1\n1 1:1\n+1 1:1\n1.0 1:1\n-1 1:1\n").y.tolist() == [1, 1, 1, 1, -1]


def test_labels_if_there_are_any(tmp_path):
    assert read_text(tmp_path, "\n7 1:2\n", labelled=None).y.tolist() == [7]
    data = read_text(tmp_path, "7 1:2\n", labelled=False)
    assert data.y is None
    assert data.X.toarray().tolist() == [[2]]


# What is refused, and where


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("1 1:1\n1 1:nan\n", 2, 5, "missing and infinite values must be replaced"),
        ("1 1:-inf\n", 1, 5, "missing and infinite values must be replaced"),
        ("1 1:1 2:1e400\n", 1, 9, "'1e400' is too large"),
        ("1 1:1 2:" + "9" * 400 + "\n", 1, 9, "too large"),
        # The least number that rounds to infinity, as only `float` can tell.
        (f"1 1:{2**1024 - 2**970}\n", 1, 5, "too large"),
        ("1 1:1_000\n", 1, 5, "no underscores"),
        ("1 1:0x1p3\n", 1, 5, "hexadecimal"),
        ("1 1:1 2:1.2.3\n", 1, 9, "not a number"),
        ("1 0:1\n", 1, 3, "zero_based=True"),
        ("1 2:1 0:1\n", 1, 7, "zero_based=True"),
        ("1 2:1 1:1\n", 1, 7, "indices must increase"),
        ("1 2:1 2:1\n", 1, 7, "indices must increase"),
        ("1 -2:1\n", 1, 3, "indices count from 1"),
        ("1 +2:1\n", 1, 3, "indices count from 1"),
        ("1 1:1 2147483648:1\n", 1, 7, "at most 2147483647"),
        ("1 1:1 99999999999999999999999:1\n", 1, 7, "at most 2147483647"),
        (b"\xef\xbb\xbf1 1:1\n", 1, 1, "byte-order mark"),
        ("1 1:1\n1 1:1 3:\n", 2, 9, "missing after the colon"),
        ("1 1:1 3: 5\n", 1, 9, "missing after the colon"),
        ("1 1:1 3", 1, 7, "half of an index:value pair"),
        ("1 1:1 3 :5", 1, 7, "half of an index:value pair"),
        ("1 1:1 3.5:2\n", 1, 7, "no index:value pair"),
        ("1 :2\n", 1, 3, "no index:value pair"),
        ("1 1:1\nspam 1:1\n", 2, 1, "the label 'spam' is not a number"),
        ("1,2 1:1\n", 1, 1, "format='csv'"),
        ("nan 1:1\n", 1, 1, "missing and infinite"),
        ("1e999 1:1\n", 1, 1, "too large"),
        ("9007199254740994 1:1\n", 1, 1, "told from its neighbours"),
        ("9007199254740993.0000000000000000000000001 1:1\n", 1, 1, "told from its neighbours"),
        ("1 1:1\n 1:1\n", 2, 2, "the label is missing"),
        ("1 qid:3 1:1\n", 1, 3, "ranking"),
        (b"1 1:1\n\n1 1:\x00\n", 3, 5, "NUL"),
        (b"1 1:1 # \x00\n", 1, 9, "NUL"),
        (b"1 1:1 2:\xff\n", 1, 9, "not ASCII"),
        ("1 1:1 2:1\u00a0\n", 1, 9, "not ASCII"),
        ("1 1:1\r1 1:2\n", 1, 6, "carriage return"),
        ("1 1:1\v1:2\n", 1, 5, "not a number"),
    ],
)  # fmt: skip
def test_errors_say_where(tmp_path, text, line, column, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_text(tmp_path, text)
    error = caught.value
    assert (error.path, error.line, error.column) == (str(tmp_path / "data.txt"), line, column)
    assert str(error).startswith(f"{tmp_path / 'data.txt'}:{line}:{column}: ")
    assert "\n" not in str(error)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "  "])
def test_no_rows(tmp_path, text):
    for labelled in (True, None):
        with pytest.raises(DataFileError, match=r"data\.txt: there are no rows"):
            read_text(tmp_path, text, labelled=labelled)


def test_no_features(tmp_path):
    with pytest.raises(DataFileError, match="no row has a feature"):
        read_text(tmp_path, "1\n2\n")


def test_more_features_than_expected(tmp_path):
    with pytest.raises(DataFileError, match=r"data\.txt:2:7: the index 4 is beyond the 3 features"):
        read_text(tmp_path, "1 3:1\n1 1:1 4:1\n", features=3)


def test_an_empty_line_among_rows_without_labels(tmp_path):
    with pytest.raises(DataFileError, match=r"data\.txt:2:1: an empty line"):
        read_text(tmp_path, "1:1\n\n1:2\n", labelled=None)


def test_the_first_of_two_errors(tmp_path):
    late = "9007199254740993.0000000000000000000000001"
    with pytest.raises(DataFileError, match=r"data\.txt:1:1: "):
        read_text(tmp_path, f"{late} 1:1\n1 1:nan\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xls"}, "format='xls' is not known"),
        ({"features": 0}, "at least 1"),
        ({"label": "y"}, "have no names"),
        ({"drop": ["a"]}, "have no names"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, message):
    with pytest.raises(MajorantError, match=message):
        read_text(tmp_path, "1 1:1\n", **options)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(DataFileError, match="there is no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(DataFileError, match="cannot be read: Is a directory"):
        read(tmp_path)


# Compression and standard input

TEXT = b"1 1:0.25 7:3\n-1 2:1e-3\n" * 50
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("name", ["a.txt", "a", "a.svm", "a.t", "a.gz", "a.txt.gz", "a.bz2", "a.libsvm.xz"])
@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_known_by_the_first_bytes(tmp_path, name, kind):
    half = len(TEXT) // 2
    (tmp_path / name).write_bytes(COMPRESS[kind](TEXT[:half]) + COMPRESS[kind](TEXT[half:]))
    data = read(tmp_path / name)
    assert data.X.shape == (100, 7)
    assert data.sha256 == hashlib.sha256(TEXT).hexdigest()


def test_a_name_that_promises_compression(tmp_path):
    (tmp_path / "a.gz").write_bytes(TEXT)
    assert read(tmp_path / "a.gz").X.shape == (100, 7)


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_compressed_data(tmp_path, kind):
    whole = COMPRESS[kind](np.random.default_rng(0).bytes(50_000).hex().encode())
    path = tmp_path / f"a{kind}"
    for size in (10, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataFileError, match="end too early"):
            read(path)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0x55
    path.write_bytes(bytes(broken))
    with pytest.raises(DataFileError):
        read(path)


class _Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("kind", [None, *COMPRESS])
def test_standard_input(monkeypatch, kind):
    monkeypatch.setattr(sys, "stdin", _Stdin(COMPRESS[kind](TEXT) if kind else TEXT))
    data = read("-")
    assert data.source == "-"
    assert data.X.shape == (100, 7)
    assert not sys.stdin.buffer.closed


def test_standard_input_of_another_format(monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin(b"a,y\n1,2\n"))
    assert read("-", format="csv").y.tolist() == [2]
    monkeypatch.setattr(sys, "stdin", _Stdin(b"1 1:x\n"))
    with pytest.raises(DataFileError, match="<stdin>:1:5: "):
        read("-")


def test_a_pipe_that_delivers_byte_by_byte(monkeypatch, tmp_path):
    import threading

    receiver, sender = os.pipe()
    content = gzip.compress(TEXT)

    def send():
        for byte in content:
            os.write(sender, bytes([byte]))
        os.close(sender)

    thread = threading.Thread(target=send)
    thread.start()
    with os.fdopen(receiver, "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": file}))
        assert read("-").X.shape == (100, 7)
    thread.join()


# Real data


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["a1a.bz2", "a9a.bz2", "heart_scale", "mushrooms.bz2", "news20.bz2", "leukemia.bz2", "rcv1_subset.bz2"],
)
def test_the_same_as_scikit_learns_loader(data_dir, name):
    data = read(data_dir / name)
    X, y = load_svmlight_file(str(data_dir / name))
    assert data.X.shape == X.shape
    assert same_bits(data.X.data, X.data)
    assert np.array_equal(data.X.indices, X.indices)
    assert np.array_equal(data.X.indptr, X.indptr)
    assert np.array_equal(data.y, y)


@pytest.mark.data
def test_cina0(data_dir):
    data = read(data_dir / "cina0.mat")
    assert data.X.shape == (16033, 132)
    assert data.X.dtype == np.float64
    assert np.bincount(data.y + 1).tolist() == [12094, 0, 3939]
