"""`--n-features` on the command line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from majorant import SparseSVC, load_model
from majorant.cli import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8)) * [1.0, 30.0, 0.1, 1.0, 1.0, 5.0, 1.0, 1.0]
    score = X[:, 1] / 30.0 - X[:, 5] / 5.0 + 0.3 * rng.standard_normal(120)
    for name, labels in (
        ("two.csv", np.where(score > 0.0, "ill", "well")),
        ("three.csv", np.digitize(score, [-0.7, 0.7])),
    ):
        lines = [",".join([*"abcdefgh", "outcome"])]
        rows = zip(X.tolist(), labels, strict=True)
        lines += [",".join([*map(repr, row), str(label)]) for row, label in rows]
        Path(name).write_text("\n".join(lines) + "\n")
    return X, np.where(score > 0.0, "ill", "well")


@pytest.fixture
def command(here, capsys):
    """Run a command, on the column of the outcome; what it printed."""

    def call(name, data, *words, code=0):
        capsys.readouterr()
        answer = run([name, data, "--label", "outcome", *map(str, words)])
        printed = capsys.readouterr()
        assert answer == code, printed.err + printed.out
        assert "Traceback" not in printed.err
        return printed.err if code else printed.out

    return call


def test_train(command, here):
    said = command("train", "two.csv", "m", "--n-features", 2, "--report", "r.html")
    assert "no swap of one of the 8 weakest features" in said
    model = load_model("m")
    expected = SparseSVC(n_features=2, random_state=0).fit(*here)
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.feature_names_in_[model.support_].tolist() == ["b", "f"]
    page = Path("r.html").read_text()
    assert "Number of features" in page
    assert "coefficients of these features have an objective below" in page
    assert "in standard deviations" in page
    run(["inspect", "m"])


def test_train_tells_programs_of_the_ridge(command):
    facts = json.loads(command("train", "two.csv", "m", "--n-features", 2, "--json"))
    assert facts["penalty"] == "l2"
    assert facts["lam"] == pytest.approx(0.12)
    assert facts["selected"] == ["b", "f"]
    assert facts["converged"] is True


def test_inspect_names_the_ridge(command, capsys):
    command("train", "two.csv", "m", "--n-features", 2)
    capsys.readouterr()
    assert run(["inspect", "m"]) == 0
    said = capsys.readouterr().out
    assert "l2, lam 0.12" in said
    assert "delta" not in said
    assert "2 of 8 features" in said


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_path(command, multi_class):
    words = ["coefs.csv", "--n-features", 4, "--multi-class", multi_class]
    facts = json.loads(command("path", "three.csv", *words, "--json"))
    if multi_class == "joint":
        assert [model["n_selected"] for model in facts["path"]] == [1, 2, 3, 4]
    objectives = [model["objective"] for model in facts["path"]]
    assert np.all(np.diff(objectives) <= 1e-12 * objectives[0])
    rows = list(csv.DictReader(Path("coefs.csv").read_text().splitlines()))
    assert [row["n_features"] for row in rows] == [str(k) for k in (1, 2, 3, 4) for _ in range(3)]
    said = command("path", "two.csv", "--n-features", 3)
    assert "lam" not in said.splitlines()[0].split()
    assert "features" in said


def test_cv(command):
    said = command("cv", "two.csv", "m", "--n-features", 4, "--folds", 3, "--report", "r.html")
    model = load_model("m")
    assert model.n_features_ == len(model.support_)
    assert f"with {model.n_features_} features (best: {model.n_features_}, one standard error: " in said
    page = Path("r.html").read_text()
    assert "chosen from 1 to 4" in page
    assert "against the number of features" in page
    words = ["--n-features", 4, "--folds", 3, "--selection", "1se", "--calibrate", "sigmoid", "-f", "--json"]
    facts = json.loads(command("cv", "two.csv", "m", *words))
    assert facts["n_features_chosen"] == facts["n_features_1se"] <= facts["n_features_best"]
    assert facts["cv_results"]["n_features"] == [1, 2, 3, 4]
    assert load_model("m").predict_proba is not None


def test_cross_validation_of_one_number(command):
    assert "Cross Validation Accuracy" in command("train", "two.csv", "--n-features", 2, "-v", 3)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["train", "two.csv", "--n-features", "2", "--memory", "1GB"], 2, "leave out --memory"),
        (["path", "two.csv", "--n-features", "2", "--memory", "1GB"], 2, "leave out --memory"),
        (["cv", "two.csv", "--n-features", "2", "--memory", "1GB"], 2, "leave out --memory"),
        (["train", "two.csv", "--n-features", "0"], 2, "--n-features"),
        (["train", "two.csv", "--n-features", "2", "--max-features", "2"], 2, "leave out one of them"),
        (["train", "two.csv", "--n-features", "2", "--penalty", "l1"], 2, "no use for --penalty l1"),
        (["train", "two.csv", "--n-features", "2", "--lam", "3"], 2, "--penalty l2, whose lam is"),
        (["train", "two.csv", "--n-features", "2", "--solver", "adam"], 2, "leave --solver auto"),
        (["path", "two.csv", "--n-features", "2", "--penalty", "welsch"], 2, "no use for --penalty welsch"),
        (["cv", "two.csv", "--n-features", "2", "--penalty", "l1"], 2, "no use for --penalty l1"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(command, words, code, message):
    name, data, *others = words
    assert message in " ".join(command(name, data, *others, code=code).replace("│", " ").split())
