"""Models whose training ended with Ctrl-C: whatever uses such a model says so."""

import json
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from majorant import SparseSVC, load_model, save_model
from majorant.callbacks import Callback
from majorant.cli import run
from majorant.datasets import from_arrays, write_libsvm

BEGUN = "2 of 4 classes were begun, the others are not trained"


class PressCtrlC(Callback):
    """Presses Ctrl-C at the first iterate of one problem."""

    def __init__(self, label=None):
        self.label = label

    def for_problem(self, classes, positive):
        return PressCtrlC() if positive == self.label else Callback()

    def on_iterate(self, iterate, record):
        signal.raise_signal(signal.SIGINT)


def interrupted(X, y, label):
    model = SparseSVC(solver="gradient").set_callbacks(PressCtrlC(label))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    return model.set_callbacks()


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((80, 4))
    y = np.argmax(X, axis=1)
    write_libsvm("rows.svm", X, y)
    write_libsvm("two.svm", X, (y > 1).astype(int))
    save_model(interrupted(X, y, 1), "m")
    save_model(interrupted(X, (y > 1).astype(int), 1), "two")
    save_model(SparseSVC().fit(X, y), "whole")
    return X, y


def test_a_model_warns_when_it_predicts(rows):
    X, y = rows
    model = load_model("m")
    for ask in (model.predict, model.decision_function, lambda X: model.score(X, y)):
        with pytest.warns(ConvergenceWarning, match=BEGUN):
            ask(X)
    with pytest.warns(ConvergenceWarning, match=BEGUN):
        model.score(from_arrays(X, y, rows_per_block=30))
    with pytest.warns(ConvergenceWarning, match="the last iterate is kept"):
        load_model("two").predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(solver="newton").fit(X, y).predict(X)
        load_model("whole").predict(X)


@pytest.mark.parametrize("memory", [[], ["--memory", "16KB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["predict", "rows.svm", "m", "out"], BEGUN),
        (["predict", "two.svm", "two", "-"], "the last iterate is kept"),
        (["report", "rows.svm", "m"], BEGUN),
    ],
    ids=["predict", "predict two classes", "report"],
)
def test_commands_say_once_that_a_model_was_interrupted(rows, capfd, words, text, memory):
    assert run([*words, *memory]) == 0
    said = capfd.readouterr().err
    assert said.count(text) == 1
    assert said.count("warning: The fit was interrupted: ") == 1
    assert run([*words, "--json", "--force", *memory]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert [text in warning for warning in facts["warnings"]] == [True]


@pytest.mark.parametrize("words", [["inspect", "m"], ["convert", "m", "theirs"]], ids=lambda words: words[0])
def test_inspect_and_convert_say_so_too(rows, capfd, words):
    assert run(words) == 0
    assert BEGUN in capfd.readouterr().err


def test_whole_models_are_used_without_a_warning(rows, capfd):
    for words in (
        ["predict", "rows.svm", "whole", "out"],
        ["inspect", "whole"],
        ["report", "rows.svm", "whole"],
    ):
        assert run(words) == 0
        assert "warning" not in capfd.readouterr().err
    assert "The fit was interrupted" not in Path("whole.html").read_text()
