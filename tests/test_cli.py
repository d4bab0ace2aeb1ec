import os
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

import majorant
from majorant.cli import app
from majorant.demo import run_demo


@pytest.fixture
def runner():
    return CliRunner()


def test_help_names_the_commands(runner):
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_version(runner):
    assert runner.invoke(app, ["--version"]).output.strip() == f"majorant {majorant.__version__}"


def test_demo_shows_features_scores_and_times(runner):
    result = runner.invoke(app, ["demo"], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    for word in ("worst radius", "accuracy", "LinearSVC", "fit time", "duality gap", "features are enough"):
        assert word in result.output


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["demo", "--lam", "-1"], ["demo", "--lam", "much"], ["demo", "--lam", "inf"], ["--bogus"]],
)
def test_wrong_words_are_refused_without_a_traceback(runner, arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize("lam", [0.0, 1e6])
def test_demo_survives_the_extremes(lam):
    with open(os.devnull, "w") as nowhere:
        model = run_demo(lam, Console(file=nowhere))
    assert model.coef_.shape == (1, 30)


def test_demo_on_a_terminal_without_unicode():
    environment = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    subprocess.run(
        [sys.executable, "-m", "majorant", "demo"], env=environment, check=True, stdout=subprocess.DEVNULL
    )


def test_the_module_is_a_command():
    output = subprocess.run(
        [sys.executable, "-m", "majorant", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.startswith("majorant")
