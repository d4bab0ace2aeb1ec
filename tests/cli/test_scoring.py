"""The scores that commands show, against scikit-learn's own; and `--scoring`."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import clone
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import cross_val_predict, cross_val_score

from majorant import SparseSVC, load_model
from majorant.cli.scoring import SCORES, Evaluation
from majorant.datasets import read, write_libsvm
from majorant.estimators.splitter import FoldsByPlace

FIT = ["--penalty", "l1", "--lam", "2", "--tol", "1e-10"]
NUMBERS = ["accuracy", "balanced_accuracy", "roc_auc", "precision", "recall", "f1"]


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("two", "test"):
        X = np.round(rng.standard_normal((150, 4)), 2)
        write_libsvm(f"{name}.svm", X, np.where(X[:, 0] + rng.standard_normal(150) > 0.5, 1, -1))
    write_libsvm("three.svm", X, np.argmax(X[:, :3] + rng.standard_normal((150, 3)), axis=1))
    rows = [f"{','.join(map(repr, row))},{'ill' if row[0] > 0 else 'well'}" for row in X.tolist()]
    Path("table.csv").write_text("\n".join(["a,b,c,d,outcome", *rows]) + "\n")
    return run_command


def expected(y, decision, classes):
    two = decision.ndim == 1
    predicted = classes[(decision > 0).astype(int) if two else decision.argmax(axis=1)]
    average = {"average": "binary", "pos_label": classes[1]} if two else {"average": "macro"}
    one_hot = y == classes[1] if two else y[:, None] == classes
    return {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "roc_auc": metrics.roc_auc_score(one_hot, decision),
        "precision": metrics.precision_score(y, predicted, **average),
        "recall": metrics.recall_score(y, predicted, **average),
        "f1": metrics.f1_score(y, predicted, **average),
        "confusion_matrix": metrics.confusion_matrix(y, predicted, labels=classes).tolist(),
    }


def assert_scores(found, y, decision, classes):
    wanted = expected(y, decision, np.array(classes))
    assert found["labels"] == list(classes)
    assert found["confusion_matrix"] == wanted.pop("confusion_matrix")
    assert {name: found[name] for name in NUMBERS} == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("memory", [[], ["--memory", "16KB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize("name", ["two", "three"])
def test_scores_of_all_commands_are_those_of_scikit_learn(command, name, memory):
    test = "test.svm" if name == "two" else "three.svm"
    facts = json.loads(command("train", f"{name}.svm", "m", "--test", test, "--json", *FIT, *memory).out)
    model, rows, tests = load_model("m"), read(f"{name}.svm"), read(test)
    classes = model.classes_.tolist()
    for key, data in (("train_metrics", rows), ("test_metrics", tests)):
        assert_scores(facts[key], data.y, model.decision_function(data.X), classes)
    assert facts["test_accuracy"] == facts["test_metrics"]["accuracy"]
    predicted = json.loads(command("predict", test, "m", "out", "--json", *memory).out)
    reported = json.loads(command("report", f"{name}.svm", "m", "r", "--test", test, "--json", *memory).out)
    assert predicted["metrics"] == reported["test_metrics"] == facts["test_metrics"]
    assert reported["metrics"] == facts["train_metrics"]
    chosen = json.loads(
        command("cv", f"{name}.svm", "n", "--test", test, "--points", "3", "--json", *FIT[:2], *memory).out
    )
    assert_scores(chosen["test_metrics"], tests.y, load_model("n").decision_function(tests.X), classes)


@pytest.mark.parametrize("memory", [[], ["--memory", "16KB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize(("name", "scoring"), [("two", "roc_auc"), ("two", "f1"), ("three", "f1_macro")])
def test_cross_validation_gives_the_score_that_is_asked_for(command, name, scoring, memory):
    facts = json.loads(
        command("train", f"{name}.svm", "-v", "3", "--scoring", scoring, "--json", *FIT, *memory).out
    )
    rows = read(f"{name}.svm")
    model = SparseSVC("l1", lam=2.0, tol=1e-10, random_state=0)
    folds = FoldsByPlace(3, 0)
    scores = cross_val_score(clone(model), rows.X, rows.y, cv=folds, scoring=scoring)
    assert facts["fold_scores"] == pytest.approx(scores, rel=1e-6)
    assert facts["cross_validation_score"] == pytest.approx(np.mean(scores), rel=1e-6)
    decision = cross_val_predict(model, rows.X, rows.y, cv=folds, method="decision_function")
    wanted = expected(rows.y, decision, np.unique(rows.y))
    matrix = wanted.pop("confusion_matrix")
    assert facts["cross_validation_metrics"]["confusion_matrix"] == matrix
    found = facts["cross_validation_metrics"]
    assert {key: found[key] for key in NUMBERS} == pytest.approx(wanted, rel=1e-6)


def test_people_see_one_table(command):
    said = command("train", "two.svm", "m", "--test", "test.svm", *FIT).out
    table = said[said.index("training rows  test rows") :].splitlines()
    assert [line.split("  ")[0] for line in table[1:]] == [
        "accuracy", "balanced accuracy", "area under the ROC curve", "precision of 1", "recall of 1",
        "F1 of 1", "-1 predicted as -1", "-1 predicted as 1", "1 predicted as -1", "1 predicted as 1",
    ]  # fmt: skip
    predicted = command("predict", "test.svm", "m", "-")
    assert set(predicted.out.split()) == {"1", "-1"}
    assert "balanced accuracy" in predicted.err
    assert "balanced accuracy" not in command("predict", "test.svm", "m", "-", "-q").err
    many = command("train", "three.svm", "m", "-f", *FIT).out
    assert "F1, mean of the classes" in many
    wrong = [line for line in many.splitlines() if " predicted as " in line]
    counts = [int(line.split()[-1]) for line in wrong]
    assert counts == sorted(counts, reverse=True)
    assert not any(line.startswith(f"{label} predicted as {label}") for line in wrong for label in range(3))


def test_labels_that_the_model_does_not_know_count_as_wrong(command):
    command("train", "two.svm", "m", *FIT)
    Path("new.svm").write_text(Path("test.svm").read_text() + "7 1:1\n")
    facts = json.loads(command("predict", "new.svm", "m", "out", "--json").out)["metrics"]
    assert facts["labels"] == [-1, 1, 7]
    assert sum(facts["confusion_matrix"][2]) == 1
    assert facts["rows"] == 151
    assert facts["roc_auc"] is None
    assert "7 predicted as" in command("predict", "new.svm", "m", "out", "-f").err


def test_a_text_is_the_number_that_it_stands_for():
    evaluation = Evaluation([1, 2])
    evaluation.add(np.array(["1", "2", "x"]), np.array([-1.0, 1.0, 1.0]))
    evaluation.add(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    found = evaluation.metrics()
    assert found["labels"] == [1, 2, "x"]
    assert found["confusion_matrix"] == [[1, 1, 0], [0, 2, 0], [0, 1, 0]]


def test_labels_that_are_unknown_have_one_order_and_few_rows():
    evaluation = Evaluation(["a", "b"])
    for label in ("z", "x", "a", "y"):
        evaluation.add(np.array([label]), np.array([-1.0]))
    assert evaluation.metrics()["labels"] == ["a", "b", "x", "y", "z"]
    evaluation.add(np.arange(1000), np.ones(1000))
    found = evaluation.metrics()
    assert len(found["labels"]) == len(found["confusion_matrix"]) == 23
    assert found["labels"][-1] == "other labels"
    assert np.sum(found["confusion_matrix"]) == 1004
    assert found["right"] == 1


@pytest.mark.parametrize("name", [["train", "-v", "3"], ["cv"]], ids=lambda name: name[0])
@pytest.mark.parametrize(
    ("data", "scoring", "message"),
    [
        ("two.svm", "acuracy", "did you mean 'accuracy'?"),
        ("two.svm", "nonsense", "choose one of accuracy, "),
        ("two.svm", "roc_auc_ovr", "needs probabilities"),
        ("three.svm", "f1", "is for two classes, and the data have 3: use f1_macro"),
        ("three.svm", "roc_auc", "use balanced_accuracy"),
        ("table.csv", "recall", "is the score of the class 1, which the data do not have: use recall_macro"),
    ],
)
@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])
def test_scores_that_do_not_suit_are_refused(command, name, data, scoring, message, memory):
    label = ["--label", "outcome"] if data == "table.csv" else []
    said = command(name[0], data, *name[1:], "--scoring", scoring, *label, *memory, code=2)
    assert message in said.err
    assert sorted(path.suffix for path in Path().iterdir()) == [".csv", ".svm", ".svm", ".svm"]


def test_scoring_is_for_cross_validation(command):
    assert "add -v FOLDS" in command("train", "two.svm", "--scoring", "f1", code=2).err


def test_all_scores_exist_and_other_scores_of_scikit_learn_are_taken(command):
    assert set(SCORES) <= set(get_scorer_names())
    command("train", "two.svm", "-v", "3", "--scoring", "adjusted_rand_score")
