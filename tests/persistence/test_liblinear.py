"""LIBLINEAR's model text: its programs and its library predict what we predict, in both directions."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from liblinear import liblinearutil
from sklearn.datasets import dump_svmlight_file

from majorant import SparseSVC, SparseSVCCV, load_model, save_model
from majorant.errors import ModelFileError, OutputError
from majorant.persistence import from_liblinear, to_liblinear
from tests.persistence.same_model import assert_same_model, rows

NEEDS = "needs LIBLINEAR's programs (Debian: apt install liblinear-tools)"
programs = pytest.mark.skipif(not shutil.which("liblinear-predict"), reason=NEEDS)

# Of one-class and regression models there is nothing to read: 11, 12, 13, 21.
CLASSIFIERS = (0, 1, 2, 3, 4, 5, 6, 7)
LABELS = {"signs": [-1, 1], "from 0": [0, 1], "gap": [3, 7], "three": [0, 1, 2], "signed": [-5, 0, 2, 9]}


def rows_with_empty_ones(n_classes, seed=0):
    """Rows of which some are all zero: what a model without bias makes of them is a tie."""
    X, codes = rows(n_classes, seed=seed)
    X = np.where(np.abs(X) < 0.6, 0.0, X)
    X[::7] = 0.0
    return X, codes


def by_the_program(X, model_path, tmp_path):
    dump_svmlight_file(X, np.zeros(X.shape[0]), str(tmp_path / "rows"), zero_based=False)
    run("liblinear-predict", tmp_path / "rows", model_path, tmp_path / "labels")
    return np.loadtxt(tmp_path / "labels")


def run(*command):
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=60)


def trained_by_the_library(X, y, options):
    """Its random numbers are those of C, which what ran before has drawn from: started anew here."""
    ctypes.CDLL(None).srand(1)
    return liblinearutil.train(y.astype(float), sp.csr_matrix(X), f"{options} -q")


def told_apart(X, values):
    """Rows without a tie but for rounding: rows of zeros, where all values are exactly alike, are in."""
    if values.shape[1] == 1:
        return np.ones(len(X), bool)
    second, first = np.sort(values, axis=1)[:, -2:].T
    return ~X.any(axis=1) | (first - second > 1e-12)


def by_the_library(X, model_path):
    model = liblinearutil.load_model(str(model_path))
    labels, _, values = liblinearutil.predict([], sp.csr_matrix(X), model, "-q")
    return np.array(labels), np.array(values), model.get_labels()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@programs
def test_liblinear_predicts_with_our_models(name, penalty, fit_intercept, tmp_path):
    labels = np.array(LABELS[name])
    X, codes = rows_with_empty_ones(len(labels))
    model = SparseSVC(penalty, lam=0.5, fit_intercept=fit_intercept).fit(X, labels[codes])
    path = tmp_path / "model"
    text = to_liblinear(model, path)
    assert path.read_text() == text
    assert np.array_equal(by_the_program(X, path, tmp_path), model.predict(X))
    predicted, values, order = by_the_library(X, path)
    assert np.array_equal(predicted, model.predict(X))
    expected = model.decision_function(X)
    if len(labels) == 2:
        values = values.ravel()
    else:
        assert order == labels.tolist()
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    # And back: the doubles are the same doubles.
    again = from_liblinear(path)
    assert np.array_equal(again.coef_, model.coef_)
    assert np.array_equal(again.intercept_, model.intercept_)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert to_liblinear(again) == text


@pytest.mark.parametrize("bias", [-1, 2.5])
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("last_first", [False, True])
def test_we_predict_with_the_models_of_liblinear(kind, name, bias, last_first, tmp_path):
    labels = np.array(LABELS[name])
    X, codes = rows_with_empty_ones(len(labels))
    if last_first:  # labels are in the order of their first row
        X, codes = X[::-1], codes[::-1]
    path = tmp_path / "model"
    theirs = trained_by_the_library(X, labels[codes], f"-s {kind} -B {bias}")
    liblinearutil.save_model(str(path), theirs)
    if kind == 4 and len(labels) == 2:
        with pytest.raises(ModelFileError, match="MCSVM_CS with two classes"):
            from_liblinear(path)
        return
    ours = from_liblinear(path)
    predicted, values, order = by_the_library(X, path)
    apart = told_apart(X, values)
    assert np.array_equal(ours.predict(X)[apart], predicted[apart])
    assert apart.mean() > 0.8
    assert ours.classes_.tolist() == sorted(labels)
    decisions = ours.decision_function(X)
    if len(labels) == 2:
        sign = 1.0 if order[0] == max(labels) else -1.0
        np.testing.assert_allclose(decisions, sign * values[:, 0], rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_allclose(decisions, values[:, np.argsort(order)], rtol=1e-12, atol=1e-12)
    assert ours.penalty == ("l1" if kind in (5, 6) else "l2")
    assert ours.fit_intercept == (bias >= 0)
    assert from_liblinear(path.read_text()).coef_.tolist() == ours.coef_.tolist()
    # What was read is a model like any other.
    save_model(ours, tmp_path / "ours.json")
    assert_same_model(ours, load_model(tmp_path / "ours.json"))
    to_liblinear(ours, path)
    assert np.array_equal(by_the_library(X, path)[0][apart], predicted[apart])


@pytest.mark.parametrize("bias", [-1, 1])
@pytest.mark.parametrize("labels", [(2, 0, 1), (1, 2, 0), (0, 2, 1), (0, 1, 2), (0, 1), (1, 0)])
@pytest.mark.parametrize("beta", [0.0, 0.75, -0.75])
def test_ties_are_decided_as_liblinear_does(labels, bias, beta, tmp_path):
    columns = 1 if len(labels) == 2 else 3
    if columns == 1 and beta and bias > 0:
        beta = 0.0  # otherwise there is no tie
    weights = [0.5, -0.25, 0.125][:columns] + [beta] * columns * (bias > 0)
    order = " ".join(map(str, labels))
    head = (
        f"solver_type L2R_L2LOSS_SVC\nnr_class {len(labels)}\nlabel {order}\nnr_feature 1\nbias {bias}\nw\n"
    )
    (tmp_path / "model").write_text(head + " \n".join(map(str, weights)) + " \n")
    X = np.array([[0.0], [1.0], [-1.0]])
    assert np.array_equal(
        from_liblinear(tmp_path / "model").predict(X), by_the_library(X, tmp_path / "model")[0]
    )


@pytest.mark.parametrize("options", ["-s 5 -B 1", "-s 2", "-s 1 -B 1"])
@pytest.mark.parametrize("n_classes", [2, 3])
@programs
def test_we_predict_with_the_models_of_its_program(options, n_classes, tmp_path):
    X, codes = rows_with_empty_ones(n_classes)
    dump_svmlight_file(X, codes, str(tmp_path / "train"), zero_based=False)
    run("liblinear-train", "-q", *options.split(), tmp_path / "train", tmp_path / "model")
    ours = from_liblinear(tmp_path / "model")
    assert np.array_equal(ours.predict(X), by_the_program(X, tmp_path / "model", tmp_path))


def test_a_model_that_was_read_can_be_trained_on(tmp_path):
    X, codes = rows()
    model = from_liblinear(to_liblinear(SparseSVC("l2").fit(X, codes)))
    assert np.isnan(model.lam_)
    model.partial_fit(X, codes)
    assert model.t_ == len(X)
    assert model.fit(X, codes).converged_


def test_every_kind_of_model_is_written():
    X, codes = rows(3, np.float32)
    cv = SparseSVCCV("l1", lambdas=3).fit(X, codes.astype(float))
    assert from_liblinear(to_liblinear(cv)).coef_.tolist() == cv.coef_.tolist()
    model = SparseSVC("l1").fit(X, codes)
    assert to_liblinear(model) == to_liblinear(model.sparsify())


def test_a_file_that_is_there_is_kept_if_asked(tmp_path):
    X, codes = rows()
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        to_liblinear(SparseSVC().fit(X, codes), tmp_path / "mine", overwrite=False)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 2**31], [0.0, 2.0**40]])
def test_labels_must_be_integers(labels):
    X, codes = rows()
    model = SparseSVC().fit(X, np.array(labels)[codes])
    with pytest.raises(ModelFileError, match=r"LIBLINEAR's labels are integers of 32 bits.*LabelEncoder"):
        to_liblinear(model)


TEXT = "solver_type L1R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n0.5 \n0 \n-1e-3 \n"
DAMAGE = [
    ("L1R_L2LOSS_SVC", "L2R_L2LOSS_SVR", "'L2R_L2LOSS_SVR' is no classifier that majorant knows"),
    ("L1R_L2LOSS_SVC", "ONECLASS_SVM", "'ONECLASS_SVM' is no classifier"),
    ("nr_class 2", "nr_class 3", "two different labels or more, as many as nr_class 3"),
    ("label 1 -1", "label 1 1", "two different labels or more"),
    ("label 1 -1", "label 1", "two different labels or more"),
    ("label 1 -1", "label 1 x", "label must be an integer, got 'x'"),
    ("label 1 -1", "label 1 99999999999", "label must be an integer"),
    ("label 1 -1\n", "", "it has no line label"),
    ("nr_class 2", "nr_class 2\nnr_class 2", "is unknown or is there twice"),
    ("nr_class 2", "rho 2", "'rho 2' is unknown"),
    ("nr_feature 2", "nr_feature 3", "must have 4 × 1 weights and has 3: it was cut short"),
    ("nr_feature 2", "nr_feature 2000000000", "must have 2000000001 × 1 weights"),
    ("nr_feature 2", "nr_feature 0", "it has no features"),
    ("nr_feature 2", "nr_feature 1_0", "nr_feature must be an integer"),
    ("bias 1", "bias nan", "'nan' where a finite number must be"),
    ("0.5", "inf", "'inf' where a finite number must be"),
    ("0.5", "1e999", "'1e999' where a finite number must be"),
    ("0.5", "0x1", "'0x1' where a finite number must be"),
    ("0.5", "1_0", "'1_0' where a finite number must be"),
    ("\nw\n", "\n", "begins with solver_type and has a line w"),
    ("solver_type", "solver", "begins with solver_type"),
]


@pytest.mark.parametrize(("old", "new", "message"), DAMAGE)
def test_damage_is_named(old, new, message, tmp_path):
    assert from_liblinear(TEXT).predict([[1.0, 0.0]]).tolist() == [1]
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(ModelFileError, match=message) as caught:
        from_liblinear(text)
    assert "\n" not in str(caught.value)
    (tmp_path / "model").write_text(text)
    with pytest.raises(ModelFileError, match=message):
        from_liblinear(tmp_path / "model")


def test_files_that_are_none_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="it cannot be read"):
        from_liblinear(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\x80\x04\xff")
    with pytest.raises(ModelFileError, match="it is not a LIBLINEAR model, which is plain text"):
        from_liblinear(tmp_path / "binary")


@settings(max_examples=300, deadline=None, derandomize=True)
@given(at=st.integers(0, len(TEXT)), length=st.integers(0, 9), new=st.text(" \n.0123456789-ew_", max_size=5))
def test_changed_text_is_refused_or_read(at, length, new):
    text = TEXT[:at] + new + TEXT[at + length :] + "\n"
    try:
        model = from_liblinear(text)
    except ModelFileError:
        return
    assert np.isfinite(model.coef_).all()
    assert len(model.predict(np.ones((1, model.n_features_in_)))) == 1


@pytest.mark.data
@pytest.mark.parametrize("fit_intercept", [True, False])
@programs
def test_every_row_of_a1a_is_predicted_alike_in_both_directions(a1a, fit_intercept, tmp_path):
    X, y, X_test, _ = a1a
    ours = SparseSVC("l1", lam=1.0, fit_intercept=fit_intercept).fit(X, y)
    to_liblinear(ours, tmp_path / "ours")
    assert np.array_equal(by_the_program(X_test, tmp_path / "ours", tmp_path), ours.predict(X_test))
    dump_svmlight_file(X, y, str(tmp_path / "train"), zero_based=False)
    bias = 1 if fit_intercept else -1
    run("liblinear-train", "-q", "-s", 5, "-B", bias, tmp_path / "train", tmp_path / "theirs")
    read = from_liblinear(tmp_path / "theirs")
    wide = X_test[:, : read.n_features_in_]  # the last features may occur in no row that was trained on
    assert np.array_equal(by_the_program(X_test, tmp_path / "theirs", tmp_path), read.predict(wide))
