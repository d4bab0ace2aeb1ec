"""Models and data that come through a pipe or from standard input, which can be read once only."""

import io
import json
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from majorant import load_model
from majorant.datasets import read, write_libsvm

FIT = ["--penalty", "l1", "--lam", "2", "-q"]


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((60, 3)), 2)
    y = np.where(X[:, 0] - X[:, 1] > 0, 1, -1)
    write_libsvm("rows.svm", X, y)
    lines = [
        f"{','.join(map(repr, row))},{'ill' if k > 0 else 'well'}"
        for row, k in zip(X.tolist(), y, strict=True)
    ]
    Path("table.csv").write_text("\n".join(["age,y,class,outcome", *lines]) + "\n")
    run_command("train", "rows.svm", "m", *FIT)
    run_command("train", "table.csv", "t", "--label", "outcome", *FIT)
    return run_command


@pytest.fixture
def piped():
    """The name of a FIFO into which a file is written once."""
    threads = []

    def make(path):
        name = f"pipe{len(threads)}"
        os.mkfifo(name)
        content = Path(path).read_bytes()
        threads.append(threading.Thread(target=lambda: Path(name).write_bytes(content), daemon=True))
        threads[-1].start()
        return name

    yield make
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a pipe was not read"


@pytest.fixture
def stdin(monkeypatch):
    def use(path):
        content = io.BufferedReader(io.BytesIO(Path(path).read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))

    return use


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]])
def test_a_model_through_a_pipe_predicts_and_keeps_its_provenance(command, piped, memory):
    """The provenance knows the column of the labels; two other columns have names of labels."""
    told = command("predict", "table.csv", "t", "-", *memory)
    assert "Accuracy" in told.err
    assert command("predict", "table.csv", piped("t"), "-", *memory) == told


def test_models_from_pipes_and_standard_input_are_inspected_reported_and_converted(command, piped, stdin):
    told = command("inspect", "t").out
    assert "Trained by" in told
    assert command("inspect", piped("t")).out == told
    stdin("t")
    assert command("inspect", "-").out == told
    stdin("t")
    assert "Accuracy" in command("predict", "table.csv", "-", "out").out
    command("report", "table.csv", "t", "r.html")
    command("report", "table.csv", piped("t"))
    stdin("t")
    command("report", "table.csv", "-", "s.html")
    assert Path("model.html").read_text().count("Trained by") == Path("r.html").read_text().count(
        "Trained by"
    )
    assert Path("s.html").exists()
    command("convert", "m", "whole")
    command("convert", piped("m"), "from-pipe")
    stdin("m")
    command("convert", "-", "from-stdin")
    assert Path("from-pipe").read_text() == Path("from-stdin").read_text() == Path("whole").read_text()
    command("convert", piped("whole"), "back")
    assert np.array_equal(load_model("back").coef_, load_model("m").coef_)


def test_data_from_pipes_and_standard_input_are_converted(command, piped, stdin):
    command("convert", piped("rows.svm"), "one.svm")
    stdin("rows.svm")
    command("convert", "-", "two.svm")
    assert Path("one.svm").read_bytes() == Path("two.svm").read_bytes()
    assert np.array_equal(read("one.svm").y, read("rows.svm").y)


@pytest.mark.parametrize("words", [["predict", "-", "-"], ["report", "rows.svm", "-", "r", "--test", "-"]])
def test_model_and_data_cannot_both_be_standard_input(command, stdin, words):
    stdin("m")
    assert "cannot both be read from standard input" in command(*words, code=2).err


def test_a_damaged_model_from_standard_input_is_named(command, stdin):
    Path("damaged").write_text(Path("m").read_text().replace("l1", "l2", 1))
    stdin("damaged")
    assert "<stdin>: its checksum does not fit" in command("inspect", "-", code=1).err


def test_a_pipe_with_data_is_refused_with_memory(command, piped):
    """Every pass reads the data anew."""
    os.mkfifo("p")
    said = command("train", "p", "n", "--memory", "1MB", code=1).err
    assert "p: a pipe can be read only once" in said


def test_json_of_a_model_from_standard_input(command, stdin):
    stdin("m")
    assert json.loads(command("inspect", "-", "--json").out)["penalty"] == "l1"
