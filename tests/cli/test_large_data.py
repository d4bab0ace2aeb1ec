"""`majorant train`, `cv`, `path` and `predict` with --memory: block by block, with the same results."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from majorant import SparseSVC
from majorant.callbacks import LiveProgress, ModelsProgress, progress
from majorant.datasets import from_arrays, write_libsvm
from majorant.estimators import sklearn_callbacks
from majorant.persistence import load_model, load_provenance
from majorant.rows.pass_hooks import Pass, call_watchers

FAST = ["--solver", "mm", "--penalty", "l2", "--lam", "2"]
STRENGTHS = ["--penalty", "l1", "--points", "3", "--ratio", "0.01", "--tol", "1e-12"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((400, 6)), 2)
    X[np.abs(X) < 0.5] = 0.0
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(400) > 0, 1, -1)
    write_libsvm("rows.svm", X, y)
    write_libsvm("wide.svm", np.column_stack([X, np.ones(400)]), y)
    np.save("X.npy", X)
    np.save("y.npy", y)
    np.savez("rows.npz", X=X, y=y)
    return tmp_path


@pytest.fixture
def command(here, run_command):
    return run_command


@pytest.mark.parametrize("data", ["rows.svm", "X.npy"])
def test_training_with_little_memory_gives_the_same_model(command, data):
    command("train", "rows.svm", "whole.model", *FAST)
    printed = command("train", data, "large.model", "--memory", "16KB", "--test", "rows.svm", *FAST)
    assert f"{data}: 400 rows × 6 features, " in printed.out
    assert re.search(r"\d passes over \d+ blocks of rows, ", printed.out)
    assert "% on the test rows" in printed.out
    whole, large = load_model("whole.model"), load_model("large.model")
    assert large.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    provenance = load_provenance("large.model")
    assert provenance.source == data
    assert provenance.n_rows == 400


@pytest.mark.parametrize(
    "options",
    [
        ["X.npy", "--class-weight", "+1=2", "--test", "X.npy"],
        *(
            pytest.param(options, marks=pytest.mark.slow)
            for options in (
                ["rows.svm", "--scoring", "roc_auc", "--selection", "1se", "--seed", "7", "--folds", "4"],
                ["rows.svm", "--scoring", "balanced_accuracy", "--class-weight", "balanced"],
            )
        ),
    ],
    ids=lambda options: options[2],
)
def test_cross_validation_with_little_memory_chooses_the_same(command, options):
    words = ["m", "--force", "--json", *STRENGTHS, "--folds", "3", *options[1:]]
    in_memory = [{"X.npy": "rows.npz"}.get(word, word) for word in (options[0], *words)]
    whole, there = json.loads(command("cv", *in_memory).out), load_model("m")
    large, here = json.loads(command("cv", options[0], *words, "--memory", "16KB").out), load_model("m")
    assert large["passes"] >= 3
    assert large["data"]["blocks"] > 3
    assert whole.keys() <= large.keys()
    for name, column in whole["cv_results"].items():
        assert large["cv_results"][name] == pytest.approx(column, rel=1e-6), name
    for name in ("lam", "lam_1se", "score", "train_accuracy", "objective"):
        assert large[name] == pytest.approx(whole[name], rel=1e-6), name
    assert large["selected"] == whole["selected"]
    np.testing.assert_allclose(here.coef_, there.coef_, rtol=1e-6)
    assert here.class_weight == there.class_weight
    if "--test" in options:
        assert large["test_accuracy"] == large["train_accuracy"]


def test_standardized_coefficients_are_the_same(command):
    """Of features far from zero, too, whose squares would cancel."""
    X = np.load("X.npy") * np.geomspace(0.01, 100.0, 6) + [0.0, 0.0, 0.0, 0.0, 1e5, 1e7]
    np.save("X.npy", X)
    np.savez("rows.npz", X=X, y=np.load("y.npy"))
    options = ["--standardize", "--penalty", "l1", "--lam", "5", "--tol", "1e-12"]
    command("train", "rows.npz", "whole", *options)
    command("train", "X.npy", "blocks", *options, "--memory", "16KB")
    whole, blocks = load_model("whole"), load_model("blocks")
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-6)
    np.testing.assert_allclose(blocks.scale_, whole.scale_, rtol=1e-9)
    np.testing.assert_allclose(blocks.scale_, np.load("X.npy").std(axis=0), rtol=1e-9)


def test_other_seeds_draw_other_folds(command):
    words = ["cv", "rows.npz", "m", "--force", "--json", *STRENGTHS, "--seed"]
    scores = [json.loads(command(*words, seed).out)["cv_results"]["split0_test_score"] for seed in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]


@pytest.mark.parametrize("data", ["X.npy", pytest.param("rows.svm", marks=pytest.mark.slow)])
def test_a_path_with_little_memory_is_the_same(command, data):
    words = [*STRENGTHS, "--class-weight", "+1=2", "--max-features", "5"]
    whole = json.loads(command("path", "rows.npz", "whole.csv", "--json", *words).out)
    large = json.loads(command("path", data, "large.csv", "--json", *words, "--memory", "16KB").out)
    assert large["passes"] >= 3
    assert large["rows"] == 400
    assert len(large["path"]) == len(whole["path"]) > 1
    for here, there in zip(large["path"], whole["path"], strict=True):
        for name in ("lam", "n_selected", "objective", "train_accuracy", "converged"):
            assert here[name] == pytest.approx(there[name], rel=1e-6), name
    tables = [np.genfromtxt(name, delimiter=",", names=True) for name in ("whole.csv", "large.csv")]
    assert tables[0].dtype == tables[1].dtype
    np.testing.assert_allclose(tables[1].tolist(), tables[0].tolist(), rtol=1e-6)


@pytest.mark.parametrize("name", ["cv", "path"])
def test_what_is_said_of_blocks(command, name):
    printed = command(name, "X.npy", "out", "--memory", "16KB", *STRENGTHS)
    assert "X.npy: 400 rows × 6 features, " in printed.out
    assert re.search(r"\d passes over \d+ blocks of rows, ", printed.out)


@pytest.mark.parametrize("name", ["cv", "path"])
def test_ctrl_c_between_two_models_writes_nothing(command, monkeypatch, name):
    pressed = threading.Lock()

    def press(*_):
        if pressed.acquire(blocking=False):  # once, though folds are in threads
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ModelsProgress, "advance", press)
    printed = command(name, "X.npy", "out", "--memory", "16KB", *STRENGTHS, code=130)
    assert "Interrupted." in printed.err
    assert "Traceback" not in printed.err
    assert not Path("out").exists()


def test_facts_for_programs(command):
    words = ["train", "X.npy", "m", "--memory", "16KB", "--json", *FAST, "--class-weight", "+1=2", "--test"]
    facts = json.loads(command(*words, "rows.svm").out)
    assert facts["passes"] >= 3
    assert facts["seconds_per_pass"] > 0.0
    assert facts["rows"] == 400
    assert facts["data"]["blocks"] > 3
    assert 0.6 < facts["train_accuracy"] == facts["test_accuracy"]
    assert load_model("m").class_weight == {1: 2.0}


def test_predictions_are_the_same_in_blocks(command):
    command("train", "rows.svm", "m", *FAST)
    for data in ("rows.svm", "wide.svm"):  # the features that the model does not know are left out
        whole = command("predict", data, "m", "whole.txt", "--scores", "--force")
        large = command("predict", data, "m", "large.txt", "--scores", "--force", "--memory", "16KB")
        assert Path("whole.txt").read_text() == Path("large.txt").read_text()
        assert whole.out == large.out
        assert large.err.count("left out") == (data == "wide.svm")
    to_stdout = command("predict", "rows.svm", "m", "-", "--memory", "16KB")
    assert to_stdout.out.splitlines() == [
        line.split()[0] for line in Path("whole.txt").read_text().splitlines()
    ]
    assert "Accuracy = " in to_stdout.err
    facts = json.loads(command("predict", "rows.svm", "m", "--json", "--scores", "--memory", "16KB").out)
    assert len(facts["labels"]) == len(facts["scores"]) == facts["rows"] == 400
    Path("y.npy").unlink()
    unlabelled = command("predict", "X.npy", "m", "--memory", "16KB")
    assert unlabelled.out == to_stdout.out
    assert "Accuracy" not in unlabelled.err


@pytest.mark.parametrize("name", ["train", "cv", "path"])
def test_sizes_and_files_that_are_wrong(command, name):
    assert "'a lot' is no size in memory" in command(name, "X.npy", "--memory", "a lot", code=1).err
    assert "there is no such file" in command(name, "none.svm", "m", "--memory", "1GB", code=1).err
    Path("y.npy").unlink()
    assert "where are the labels?" in command(name, "X.npy", "m", "--memory", "1GB", code=1).err
    assert not Path("m").exists()


def test_a_checkpoint_is_removed_when_the_model_is_written(command):
    for memory in ([], ["--memory", "16KB"]):
        command("train", "rows.svm", "m", "--force", "--checkpoint", "c.npz", *memory, *FAST)
        assert Path("m").exists()
        assert not Path("c.npz").exists()
    Path("c.npz").write_bytes(b"something else")
    printed = command("train", "rows.svm", "m", "--force", "--checkpoint", "c.npz", *FAST, code=1)
    assert "is no checkpoint to resume from" in printed.err
    assert Path("c.npz").read_bytes() == b"something else"


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(command):
    """With a checkpoint at every iteration, and a fit that would go on for ever."""
    code = (
        "import sys; from majorant.callbacks import Checkpoint; from majorant.cli import train, run; "
        "from majorant import cli; import majorant.cli.train; "
        "m = sys.modules['majorant.cli.train']; "
        "m._checkpoint = lambda path: Checkpoint(path, every=0.0, resume=True); "
        "run(sys.argv[1:])"
    )
    problem = ["rows.svm", "m", "--memory", "16KB", "--checkpoint", "c.npz", "--penalty", "l2", "--lam", "2"]
    endless = ["--solver", "gradient", "--tol", "0", "--max-iter", "1000000000"]
    process = subprocess.Popen([sys.executable, "-c", code, "train", *problem, *endless])
    while process.poll() is None and not Path("c.npz").exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not Path("m").exists()
    command("train", *problem, "--solver", "mm")
    resumed = load_model("m").objective_
    assert not Path("c.npz").exists()
    command("train", *problem, "--solver", "mm", "--force")
    assert resumed == pytest.approx(load_model("m").objective_, rel=2e-6)


def test_progress_says_how_long_a_pass_takes(capsys):
    live = LiveProgress(every=0.0).open()
    live.on_pass(Pass(3, done=5, blocks=20, seconds=2.0))
    live.close()
    assert "pass 3: 25% of 8 s" in capsys.readouterr().err


def test_so_does_that_of_many_models(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with ModelsProgress(4) as models:
        models.advance("3 features")
        call_watchers(Pass(3, done=5, blocks=20, seconds=2.0))
    call_watchers(Pass(4, done=5, blocks=20, seconds=2.0))
    said = capsys.readouterr().err
    assert "model 1 of 4  3 features  pass 3: 25% of 8 s" in said
    assert "pass 4" not in said


def test_verbose_shows_the_passes_over_a_source(capsys, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    source = from_arrays(X, np.sign(X[:, 0] + 0.1), rows_per_block=50)
    monkeypatch.setattr(sklearn_callbacks, "LiveProgress", lambda: LiveProgress(every=0.0))
    SparseSVC("l2", verbose=1).fit(source)
    assert "pass 2: 25% of " in capsys.readouterr().err
