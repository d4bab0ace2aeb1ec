"""The second day of a user: what people do after the first fit, in a shell and in Python.

Files are made as people make them, commands run in a shell, and what is asserted is what a person would see.
"""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from majorant import SparseSVC, SparseSVCCV, load_model, report, save_model
from tests.processes import environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

CANCER = load_breast_cancer(as_frame=True)
PATIENTS = "--label outcome --drop patient"
PYTHON = shlex.quote(sys.executable)
MAJORANT = f"{PYTHON} -m majorant"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with a table as pandas writes it, and a model of that table."""
    folder = tmp_path_factory.mktemp("day")
    frame = CANCER.data.assign(outcome=np.where(CANCER.target == 1, "benign", "malignant"))
    frame.insert(0, "patient", [f"P{k:04d}" for k in range(len(frame))])
    frame[:400].to_csv(folder / "patients.csv", index=False)
    frame[400:].to_csv(folder / "later.csv", index=False)
    sh(
        folder,
        f"majorant train patients.csv m.json {PATIENTS} --standardize --penalty l1 --lam 20 -q",
    )
    return folder


def sh(folder, line, code=0):
    """What a person sees of a command line, and the exit status that is expected."""
    line = re.sub(r"\bmajorant\b(?= [a-z-])", MAJORANT.replace("\\", r"\\"), line)
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment(COLUMNS="100"), capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


def used_columns(folder):
    model = load_model(folder / "m.json")
    return list(model.feature_names_in_[model.support_])


def test_a_label_that_is_not_named_is_asked_for(folder):
    said = sh(folder, "majorant train patients.csv other.json --drop patient --label outcom", code=1)
    assert "no column 'outcom' for the labels; did you mean 'outcome'?" in said


def test_all_columns_of_text_are_named_at_once(folder):
    frame = pd.read_csv(folder / "patients.csv").assign(ward=list("ab") * 200)
    frame.to_csv(folder / "wards.csv", index=False)
    said = sh(folder, "majorant train wards.csv other.json --label outcome", code=1)
    assert "'patient'" in said
    assert "'ward'" in said
    assert "--drop patient,ward" in said
    assert "drop=" not in said
    sh(folder, f"majorant train wards.csv wards.json {PATIENTS},ward --standardize")


def test_only_the_columns_in_use_are_needed(folder):
    used = used_columns(folder)
    assert len(used) < 15
    later = pd.read_csv(folder / "later.csv")
    later[[*used, "outcome"]].to_csv(folder / "few.csv", index=False)
    whole = sh(folder, "majorant predict later.csv m.json --drop patient whole.txt")
    assert "Accuracy = 9" in whole
    sh(folder, "majorant predict few.csv m.json few.txt")
    assert (folder / "few.txt").read_text() == (folder / "whole.txt").read_text()
    sh(folder, "majorant report few.csv m.json few.html")
    unused = next(name for name in CANCER.data.columns if name not in used)
    later.loc[3, unused] = np.nan
    later.to_csv(folder / "holes.csv", index=False)
    sh(folder, "majorant predict holes.csv m.json holes.txt")
    assert (folder / "holes.txt").read_text() == (folder / "whole.txt").read_text()


def test_a_missing_column_in_use_is_named(folder):
    used = used_columns(folder)
    later = pd.read_csv(folder / "later.csv").drop(columns=used[0])
    later.to_csv(folder / "without.csv", index=False)
    assert f"{used[0]!r}" in sh(folder, "majorant predict without.csv m.json", code=1)


def test_python_needs_only_the_columns_in_use(folder):
    model, used = load_model(folder / "m.json"), used_columns(folder)
    later = pd.read_csv(folder / "later.csv")
    assert np.array_equal(model.predict(later[used]), model.predict(later[CANCER.data.columns]))


def test_names_of_many_features_are_built_once(folder):
    """Once for each feature in use, they would take minutes for 60,000 features."""
    rows = [f"{k % 2 * 2 - 1} {1 + k % 7}:1 {60000 + k}:2" for k in range(300)]
    (folder / "wide.svm").write_text("\n".join(rows) + "\n")
    for words in (["train", "wide.svm", "wide.model", "--penalty", "l2"], ["inspect", "wide.model"]):
        counting = f"""
            from majorant.cli import models, run
            made, name = [], models.counted_name
            models.counted_name = lambda j: made.append(j) or name(j)
            run({words!r})
            print("names:", len(made))
        """
        said = sh(folder, f"{PYTHON} -c {shlex.quote(textwrap.dedent(counting))}")
        assert int(said.split("names:")[1]) <= 60_300


def test_a_usage_error_is_answered_before_anything_is_imported(folder):
    for words, message in (
        (["train", "patients.csv", "m.json"], "exists already"),
        (["train", "patients.csv", "--solver", "newten"], "did you mean 'newton'"),
        (["train", "patients.csv", "--impute", "mode"], "none of median, mean"),
        (["predict", "later.csv", "m.json", "--impute", "mean"], "No such option"),
    ):
        looking = f"import sys, majorant.cli as c; c.run({words!r}); print('numpy' in sys.modules)"
        said = sh(folder, f"{PYTHON} -c {shlex.quote(looking)} 2>&1")
        assert message in said
        assert "False" in said.splitlines()


def test_what_is_delivered_is_what_is_certified():
    X, y = CANCER.data.to_numpy(), CANCER.target
    model = SparseSVC(lam=1e3).fit(X, y)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    loss = np.sum(np.maximum(0.0, 1.0 - margins) ** 2)
    phi = loss + 1e3 * np.sum(np.hypot(model.coef_, 1e-9))
    assert np.isclose(model.objective_, phi, rtol=1e-12)
    assert model.converged_
    assert (phi - model.lower_bound_) / phi <= 1.1e-6
    assert np.array_equal(model.support_, SparseSVC("l1", lam=1e3).fit(X, y).support_)


def test_a_huge_strength_has_the_intercept_of_l1():
    X, y = CANCER.data.to_numpy(), CANCER.target
    huge, sharp = (SparseSVC(penalty, lam=1e12).fit(X, y) for penalty in ("hyperbolic", "l1"))
    assert np.isclose(huge.intercept_, sharp.intercept_, rtol=1e-6)
    assert huge.converged_


def test_a_model_comes_through_a_pipe(folder):
    plain = sh(folder, "majorant inspect m.json")
    assert sh(folder, "cat m.json | majorant inspect -") == plain
    assert sh(folder, "mkfifo pipe; cat m.json > pipe & majorant inspect pipe") == plain
    assert "patients.csv" in sh(folder, "majorant inspect <(cat m.json)")
    said = sh(folder, "majorant predict <(cat later.csv) m.json", code=1)
    assert said.rstrip().endswith("for a table with commas say --format csv")
    assert "Accuracy = 9" in sh(folder, "cat m.json | majorant predict later.csv - p.txt --drop patient -f")


def test_a_file_without_a_header_is_remembered(folder):
    rows = pd.read_csv(folder / "patients.csv")[["outcome", *CANCER.data.columns[:3]]]
    rows.to_csv(folder / "plain.csv", index=False, header=False)
    rows.drop(columns="outcome").to_csv(folder / "new.csv", index=False, header=False)
    said = sh(folder, "majorant train plain.csv plain.json --no-header --label 0 --standardize --lam 1e-3")
    assert "400 rows × 3 features" in said
    assert "column 3" in sh(folder, "majorant inspect plain.json")
    assert "400 rows" in sh(folder, "majorant predict plain.csv plain.json plain.txt")
    assert len((folder / "plain.txt").read_text().splitlines()) == 400
    sh(folder, "majorant predict new.csv plain.json new.txt")
    assert (folder / "new.txt").read_text() == (folder / "plain.txt").read_text()
    train = "majorant train plain.csv blocks.json --no-header --label 0 --standardize --lam 1e-3"
    assert "400 rows × 3 features" in sh(folder, f"{train} --memory 1MB")
    models = [load_model(folder / name) for name in ("blocks.json", "plain.json")]
    assert list(models[0].feature_names_in_) == ["column 1", "column 2", "column 3"]
    assert np.allclose(models[0].coef_, models[1].coef_, rtol=1e-3)


def test_the_edge_of_the_grid_is_told(folder):
    said = sh(folder, f"majorant cv patients.csv edge.json {PATIENTS} --penalty l1 --points 10")
    assert "at the smallest strength of the grid" in said
    assert "--standardize" in said
    assert "standardize=True" not in said
    better = sh(
        folder,
        f"majorant cv patients.csv edge.json -f {PATIENTS} --penalty l1 --points 10 --standardize",
    )
    assert "smallest strength" not in better


def test_an_interrupted_model_says_so(folder):
    X = np.random.default_rng(0).standard_normal((4000, 300))
    labels = np.argmax(X[:, :20] + 0.5 * X[:, 20:40], axis=1)
    np.savez(folder / "slow.npz", X=X, y=labels)
    words = f"{MAJORANT} train slow.npz slow.json --solver gradient --tol 1e-14 --max-iter 100000"
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        shlex.split(words), cwd=folder, env=environment(TERM="xterm"), stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    while b"iteration" not in shown:  # the bar of the progress: the fit has begun
        shown += os.read(screen, 1 << 16)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):  # at the end of what a terminal shows
        while part := os.read(screen, 1 << 16):
            shown += part
    out, err = process.communicate()[0].decode(), shown.decode()
    assert process.returncode == 130, out + err
    assert "interrupted" in out + err
    assert "classes were begun" in sh(folder, "majorant predict slow.npz slow.json slow.txt")
    assert "classes were begun" in sh(folder, "majorant inspect slow.json")
    assert "classes were begun" in sh(folder, "majorant report slow.npz slow.json slow.html")
    with pytest.warns(ConvergenceWarning, match="classes were begun"):
        load_model(folder / "slow.json").predict(X)


def test_output_that_cannot_be_written_is_told_before_the_fit(folder):
    said = sh(folder, f"majorant train patients.csv /proc/model.json {PATIENTS}", code=1)
    assert "/proc/model.json" in said
    assert "Converged" not in said
    assert "rows" not in said
    said = sh(folder, f"majorant train patients.csv m.json {PATIENTS}", code=1)
    assert "exists already" in said
    assert "--force" in said


def test_a_model_that_cannot_be_written_is_not_lost(folder, tmp_path):
    losing = f"""
        import tempfile, majorant.persistence as p, majorant.cli as c
        written = p.save_model
        def save(model, path, **options):
            if path.name == path.as_posix():
                raise OSError(28, "No space left on device")
            written(model, path, **options)
        p.save_model, tempfile.tempdir = save, {str(tmp_path)!r}
        raise SystemExit(c.run("train patients.csv lost.json {PATIENTS}".split()))
    """
    said = sh(folder, f"{PYTHON} -c {shlex.quote(textwrap.dedent(losing))}", code=1)
    (kept,) = tmp_path.glob("*/lost.json")
    assert "No space left on device" in said
    assert str(kept) in said
    assert load_model(kept).predict(CANCER.data[:3]).tolist() == ["malignant"] * 3


def test_the_index_column_of_pandas_is_left_out(folder):
    pd.read_csv(folder / "patients.csv").drop(columns="patient").to_csv(folder / "indexed.csv")
    said = sh(folder, "majorant train indexed.csv indexed.json --label outcome --standardize")
    assert "30 features" in said
    assert "column 1, which has no name, is taken for the row index of a data frame, and left out" in said
    assert "Accuracy" in sh(folder, "majorant predict indexed.csv indexed.json indexed.txt")
    pd.read_csv(folder / "indexed.csv").to_csv(folder / "twice.csv", index=False)
    assert "'Unnamed: 0' is taken" in sh(folder, "majorant train twice.csv twice.json --label outcome")
    assert "row index" not in sh(folder, "majorant predict twice.csv twice.json twice.txt")


def test_missing_values_and_categories_are_remembered(folder):
    rng = np.random.default_rng(0)
    for name in ("patients", "later"):
        frame = pd.read_csv(folder / f"{name}.csv")
        frame["ward"] = np.where(
            (frame["outcome"] == "benign") ^ (rng.random(len(frame)) < 0.1), "east", "north"
        )
        frame["smoker"] = rng.random(len(frame)) < 0.5
        frame.loc[::9, "mean texture"] = np.nan
        frame.to_csv(folder / f"{name}-raw.csv", index=False)
    options = f"{PATIENTS} --standardize --penalty l1 --lam 5"
    train = f"majorant train patients-raw.csv raw.json {options}"
    assert "--impute median" in sh(folder, f"{train} --one-hot ward", code=1)
    assert "--one-hot ward" in sh(folder, f"{train} --impute median", code=1)
    sh(folder, f"{train} --impute median --one-hot ward --test later-raw.csv --report raw.html")
    told = sh(folder, "majorant inspect raw.json")
    assert "ward=" in told
    assert "median" in told
    assert "Accuracy = 9" in sh(folder, "majorant predict later-raw.csv raw.json raw.txt")
    frame = pd.read_csv(folder / "later-raw.csv")
    frame.loc[:6, "ward"] = "south"
    frame.to_csv(folder / "south.csv", index=False)
    assert "7 rows have a category of 'ward'" in sh(folder, "majorant predict south.csv raw.json south.txt")
    assert "cannot hold" in sh(folder, "majorant convert raw.json raw.liblinear", code=1)


def test_a_report_is_a_small_object_in_a_notebook(tmp_path):
    model = SparseSVC("l1", lam=20.0, standardize=True).fit(CANCER.data, CANCER.target)
    page = report(model, CANCER.data, CANCER.target, tmp_path / "r.html")
    assert len(repr(page)) < 300
    assert hasattr(page, "_repr_html_")
    search = GridSearchCV(SparseSVC("l1", standardize=True), {"lam": [10.0, 30.0]}, cv=3)
    report(search.fit(CANCER.data, CANCER.target), CANCER.data, CANCER.target, tmp_path / "g.html")
    assert (tmp_path / "g.html").stat().st_size > 1000


def test_objects_that_are_not_understood_are_answered(tmp_path):
    X, y = CANCER.data.to_numpy(), CANCER.target.to_numpy()
    with pytest.raises(AttributeError, match="'l1' has a kink at zero"):
        SparseSVC("l1").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(TypeError, match=r"X\.collect\(\)"):
        SparseSVC().fit(pl.DataFrame(X).lazy(), y)
    np.savez(tmp_path / "objects.npz", X=X, y=np.array(["a", "b"], dtype=object)[y])
    said = sh(tmp_path, "majorant train objects.npz m", code=1)
    assert "save it again after y.astype(str)" in said
    with pytest.raises(TypeError, match="lam = 1/C"):
        SparseSVC(C=1.0)
    with pytest.raises(TypeError, match="lam"):
        SparseSVC(alpha=1.0)
    with pytest.raises(TypeError, match="lambdas"):
        SparseSVCCV(alphas=[1.0])
    with pytest.raises(ValueError, match="Did you mean 'l1'"):
        SparseSVC("L1").fit(X, y)


def test_standardized_models_are_for_rows_as_they_are(folder, tmp_path):
    model = load_model(folder / "m.json")
    assert model.standardize
    train = pd.read_csv(folder / "patients.csv")
    pipeline = make_pipeline(StandardScaler(), SparseSVC("l1", lam=20.0))
    pipeline.fit(train[CANCER.data.columns], train["outcome"])
    assert np.allclose(
        model.decision_function(train[CANCER.data.columns]),
        pipeline.decision_function(train[CANCER.data.columns]), atol=1e-3,
    )  # fmt: skip
    save_model(pipeline, tmp_path / "folded.json")
    assert np.allclose(load_model(tmp_path / "folded.json").coef_, model.coef_, rtol=1e-2, atol=1e-6)


def test_coefficients_are_a_table(folder):
    table = load_model(folder / "m.json").coef_frame()
    assert list(table.columns) == ["coefficient", "effect"]
    sh(folder, "majorant inspect m.json --csv > coefficients.csv")
    written = pd.read_csv(folder / "coefficients.csv")
    assert written["feature"].tolist() == table.index.tolist()
    assert np.allclose(written["effect"], table["effect"])
    sh(folder, "majorant inspect m.json again.csv")
    assert (folder / "again.csv").read_text() == (folder / "coefficients.csv").read_text()
    sh(folder, f"majorant cv patients.csv cv.json {PATIENTS} --standardize --penalty l1 --points 5 -v 3")
    assert "share_of_folds" in sh(folder, "majorant inspect cv.json --csv").splitlines()[0]


def test_scores_fit_the_question(folder):
    said = sh(folder, "majorant predict later.csv m.json scored.txt --drop patient -f")
    for score in ("balanced accuracy", "area under the ROC curve", "precision", "recall", "F1"):
        assert score in said
    assert "roc_auc" in sh(
        folder,
        f"majorant train patients.csv {PATIENTS} --standardize -v 3 --scoring roc_auc",
    )
    assert "did you mean 'roc_auc'" in sh(
        folder, f"majorant train patients.csv {PATIENTS} -v 3 --scoring roc_acu", code=2
    )


def test_predictions_have_names_scores_and_probabilities(folder):
    sh(
        folder,
        f"majorant train patients.csv calibrated.json {PATIENTS} --standardize --calibrate sigmoid",
    )
    sh(folder, "majorant predict later.csv calibrated.json out.csv --id patient --drop patient")
    table = pd.read_csv(folder / "out.csv")
    assert table.iloc[0, 0] == "P0400"
    assert len(table) == len(CANCER.data) - 400
    probability = table.filter(like="probability").to_numpy()
    assert ((probability >= 0.0) & (probability <= 1.0)).all()


def test_a_limit_of_features_holds_in_cross_validation():
    model = SparseSVCCV("l1", lambdas=20, standardize=True, max_features=4).fit(CANCER.data, CANCER.target)
    assert len(model.support_) <= 4


def test_progress_is_one_bar_for_all_classes_and_a_line_in_the_end(folder):
    X = np.random.default_rng(0).standard_normal((300, 4))
    np.savez(folder / "three.npz", X=X, y=np.argmax(X[:, :3], axis=1))
    on_terminal = f"{PYTHON} -c 'import pty, sys; pty.spawn(sys.argv[1:])'"
    # The bar appears at once instead of after half a second, since this fit takes less.
    at_once = "progress.BEFORE_DRAWING = progress.BETWEEN_DRAWINGS = 0.0"
    program = f"from majorant.callbacks import progress; {at_once}; from majorant.cli import main; main()"
    words = f"{on_terminal} {PYTHON} -c {shlex.quote(program)} train three.npz three.json"
    said = sh(folder, f"{words} < /dev/null")
    assert "class 2 (3 of 3)" in said
    shares = [int(share) for share in re.findall(r"(\d+)%.*of 3\)", said)]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert "Converged: the certificate is within the tolerance. (duality gap" in said


def test_help_is_in_groups_with_examples(folder):
    said = sh(folder, "majorant train --help")
    for group in ("Model:", "Classes:", "Data:", "Output:", "Large data:", "LIBLINEAR:", "Examples:"):
        assert group in said
