"""Predictions as a table: `majorant predict DATA MODEL OUT.csv --id COLUMN`."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from majorant import load_model

FIT = ["--label", "outcome", "--drop", "id,note", "--penalty", "l2", "-q"]
MEMORY = pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])


def write(path, columns, header=True):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def columns_of(classes, n=40):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((n, 3)), 3)
    names = [f'No {k}, "{k % 3}"' for k in range(n)]
    labels = [classes[k] for k in np.argmax(X[:, : len(classes)], axis=1)]
    return dict(zip("abc", X.T.tolist(), strict=True)) | {"id": names, "note": ["é"] * n, "outcome": labels}


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    write("two.csv", columns_of(["ill", "well"]))
    write("three.csv", columns_of(["x", "y", "z"]))
    run_command("train", "two.csv", "two", *FIT)
    run_command("train", "three.csv", "three", *FIT)
    return run_command


def table(text):
    header, *rows = csv.reader(text.splitlines())
    return header, rows


@MEMORY
@pytest.mark.parametrize("name", ["two", "three"])
def test_a_table_has_id_label_and_scores(command, name, memory):
    columns = columns_of(["ill", "well"] if name == "two" else ["x", "y", "z"])
    command("predict", f"{name}.csv", name, "out.csv", "--id", "id", *memory)
    header, rows = table(Path("out.csv").read_text(encoding="utf-8"))
    model = load_model(name)
    X = np.column_stack([columns[letter] for letter in "abc"])
    model.__dict__.pop("feature_names_in_")
    assert header == ["id", "label", *(["score"] if name == "two" else ["score_x", "score_y", "score_z"])]
    assert [row[0] for row in rows] == columns["id"]
    assert [row[1] for row in rows] == model.predict(X).tolist()
    scores = np.array([list(map(float, row[2:])) for row in rows])
    assert np.array_equal(scores, model.decision_function(X).reshape(40, -1))


@MEMORY
def test_a_table_goes_to_standard_output_or_to_a_file_without_the_ending(command, memory):
    command("predict", "two.csv", "two", "out.csv", *memory)
    plain = Path("out.csv").read_text()
    assert plain.startswith("label,score\n")
    assert command("predict", "two.csv", "two", "-", "--csv", *memory).out == plain
    assert command("predict", "two.csv", "two", "--csv", *memory).out == plain
    command("predict", "two.csv", "two", "out", "--csv", *memory)
    assert Path("out").read_text() == plain
    with_names = command("predict", "two.csv", "two", "--id", "id", *memory).out
    assert [row[1:] for row in table(with_names)[1]] == table(plain)[1]


def test_without_these_options_the_output_is_a_label_on_each_line(command):
    command("predict", "two.csv", "two", "out")
    assert set(Path("out").read_text().split()) == {"ill", "well"}


@MEMORY
def test_json_has_the_names_of_the_rows(command, memory):
    facts = json.loads(command("predict", "two.csv", "two", "--id", "id", "--json", *memory).out)
    assert facts["ids"] == columns_of(["ill", "well"])["id"]
    assert len(facts["labels"]) == len(facts["scores"]) == 40


@MEMORY
@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather"])
def test_other_tables(command, name, memory):
    pytest.importorskip("pyarrow", reason="needs pyarrow (pip install 'majorant[tables]')")
    import pandas as pd

    frame = pd.read_csv("two.csv").assign(number=range(100, 140))
    (frame.to_parquet if name.endswith("parquet") else frame.to_feather)(name)
    expected = command("predict", "two.csv", "two", "--id", "id").out
    assert command("predict", name, "two", "--id", "id", *memory).out == expected
    numbers = table(command("predict", name, "two", "--id", "number", *memory).out)[1]
    assert [row[0] for row in numbers] == [str(k) for k in range(100, 140)]


def test_a_table_without_names_of_columns(command):
    write("bare.csv", columns_of(["ill", "well"]), header=False)
    options = ["--no-header", "--label", "5"]
    command("train", "bare.csv", "m", *options, "--drop", "3,4", "-q")
    header, rows = table(command("predict", "bare.csv", "m", "--id", "3", "--drop", "4", *options).out)
    assert header[0] == "3"
    assert [row[0] for row in rows] == columns_of(["ill", "well"])["id"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["two.csv", "two", "--id", "Id"], 1, "no column 'Id'; did you mean 'id'?"),
        (["-", "two", "--id", "id"], 2, "a pipe can be read once"),
        (["a1a", "two", "--id", "id"], 2, "a1a is no table"),
        (["rows.svm", "two", "--id", "id"], 1, "columns of libsvm have no names"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_an_id_that_is_not_there_is_refused(command, words, code, message):
    Path("rows.svm").write_text("1 1:2\n")
    assert message in command("predict", *words, code=code).err


def test_empty_lines_are_no_rows(command):
    Path("gaps.csv").write_text(Path("two.csv").read_text().replace("\n", "\n\n"))
    expected = command("predict", "two.csv", "two", "--id", "id").out
    assert command("predict", "gaps.csv", "two", "--id", "id").out == expected
