"""What commands say and write with --memory is what they say and write without it."""

import hashlib
import io
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from majorant.cli import run
from majorant.datasets import DatasetInfo, write_libsvm

# The same steps whatever the blocks are, and small gaps, which rounding does not hide.
FIT = ["--solver", "mm", "--penalty", "l2", "--lam", "2", "--tol", "1e-4"]
PATH = ["--penalty", "l1", "--points", "3", "--ratio", "0.05", "--tol", "1e-10"]

# In a report, pictures of how a fit went on against time, and gaps of the size of rounding errors.
PICTURE = re.compile(r"<svg.*?</svg>|([\d.]+\s×\s)?10<sup>−\d\d</sup>", re.DOTALL)
# What is said of passes, steps and time, which are not the same.
PASSES = re.compile(r"\d+ passes over .*\n|^ *\d+%  .*\n", re.MULTILINE)
TIME = re.compile(r"\d+ iterations?(, \d+\.\d+ s\b(, \d+\.\d+ s of it for compiling)?)?")
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
ONLY_WITH_MEMORY = {"passes", "rows", "seconds_per_pass", "blocks"}
DIFFERENT = {"seconds", "compile_seconds", "command", "history", "cv", "n_iter", "n_iter_"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((400, 6)) * [1.0, 3.0, 0.5, 1.0, 1.0, 1.0], 2)
    X[np.abs(X) < 0.5] = 0.0
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(400) > 0, 1, -1)
    write_libsvm("rows.svm", X, y)
    write_libsvm("three.svm", X, np.argmax(X[:, :3] + 0.3 * rng.standard_normal((400, 3)), axis=1))
    write_libsvm("wide.svm", np.column_stack([X, np.ones(400)]), y)
    write_libsvm("others.svm", X, np.where(y > 0, 7, 8))
    rest = [" ".join(line.split()[1:]) for line in Path("rows.svm").read_text().splitlines()]
    Path("unlabelled.svm").write_text("\n".join(line for line in rest if line) + "\n")
    Path("wrong.svm").write_text("1 1:0.5\n-1 2:x\n")
    Path("one.svm").write_text("1 1:0.5\n1 2:3\n")
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    words = np.where(y > 0, "ill", "well").tolist()
    table = [f"{word},{line}" for word, line in zip(words, lines, strict=True)]
    Path("bare.csv").write_text("\n".join(table) + "\n")
    Path("table.csv").write_text("\n".join(["class,age,<b>,c,d,e,f", *table]) + "\n")
    Path("shuffled.csv").write_text(
        "\n".join(["<b>,new,f,e,d,c,age", *(",".join(["1", "2", *line.split(",")[1:]]) for line in lines)])
    )
    Path("model-files").mkdir()
    return tmp_path


@pytest.fixture
def command(here, capsys):
    def call(*words):
        capsys.readouterr()
        return run([str(word) for word in words]), *capsys.readouterr()

    return call


def assert_alike(one, other, where="", rel=1e-5):
    """Numbers are as good as equal, everything else is the same."""
    if isinstance(one, dict):
        extra = ONLY_WITH_MEMORY | DIFFERENT
        assert one.keys() - extra == other.keys() - extra, where
        for key in one.keys() - extra:
            assert_alike(one[key], other[key], f"{where}.{key}", rel=2e-2 if "gap" in key else rel)
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b, where, rel)
    elif isinstance(one, float | int) and not isinstance(one, bool):
        assert one == pytest.approx(other, rel=rel, abs=1e-9, nan_ok=True), where
    elif isinstance(one, str) and isinstance(other, str):
        assert_texts_alike(one, other)
    else:
        assert one == other, where


def assert_texts_alike(one, other):
    one, other = (TIME.sub("SECONDS", PASSES.sub("", PICTURE.sub("", text))) for text in (one, other))
    other = re.sub(r" --memory \d+[KMG]B", "", other)
    assert NUMBER.sub("#", one) == NUMBER.sub("#", other)
    for a, b in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
        numbers = [float(number.replace(",", "")) for number in (a, b)]
        # Gaps are small differences of large numbers, and are said to two digits.
        assert math.isclose(*numbers, rel_tol=2e-2 if "e-" in a else 1e-4, abs_tol=1e-9), (one, other)


def told(command, words, stdin=None, monkeypatch=None):
    """The exit code, what was said, and every file that was written."""
    before = set(Path().rglob("*"))
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(stdin).read_bytes())))
    code, out, err = command(*words)
    made = [
        path
        for path in sorted(set(Path().rglob("*")) - before)
        if path.is_file() and "cache" not in path.parts
    ]
    files = {path.name: path.read_text() for path in made}
    for path in made:
        path.unlink()
    return code, out, err, files


def assert_same(command, words, memory="64KB", **options):
    whole = told(command, words, **options)
    blocks = told(command, [*words, "--memory", memory], **options)
    assert whole[0] == blocks[0], whole[2] + blocks[2]
    assert_texts_alike(whole[2], blocks[2])
    if "--json" in words and whole[1]:
        assert_alike(json.loads(whole[1]), json.loads(blocks[1]))
    else:
        assert_texts_alike(whole[1], blocks[1])
    assert whole[3].keys() == blocks[3].keys()
    for name, text in whole[3].items():
        if text.startswith("{"):
            models = [json.loads(each[3][name]) for each in (whole, blocks)]
            for model in models:
                assert model.pop("sha256")  # of the model
            assert_alike(*models, name)
        else:
            assert_texts_alike(text, blocks[3][name])
    return whole


BARE = ["bare.csv", "m", "--no-header", "--label", "0"]


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["said", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ["rows.svm", "m"],
        ["three.svm", "m", "--test", "three.svm"],
        ["rows.svm", "m", "--test", "wide.svm"],
        ["rows.svm", "--class-weight", "+1=2", "--zero-based"],
        ["table.csv", "m"],
        ["table.csv", "m", "--drop", "age", "--drop", "f"],
        ["table.csv", "m", "--label", "class", "--test", "table.csv"],
        BARE,
        [*BARE, "--drop", "-1", "--no-intercept"],
        ["rows.svm", "m", "--standardize", "--test", "wide.svm"],
        [*BARE, "--standardize", "--multi-class", "joint"],
        ["rows.svm", "-v", "4"],
        ["three.svm", "-v", "3", "--standardize", "--seed", "3"],
        ["three.svm", "-v", "3", "--scoring", "f1_macro"],
        ["rows.svm", "-v", "3", "--scoring", "roc_auc"],
        ["rows.svm", "m", "--calibrate", "sigmoid"],
        ["three.svm", "m", "--calibrate", "sigmoid", "--standardize"],
        ["table.csv", "m", "--drop", 'age,"f"'],
    ],
    ids=" ".join,
)
def test_train(command, words, shown):
    code, *_ = assert_same(command, ["train", *words, *FIT, *shown])
    assert code == 0


@pytest.mark.data
@pytest.mark.parametrize("name", ["train", "path"])
def test_a1a(command, data_dir, name):
    options = FIT if name == "train" else [*PATH, "--penalty", "l2"]
    code, out, *_ = assert_same(command, [name, "a1a", "m", *options], "1GB")
    assert code == 0
    assert "1,605 rows × 123 features" in out


def test_data_sets_known_by_name_keep_their_features(command, monkeypatch):
    content = Path("rows.svm").read_bytes()
    Path("tiny.txt").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    info = DatasetInfo("tiny", "none", 400, 9, 2, len(content), digest, ("tiny",), "made up")
    for module in ("majorant.datasets", "majorant.datasets.registry"):
        monkeypatch.setattr(f"{module}.REGISTRY", {"tiny": info})
    monkeypatch.setenv("MAJORANT_DATA", ".")
    code, out, *_ = assert_same(command, ["train", "tiny", "m", *FIT])
    assert code == 0
    assert "tiny: 400 rows × 9 features" in out
    assert assert_same(command, ["train", "tiny", "m", "--zero-based"])[0] == 2


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["said", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ["rows.svm", "p.csv"],
        ["three.svm", "p.csv", "--standardize", "--max-features", "5"],
        ["table.csv", "p.csv", "--standardize"],
        ["bare.csv", "--no-header", "--label", "0", "--class-weight", "ill=2"],
    ],
    ids=" ".join,
)
def test_path(command, words, shown):
    code, *_ = assert_same(command, ["path", *words, *PATH, *shown])
    assert code == 0


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["said", "json"])
@pytest.mark.parametrize(
    "words",
    [["rows.svm", "m"], ["three.svm", "m", "--standardize", "--seed", "5"], [*BARE, "--test", "bare.csv"]],
    ids=" ".join,
)
def test_cv(command, words, shown):
    code, *_ = assert_same(command, ["cv", *words, "--folds", "3", *PATH, *shown])
    assert code == 0


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["said", "json"])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("rows.svm", []),
        ("rows.svm", ["-"]),
        ("wide.svm", ["out", "--scores"]),
        ("others.svm", []),
        ("unlabelled.svm", []),
        ("unlabelled.svm", ["out", "--quiet"]),
        ("shuffled.csv", ["-", "--scores"]),
        ("shuffled.csv", ["--drop", "new"]),
        ("shuffled.csv", ["out.csv"]),
        ("shuffled.csv", ["--csv", "--id", "new"]),
        ("table.csv", ["out.csv", "--id", "class"]),
        ("table.csv", []),
    ],
    ids=str,
)
def test_predict(command, data, options, shown):
    trained = "table.csv" if data.endswith("csv") else "rows.svm"
    assert command("train", trained, "model-files/m", *FIT)[0] == 0
    code, *_ = assert_same(command, ["predict", data, "model-files/m", *options, *shown])
    assert code == 0


@pytest.mark.parametrize("data", ["rows.svm", "three.svm", "table.csv"])
def test_report(command, data):
    words = ["train", data, "m", "--test", data, "--report", "r", *FIT]
    code, *_, files = assert_same(command, words)
    assert code == 0
    assert "Entries that are not zero" in files["r"]
    assert command("train", data, "model-files/m", *FIT)[0] == 0
    code, *_ = assert_same(command, ["report", data, "model-files/m", "r", "--test", data])
    assert code == 0
    words = ["cv", data, "m", "--report", "r", "--standardize", "--folds", "3", *PATH]
    code, *_ = assert_same(command, words)
    assert code == 0


@pytest.mark.parametrize("name", ["train", "cv", "predict"])
def test_standard_input(command, monkeypatch, name):
    assert command("train", "rows.svm", "model-files/m", *FIT)[0] == 0
    words = {"train": ["m", *FIT], "cv": ["m", *PATH], "predict": ["model-files/m", "-"]}[name]
    code, *_ = assert_same(command, [name, "-", *words], "1MB", stdin="rows.svm", monkeypatch=monkeypatch)
    assert code == 0
    code, _, err, _ = told(
        command, [name, "-", *words, "--memory", "8KB"], stdin="rows.svm", monkeypatch=monkeypatch
    )
    assert code == 1
    assert "<stdin>: standard input is kept whole" in err


@pytest.mark.parametrize(
    "words",
    [
        ["train", "rows.svm", "-v", "3", "--report", "r"],
        ["train", "rows.svm", "-v", "401"],
        ["train", "rows.svm", "rows.svm"],
        ["train", "rows.svm", "--test", "others.svm"],
        ["train", "rows.svm", "--format", "xls"],
        ["train", "rows.svm", "--class-weight", "5=1"],
        ["train", "rows.svm", "--penalty", "l3"],
        ["train", "rows.svm", "--calibrate", "magic"],
        ["train", "rows.svm", "--scoring", "f1"],
        ["train", "rows.svm", "-v", "3", "--scoring", "none"],
        ["cv", "three.svm", "--scoring", "f1"],
        ["predict", "table.csv", "model-files/m", "--id", "none"],
        ["train", "row.svm"],
        ["train", "wrong.svm"],
        ["train", "one.svm"],
        ["train", "unlabelled.svm"],
        ["train", "none.svm"],
        ["train", "a1a", "--zero-based"],
        ["train", "table.csv", "--label", "none"],
        ["train", "table.csv", "--drop", "none"],
        ["train", "table.csv", "--no-header", "--label", "0"],
        ["train", "bare.csv", "--no-header"],
        ["train", "bare.csv", "--label", "0"],
        ["cv", "rows.svm", "--folds", "401"],
        ["cv", "rows.svm", "--scoring", "none"],
        ["path", "rows.svm", "rows.svm"],
        ["predict", "none.svm", "model-files/m"],
        ["predict", "rows.svm", "model-files/m", "rows.svm"],
    ],
    ids=" ".join,
)
def test_what_is_refused(command, words):
    assert command("train", "rows.svm", "model-files/m", *FIT)[0] == 0
    code, out, _, files = assert_same(command, words)
    assert code > 0
    assert "Accuracy" not in out
    assert not files
