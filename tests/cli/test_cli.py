"""The command line, from data files to models, predictions and reports."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import majorant
from majorant import SparseSVC, SparseSVCCV
from majorant.cli import run
from majorant.cli.fitting import weights_by_class
from majorant.cli.liblinear import translated
from majorant.datasets import load, read, write_libsvm
from majorant.demo import run_demo
from majorant.persistence import load_model

COMMANDS = ["train", "predict", "path", "cv", "inspect", "report", "convert", "datasets", "reproduce", "demo"]


def make_rows(seed, n=80, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) * [1.0, 3.0, 0.1, 1.0, 1.0, 1.0]
    scores = X[:, :3] / [1.0, 3.0, 0.1] + 0.3 * rng.standard_normal((n, 3))
    y = np.argmax(scores, axis=1) if classes == 3 else np.where(scores[:, 0] > scores[:, 1], 1, -1)
    return np.where(rng.random(X.shape) < 0.2, 0.0, X), y


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("rows.txt", 0), ("test.txt", 1)):
        write_libsvm(name, *make_rows(seed))
    write_libsvm("three.txt", *make_rows(2, classes=3))
    X, y = make_rows(0)
    lines = ["age,weight,h,d,e,<f>,outcome"]
    lines += [
        ",".join(map(repr, row)) + f",{'ill' if label > 0 else 'well'}"
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    Path("table.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def command(here, run_command):
    """Run a command; its output, or its messages if it should end with another code than 0."""

    def call(*words, code=0):
        printed = run_command(*words, code=code)
        return printed.err if code else printed.out

    return call


# The whole way ---------------------------------------------------------------------------------


def test_from_text_to_predictions_is_what_python_says(command):
    command("train", "rows.txt", "m", "--penalty", "l1", "--lam", "2")
    line = command("predict", "test.txt", "m", "out")
    rows, test = read("rows.txt"), read("test.txt")
    model = SparseSVC("l1", lam=2.0, random_state=0).fit(rows.X, rows.y)
    loaded = load_model("m")
    assert loaded.coef_.tobytes() == model.coef_.tobytes()
    assert loaded.intercept_.tobytes() == model.intercept_.tobytes()
    predicted = model.predict(test.X)
    assert Path("out").read_text() == "".join(f"{label}\n" for label in predicted)
    right = int(np.sum(predicted == test.y))
    assert line.splitlines()[-1] == f"Accuracy = {100 * right / 80:g}% ({right}/80)"


def test_a_table_keeps_names_and_text_labels(command):
    said = command("train", "table.csv", "--label", "outcome", "--lam", "3")
    assert "of class ill" in said
    model = load_model("table.csv.model")
    assert list(model.classes_) == ["ill", "well"]
    assert list(model.feature_names_in_) == ["age", "weight", "h", "d", "e", "<f>"]
    assert "(" in command("predict", "table.csv", "table.csv.model", "--label", "outcome")
    assert "age" in command("inspect", "table.csv.model")


def test_columns_are_found_by_name(command):
    command("train", "table.csv", "m", "--label", "outcome")
    whole = command("predict", "table.csv", "m", "-", "--label", "outcome")
    lines = [line.split(",") for line in Path("table.csv").read_text().splitlines()]
    shuffled = [",".join([*reversed(line), "7" if k else "unknown"]) for k, line in enumerate(lines)]
    Path("shuffled.csv").write_text("\n".join(shuffled) + "\n")
    assert command("predict", "shuffled.csv", "m", "-", "--label", "outcome") == whole
    Path("short.csv").write_text("\n".join(",".join(line[1:]) for line in lines) + "\n")
    assert "no column 'age'" in command("predict", "short.csv", "m", "--label", "outcome", code=1)


def test_standardized_features_are_taken_as_they_are(command):
    command("train", "rows.txt", "m", "--standardize", "--lam", "2")
    rows = read("rows.txt")
    X = rows.X.toarray()
    deviations = X.std(axis=0)
    model = SparseSVC(lam=2.0).fit(X / deviations, rows.y)
    np.testing.assert_allclose(load_model("m").coef_, model.coef_ / deviations, rtol=1e-6, atol=1e-12)


def test_unknown_features_of_text_are_left_out_and_missing_ones_are_zero(command):
    command("train", "rows.txt", "m")
    Path("wide.txt").write_text("1 1:1 9:5\n-1 2:1\n")
    Path("narrow.txt").write_text("1 1:1\n-1 2:1\n")
    assert command("predict", "wide.txt", "m", "-") == command("predict", "narrow.txt", "m", "-")


def test_many_classes(command):
    for how in ("ovr", "joint"):
        command("train", "three.txt", how, "--multi-class", how)
        assert load_model(how).coef_.shape == (3, 6)
        assert "Accuracy = " in command("predict", "three.txt", how)
        assert "towards 2" in command("inspect", how)


def test_data_without_labels_go_to_stdout(command):
    command("train", "table.csv", "m", "--label", "outcome")
    lines = Path("table.csv").read_text().splitlines()
    Path("new.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    printed = command("predict", "new.csv", "m")
    assert set(printed.split()) == {"ill", "well"}
    assert len(printed.splitlines()) == 80


def test_scores_follow_the_labels(command):
    command("train", "rows.txt", "m")
    rows = read("rows.txt")
    model = load_model("m")
    for line, score in zip(
        command("predict", "rows.txt", "m", "-", "--scores").splitlines(),
        model.decision_function(rows.X),
        strict=True,
    ):
        label, value = line.split()
        assert float(value) == score
        assert int(label) == (1 if score > 0 else -1)


@pytest.mark.slow
def test_stdin(here):
    text = (here / "rows.txt").read_bytes()
    trained = subprocess.run(
        [sys.executable, "-m", "majorant", "train", "-", "m"], input=text, cwd=here, capture_output=True
    )
    assert trained.returncode == 0, trained.stderr
    assert (here / "m").exists()


# LIBLINEAR's flags -----------------------------------------------------------------------------


def test_liblinears_flags_mean_what_they_say(command):
    command(
        "train",
        "-s",
        "5",
        "-c",
        "0.5",
        "-B",
        "-1",
        "-w1",
        "2",
        "-w-1",
        "0.5",
        "-e",
        "1e-8",
        "-q",
        "rows.txt",
        "m",
    )
    rows = read("rows.txt")
    model = SparseSVC(
        "l1", lam=2.0, fit_intercept=False, class_weight={1: 2.0, -1: 0.5}, tol=1e-8, random_state=0
    ).fit(rows.X, rows.y)
    assert load_model("m").coef_.tobytes() == model.coef_.tobytes()
    assert load_model("m").intercept_ == 0.0


@pytest.mark.parametrize("kind", [1, 2])
def test_liblinears_ridge(command, kind):
    command("train", "-s", kind, "-c", "4", "rows.txt", "m")
    assert load_model("m").penalty == "l2"
    assert load_model("m").lam == 0.25


def test_cross_validation_as_liblinear_says_it(command):
    said = command("train", "-v", "4", "-q", "rows.txt")
    assert said.startswith("Cross Validation Accuracy = ")
    assert said.endswith("%\n")
    assert not Path("rows.txt.model").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-s", "0"], "logistic"),
        (["-s", "99"], "99"),
        (["-s", "5", "--penalty", "l1"], "not both"),
        (["-c", "1", "--lam", "1"], "not both"),
        (["-c", "0"], "positive"),
        (["-B", "1", "--no-intercept"], "not both"),
        (["-w7", "2"], "7=2"),
        (["--class-weight", "1"], "LABEL=WEIGHT"),
        (["--class-weight", "1=x"], "LABEL=WEIGHT"),
        (["--class-weight", "1=-2"], "LABEL=WEIGHT"),
        (["-v", "0"], "-v"),
        (["-v", "3", "--report", "x.html"], "only measures"),
        (["--penalty", "l3"], "l3"),
        (["--lam", "-1"], "lam"),
        (["--tol", "-1"], "tol"),
        (["--max-iter", "0"], "--max-iter"),
        (["--multi-class", "all"], "none of ovr, joint"),
        (["--solver", "magic"], "magic"),
        (["--bogus"], "bogus"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_wrong_words_end_with_code_2_and_write_nothing(command, words, message):
    assert message in command("train", "rows.txt", *words, code=2)
    assert not Path("rows.txt.model").exists()


def test_weights_of_labels_as_they_are_typed():
    assert weights_by_class([], [1, 2]) is None
    assert weights_by_class(["balanced"], [1, 2]) == "balanced"
    assert weights_by_class(["+1=2", "2.0=3"], [1, 2]) == {1: 2.0, 2: 3.0}
    assert weights_by_class(["a=b=3"], ["a=b"]) == {"a=b": 3.0}


def test_only_flags_before_the_double_dash_are_translated():
    assert translated(["train", "-w1", "2", "--", "-w1", "x"]) == [
        "train", "--class-weight", "1=2", "--", "-w1", "x",
    ]  # fmt: skip
    assert translated(["-w1"]) == ["-w1"]


# The other commands ----------------------------------------------------------------------------


def test_path(command):
    said = command("path", "rows.txt", "coefs.csv", "--penalty", "l1", "--points", "7")
    assert len([line for line in said.splitlines() if "e-" in line or "0.0e+00" in line]) == 7
    lines = Path("coefs.csv").read_text().splitlines()
    assert lines[0].startswith("lam,class,intercept,x1")
    assert len(lines) == 8


def test_path_of_many_classes(command):
    command("path", "three.txt", "coefs.csv", "--points", "3", "--standardize")
    assert len(Path("coefs.csv").read_text().splitlines()) == 1 + 3 * 3


def test_cross_validation_chooses_a_strength(command):
    said = command(
        "cv", "rows.txt", "m", "--penalty", "l1", "--points", "10", "--selection", "1se", "--folds", "3"
    )
    assert "Cross-validated accuracy" in said
    model = load_model("m")
    assert isinstance(model, SparseSVCCV)
    assert model.lam_ == model.lam_1se_
    assert "Accuracy = " in command("predict", "test.txt", "m")


def test_inspect_shows_where_a_model_came_from(command):
    command("train", "rows.txt", "m", "--penalty", "l1")
    said = command("inspect", "m", "--top", "2")
    assert read("rows.txt").sha256 in said
    assert "majorant train rows.txt m --penalty l1" in said
    assert "more (--top" in said


@pytest.mark.parametrize(
    "words",
    [
        ["train", "rows.txt", "n", "--report", "r"],
        ["cv", "rows.txt", "n", "--points", "3", "--report", "r"],
        ["path", "rows.txt", "n", "--points", "3"],
        ["inspect", "m"],
        ["predict", "rows.txt", "m", "out"],
        ["report", "rows.txt", "m", "r"],
        ["convert", "m", "n"],
    ],
    ids=lambda words: words[0],
)
def test_names_are_made_once_for_each_feature(command, monkeypatch, words):
    """They were made again for all features as often as there are features in use: minutes, of 60,000."""
    command("train", "rows.txt", "m", "--penalty", "l2")  # uses all of them
    made = []
    monkeypatch.setattr("majorant.cli.models.counted_name", lambda j: made.append(j) or f"x{j + 1}")
    command(*words)
    assert len(made) <= read("rows.txt").X.shape[1]


@pytest.mark.parametrize("words", [["inspect", "m"], ["predict", "rows.txt", "m", "out"]])
def test_a_model_is_read_once(command, monkeypatch, words):
    command("train", "rows.txt", "m")
    calls = []
    for name in ("store.read_limited", "strict.parse", "document.checksum"):
        module = importlib.import_module(f"majorant.persistence.{name.split('.')[0]}")
        real = getattr(module, name.split(".")[1])
        counted = lambda *given, real=real, name=name: calls.append(name) or real(*given)  # noqa: E731
        monkeypatch.setattr(module, name.split(".")[1], counted)
    command(*words)
    assert sorted(calls) == ["document.checksum", "store.read_limited", "strict.parse"]


def test_report_of_a_training_and_of_a_model_file(command):
    command("train", "table.csv", "m", "--label", "outcome", "--test", "table.csv", "--report", "first.html")
    command("report", "table.csv", "m", "second.html", "--label", "outcome")
    for name in ("first.html", "second.html"):
        text = Path(name).read_text()
        assert "&lt;f&gt;" in text
        assert "<f>" not in text


def test_conversions(command):
    command("train", "rows.txt", "m", "--penalty", "l1")
    assert "(liblinear)" in command("convert", "m", "theirs")
    assert Path("theirs").read_text().startswith("solver_type")
    assert "(majorant)" in command("convert", "theirs", "back")
    assert "(onnx)" in command("convert", "m", "m.onnx")
    ours = command("predict", "test.txt", "m", "-")
    assert command("predict", "test.txt", "theirs", "-") == ours
    assert command("predict", "test.txt", "back", "-") == ours
    command("convert", "rows.txt", "copy.txt.gz")
    assert read("copy.txt.gz").sha256 == read("rows.txt").sha256


@pytest.mark.parametrize("words", [["m", "x", "--to", "libsvm"], ["rows.txt", "x", "--to", "onnx"]])
def test_what_cannot_be_converted_is_said(command, words):
    command("train", "rows.txt", "m")
    assert "cannot become" in command("convert", *words, code=1)
    assert not Path("x").exists()


def test_datasets_are_listed(command, monkeypatch):
    monkeypatch.setenv("MAJORANT_DATA", str(Path.cwd()))
    said = command("datasets")
    for name in ("a1a", "w8a", "cina0", "news20"):
        assert name in said


@pytest.mark.parametrize("name", ["train", "cv", "path"])
def test_every_command_that_trains_takes_weights_of_classes(command, name):
    options = ["--points", "3"] if name != "train" else []
    command(name, "rows.txt", "plain", *options)
    command(name, "rows.txt", "weighed", *options, "-w1", "5", "--class-weight", "-1=0.5")
    assert Path("plain").read_text() != Path("weighed").read_text()


def test_labels_of_text_and_of_numbers_are_compared_as_text(command):
    """A CSV file cannot say which is meant: 0 and 1 are text if a third label is."""
    lines = Path("table.csv").read_text().replace("ill", "0").replace("well", "1").splitlines()
    Path("numbers.csv").write_text("\n".join(lines) + "\n")
    Path("texts.csv").write_text("\n".join([*lines, "9,9,9,9,9,9,unknown"]) + "\n")
    options = ["--label", "outcome"]
    command("train", "texts.csv", "m", "--test", "numbers.csv", "--report", "r.html", *options)
    facts = json.loads(command("train", "texts.csv", "n", "--test", "numbers.csv", "--json", *options))
    predicted = json.loads(command("predict", "numbers.csv", "m", "--json", *options))
    assert facts["test_accuracy"] == predicted["accuracy"] > 0.5


def test_tables_without_a_header(command):
    lines = Path("table.csv").read_text().splitlines()[1:]
    Path("bare.csv").write_text("\n".join(lines) + "\n")
    for position in ("6", "-1"):
        command("train", "bare.csv", f"m{position}", "--no-header", "--label", position)
    assert load_model("m6").coef_.tobytes() == load_model("m-1").coef_.tobytes()


def test_models_of_liblinear_and_onnx_are_inspected_reported_and_converted(command):
    command("train", "rows.txt", "m", "--penalty", "l1")
    for target in ("theirs", "m.onnx"):
        command("convert", "m", target)
        assert "lam nan" not in command("inspect", target)
        command("report", "rows.txt", target, f"{target}.html")
        command("convert", target, f"{target}.back")
        assert command("predict", "test.txt", f"{target}.back", "-") == command(
            "predict", "test.txt", "m", "-"
        )


def test_a_path_on_which_nothing_is_selected(command):
    Path("flat.txt").write_text("1 1:1\n-1 1:1\n" * 5)
    command("path", "flat.txt", "out.csv", "--points", "1", "--penalty", "l1")
    assert Path("out.csv").read_text().startswith("lam,class,intercept\n")


def test_options_of_files_are_refused_where_a_name_is_meant(command):
    assert "known by name" in command("train", "a1a", "--label", "x", code=2)


@pytest.mark.parametrize(
    "words",
    [
        ["train", "./rows.txt", "rows.txt"],
        ["train", "rows.txt", "m2", "--report", "m2"],
        ["predict", "rows.txt", "m", "m"],
        ["report", "rows.txt", "m", "rows.txt"],
        ["convert", "rows.txt", "rows.txt"],
        ["path", "rows.txt", "rows.txt"],
    ],
    ids=" ".join,
)
def test_an_input_is_never_overwritten(command, words):
    command("train", "rows.txt", "m")
    before = Path("rows.txt").read_bytes(), Path("m").read_bytes()
    assert "cannot be both" in command(*words, "--force", code=1)
    assert before == (Path("rows.txt").read_bytes(), Path("m").read_bytes())


def test_labels_that_the_model_does_not_know(command, capsys):
    command("train", "table.csv", "m", "--label", "outcome")
    Path("other.csv").write_text(Path("table.csv").read_text().replace("ill", "a").replace("well", "b"))
    assert run(["predict", "other.csv", "m", "--label", "outcome"]) == 0
    assert "is a class of the model" in capsys.readouterr().err
    assert "the model does not know" in command("report", "other.csv", "m", "--label", "outcome", code=1)
    words = ["train", "table.csv", "n", "--label", "outcome", "--test", "other.csv"]
    assert "does not have" in command(*words, code=1)


def test_text_from_files_does_not_steer_the_terminal(command):
    text = Path("table.csv").read_text().replace("age", "\x1b[31mage\x07").replace("ill", "\x1b]0;x\x07ill")
    Path("hostile.csv").write_text(text)
    said = command("train", "hostile.csv", "m", "--label", "outcome")
    said += command("inspect", "m") + command("predict", "hostile.csv", "m", "--label", "outcome")
    assert "\x1b" not in said
    assert "\x07" not in said


def test_errors_with_their_traceback_for_developers(here, monkeypatch):
    monkeypatch.setenv("MAJORANT_DEBUG", "1")
    with pytest.raises(ValueError, match="nowhere"):
        run(["train", "nowhere"])


# Output ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["train", "rows.txt", "other", "--test", "test.txt", "--report", "r.html"],
        ["train", "rows.txt", "-v", "3"],
        ["predict", "test.txt", "m"],
        ["predict", "test.txt", "m", "out", "--scores"],
        ["path", "rows.txt", "--points", "3"],
        ["cv", "rows.txt", "other", "--points", "3"],
        ["inspect", "m"],
        ["report", "rows.txt", "m"],
        ["convert", "m", "theirs"],
        ["datasets"],
    ],
    ids=lambda words: words[0],
)
def test_json_is_all_there_is(command, words):
    command("train", "rows.txt", "m")
    assert isinstance(json.loads(command(*words, "--json")), dict)


def test_json_of_a_training(command):
    facts = json.loads(command("train", "rows.txt", "m", "--json", "--penalty", "welsch"))
    assert facts["gap"] is None
    assert facts["model"] == "m"
    assert facts["data"]["rows"] == 80
    assert facts["converged"] is True


def test_a_fit_that_does_not_converge_warns_and_still_writes(command, capsys):
    command("train", "rows.txt", "m", "--max-iter", "1")
    assert run(["train", "rows.txt", "n", "--max-iter", "1"]) == 0
    assert "warning: " in capsys.readouterr().err
    assert Path("n").exists()


def test_quiet(command):
    assert command("train", "rows.txt", "m", "-q") == ""
    assert command("predict", "test.txt", "m", "out", "-q").startswith("Accuracy = ")


@pytest.mark.parametrize(
    "words",
    [
        ["train", "rows.txt", "old"],
        ["train", "rows.txt", "new", "--report", "old"],
        ["cv", "rows.txt", "old"],
        ["predict", "rows.txt", "m", "old"],
        ["path", "rows.txt", "old"],
        ["report", "rows.txt", "m", "old"],
        ["convert", "m", "old"],
    ],
    ids=lambda words: words[0],
)
def test_files_that_exist_are_left_alone_without_force(command, words):
    command("train", "rows.txt", "m")
    Path("old").write_text("precious")
    assert "--force replaces it" in command(*words, code=1)
    assert Path("old").read_text() == "precious"
    assert not Path("new").exists()
    command(*words, "--force")
    assert Path("old").read_text() != "precious"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "nowhere.txt"], "nowhere.txt"),
        (["train", "broken.txt"], "broken.txt:2:3"),
        (["train", "table.csv"], "--label"),
        (["train", "rows.txt", "no/such/place"], "no directory"),
        (["train", "one.txt"], "class"),
        (["predict", "rows.txt", "nowhere"], "nowhere"),
        (["predict", "rows.txt", "rows.txt"], "rows.txt"),
        (["predict", "table.csv", "m", "--label", "outcome", "--drop", "age"], "5 features"),
        (["inspect", "empty"], "empty"),
        (["convert", "nowhere", "x"], "nowhere"),
        (["report", "nowhere.txt", "m", "x.html"], "nowhere.txt"),
        (["datasets", "nonsense"], "nonsense"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else None,
)
def test_errors_are_one_sentence(command, words, message):
    command("train", "rows.txt", "m")
    Path("broken.txt").write_text("1 1:2\n1 x:3\n")
    Path("one.txt").write_text("1 1:2\n1 1:3\n")
    Path("empty").write_text("")
    said = command(*words, code=1)
    assert [line.startswith("error: ") for line in said.splitlines()][-1]
    assert said.count("error: ") == 1
    assert message in said.splitlines()[-1]


# The program -----------------------------------------------------------------------------------


def test_help_names_the_commands(command):
    said = command("--help")
    for name in COMMANDS:
        assert f"\n  {name} " in said


def test_version(command):
    assert command("--version").strip() == f"majorant {majorant.__version__}"


@pytest.mark.parametrize("words", [["nonsense"], ["demo", "--lam", "-1"], ["demo", "--lam", "inf"]])
def test_wrong_words_are_refused(command, words):
    command(*words, code=2)


def test_the_module_is_a_command():
    ended = subprocess.run([sys.executable, "-m", "majorant", "--version"], capture_output=True, text=True)
    assert ended.stdout.strip() == f"majorant {majorant.__version__}"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(here, command):
    command("train", "rows.txt", "m")
    ended = subprocess.run(
        f"{sys.executable} -m majorant inspect m | true", shell=True, cwd=here, capture_output=True, text=True
    )
    assert ended.returncode == 0
    assert ended.stderr == ""


@pytest.mark.slow
def test_ctrl_c_keeps_the_last_iterate(here):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 200))
    write_libsvm(here / "large.txt", X, np.where(X[:, 0] + rng.standard_normal(4000) > 0, 1, -1))
    process = subprocess.Popen(
        [
            sys.executable, "-m", "majorant", "train", "large.txt", "m",
            "--solver", "sgd", "--max-iter", "100000000",
        ],
        cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    assert process.stderr.readline()  # the first line of progress: training has begun
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "last iterate is kept" in out
    assert load_model(here / "m").coef_.any()


# The demo --------------------------------------------------------------------------------------


def test_demo_shows_features_scores_and_times_and_writes_a_report(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    said = command("demo")
    for word in ("worst radius", "accuracy", "LinearSVC", "fit time", "duality gap", "The model uses"):
        assert word in said
    assert str(Path("majorant-demo.html").resolve()) in said
    assert "worst radius" in Path("majorant-demo.html").read_text()


@pytest.mark.parametrize("lam", [0.0, 1e6])
def test_demo_survives_the_extremes(lam, tmp_path):
    with open(os.devnull, "w") as nowhere:
        model = run_demo(lam, Console(file=nowhere), tmp_path / "demo.html")
    assert model.coef_.shape == (1, 30)
    assert (tmp_path / "demo.html").exists()


@pytest.mark.slow
def test_demo_on_a_terminal_without_unicode(tmp_path):
    environment = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    subprocess.run(
        [sys.executable, "-m", "majorant", "demo"],
        env=environment, check=True, stdout=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip


# Real data -------------------------------------------------------------------------------------


@pytest.mark.data
def test_a1a_from_text_to_predictions_and_to_liblinear(data_dir, tmp_path, monkeypatch):
    """Three commands, equal to Python bit for bit; and LIBLINEAR's own program says the same line."""
    if shutil.which("liblinear-predict") is None:
        pytest.skip("needs LIBLINEAR's programs (Debian: apt install liblinear-tools)")
    monkeypatch.chdir(tmp_path)
    for name in ("a1a", "a1a.t"):
        data = load(name)
        write_libsvm(name, data.X, data.y)
    shell = (
        "majorant train a1a m --penalty l1 --lam 2 -q && majorant predict a1a.t m out -q "
        "&& majorant convert m theirs -q"
    )
    commands = shell.replace("majorant", f"{sys.executable} -m majorant")
    ended = subprocess.run(commands, shell=True, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    rows, test = read("a1a"), read("a1a.t")
    model = SparseSVC("l1", lam=2.0, random_state=0).fit(rows.X, rows.y)
    assert load_model("m").coef_.tobytes() == model.coef_.tobytes()
    assert load_model("m").intercept_.tobytes() == model.intercept_.tobytes()
    predicted = model.predict(test.X[:, : rows.X.shape[1]])
    assert Path("out").read_text() == "".join(f"{label}\n" for label in predicted)
    theirs = subprocess.run(["liblinear-predict", "a1a.t", "theirs", "out2"], capture_output=True, text=True)
    assert theirs.stdout == ended.stdout
    assert Path("out2").read_text() == Path("out").read_text()
