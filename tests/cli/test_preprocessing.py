"""--impute and --one-hot: learned from the training rows, kept in the model, and done for other rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from majorant import SparseSVC, load_model
from majorant.cli import run
from majorant.datasets import read

NUMBERS = ["height", "weight", "noise"]
FIT = ["--label", "outcome", "--drop", "id", "--impute", "median", "--one-hot", "ward"]
L1 = ["--penalty", "l1", "--lam", "1"]


def patients(seed=0, n=120):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=NUMBERS)
    frame.insert(0, "id", [f"P{k}" for k in range(n)])
    frame["ward"] = rng.choice(["east", "north", "west"], n)
    ill = frame["height"] + (frame["ward"] == "north") + 0.3 * rng.standard_normal(n) > 0.5
    frame["outcome"] = np.where(ill, "ill", "well")
    frame.loc[rng.random(n) < 0.1, "height"] = np.nan
    frame.loc[rng.random(n) < 0.1, "noise"] = np.nan
    return frame


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    patients().to_csv("train.csv", index=False)
    patients(1).to_csv("other.csv", index=False)

    def call(*words, code=0):
        capsys.readouterr()
        answer = run([str(word) for word in words])
        printed = capsys.readouterr()
        assert answer == code, printed.err + printed.out
        return printed

    return call


def predicted(command, data, model):
    command("predict", data, model, "scores.csv", "--force")
    return pd.read_csv("scores.csv")["score"].to_numpy()


def test_the_model_is_that_of_scikit_learns_pipeline(command):
    command("train", "train.csv", "m", *FIT, *L1, "--standardize", "--tol", "1e-9")
    columns = ColumnTransformer(
        [("numbers", SimpleImputer(strategy="median"), NUMBERS), ("categories", OneHotEncoder(), ["ward"])]
    )
    pipeline = make_pipeline(columns, StandardScaler(), SparseSVC("l1", lam=1.0, tol=1e-9))
    train, other = patients(), patients(1)
    pipeline.fit(train, train["outcome"])
    scores = pipeline.decision_function(other)
    assert np.allclose(predicted(command, "other.csv", "m"), scores, atol=1e-5)
    assert np.allclose(load_model("m").scale_, pipeline[1].scale_)


def test_features_of_categories_have_names(command):
    command("train", "train.csv", "m", *FIT, *L1)
    told = command("inspect", "m").out
    assert "ward=north" in told
    assert "filled in with the median of the column" in told
    assert "east, north, west" in told
    assert "ward=north" in command("inspect", "m", "--csv").out
    facts = json.loads(command("inspect", "m", "--json").out)
    assert facts["preprocessing"]["categories"] == {"ward": ["east", "north", "west"]}
    command("path", "train.csv", "path.csv", *FIT, "--penalty", "l1", "--points", "3")
    assert "ward=north" in Path("path.csv").read_text().splitlines()[0]
    command("report", "other.csv", "m", "r.html")
    page = Path("r.html").read_text()
    assert "ward=north" in page
    assert "filled in with the median" in page


@pytest.mark.parametrize(
    "words", [["cv", "--points", "3", "--folds", "3"], ["train", "--calibrate", "sigmoid"]]
)
def test_every_way_to_train_remembers(command, words):
    name, *options = words
    told = command(name, "train.csv", "m", *FIT, "--penalty", "l1", *options, "--test", "other.csv").out
    assert "test rows" in told
    assert load_model("m").preprocessing_.categories == {"ward": ["east", "north", "west"]}
    assert "Accuracy" in command("predict", "other.csv", "m", "-", "--quiet").err


def test_cross_validation_of_one_strength(command):
    assert "Cross Validation Accuracy" in command("train", "train.csv", *FIT, "-v", "3").out


def test_unknown_categories_are_told(command):
    command("train", "train.csv", "m", *FIT, *L1)
    frame = patients(1)
    frame.loc[:4, "ward"] = ["mars", "mars", "mars", "moon", "moon"]
    frame.to_csv("other.csv", index=False)
    sentence = "5 rows have a category of 'ward' that the model was not trained with ('mars', 'moon')"
    assert sentence in command("predict", "other.csv", "m", "-", "--quiet").err
    assert sentence in json.loads(command("predict", "other.csv", "m", "--json").out)["warnings"][0]
    assert sentence in command("report", "other.csv", "m", "r.html").err
    assert sentence in command("train", "train.csv", "n", *FIT, "--test", "other.csv").err
    model, X = (
        load_model("m"),
        read("train.csv", label="outcome", preprocessing=load_model("m").preprocessing_, drop="id").X,
    )
    assert X.shape[1] == model.n_features_in_


@pytest.mark.parametrize("memory", [[], ["--memory", "4KB"]], ids=["whole", "blocks"])
def test_parquet_and_blocks(command, memory):
    command("train", "train.csv", "whole", *FIT, *L1, "--tol", "1e-9")
    patients().to_parquet("train.parquet", row_group_size=20)
    patients(1).assign(ward="mars").to_parquet("other.parquet", row_group_size=20)
    command("train", "train.parquet", "m", *FIT, *L1, "--tol", "1e-9", *memory)
    assert load_model("m").preprocessing_ == load_model("whole").preprocessing_
    assert np.allclose(load_model("m").coef_, load_model("whole").coef_, atol=1e-5)
    assert "120 rows have a category of 'ward'" in command("predict", "other.parquet", "m", "-", *memory).err
    command("report", "other.parquet", "m", "r.html", *memory)


def test_columns_that_the_model_does_not_use_may_be_empty_or_missing(command):
    options = ["--label", "outcome", "--drop", "id", "--one-hot", "ward", "--penalty", "l1", "--lam", "20"]
    assert "missing value" in command("train", "train.csv", "m", *options, code=1).err
    patients().dropna().to_csv("train.csv", index=False)
    command("train", "train.csv", "m", *options)
    model = load_model("m")
    used = {name.split("=")[0] for name in model.feature_names_in_[model.support_]}
    assert used == {"height", "ward"}
    other = patients(1).dropna(subset="height").assign(noise=np.nan, weight="heavy")
    other.to_csv("other.csv", index=False)
    scores = predicted(command, "other.csv", "m")
    other[["ward", "height"]].to_csv("few.csv", index=False)
    assert np.array_equal(predicted(command, "few.csv", "m"), scores)
    told = command("report", "other.csv", "m", "r.html").out
    other[["ward", "height", "outcome"]].to_csv("few.csv", index=False)
    assert command("report", "few.csv", "m", "few.html").out.splitlines()[2:] == told.splitlines()[2:]
    other.drop(columns="ward").to_csv("few.csv", index=False)
    assert "no column 'ward', which is needed" in command("predict", "few.csv", "m", code=1).err
    other.assign(height=np.nan).to_csv("holes.csv", index=False)
    told = command("predict", "holes.csv", "m", code=1).err
    assert "fill in missing values first, or train the model with --impute median" in told


def test_a_number_to_fill_in(command):
    for word, number in (("constant", 0.0), ("-1.5", -1.5)):
        command("train", "train.csv", "m", *FIT, "--impute", word, "--force")
        assert load_model("m").preprocessing_.fill == dict.fromkeys(NUMBERS, number)
    assert "none of median, mean" in command("train", "train.csv", "--impute", "mode", code=2).err


def test_what_is_refused(command):
    options = ["train", "train.csv", "m", "--label", "outcome", "--impute", "median"]
    assert "with --one-hot id,ward, or leave" in command(*options, code=1).err
    said = command(*options, "--drop", "id", "--one-hot", "wrad", code=1).err
    assert "no column 'wrad' of features; did you mean 'ward'?" in said
    Path("rows.svm").write_text("1 1:1\n-1 1:2\n")
    assert "--impute, --one-hot" in command("train", "rows.svm", "--impute", "mean", code=1).err
    assert "leave out" in command("train", "a1a", "--impute", "mean", code=2).err
    command("train", "train.csv", "m", *FIT)
    assert "No such option: --impute" in command("predict", "other.csv", "m", "--impute", "mean", code=2).err
    for name in ("m.liblinear", "m.onnx"):
        said = command("convert", "m", name, code=1)
        assert "cannot hold: prepare the columns beforehand" in said.err
        assert "label" not in said.out
    command("convert", "m", "copy", "--to", "majorant")
    assert load_model("copy").preprocessing_ == load_model("m").preprocessing_


def test_a_converted_table_is_told_to_have_features_of_its_own(command):
    said = command("convert", "train.csv", "train.svm", *FIT)
    assert "another file with other categories gets other features" in said.err
    assert read("train.svm").X.shape[1] == 6


# Tables without a header -------------------------------------------------------------------------------


@pytest.fixture
def bare(command):
    """The label stands first, so that a file without labels has other numbers of columns."""
    for name, frame in (("train.csv", patients()), ("other.csv", patients(1))):
        frame[["outcome", "ward", *NUMBERS]].to_csv(name, index=False, header=False)
    patients(1)[["ward", *NUMBERS]].to_csv("new.csv", index=False, header=False)
    command("train", "train.csv", "m", "--no-header", "--label", "0", "--impute", "mean", "--one-hot", "1")
    return command


def test_a_file_without_a_header_is_read_as_in_training(bare):
    assert "column 1=north" in bare("inspect", "m").out
    assert "Accuracy" in bare("predict", "other.csv", "m", "-").err
    assert np.array_equal(predicted(bare, "new.csv", "m"), predicted(bare, "other.csv", "m"))
    bare("report", "other.csv", "m", "r.html")
    told = bare("predict", "other.csv", "m", "-", "--id", "2", "--no-header").out
    assert told.splitlines()[0] == "2,label,score"


def test_a_file_with_another_number_of_columns_is_refused(bare):
    patients(1)[["ward", "height"]].to_csv("short.csv", index=False, header=False)
    said = bare("predict", "short.csv", "m", code=1).err
    assert "2 columns, where the training data had 5 columns without names" in said
