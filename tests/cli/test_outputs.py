"""Files that cannot be written: found out before the training, and what was trained is never lost."""

import json
import resource
import shutil
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from majorant import load_model
from majorant.cli import training
from majorant.datasets import write_libsvm


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    Path("temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    write_libsvm("rows.svm", X, np.where(X[:, 0] - X[:, 1] > 0, 1, -1))
    return run_command


@contextmanager
def files_of_at_most(size):
    """As on a full disk, every file ends there."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


OUTPUTS = [
    ["train", "rows.svm", "{}"],
    ["train", "rows.svm", "m", "--report", "{}"],
    ["train", "rows.svm", "m", "--checkpoint", "{}"],
    ["cv", "rows.svm", "{}", "--points", "3"],
    ["path", "rows.svm", "{}"],
    ["demo", "--report", "{}"],
]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_directory_that_takes_no_files_is_found_before_the_training(command, monkeypatch, words):
    if not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    monkeypatch.setattr(training, "fit", None)
    said = command(*(word.format("/proc/x") for word in words), code=1)
    assert "'/proc/x' cannot be written (" in said.err
    assert not Path("m").exists()


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_full_disk_is_found_before_the_training(command, monkeypatch, words):
    monkeypatch.setattr(training, "fit", None)
    with files_of_at_most(1000):
        said = command(*(word.format("x") for word in words), code=1)
    assert " cannot be written (File too large)" in said.err
    assert sorted(path.name for path in Path().iterdir()) == ["rows.svm", "temporary"]


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize("words", [["train"], ["cv", "--points", "3"]], ids=lambda words: words[0])
def test_a_model_that_cannot_be_written_goes_to_a_temporary_file(command, monkeypatch, words, memory):
    Path("away").mkdir()
    real = training.fit

    def fit(*given):
        ended = real(*given)
        shutil.rmtree("away")
        return ended

    monkeypatch.setattr(training, "fit", fit)
    said = command(words[0], "rows.svm", "away/m", *words[1:], *memory, code=1).err
    rescued = next(Path("temporary").rglob("m"))
    assert (
        "'away/m' was not written (there is no directory 'away' to write 'm' to): what was trained is in "
        in (said)
    )
    assert str(rescued) in said
    assert load_model(rescued).coef_.any()


def test_coefficients_of_a_path_that_cannot_be_written_go_to_a_temporary_file(command, monkeypatch):
    Path("away").mkdir()
    path = __import__("majorant.cli.path", fromlist=["_facts"])
    real = path._facts
    monkeypatch.setattr(
        path, "_facts", lambda *given: shutil.rmtree("away", ignore_errors=True) or real(*given)
    )
    said = command("path", "rows.svm", "away/c.csv", "--points", "2", code=1).err
    rescued = next(Path("temporary").rglob("c.csv"))
    assert str(rescued) in said
    assert rescued.read_text().startswith("lam,class,intercept")


def test_a_file_that_appeared_during_the_training_is_kept(command, monkeypatch):
    real = training.fit
    monkeypatch.setattr(training, "fit", lambda *given: Path("m").write_text("theirs") and real(*given))
    said = command("train", "rows.svm", "m", code=1).err
    assert "exists already" in said
    assert Path("m").read_text() == "theirs"
    assert load_model(next(Path("temporary").rglob("m"))).coef_.any()


def test_the_model_is_there_if_its_scores_or_its_report_fail(command, monkeypatch):
    def fail(*given, **named):
        raise MemoryError

    monkeypatch.setattr(training.Job, "_score", fail)
    command("train", "rows.svm", "m", code=1)
    assert load_model("m").coef_.any()


def test_nothing_is_left_of_the_probe(command):
    facts = json.loads(command("train", "rows.svm", "m", "--json").out)
    assert facts["model"] == "m"
    assert sorted(path.name for path in Path().iterdir()) == ["m", "rows.svm", "temporary"]
