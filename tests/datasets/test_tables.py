"""Tables and arrays: what is read, and what the errors say about it."""

import io
import struct
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from majorant.datasets import read
from majorant.errors import DataFileError, MajorantError


def read_csv(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)


# Text


def test_a_table(tmp_path):
    data = read_csv(tmp_path, "a,b,label\n1,2.5,1\n-3e2, 4 ,0\n")
    assert data.X.tolist() == [[1, 2.5], [-300, 4]]
    assert data.X.dtype == np.float64
    assert data.y.tolist() == [1, 0]
    assert data.y.dtype == np.int64
    assert data.feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x,y\n1,7\n2,8\n", {}),
        ("\ufeffx,y\r\n1,7\r\n2,8", {}),
        ('"x","y"\n"1",7\n\n2,"8"\n', {}),
        ("x\tY\n1\t7\n2\t8\n", {"name": "t.tsv"}),
        ("Target,x\n7,1\n8,2\n", {}),
        ("x,kind\n1,7\n2,8\n", {"label": "kind"}),
        ("x,kind\n1,7\n2,8\n", {"label": 1}),
        ("x,kind\n1,7\n2,8\n", {"label": -1}),
        ("id,x,y\na,1,7\nb,2,8\n", {"drop": ["id"]}),
        ("id,x,y\na,1,7\nb,2,8\n", {"drop": "id"}),
        (",x,y\na,1,7\nb,2,8\n", {"drop": [0]}),
        ("x,y,label\n1,3,7\n2,3,8\n", {"drop": ["y"], "label": "label"}),
        ("1,7\n2,8\n", {"header": False, "label": 1}),
        ("x,y\n1,7\n2,8\n", {"labelled": None, "features": 1}),
        ("x,y\r1,7\r2,8\r", {}),
    ],
)
def test_the_same_table_written_in_many_ways(tmp_path, text, options):
    data = read_csv(tmp_path, text, **options)
    assert data.X.tolist() == [[1], [2]]
    assert data.y.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "2.0"], np.array([1, 2])),
        (["1", "2.5"], np.array([1.0, 2.5])),
        (["spam", "1"], np.array(["spam", "1"])),
        (["9007199254740993", "9007199254740992"], np.array([9007199254740993, 9007199254740992])),
        (["1" * 30, "1" * 29 + "2"], np.array(["1" * 30, "1" * 29 + "2"])),
        (["1_0", "10"], np.array(["1_0", "10"])),
        (["été", "日本"], np.array(["été", "日本"])),
        (["01", "1", "+1"], np.array(["01", "1", "+1"])),
        (["1.0", "01.0"], np.array(["1.0", "01.0"])),
        (["007", "-08"], np.array(["007", "-08"])),
        (["0", "0.5", "1e05"], np.array([0.0, 0.5, 1e5])),
        (["+1", "-1"], np.array([1, -1])),
    ],
)
def test_labels(tmp_path, labels, expected):
    data = read_csv(tmp_path, "x,y\n" + "".join(f"1,{label}\n" for label in labels))
    assert data.y.tolist() == expected.tolist()
    assert data.y.dtype.kind == expected.dtype.kind


def test_tables_without_labels(tmp_path):
    assert read_csv(tmp_path, "a,b\n1,2\n", labelled=None).y is None
    data = read_csv(tmp_path, "a,y\n1,2\n", labelled=False)
    assert data.y is None
    assert data.X.tolist() == [[1]]
    assert read_csv(tmp_path, "a,b\n1,2\n", labelled=None, label="c").X.tolist() == [[1, 2]]
    assert read_csv(tmp_path, "1,2\n", labelled=None, header=False).X.tolist() == [[1, 2]]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1))
def test_the_same_bits_as_float(tmp_path_factory, rows):
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows)
    X = read_csv(tmp_path_factory.mktemp("table"), text, labelled=None).X
    assert X.tobytes() == np.array(rows).tobytes()


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a,y\n1,1\nspam,1\n", "3:1", r"'spam' in the column 'a' is not a number.*drop=\['a'\] \(--drop a\)"),
        ("a,b,y\n1,2,1\n1,,1\n", "3:3", "a missing value in the column 'b'"),
        ("a,b,y\n1,2,1\n1, NA ,1\n", "3:3", "'NA' in the column 'b' is a missing value"),
        ("a,b,y\n1,nan,1\n", "2:3", "'nan' in the column 'b' is a missing value"),
        ("a,b,y\n1,-inf,1\n", "2:3", "'-inf' in the column 'b' is not a number"),
        ("a,b,y\n1,1e999,1\n", "2:3", "'1e999' in the column 'b' is too large"),
        ("a,b,y\n1,1_000,1\n", "2:3", "'1_000' in the column 'b' is not a number"),
        ("a,b,y\n1,\u0661,1\n", "2:3", "is not a number"),
        ("a,b,y\n1,2,\n", "2:5", "the label \\(column 'y'\\) is missing"),
        ("a,b,y\n1,2,NaN\n", "2:5", "the label \\(column 'y'\\) is missing"),
        ("a,b,y\n1,2\n", "2", "2 fields, where the first line has 3"),
        ("a,b,y\n1,2,3,4\n", "2", "4 fields, where the first line has 3"),
        ('a,y,b\n1,"two\nlines",2\n1,"x,\r\n""y",spam\n', "5:6", "'spam' in the column 'b'"),
        ("a,y,b\n1,é,spam\n", "2:6", "'spam' in the column 'b'"),
        ("a,a,y\n1,2,3\n", "1", "two columns have the name 'a'"),
        ("1,2\n3,4\n", "1", "header=False"),
        ("a,b\n1,2\n", "1", "which column has the labels.*'a', 'b'"),
        ("label,y,a\n1,2,3\n", "1", "the labels may be in any of the columns 'label', 'y'"),
        ("y\n1\n", "1", "no column of features"),
        ("a,,y\n1,2,3\n", "1", r"column 2 has no name.*drop=\[1\]"),
        ("a,y\n1,2\n3,\"4\n", "3", "a quotation mark is opened and not closed"),
        ("a,y\n1,\"2\"3\n", "2", "not a well-formed table"),
        (b"a,y\n1,\xe9t\xe9\n", "2:3", "not UTF-8"),
        (b"a,y\n1,2\n1,2\0\n", "3:4", "NUL"),
        ("a,y\n1,2\n".encode("utf-16"), "1:1", "not UTF-8"),
    ],
)  # fmt: skip
def test_errors_say_where(tmp_path, text, place, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_csv(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 't.csv'}:{place}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "no rows"),
        ("a,y\n", {}, "no rows"),
        ("a,y\n1,2\n", {"label": "z"}, "no column 'z' for the labels; the columns are 'a', 'y'"),
        ("a,y\n1,2\n", {"label": 2}, "there is no column 2: they are numbered 0 to 1"),
        ("a,y\n1,2\n", {"drop": ["z"]}, "no column 'z' to drop"),
        ("a,y\n1,2\n", {"drop": ["y"]}, "is the label and cannot be dropped"),
        ("a,y\n1,2\n", {"features": 2}, "1 features, where 2 are expected"),
        ("1,2\n", {"header": False}, "must be the number of the label's column"),
        ("1,2\n", {"header": False, "label": "y"}, "must be the number of the label's column"),
        ("a\n1\n\n2\n", {"labelled": None}, r"t\.csv:3:1: a missing value"),
        ("a,y\n1," + "x" * 2000 + "\n", {}, "too long for a label"),
        ("a,y\n1," + "x" * 200_000 + "\n", {}, "field larger than field limit"),
    ],
)
def test_what_does_not_fit(tmp_path, text, options, message):
    with pytest.raises(DataFileError, match=message):
        read_csv(tmp_path, text, **options)


# Parquet and Arrow


def write_table(path, table):
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".feather":
        feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)


ENDINGS = [".parquet", ".feather", ".arrow", ".ipc"]
LABELS = {
    "text": (pa.array(["a", "b", "a"]), ["a", "b", "a"]),
    "categories": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "large": (pa.array(["a", "b", "a"], pa.large_string()), ["a", "b", "a"]),
    "bytes": (pa.array([1, 2, 1], pa.uint8()), [1, 2, 1]),
    "floats": (pa.array([1.0, 2.0, 1.0]), [1, 2, 1]),
    "bools": (pa.array([True, False, True]), [1, 0, 1]),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", LABELS)
def test_arrow_tables(tmp_path, ending, kind):
    label, expected = LABELS[kind]
    columns = {
        "i": pa.array([1, 2, 3]),
        "f": pa.array([0.1, 0.2, 0.3], pa.float32()),
        "c": pa.array([5, 5, 6]).dictionary_encode(),
        "class": label,
        "b": pa.array([True, False, True]),
        "d": pa.array([1, 2, 3]).cast(pa.decimal128(22, 2)),
    }
    write_table(tmp_path / f"t{ending}", pa.table(columns))
    data = read(tmp_path / f"t{ending}")
    f = np.array([0.1, 0.2, 0.3], dtype=np.float32).astype(float)
    assert data.X.tolist() == np.column_stack([[1, 2, 3], f, [5, 5, 6], [1, 0, 1], [1, 2, 3]]).tolist()
    assert data.y.tolist() == expected
    assert data.feature_names == ("i", "f", "c", "b", "d")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, None], "y": [0, 1]}, "a missing value in the column 'a', row 2"),
        ({"a": [None, None], "y": [0, 1]}, "a missing value in the column 'a', row 1"),
        ({"a": [1.0, float("nan")], "y": [0, 1]}, "nan in the column 'a', row 2"),
        ({"a": [1.0, float("inf")], "y": [0, 1]}, "inf in the column 'a', row 2"),
        ({"a": ["s", "t"], "y": [0, 1]}, r"'a' has values of type string.*drop=\['a'\] \(--drop a\)"),
        ({"a": [[1], [2]], "y": [0, 1]}, "'a' has values of type list"),
        ({"a": [1, 2], "y": [0, None]}, "the label \\(column 'y'\\) of row 2 is missing"),
        ({"a": [1, 2], "y": [0, float("nan")]}, "the column 'y': a label is missing"),
        ({"a": [1, 2], "y": [[1], [2]]}, "the column 'y': labels must be numbers or text"),
        ({"a": [1, 2], "b": [0, 1]}, "which column has the labels"),
        ({"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}, "no rows"),
    ],
)
def test_arrow_tables_that_do_not_fit(tmp_path, columns, message):
    write_table(tmp_path / "t.parquet", pa.table(columns))
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("header", "note"),
    [
        (",a,y", "column 1, which has no name, is taken for the row index"),
        ("Unnamed: 0,a,y", "the column 'Unnamed: 0' is taken for the row index"),
    ],
)
def test_the_index_of_a_data_frame_is_left_out(tmp_path, header, note):
    with pytest.warns(UserWarning, match=f"t.csv: {note} of a data frame, and left out"):
        data = read_csv(tmp_path, f"{header}\n0,5,1\n1,6,0\n")
    assert data.X.tolist() == [[5], [6]]
    assert data.feature_names == ("a",)
    frame = pd.DataFrame({"a": [5, 6], "y": [0, 1]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="'__index_level_0__' is taken for the row index"):
        assert read(tmp_path / "t.parquet").X.tolist() == [[5], [6]]


def test_columns_without_a_name_elsewhere_are_no_index(tmp_path):
    text = "a,Unnamed: 1,y\n1,2,0\n3,4,1\n"
    assert read_csv(tmp_path, text).feature_names == ("a", "Unnamed: 1")
    assert read_csv(tmp_path, "a,,,y\n1,,,0\n3,,,1\n", drop=[""]).feature_names == ("a",)


def test_truth_values_are_numbers(tmp_path):
    data = read_csv(tmp_path, "a,b,y\nTrue,1.5,0\nFALSE,2,1\ntrue,x,1\n", drop=["b"])
    assert data.X.tolist() == [[1], [0], [1]]
    with pytest.raises(DataFileError, match="3:1: 'yes' in the column 'a' is not a number"):
        read_csv(tmp_path, "a,y\nTrue,0\nyes,1\n")


def test_a_table_without_a_header_names_columns_by_their_numbers(tmp_path):
    data = read_csv(tmp_path, "1,7,3\n2,8,4\n", header=False, label=1)
    assert data.feature_names == ("column 0", "column 2")
    assert data.label == "column 1"
    assert data.unnamed_columns == 3


def test_a_data_frame(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "target": pd.Categorical(["u", "v"])})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet").y.tolist() == ["u", "v"]


def test_pyarrow_is_asked_for(tmp_path, monkeypatch):
    write_table(tmp_path / "t.parquet", pa.table({"a": [1], "y": [0]}))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MajorantError, match=r'pip install "majorant\[tables\]"'):
        read(tmp_path / "t.parquet")


# Arrays

X = np.array([[1.0, 0.0, 2.5], [0.0, 0.0, -3.0]])
Y = np.array([1, -1])


@pytest.mark.parametrize("name", ["t.npz", "t.mat"])
@pytest.mark.parametrize("names", [("X", "y"), ("A", "b"), ("data", "label"), ("features", "target")])
def test_arrays(tmp_path, name, names):
    parts = dict(zip(names, (X, Y), strict=True)) | {"other": np.zeros(7)}
    (np.savez(tmp_path / name, **parts) if name == "t.npz" else scipy.io.savemat(tmp_path / name, parts))
    data = read(tmp_path / name, features=3)
    assert data.X.tolist() == X.tolist()
    assert data.y.tolist() == [1, -1]
    assert data.y.dtype == np.int64
    assert read(tmp_path / name, labelled=False).y is None


def test_text_labels_in_an_array(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, kind=np.array(["a", "b"]))
    assert read(tmp_path / "t.npz", label="kind").y.tolist() == ["a", "b"]
    assert read(tmp_path / "t.npz", labelled=None).y is None


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_of_scipy(tmp_path, format):
    sp.save_npz(tmp_path / "t.npz", sp.csr_array(X).asformat(format))
    data = read(tmp_path / "t.npz", labelled=None)
    assert data.y is None
    assert isinstance(data.X, sp.csr_array)
    assert data.X.toarray().tolist() == X.tolist()
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    with np.load(tmp_path / "t.npz") as file:
        np.savez(tmp_path / "t.npz", y=Y, **file)
    assert read(tmp_path / "t.npz").y.tolist() == [1, -1]


def test_sparse_matrices_of_matlab(tmp_path):
    scipy.io.savemat(tmp_path / "t.mat", {"A": sp.csc_array(X), "b": sp.csc_array([[1.0], [0.0]])})
    data = read(tmp_path / "t.mat")
    assert data.X.toarray().tolist() == X.tolist()
    assert data.y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"X": X}, "no labels .*in the file is X 2 × 3"),
        ({"y": Y}, "no matrix with one of the names X, A, data, features; in the file is y"),
        ({"X": X, "A": X, "y": Y}, "more than one matrix"),
        ({"X": X, "y": Y, "label": Y}, "more than one array that may be the labels"),
        ({"X": X, "y": np.arange(3)}, "2 rows and 3 labels"),
        ({"X": X * np.nan, "y": Y}, "missing"),
        ({"X": X * 1j, "y": Y}, "must have numbers"),
        ({"X": X, "y": Y * np.nan}, "a label is missing"),
        ({"X": np.zeros((2, 0)), "y": Y}, "rows and columns|not a readable"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, parts, message):
    np.savez(tmp_path / "t.npz", **parts)
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "t.npz")


class _Trap:
    def __reduce__(self):
        return (print, ("unpickled",))


def test_nothing_is_unpickled(tmp_path, capsys):
    np.savez(tmp_path / "t.npz", X=X, y=np.array([_Trap(), _Trap()], dtype=object))
    with pytest.raises(DataFileError, match=r"Python objects.*not unpickled: save it again after y\.astype"):
        read(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", X=X.astype(object), y=Y)
    with pytest.raises(DataFileError, match=r"Python objects.*X\.astype\(float\)"):
        read(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", X=X, y=Y, other=np.array([_Trap()], dtype=object))
    assert read(tmp_path / "t.npz").y.tolist() == Y.tolist()
    np.save(tmp_path / "t.npy", np.array([_Trap()], dtype=object))
    (tmp_path / "t.npy").rename(tmp_path / "t.npz")
    with pytest.raises(DataFileError, match="one array without a name"):
        read(tmp_path / "t.npz")
    assert "unpickled" not in capsys.readouterr().out


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
@pytest.mark.parametrize("format", ["csr", "csc", "bsr", "coo"])
def test_indices_of_a_sparse_matrix_that_point_elsewhere(tmp_path, index, format):
    sp.save_npz(tmp_path / "t.npz", sp.csr_array(X).asformat(format))
    with np.load(tmp_path / "t.npz") as file:
        parts = dict(file)
    name = "indices" if "indices" in parts else "coords" if "coords" in parts else "col"
    parts[name].flat[-1] = index
    np.savez(tmp_path / "t.npz", **parts)
    with pytest.raises(DataFileError, match="not a readable"):
        read(tmp_path / "t.npz", labelled=None)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "f4", "f8", "i8", "u8", "?"])
def test_matlab_files_as_scipy_reads_them(tmp_path, dtype, compressed):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 9, (5, 3)).astype(dtype)
    parts = {
        "A": A,
        "b": np.arange(5.0),
        "name": "text",
        "cell": np.array([1, "a"], dtype=object),
        "s": {"f": 1},
    }
    scipy.io.savemat(tmp_path / "t.mat", parts, do_compression=compressed)
    data = read(tmp_path / "t.mat")
    assert data.X.tolist() == scipy.io.loadmat(tmp_path / "t.mat")["A"].tolist()
    assert data.y.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"A": np.array([[1, "a"]], dtype=object), "b": [1]},
            "the matrix must be an array of numbers, and is a cell",
        ),
        ({"A": X * 1j, "b": Y}, "the matrix must be an array of numbers, and is a complex array"),
        ({"A": X, "b": "ab"}, "the labels must be an array of numbers, and is a text"),
        ({"B": X, "b": Y}, "no matrix .*B 2 × 3, b 1 × 2"),
    ],
)
def test_matlab_files_that_do_not_fit(tmp_path, parts, message):
    scipy.io.savemat(tmp_path / "t.mat", parts)
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "t.mat")


def matlab_file(element):
    """A file with one compressed variable."""
    data = zlib.compress(element)
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<2I", 15, len(data)) + data


@pytest.mark.parametrize(
    ("declared", "length", "message"),
    [
        (2**32 - 1, 100, "a variable of 4294967295 bytes, where 2147483648 are the most"),
        (100, 50_000_000, "larger than it says"),
        (0, 1000, "larger than it says"),
        (100, 50, "the file ends within a variable"),
    ],
)
def test_compressed_variables_are_as_large_as_they_say(tmp_path, monkeypatch, declared, length, message):
    """Fifty megabytes of zeros in fifty kilobytes are not unpacked."""
    (tmp_path / "t.mat").write_bytes(matlab_file(struct.pack("<2I", 14, declared) + bytes(length)))
    unpacked = []
    make = zlib.decompressobj

    class Watched:
        def __init__(self):
            self.stream = make()

        def decompress(self, data, most=0):
            unpacked.append(result := self.stream.decompress(data, most))
            return result

        def __getattr__(self, name):
            return getattr(self.stream, name)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    monkeypatch.setattr(zlib, "decompress", None)
    with pytest.raises(DataFileError, match=message):
        read(tmp_path / "t.mat")
    assert sum(map(len, unpacked)) <= declared + 16


def test_matlab_files_of_version_7_3(tmp_path):
    (tmp_path / "t.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataFileError, match=r"version 7\.3"):
        read(tmp_path / "t.mat")


@pytest.mark.parametrize("ending", [".npz", ".mat", *ENDINGS])
def test_damaged_files(tmp_path, ending):
    """Cut short anywhere: a sentence."""
    path = tmp_path / f"t{ending}"
    if ending == ".npz":
        np.savez(path, X=X, y=Y)
    elif ending == ".mat":
        scipy.io.savemat(path, {"X": X, "y": Y})
    else:
        write_table(path, pa.table({"a": [0.5, 1.5], "b": [1.0, 2.0], "y": ["u", "v"]}))
    whole = path.read_bytes()
    for size in range(0, len(whole) - 8, 37):
        path.write_bytes(whole[:size])
        with pytest.raises(DataFileError):
            read(path)


def test_drop_is_for_tables(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=Y)
    with pytest.raises(DataFileError, match="drop is for tables"):
        read(tmp_path / "t.npz", drop=["a"])


def test_endings_in_capitals_and_compressed(tmp_path):
    import gzip

    buffer = io.BytesIO()
    np.savez(buffer, X=X, y=Y)
    (tmp_path / "T.NPZ.GZ").write_bytes(gzip.compress(buffer.getvalue()))
    assert read(tmp_path / "T.NPZ.GZ").X.tolist() == X.tolist()


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_index_pointers_that_rise_and_fall(tmp_path, kind):
    """scipy's own check lets them pass, and its conversions read beyond the arrays."""
    path = tmp_path / f"data.{kind}"
    X = sp.csc_array((np.zeros(0), np.zeros(0, np.int32), np.array([0, 2, 0], np.int32)), shape=(2, 2))
    if kind == "npz":
        sp.save_npz(path, X)
    else:
        scipy.io.savemat(path, {"X": sp.csc_array([[1.0, 0.0], [1.0, 0.0]]), "y": [0, 1]})
        content = path.read_bytes()
        pointers = np.array([0, 2, 2], "<i4").tobytes()
        assert content.count(pointers) == 1
        path.write_bytes(content.replace(pointers, np.array([0, 2, 0], "<i4").tobytes()))
    with pytest.raises(DataFileError, match="not a readable"):
        read(path, labelled=kind == "mat")
