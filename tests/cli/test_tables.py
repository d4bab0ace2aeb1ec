"""Tables at the command line: which columns a model remembers."""

import json
from pathlib import Path

import numpy as np
import pytest

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
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    write_csv("table.csv", table())
    return run_command


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


# What ranks features --------------------------------------------------------------------------------


@pytest.fixture
def units(command):
    """The first feature matters most, but in units in which its coefficient is small."""
    X, y = rows()
    columns = {"grams": 1000.0 * X[:, 0], "tonnes": 0.1 * X[:, 1] + 0.1 * X[:, 2], "noise": X[:, 3]}
    write_csv("units.csv", {name: x.tolist() for name, x in columns.items()} | {"label": y.tolist()})
    command("train", "units.csv", "m", "--standardize", "--penalty", "l1", "--lam", "1", "--report", "m.html")
    return command


def test_standardized_features_are_ranked_by_effect(units):
    model, facts = load_model("m"), json.loads(units("inspect", "m", "--json").out)
    X = read("units.csv").X
    effects = np.abs(model.coef_[0]) * X.std(axis=0)
    order = np.argsort(-effects)
    assert order[0] != np.argmax(np.abs(model.coef_[0]))  # or else this would test nothing
    names = np.array(["grams", "tonnes", "noise"])[order]
    assert [entry["feature"] for entry in facts["coefficients"]] == names[: len(model.support_)].tolist()
    assert [entry["effect"] for entry in facts["coefficients"]] == pytest.approx(
        effects[order][: len(model.support_)].tolist()
    )
    told = units("inspect", "m").out
    assert "Ordered by effect" in told
    assert told.index("grams") < told.index("tonnes")
    units("report", "units.csv", "m", "again.html")
    for page in ("m.html", "again.html"):
        text = Path(page).read_text()
        table_text = text[text.index('id="coefficient-table"') :]
        assert "What ranks them is the effect: the coefficient times the feature’s standard deviation" in text
        assert table_text.index("grams") < table_text.index("tonnes")
    assert "× standard deviation" in Path("m.html").read_text()  # along the path as well


def test_other_features_are_ranked_by_coefficient(trained):
    assert "effect" not in trained("inspect", "m").out
    assert "effect" not in json.loads(trained("inspect", "m", "--json").out)["coefficients"][0]
    trained("report", "table.csv", "m", "m.html")
    assert "as far as the features have the same scale" in Path("m.html").read_text()


def test_effects_of_many_classes(command):
    X, _ = rows()
    y = np.argmax(X[:, :3], axis=1)
    columns = {"a": 100.0 * X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    write_csv("three.csv", {name: x.tolist() for name, x in columns.items()} | {"label": y.tolist()})
    command("train", "three.csv", "m", "--standardize", "--report", "m.html")
    effects = [entry["effect"] for entry in json.loads(command("inspect", "m", "--json").out)["coefficients"]]
    assert effects == sorted(effects, reverse=True)
    assert max(effects) < 3.0 * min(effects)  # though one coefficient is a hundredth of the others
    assert "the length times the feature’s standard deviation" in Path("m.html").read_text()


def test_deviations_must_suit_the_model(trained):
    from majorant import report

    data = read("table.csv", label="income")
    with pytest.raises(MajorantError, match="deviations must be 4 numbers"):
        report(load_model("m"), data.X, data.y, deviations=[1.0, 2.0])


# On which rows ---------------------------------------------------------------------------------------


def test_a_report_says_which_rows_it_is_about(trained):
    def page(*words):
        trained("report", *words, "m.html", "--force")
        return Path("m.html").read_text()

    same = page("table.csv", "m")
    assert "rows that the model was trained on" in same
    assert "Training rows" in same
    write_csv("other.csv", table(seed=1))
    other = page("other.csv", "m")
    assert "trained on the content of another file, not on that of these 60 rows" in other
    assert "Scores on the given rows" in other
    assert "rows that the model was trained on" not in other
    save_model(load_model("m"), "old")  # which does not say on what it was trained
    trained("report", "other.csv", "old", "old.html", "--label", "income")
    assert "It is not known whether the model was trained on these 60 rows" in Path("old.html").read_text()
    trained("report", "table.csv", "m", "test.html", "--test", "other.csv")
    tested = Path("test.html").read_text()
    assert "Scores on the test rows" in tested
    assert "Training" in tested


def test_rows_that_are_more_or_fewer_are_others(command):
    command("train", "table.csv", "m", "--label", "income", "--memory", "1MB")
    save_model(load_model("m"), "bare")  # without provenance
    command("report", "table.csv", "bare", "same.html", "--label", "income")
    assert "It is not known whether" in Path("same.html").read_text()
    write_csv("fewer.csv", {name: values[:40] for name, values in table().items()})
    command("report", "fewer.csv", "m", "fewer.html")
    assert "the content of another file" in Path("fewer.html").read_text()
