"""The help of the commands; and how little a command imports before it refuses its arguments."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from majorant.cli import run
from majorant.cli.fitting import SOLVERS
from majorant.cli.help import GROUPS
from majorant.datasets.formats import FORMATS
from majorant.potentials import Potential
from majorant.solvers import Solver
from tests.cli.test_cli import COMMANDS

HEAVY = {"scipy", "sklearn", "numba", "rich", "jinja2", "pooch", "requests", "pyarrow"}


@pytest.fixture
def help_of(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def call(name):
        assert run([name, "--help"]) == 0
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns_and_ends_with_two_examples(help_of, name):
    lines = help_of(name).rstrip().splitlines()
    assert lines[0].startswith(f"Usage: majorant {name}")
    assert max(map(len, lines)) <= 80
    assert lines[-3] == "Examples:"
    assert all(line.startswith(f"  majorant {name}") for line in lines[-2:])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_options_by_group_in_one_order(help_of, name):
    titles = re.findall(r"^(\S.*):$", help_of(name), flags=re.MULTILINE)
    assert titles[-1] == "Examples"
    assert titles[:-1] == [group for group in GROUPS if group in titles]
    if name == "train":
        assert titles[:-1] == list(GROUPS)


def test_every_option_of_a_fit_is_in_a_group(help_of):
    rest = help_of("train").split("\nOptions:\n")[1].split("\nExamples:")[0]
    assert rest.split() == ["-h,", "--help", "Show", "this", "message", "and", "exit."]


def imported_by(*words):
    code = (
        "import sys, majorant.cli; code = majorant.cli.run(sys.argv[1:]); "
        "print(code, *({name.partition('.')[0] for name in sys.modules}))"
    )
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    code, *modules = ended.stdout.splitlines()[-1].split()
    return int(code), set(modules)


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(words):
    code, modules = imported_by(*words)
    assert code == 0
    assert not modules & (HEAVY | {"numpy"})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "rows", "old"], 1),
        (["train", "rows", "new", "--report", "old"], 1),
        (["cv", "rows", "old"], 1),
        (["path", "rows", "old"], 1),
        (["predict", "rows", "m", "old"], 1),
        (["report", "rows", "m", "old"], 1),
        (["convert", "m", "old"], 1),
        (["train", "rows", "--lam", "-1"], 2),
        (["train", "rows", "--delta", "0"], 2),
        (["train", "rows", "--jobs", "0"], 2),
        (["train", "rows", "--solver", "magic"], 2),
        (["train", "rows", "-s", "0"], 2),
        (["train", "rows", "-v", "3", "--report", "x"], 2),
        (["train", "rows", "--class-weight", "1"], 2),
        (["cv", "rows", "--selection", "2se"], 2),
        (["path", "rows", "--ratio", "1"], 2),
        (["trian", "rows"], 2),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_what_is_refused_at_once_imports_nothing_heavy(tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    Path("old").write_text("precious")
    code, modules = imported_by(*words)
    assert code == expected
    assert not modules & (HEAVY | {"numpy"})


@pytest.mark.parametrize("option", ["--penalty", "--format"])
def test_names_of_penalties_and_formats_need_numpy_at_most(option):
    code, modules = imported_by("train", "rows", option, "nonsense")
    assert code == 2
    assert not modules & HEAVY


def test_names_of_options_are_those_of_the_package(capsys):
    assert set(SOLVERS) == {"auto", *Solver.registry}
    for option, names in (("--penalty", Potential.registry), ("--format", FORMATS)):
        assert run(["train", "rows", option, "nonsense"]) == 2
        assert f"is none of {', '.join(names)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--penalty", "hyperbolc"], "hyperbolic"),
        (["--solver", "Nwton"], "newton"),
        (["--format", "parkuet"], "parquet"),
        (["--multi-class", "jiont"], "joint"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_a_misspelt_value_is_answered_with_the_closest_one(capsys, words, meant):
    assert run(["train", "rows", *words]) == 2
    assert f"did you mean {meant!r}?" in capsys.readouterr().err
