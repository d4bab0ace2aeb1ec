"""Tables at the command line: which columns a model remembers."""

from pathlib import Path

import numpy as np
import pytest

from majorant.cli import run
from majorant.datasets import open_source, read
from majorant.errors import DataFileError, MajorantError, ModelFileError
from majorant.persistence import load_model, load_provenance, save_model

# "y" and "class" are features here, and the label is in another column.
FEATURES = ("age", "y", "class", "hours")


def rows(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, np.where(X[:, 0] + X[:, 1] + 0.2 * rng.standard_normal(n) > 0, "high", "low")


def write_csv(path, columns, separator=","):
    lines = [separator.join(columns)]
    lines += [separator.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    Path(path).write_text("\n".join(lines) + "\n")


def table(seed=0):
    X, y = rows(seed)
    return dict(zip(FEATURES, X.T.tolist(), strict=True)) | {"income": y.tolist()}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_csv("table.csv", table())

    def call(*words, code=0):
        capsys.readouterr()
        answer = run([str(word) for word in words])
        printed = capsys.readouterr()
        assert answer == code, printed.err + printed.out
        assert "Traceback" not in printed.err
        return printed

    return call


# Which column was the label ---------------------------------------------------------------------------


@pytest.fixture
def trained(command):
    command("train", "table.csv", "m", "--label", "income")
    return command


def test_the_label_is_where_it_was_in_training(trained):
    assert load_provenance("m").label_column == "income"
    told = trained("predict", "table.csv", "m", "-", "--label", "income")
    assert "Accuracy" in told.err
    assert trained("predict", "table.csv", "m", "-") == told
    assert "income" in trained("inspect", "m").out
    trained("report", "table.csv", "m", "m.html")


def test_without_the_label_the_features_are_what_they_were(trained):
    """Though one is called y and another class."""
    told = trained("predict", "table.csv", "m", "-")
    columns = table()
    del columns["income"]
    write_csv("new.csv", columns)
    alone = trained("predict", "new.csv", "m")
    assert alone.out == told.out
    assert "Accuracy" not in alone.err
    assert "no column 'income' for the labels" in trained("report", "new.csv", "m", code=1).err


def test_other_columns_do_not_matter(trained):
    told = trained("predict", "table.csv", "m", "-")
    columns = {"name": [f"No {k}" for k in range(60)], "target": [""] * 60} | dict(reversed(table().items()))
    write_csv("more.csv", columns)
    assert trained("predict", "more.csv", "m", "-").out == told.out


def test_a_column_that_is_missing_is_named(trained):
    columns = table()
    del columns["age"], columns["hours"]
    write_csv("short.csv", columns)
    assert (
        "there is no column 'age' (nor 1 other), which is needed"
        in trained("predict", "short.csv", "m", code=1).err
    )


def test_a_feature_is_not_the_label_as_well(trained):
    assert (
        "'y' is needed as a feature, and cannot be the label"
        in trained("predict", "table.csv", "m", "--label", "y", code=1).err
    )
    assert (
        "'age' is needed as a feature, and cannot be dropped"
        in trained("predict", "table.csv", "m", "--drop", "age", code=1).err
    )


def test_models_that_do_not_say_where_the_label_was(trained):
    """As files from before: a label goes by its name, unless the model knows that as a feature."""
    save_model(load_model("m"), "old")
    told = trained("predict", "table.csv", "m", "-")
    assert trained("predict", "table.csv", "old", "-").out == told.out
    columns = table()
    columns["Label"] = columns.pop("income")
    write_csv("renamed.csv", columns)
    assert trained("predict", "renamed.csv", "old", "-").err.count("Accuracy") == 1


def test_a_file_that_says_where_the_label_was_must_say_it_as_text(trained):
    with pytest.raises(ModelFileError, match=r"provenance\.label_column"):
        save_model(load_model("m"), "n", provenance={"label_column": 3})


@pytest.mark.parametrize("name", ["table.parquet", "table.arrow"])
def test_other_tables_and_blocks(command, name):
    pytest.importorskip("pyarrow", reason="needs pyarrow (pip install 'majorant[tables]')")
    import pandas as pd

    frame = pd.DataFrame(table()).assign(note="text")
    (frame.to_parquet if name.endswith("parquet") else frame.to_feather)(name)
    memory = ["--memory", "1MB"]
    command("train", name, "m", "--label", "income", "--drop", "note", *memory)
    assert load_provenance("m").label_column == "income"
    told = command("predict", name, "m", "-")
    assert "Accuracy" in told.err
    assert command("predict", name, "m", "-", *memory).out == told.out
    assert command("predict", "table.csv", "m", "-").out == told.out


def test_columns_for_programs(command):
    X, y = rows()
    for data in (
        read("table.csv", label="income", columns=["hours", "age"]),
        read("table.csv", columns=["hours", "age", "y", "class"], labelled=None, label="income"),
    ):
        assert np.array_equal(data.X[:, :2], X[:, [3, 0]])
        assert data.feature_names[:2] == ("hours", "age")
        assert data.label == "income"
    source = open_source("table.csv", label="income", columns=["hours"])
    assert source.feature_names == ("hours",)
    assert list(source.load(0).y) == list(y)
    with pytest.raises(MajorantError, match="each once"):
        read("table.csv", columns=["age", "age"])
    with pytest.raises(DataFileError, match="there is no column 'agee', which is needed"):
        read("table.csv", label="income", columns=["agee"])
