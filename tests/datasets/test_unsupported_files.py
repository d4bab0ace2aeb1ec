"""Files that are something else than they are taken for: one sentence, which says what they are."""

import gzip
import io
import pickle
import re
import tarfile
import tomllib
import zipfile

import numpy as np
import pytest

from majorant.datasets import open_source, read
from majorant.datasets.formats import FORMATS
from majorant.errors import DataFileError
from tests import ROOT

TABLE = "a,b,label\n1,2,x\n3,4.5,y\n"


def zipped(*names, content=TABLE):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("data.csv")
        entry.size = len(TABLE)
        archive.addfile(entry, io.BytesIO(TABLE.encode()))
    return buffer.getvalue()


def saved(save, *arrays):
    buffer = io.BytesIO()
    save(buffer, *arrays)
    return buffer.getvalue()


PAGE = b"\n<!DOCTYPE html>\n<html><body>Please sign in</body></html>\n"
PICKLE = pickle.dumps({"X": np.zeros(3)})

FOREIGN = {
    "book.xlsx": (
        zipped("[Content_Types].xml", "xl/workbook.xml"),
        "an Excel workbook: save the sheet as CSV",
    ),
    "book.csv": (zipped("docProps/app.xml", "xl/workbook.xml"), "an Excel workbook: save the sheet as CSV"),
    "sheet.ods": (
        zipped("mimetype", content="application/vnd.oasis.opendocument.spreadsheet"),
        "a spreadsheet: save",
    ),
    "old.xls": (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "probably an Excel workbook: save"),
    "data.zip": (zipped("data.csv"), "a zip archive: unpack it"),
    "zipped.csv": (zipped("data.csv"), "a zip archive: unpack it"),
    "arrays.csv": (saved(np.savez, np.eye(2)), "an .npz archive of numpy: say format='npz'"),
    "data.tar.gz": (gzip.compress(tarred()), "a tar archive: unpack it"),
    "packed.csv.gz": (gzip.compress(zipped("data.csv")), "a zip archive: unpack it"),
    "twice.csv.gz": (gzip.compress(gzip.compress(TABLE.encode())), "compressed twice"),
    "data.csv.zst": (bytes.fromhex("28b52ffd") + bytes(60), "compressed by zstd"),
    "page.csv": (PAGE, "an HTML page, and not data"),
    "page.txt": (PAGE, "an HTML page, and not data"),
    "page.npz": (PAGE, "an HTML page, and not data"),
    "page.parquet": (PAGE, "an HTML page, and not data"),
    "page.csv.gz": (gzip.compress(PAGE), "an HTML page, and not data"),
    "model.json": (b'{"format": "majorant model"}\n', "looks like JSON"),
    "frame.pkl": (PICKLE, "a pickle, which is never loaded"),
    "frame.npz": (PICKLE, "a pickle, which is never loaded"),
    "X.csv": (saved(np.save, np.eye(3)), "one array of numpy: save X and y together"),
    "paper.csv": (b"%PDF-1.7\n", "a PDF document"),
    "empty.csv": (b"PK\x05\x06" + bytes(18), "an empty zip archive: unpack it"),
    "data.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(20), "a 7z archive: unpack it"),
    "data.rar": (b"Rar!\x1a\x07" + bytes(20), "a RAR archive: unpack it"),
    "data.h5": (b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file: save its arrays"),
    "data.sqlite": (b"SQLite format 3\0" + bytes(20), "an SQLite database: export the table"),
    "data.xml": (b"\xef\xbb\xbf <?XML version='1.0'?>\n<rows/>\n", "an XML document: convert"),
    "list.json": (b" [ [1, 2] ]\n", "looks like JSON"),
    "columns.csv": (b"PAR1\x15\0" + bytes(40), "a Parquet file: say format='parquet'"),
}


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("label", [None, "income"], ids=["", "label"])
def test_what_a_file_is_instead(write, name, label):
    content, sentence = FOREIGN[name]
    path = write(name, content)
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs pyarrow (pip install 'majorant[tables]')")
    for reader in (read, open_source):
        with pytest.raises(DataFileError) as caught:
            reader(path, label=label)
        assert str(caught.value).startswith(f"{path}: this ")
        assert sentence in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def test_every_kind_of_file_has_an_example_here():
    text = (ROOT / "src" / "majorant" / "datasets" / "sniff.toml").read_text(encoding="utf-8")
    for kind in tomllib.loads(text)["kind"]:
        assert {"begins", "sentence"} <= set(kind) <= {"begins", "own", "sentence"}
        assert kind.get("own", "npz") in FORMATS
        heads = [content for content, sentence in FOREIGN.values() if sentence in kind["sentence"]]
        heads = [gzip.decompress(head) if head[:2] == b"\x1f\x8b" else head for head in heads]
        assert any(re.match(kind["begins"].encode(), head, re.DOTALL) for head in heads), kind


@pytest.mark.parametrize("name", ["PAR1", "[a]", "{b}", "ARROW1", "<c>", "MATLAB 5"])
def test_the_name_of_a_column_is_not_mistaken(write, name):
    """What is wrong further down is said all the same."""
    path = write("table.csv", f"{name},label\n1,x\n,y\n")
    with pytest.raises(DataFileError, match="3:1: a missing value"):
        read(path)
    assert read(write("right.csv", f"{name},label\n1,x\n2,y\n")).feature_names == (name,)


# Separators ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte-order mark"])
def test_csv_with_other_separators(write, separator, mark):
    expected = read(write("commas.csv", TABLE))
    data = read(write("others.csv", mark + TABLE.replace(",", separator).encode()))
    assert np.array_equal(data.X, expected.X)
    assert data.y.tolist() == expected.y.tolist()
    assert data.feature_names == expected.feature_names
    bare = read(write("bare.csv", f"1{separator}2{separator}x\n3{separator}4.5{separator}y\n"),
                header=False, label=2)  # fmt: skip
    assert np.array_equal(bare.X, expected.X)


def test_commas_inside_of_quotation_marks_separate_nothing(write):
    data = read(write("quoted.csv", '"a, cm";b;label\n1;2;"x, or z"\n3;4;y\n'))
    assert data.feature_names == ("a, cm", "b")
    assert data.y.tolist() == ["x, or z", "y"]


def test_a_comma_in_the_first_line_separates(write):
    """Which is what the ending says: semicolons are text then."""
    data = read(write("commas.csv", "a;b,label\n1,x;y\n2,z\n"))
    assert data.feature_names == ("a;b",)
    assert data.y.tolist() == ["x;y", "z"]


def test_decimal_commas_are_named(write):
    with pytest.raises(DataFileError, match="2:5: '2,5' in the column 'b' has a decimal comma: write"):
        read(write("decimal.csv", "a;b;label\n1.5;2,5;x\n3,1;4,2;y\n"))
    with pytest.raises(
        DataFileError, match="1:3: '5;2' in the column 'column 1' is not a number: if semicolons"
    ):
        read(write("bare.csv", "1,5;2,5;x\n3,1;4,2;y\n"), header=False, label=-1)
