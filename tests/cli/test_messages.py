"""Messages speak of options, name all columns that are wrong, and suggest the name that was meant."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from majorant import SparseSVC, SparseSVCCV
from majorant.cli.messages import OPTIONS, in_options
from majorant.datasets import read, write_libsvm
from majorant.errors import DataFileError
from majorant.estimators.parameters import declared

TABLE = """id,name,age,city,"last, first",outcome
1,bob,3,rome,4,x
2,al,4,oslo,5,y
3,cy,5,7,q,y
"""
ARGUMENT = re.compile(r"(?<![\w-])(\w+=|\w+_\w+)")


@pytest.fixture
def command(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    write_libsvm("rows.svm", X, np.where(X[:, 0] - X[:, 1] > 0, 1, -1))
    write_libsvm("small.svm", 1e-200 * X, np.where(X[:, 0] > 0, 1, -1))
    return lambda *words, code=0: run_command(*words, code=code).err


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["train", "rows.svm", "--lam", "inf"], 2, "--lam must be a float in the range"),
        (["train", "rows.svm", "--max-features", "2", "--penalty", "l2"], 1, "use e.g. --penalty l1."),
        (["train", "rows.svm", "--max-features", "2", "--checkpoint", "c"], 2, "--max-features makes many"),
        (["train", "rows.svm", "--class-weight", "1=0"], 1, "has no sample with a positive --class-weight."),
        (["train", "rows.svm", "--max-iter", "1"], 0, "--tol is 1.0e-06. Increase --max-iter, or the"),
        (
            ["train", "rows.svm", "--solver", "gradient", "--max-iter", "1"], 0,
            "Increase --max-iter, or use --solver auto.",
        ),
        (["train", "small.svm"], 1, "rescale the features, e.g. with --standardize."),
        (["path", "rows.svm", "--points", "3", "--max-iter", "1"], 0, "or end the path earlier (--ratio)."),
        (["cv", "rows.svm", "--points", "3", "--max-iter", "1"], 0, "Increase --max-iter, or take larger"),
        (["train", "table.csv"], 1, "Say so with --label;"),
        (["train", "rows.svm", "--drop", "x"], 1, "--label and --drop are for tables (--format says what"),
        (["train", "table.csv", "--no-header"], 1, "without a header, --label must be the number"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)  # fmt: skip
def test_errors_and_warnings_speak_of_options(command, words, code, message, memory):
    said = command(*words, *memory, code=code)
    assert message in said
    assert not ARGUMENT.findall(said.replace("lam=", "")), said


def test_every_argument_that_a_command_sets_has_an_option():
    set_here = {"cv", "format", "lambdas", "memory", "ratio"}
    known = declared(SparseSVC).keys() | declared(SparseSVCCV).keys()
    never = {"penalty_factor", "warmup", "warmup_solver", "zero_tol", "warm_start", "verbose"}
    assert known - never <= OPTIONS.keys() | set_here


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the file 'max_iter' and tol.csv", "the file 'max_iter' and tol.csv"),
        ("take a tol above 3", "take a --tol above 3"),
        ("use solver='auto'.", "use --solver auto."),
        ("the penalty and the step", "the penalty and the step"),
        ("leave it out with drop=['a', 'b'] (--drop a,b)", "leave it out with --drop a,b"),
    ],
)
def test_translation_leaves_names_and_words_alone(text, expected):
    assert in_options(text) == expected


def test_columns_named_like_arguments_stay_as_they_are(command):
    Path("odd.csv").write_text("max_iter,label\n1,2\n")
    assert "no column 'max_itre' to drop; did you mean 'max_iter'?" in command(
        "train", "odd.csv", "--drop", "max_itre", code=1
    )


# Columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_all_columns_with_text_are_named_with_an_option_that_leaves_them_out(command, name, memory):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="needs pyarrow (pip install 'majorant[tables]')")
        import pandas as pd

        pd.read_csv("table.csv").to_parquet(name)
    said = command("train", name, "m", "--label", "outcome", *memory, code=1)
    assert all(f"'{column}'" in said for column in ("name", "city", "last, first"))
    option = re.search(r"(--drop .*)$", said, flags=re.MULTILINE)[1]
    assert option == """--drop 'name,city,"last, first"'"""
    command("train", name, "m", "--label", "outcome", *shlex.split(option), *memory)


def test_one_column_with_text_is_named_with_its_place(command):
    said = command("train", "table.csv", "--label", "outcome", "--drop", "name, city", code=1)
    assert "table.csv:4:10: 'q' in the column 'last, first' is not a number" in said
    assert """make features of categories with --one-hot '"last, first"'""" in said
    assert """leave the column out with --drop '"last, first"'""" in said


def test_python_is_told_of_its_own_argument(command):
    with pytest.raises(DataFileError, match=r"with drop=\['name', 'city', 'last, first'\] \(--drop "):
        read("table.csv", label="outcome")


@pytest.mark.parametrize(
    "drop",
    [
        ["--drop", "name,city", "--drop", '"last, first"'],
        ["--drop", 'name,"last, first", city'],
        ["--drop", "name", "--drop", "city", "--drop", '"last, first"'],
    ],
    ids=" ".join,
)
def test_drop_takes_several_columns(command, drop):
    command("train", "table.csv", "m", "--label", "outcome", *drop)
    Path("bare.csv").write_text("\n".join(TABLE.splitlines()[1:]) + "\n")
    command("train", "bare.csv", "n", "--no-header", "--label", "-1", "--drop", "1,3,4")


def test_a_column_without_a_name_can_be_left_out_as_the_message_says(command):
    Path("odd.csv").write_text("a,,b,,label\n1,2,3,4,5\n2,3,4,5,6\n")
    said = command("train", "odd.csv", "m", code=1)
    option = re.search(r"(--drop .*)$", said, flags=re.MULTILINE)[1]
    command("train", "odd.csv", "m", *shlex.split(option))


# What was meant --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (
            ["train", "table.csv", "--label", "name", "--drop", 'city,"last, first",outcome', "-wbo", "2"],
            "bob",
        ),
        (["convert", "labels.csv", "x.svm", "--number", "il=1"], "ill"),
    ],
    ids=["class weight", "number"],
)
def test_a_misspelt_class_is_answered_with_the_closest_one(command, words, meant):
    Path("labels.csv").write_text("a,y\n1,ill\n2,well\n")
    assert f"did you mean {meant!r}?" in command(*words, code=2)


@pytest.mark.parametrize("memory", [[], ["--memory", "1MB"]], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["train", "table.csv", "--label", "Outcom"], "outcome"),
        (["train", "table.csv", "--label", "outcome", "--drop", "nmae"], "name"),
        (["train", "a1"], "a1a"),
        (["train", "./row.svm"], "rows.svm"),
        (["predict", "rows.svm", "tabel.csv"], "table.csv"),
        (["predict", "renamed.csv", "m"], "Age"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_a_misspelt_name_is_answered_with_the_closest_one(command, words, meant, memory):
    command("train", "table.csv", "m", "--label", "outcome", "--drop", 'name,city,"last, first"', "-c", "100")
    Path("renamed.csv").write_text(TABLE.replace("age", "Age"))
    assert f"did you mean {meant!r}?" in command(*words, *memory, code=1)
