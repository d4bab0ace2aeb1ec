"""`--calibrate`: probabilities from held-out rows, the same with --memory and in scikit-learn."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV

from majorant import SparseSVC, load_model
from majorant.cli import calibration
from majorant.datasets import read, write_libsvm
from majorant.estimators.splitter import FoldsByPlace

FIT = ["--penalty", "l2", "--lam", "2", "--tol", "1e-12"]
MEMORY = pytest.mark.parametrize("memory", [[], ["--memory", "16KB"]], ids=["whole", "blocks"])


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((150, 4)), 2)
    write_libsvm("two.svm", X, np.where(X[:, 0] + rng.standard_normal(150) > 0.5, 1, -1))
    write_libsvm("three.svm", X, np.argmax(X[:, :3] + rng.standard_normal((150, 3)), axis=1))
    return run_command


@MEMORY
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ["two", "three"])
def test_probabilities_are_those_of_scikit_learn_on_the_same_folds(command, name, method, memory):
    said = command("train", f"{name}.svm", "m", "--calibrate", method, *FIT, *memory).out
    assert f"Probabilities by {method}, from the held-out rows of 5 folds" in said
    rows = read(f"{name}.svm")
    theirs = CalibratedClassifierCV(
        SparseSVC("l2", lam=2.0, tol=1e-12, random_state=0), method=method, ensemble=False,
        cv=FoldsByPlace(5, 0),
    ).fit(rows.X, rows.y)  # fmt: skip
    expected = theirs.predict_proba(rows.X)
    np.testing.assert_allclose(load_model("m").predict_proba(rows.X), expected, rtol=1e-4, atol=1e-5)
    command("predict", f"{name}.svm", "m", "out.csv", *memory)
    header, *lines = Path("out.csv").read_text().splitlines()
    labels = load_model("m").classes_.tolist()
    assert header.split(",")[-len(labels) :] == [f"probability_{label}" for label in labels]
    found = np.array([list(map(float, line.split(",")[-len(labels) :])) for line in lines])
    assert np.array_equal(found, load_model("m").predict_proba(rows.X))
    facts = json.loads(command("predict", f"{name}.svm", "m", "--json", *memory).out)
    assert facts["probabilities"] == found.tolist()


@MEMORY
def test_the_chosen_strength_and_the_scaled_features_are_calibrated(command, memory):
    words = ["two.svm", "m", "--points", "3", "--standardize", "--calibrate", "sigmoid", *memory]
    command("cv", *words, "--penalty", "l1")
    chosen = load_model("m")
    command("train", "two.svm", "n", *words[4:], "--penalty", "l1", "--lam", repr(chosen.lam_))
    X = read("two.svm").X
    np.testing.assert_allclose(chosen.predict_proba(X), load_model("n").predict_proba(X), rtol=1e-4)


def test_inspect_shows_the_calibration_and_conversions_say_that_they_lose_it(command):
    command("train", "two.svm", "m", "--calibrate", "isotonic", *FIT)
    assert "isotonic, from the held-out rows of 5 folds" in command("inspect", "m").out
    facts = json.loads(command("inspect", "m", "--json").out)["calibration"]
    assert (facts["method"], facts["folds"], len(facts["curves"])) == ("isotonic", 5, 1)
    for target in ("m.liblinear", "m.onnx"):
        assert "the calibration is left out" in command("convert", "m", target).err
    command("convert", "m", "copy", "--to", "majorant")
    assert load_model("copy").calibration_.method == "isotonic"
    assert "probabilities" not in command("inspect", "m.liblinear").out


def test_output_without_a_table_stays_as_it_was(command):
    command("train", "two.svm", "plain", *FIT)
    command("train", "two.svm", "m", "--calibrate", "sigmoid", *FIT)
    assert command("predict", "two.svm", "m", "-").out == command("predict", "two.svm", "plain", "-").out
    assert "probability" not in command("predict", "two.svm", "plain", "--csv").out


@MEMORY
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["two.svm", "--calibrate", "sigmoidal"], 2, "did you mean 'sigmoid'?"),
        (["single.svm", "--calibrate", "sigmoid"], 2, "and single.svm has one of class 2"),
        (["two.svm", "--calibrate", "sigmoid", "-v", "3"], 2, "only measures"),
    ],
    ids=["method", "rows", "-v"],
)  # fmt: skip
def test_what_cannot_be_calibrated_is_refused_before_the_training(command, words, code, message, memory):
    Path("single.svm").write_text("1 1:1\n1 1:2\n1 1:3\n2 1:4\n")
    assert message in command("train", *words, *memory, code=code).err
    assert not list(Path().glob("*.model"))


@MEMORY
def test_few_rows_of_a_class_are_enough(command, memory):
    Path("few.svm").write_text("1 1:1\n1 1:2\n1 1:3\n1 1:2\n1 1:1\n2 1:4\n2 1:5\n")
    command("train", "few.svm", "m", "--calibrate", "sigmoid", *memory)
    assert load_model("m").calibration_.folds == 5


def test_ctrl_c_during_the_calibration_keeps_the_model(command, monkeypatch):
    monkeypatch.setattr(calibration, "_with_fixed_strength", lambda _: signal.raise_signal(signal.SIGINT))
    said = command("train", "two.svm", "m", "--calibrate", "sigmoid", *FIT, code=130)
    assert "the calibration was interrupted: the model has no probabilities" in said.err
    model = load_model("m")
    assert model.converged_
    assert not hasattr(model, "predict_proba")
