"""Labels of text on their way to LIBLINEAR and LIBSVM, and seconds that are not the solver's."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from majorant.cli.training import compiling
from majorant.datasets import read
from majorant.persistence import from_liblinear, load_model


def write_table(path, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    names = np.array(["ill", "unclear case", "well"] if n_classes == 3 else ["ill", "well"])
    y = names[np.argmax(X[:, :n_classes], axis=1)]
    lines = [
        "a,b,c,label",
        *(",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), y, strict=True)),
    ]
    Path(path).write_text("\n".join(lines) + "\n")
    return X, y


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    return lambda *words, code=0: "".join(run_command(*words, code=code))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("numbers", [(), (7, -3, 4)], ids=["in order", "chosen"])
def test_a_model_with_labels_of_text(command, n_classes, numbers):
    X, _ = write_table("table.csv", n_classes)
    command("train", "table.csv", "m")
    model = load_model("m")
    del model.feature_names_in_  # X has none
    labels = model.classes_.tolist()
    words = [word for label, k in zip(labels, numbers, strict=False) for word in ("--number", f"{label}={k}")]
    said = command("convert", "m", "theirs", *words)
    expected = dict(zip(labels, numbers or range(n_classes), strict=False))
    for label, k in expected.items():
        assert re.search(rf"{label}\s+{k}\s", said)
    predicted = from_liblinear("theirs").predict(X)
    assert predicted.tolist() == [expected[label] for label in model.predict(X)]


def test_data_with_labels_of_text(command):
    X, y = write_table("table.csv", 3)
    said = command("convert", "table.csv", "rows.txt")
    data = read("rows.txt")
    assert np.array_equal(data.X.toarray(), X)
    assert data.y.tolist() == np.unique(y, return_inverse=True)[1].tolist()
    # The line that it says for other files is one to type.
    again = re.search("the same way: (.*)", said)[1]
    assert again == "--number ill=0 --number 'unclear case=1' --number well=2"
    Path("few.csv").write_text("a,b,c,label\n1,2,3,well\n3,2,1,ill\n")
    facts = json.loads(
        command("convert", "few.csv", "few.txt", "--json", "--number", "ill=0", "--number", "well=2")
    )
    assert facts["label_numbers"] == [{"label": "ill", "number": 0}, {"label": "well", "number": 2}]
    assert read("few.txt").y.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["well=1"], "'ill' has no number"),
        (["well=1", "ill=1"], "the same number"),
        (["well=1", "ill=x"], "LABEL=INTEGER"),
        (["sick=1"], "of no label (ill, well)"),
    ],
    ids=" ".join,
)
def test_numbers_that_are_none(command, words, message):
    write_table("table.csv", 2)
    options = [word for given in words for word in ("--number", given)]
    assert message in " ".join(command("convert", "table.csv", "rows.txt", *options, code=2).split())
    assert not Path("rows.txt").exists()


def test_where_labels_stay_as_they_are(command):
    write_table("table.csv", 2)
    command("train", "table.csv", "m")
    assert "keeps the labels" in command("convert", "m", "m.onnx", "--number", "ill=1", code=2)
    Path("rows.txt").write_text("1 1:1\n-1 2:1\n")
    command("train", "rows.txt", "n")
    assert "number" not in command("convert", "n", "theirs")
    assert from_liblinear("theirs").classes_.tolist() == [-1, 1]


# What compiling takes -------------------------------------------------------------------------------


def test_compiling_is_measured_apart():
    import numba

    def function(x):
        return x + 1

    compiled = numba.njit(function)
    with compiling(None) as first:
        compiled(1)
    with compiling(None) as second:
        compiled(2)
    assert first.seconds > 0.0 == second.seconds


def test_seconds_for_programs(command):
    Path("rows.txt").write_text("1 1:1\n-1 2:1\n")
    facts = json.loads(command("train", "rows.txt", "m", "--json"))
    assert 0.0 <= facts["compile_seconds"] <= facts["seconds"]


def test_it_is_said_what_compiling_took(command, monkeypatch):
    Path("rows.txt").write_text("1 1:1\n-1 2:1\n")
    monkeypatch.setattr("majorant.cli.training.NOTICEABLE", -1.0)
    assert re.search(r"s, [0-9.]+ s of it for compiling", command("train", "rows.txt", "m"))
