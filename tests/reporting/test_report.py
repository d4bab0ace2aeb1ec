"""The HTML report: complete, small, safe with any text, and right."""

import base64
import hashlib
import html
import re
import warnings
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from majorant import SparseSVC, SparseSVCCV, load_model, report, save_model, sparse_svc_path
from majorant.errors import MajorantError, OutputError
from majorant.persistence import Provenance, from_liblinear, from_onnx, to_liblinear, to_onnx
from majorant.potentials import Potential
from majorant.reporting.charts.chart import spread
from majorant.reporting.charts.scales import linear_scale, log_scale
from majorant.reporting.context import ScoredRows
from majorant.reporting.scores import MOST_STEPS, RESAMPLES, SEED, scores
from majorant.reporting.text import number, plain_text, text_width, truncated, typeset
from tests.problems import all_examples

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" and 'quoted'",
    "</style><style>*{display:none}",
    "</title></textarea>",
    "شكرا \u202egnp.exe",
    "🦄🏳️‍🌈",
    "a" * 10_000,
    "two\nlines\r\nand a tab\t\0",
    "{{7*7}}{% raw %}",
    "half a pair \ud800",
    "&lt;b&gt; &amp;amp;",
    "",
]


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of its table headers."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.headers, self.text = [], [], {}
        self._inside = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "input"):
            self._inside.append(tag)
        if tag == "th":
            self.headers.append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self._inside.pop() == tag

    def handle_data(self, data):
        if "th" in self._inside:
            self.headers[-1] += data
        if self._inside:
            self.text[self._inside[-1]] = self.text.get(self._inside[-1], "") + data

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def problem(n_classes=2, n=120, p=12, seed=0):
    return make_classification(
        n, p, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=seed, class_sep=1.5
    )


@pytest.fixture
def binary():
    return _binary()


# What it can describe --------------------------------------------------------------------------


@cache
def _binary():
    X, y = problem()
    return SparseSVC("l1", lam=5.0).fit(X, y), X, y


def _labels():
    X, y = problem()
    y = np.array(["no", "yes"])[y]
    return SparseSVC().fit(X, y), X, y


@cache
def _ovr():
    X, y = problem(4)
    return SparseSVC("hyperbolic", lam=2.0).fit(X, y), X, y


def _many_classes():
    X, y = problem(12, n=400)
    return SparseSVC("l1", lam=2.0).fit(X, y), X, y


def _joint():
    X, y = problem(4)
    return SparseSVC("l1", lam=2.0, multi_class="joint").fit(X, y), X, y


@cache
def _cv():
    X, y = problem()
    return SparseSVCCV("l1", lambdas=8, cv=3).fit(X, y), X, y


def _cv_of_one_strength():
    X, y = problem(3)
    return SparseSVCCV("l1", lambdas=[1.0], cv=2, scoring="f1_macro", selection="1se").fit(X, y), X, y


def _one_feature():
    X, y = problem()
    return SparseSVC("l1").fit(X[:, :1], y), X[:, :1], y


def _no_feature():
    X, y = problem()
    return SparseSVC("l1", lam=1e6).fit(X, y), X, y


@cache
def _welsch():
    X, y = problem()
    return SparseSVC("welsch", lam=1.0, delta=0.01).fit(X, y), X, y


def _no_penalty():
    X, y = problem()
    return SparseSVC("none", eta=1.0, fit_intercept=False).fit(X, y), X, y


def _float32():
    X, y = problem()
    return SparseSVC("l1").fit(X.astype(np.float32), y), X.astype(np.float32), y


def _sparse():
    X, y = problem()
    X = sp.csr_array(np.where(X > 0.5, X, 0.0))
    return SparseSVC("l1").fit(X, y).sparsify(), X, y


def _one_iteration():
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseSVC("l1", max_iter=1).fit(X, y), X, y


@cache
def _stream():
    X, y = problem()
    return SparseSVC(solver="adam", random_state=0).partial_fit(X, y, classes=[0, 1]), X, y


@cache
def _imported():
    model, X, y = _binary()
    return from_liblinear(to_liblinear(model)), X, y


def _imported_without_a_penalty():
    model, X, y = _ovr()
    return from_onnx(to_onnx(model)), X, y


def _imported_and_gone_on():
    model, X, y = _imported.__wrapped__()
    return (
        model.set_params(penalty="hyperbolic", solver="adam", random_state=0).partial_fit(X[:50], y[:50]),
        X,
        y,
    )


@cache
def _frame():
    import pandas as pd

    X, y = problem()
    X = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    return SparseSVC("l1", class_weight="balanced").fit(X, y), X, y


def _huge_values():
    X, y = problem()
    return SparseSVC("l1", lam=1e-12, tol=1e-2).fit(1e-9 * X, y), 1e-9 * X, y


KINDS = [
    _binary, _labels, _ovr, _many_classes, _joint, _cv, _cv_of_one_strength, _one_feature, _no_feature,
    _welsch, _no_penalty, _float32, _sparse, _one_iteration, _stream, _imported, _imported_without_a_penalty,
    _imported_and_gone_on, _frame, _huge_values,
]  # fmt: skip


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__.strip("_"))
def test_every_kind_of_model(make):
    model, X, y = make()
    text = report(model, X, y)
    page = Page(text)
    assert page.count("script") == page.count("style") == page.count("h1") == 1
    assert f"{len(model.support_)} of {X.shape[1]} feature" in page.text["p"]
    shown = text.split("<script>")[0]
    assert re.search(r"\bnan\b|\binf\b|None|Undefined", shown) is None
    # Every path has numbers only.
    for tag, attributes in page.elements:
        if tag == "path":
            assert re.fullmatch(r"[MLHVZhv0-9. -]+", attributes["d"]), attributes["d"]


def test_the_certificate_in_words(binary):
    assert "no coefficients whatsoever" in report(*binary)
    assert "not convex" in report(*_welsch())
    assert "no coefficients whatsoever" in report(*_unpenalised())
    assert "Learned by partial_fit from 120 rows" in report(*_stream())
    assert "iteration limit was reached" in report(*_one_iteration())


@pytest.mark.parametrize("make", [_imported, _imported_without_a_penalty], ids=["liblinear", "onnx"])
def test_of_an_imported_model_nothing_is_claimed(make):
    model, X, y = make()
    text = report(model, X, y)
    assert "imported: how it was trained is not known." in Page(text).text["p"]
    for claim in ("stream", "Learned by", "converged", "Strength λ", "φ(w)", "Tolerance"):
        assert claim not in text.split("</style>")[1]


def test_an_imported_model_that_learned_more_is_a_stream():
    assert "Learned by partial_fit from 50 rows" in report(*_imported_and_gone_on())


def test_the_origin_outlives_a_model_file(tmp_path):
    for make in (_binary, _stream, _imported):
        model, X, y = make()
        save_model(model, tmp_path / "model.json")
        before, after = report(model, X, y), report(load_model(tmp_path / "model.json"), X, y)
        assert before == after


@pytest.mark.parametrize("potential", all_examples(Potential.registry))
def test_every_penalty_has_a_formula(potential, binary):
    X, y = problem()
    text = report(SparseSVC(potential, max_iter=5000).fit(X, y), X, y)
    assert f"{potential.name}, φ(w) = {potential.formula}" in html.unescape(text)


def test_an_array_instead_of_the_data_frame_is_no_reason_to_warn():
    model, X, y = _frame()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = report(model, X.to_numpy(), y, X_test=X.to_numpy()[:9], y_test=y[:9])
    assert f"column {model.support_[0]}" in Page(text).headers


def test_provenance_in_words(binary):
    origin = Provenance(
        source="a.csv", n_rows=1234, command=["majorant", "train", "my data.csv"], versions={"numpy": "2.4"},
        standardized=True, objective=12.5, more={"by": "me"},
    )  # fmt: skip
    text = html.unescape(report(*binary, provenance=origin))
    for name, fact in origin.facts().items():
        assert f"<bdi>{name}</bdi>" in text
        assert fact in text
    assert "majorant train 'my data.csv'" in text
    assert "12.5 (of the scaled problem)" in text


def test_the_page_says_how_its_numbers_were_drawn(binary):
    text = report(*binary)
    assert f"{RESAMPLES:,} bootstrap resamples of 120 training rows (seed {SEED})" in text
    assert "Pass X_test and y_test (on the command line, --test)" in text
    assert "Missing values" not in text


def _unpenalised():
    X, y = problem(seed=3)
    factor = np.ones(X.shape[1])
    factor[0] = 0.0
    return SparseSVC("l1", penalty_factor=factor).fit(X, y), X, y


def test_a_path_and_test_rows(binary):
    model, X, y = binary
    path = sparse_svc_path(X, y, "l1", lambdas=12)
    text = report(
        model, X[:80], y[:80], X_test=X[80:], y_test=y[80:], path_result=path, title="My title",
        feature_names=[f"gene {i}" for i in range(12)], provenance={"SHA-256": "a"}, command="majorant demo",
    )  # fmt: skip
    page = Page(text)
    assert "Scores on the test rows" in page.text["h2"]
    assert "training rows that the model" not in text
    assert page.text["title"].startswith("My title")
    assert {f"gene {model.support_[0]}", "SHA-256"} <= set(page.headers)
    assert page.text["code"] == "majorant demo"
    assert "path-title" in text


def test_a_path_of_many_features_says_how_many_are_drawn():
    X, y = problem(p=80)
    path = sparse_svc_path(X, y, "l2", lambdas=[1.0, 0.1])
    text = report(path.models[-1], X, y, path_result=path)
    assert "The 60 largest are drawn, 20 smaller ones are not." in text


def test_training_rows_are_called_so(binary):
    text = report(*binary)
    assert "Scores on the training rows" in text
    assert "that the model was trained on" in text


def test_a_pipeline_names_its_features():
    X, y = problem(p=8)
    pipeline = make_pipeline(
        PolynomialFeatures(2, include_bias=False), StandardScaler(), SparseSVC("l1", lam=10.0)
    )
    text = report(pipeline.fit(X, y), X, y, feature_names=[f"f{i}" for i in range(8)])
    used = pipeline[:-1].get_feature_names_out([f"f{i}" for i in range(8)])[pipeline[-1].support_]
    assert set(used) <= set(Page(text).headers)
    assert "PolynomialFeatures, then StandardScaler" in text
    alone = make_pipeline(SparseSVC("l1")).fit(X, y)
    assert "x0" in Page(report(alone, X, y)).headers


# Any text --------------------------------------------------------------------------------------


def test_hostile_names_stay_text():
    X, y = problem(p=12)
    labels = np.array([HOSTILE[0], "{{7*7}}\n</td>"])
    model = SparseSVC("l2", lam=0.1).fit(X, labels[y])
    path = sparse_svc_path(X, y, "l1", lambdas=5)
    text = report(
        model, X, labels[y], feature_names=HOSTILE, title=HOSTILE[0], path_result=path,
        provenance=dict.fromkeys(HOSTILE, HOSTILE[2]), command=f"echo {HOSTILE[0]} {HOSTILE[8]}",
    )  # fmt: skip
    page = Page(text)
    assert page.count("script") == page.count("style") == 1
    headers = set(page.headers)
    assert {plain_text(name) for name in HOSTILE} <= headers
    assert "{{7*7}}{% raw %}" in headers
    assert "49" not in page.text["code"]
    text.encode("utf-8")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not any("style" in attributes for _, attributes in page.elements)


@pytest.mark.parametrize("make", [_binary, _cv, _ovr], ids=lambda make: make.__name__)
def test_nothing_is_loaded(make):
    text = report(*make())
    policy = re.search(r'content="(default-src[^"]*)"', text)[1]
    rest = text.replace(policy, "")
    assert re.search(r"https?:|//|url\(|@import|\bsrc=|<link|<img|<iframe|<object|<base|<form", rest) is None
    assert all(a["href"].startswith("#") for tag, a in Page(text).elements if tag == "a")


def test_the_policy_allows_the_one_style_and_the_one_script(binary):
    text = report(*binary)
    policy = Page(text).elements[3][1]["content"]
    for tag in ("style", "script"):
        (body,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


# Small, repeatable, whole ----------------------------------------------------------------------


def test_fifty_thousand_features_and_twenty_classes():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 50_000), density=0.005, format="csr", rng=rng)
    y = np.arange(60) % 20
    model = SparseSVC(solver="adam", random_state=0).partial_fit(
        X, y, classes=np.arange(20)
    )  # nothing is zero
    assert len(model.support_) > 10_000
    text = report(model, X, y)
    assert len(text.encode()) < 1_000_000
    assert "2,000 largest are listed" in text
    assert text.count("<tr><td") == 2000 + 1


def test_the_worst_names_fit_as_well():
    X, y = problem(n=300, p=3000)
    y = np.arange(300) % 60
    labels = np.array([f"{k}" + '"' * 500 for k in range(60)])
    model = SparseSVC(solver="adam", random_state=0).partial_fit(X, labels[y], classes=labels)
    text = report(
        model, X, labels[y], title='"' * 10**6, feature_names=['"🦄' * 5000] * 3000,
        provenance={f"{k}" + '"' * 2000: '"' * 10**5 for k in range(500)}, command='"' * 10**6,
    )  # fmt: skip
    assert len(text.encode()) < 1_000_000
    assert re.search(r"Of 3,000 features that are not zero, the \d+ largest", text)


def test_the_same_input_gives_the_same_page():
    for make in (_binary, _cv):
        model, X, y = make()
        assert report(model, X, y) == report(model, X, y)


def test_written_to_a_file(binary, tmp_path):
    model, X, y = binary
    path = tmp_path / "report.html"
    text = report(model, X, y, path)
    assert path.read_text(encoding="utf-8") == text
    with pytest.raises(OutputError, match="exists already"):
        report(model, X, y, path, overwrite=False)
    with pytest.raises(OutputError, match="no directory"):
        report(model, X, y, tmp_path / "nowhere" / "report.html")


def test_a_report_is_written_whole_or_not_at_all(binary, tmp_path, monkeypatch):
    """By `atomic_write`, of which tests/test_files.py knows what a killed process leaves."""
    path = tmp_path / "report.html"
    path.write_text("the old report")

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        report(*binary, path)
    assert path.read_text() == "the old report"
    assert len(list(tmp_path.iterdir())) == 1


# What it refuses -------------------------------------------------------------------------------


class Nameless(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@cache
def _all_refused():
    X, y = problem()
    model = SparseSVC("l1").fit(X, y)
    with_nan = X.copy()
    with_nan[0, 0] = np.nan
    narrow = sparse_svc_path(X[:, :3], y, "l1", lambdas=2)
    nameless = make_pipeline(Nameless(), SparseSVC("l1")).fit(X, y)
    return {
        "unfitted": ((SparseSVC(), X, y), {}, "not fitted"),
        "unfitted pipeline": ((make_pipeline(StandardScaler(), SparseSVC()), X, y), {}, "not fitted"),
        "another estimator": ((LogisticRegression().fit(X, y), X, y), {}, "LogisticRegression"),
        "features": ((model, X[:, :5], y), {}, "5 features"),
        "rows": ((model, X, y[:-1]), {}, "120 rows and y 119 labels"),
        "names": ((model, X, y), {"feature_names": ["a", "b"]}, "2 feature_names for the model's 12"),
        "one name": ((model, X, y), {"feature_names": "twelve names"}, "not one string"),
        "labels": ((model, X, np.where(y == 0, 7, y)), {}, "y has the label 7"),
        "test labels": ((model, X, y), {"X_test": X, "y_test": y.astype(str)}, "y_test has the label '"),
        "half a test set": ((model, X, y), {"X_test": X}, "belong together"),
        "missing values": ((model, with_nan, y), {}, "NaN"),
        "no rows": ((model, X[:0], y[:0]), {}, "0 sample"),
        "a path": ((model, X, y), {"path_result": [1, 2]}, "sparse_svc_path"),
        "another path": ((model, X, y), {"path_result": narrow}, "3 features"),
        "a pipeline without names": ((nameless, X, y), {}, "does not tell the names"),
    }  # fmt: skip


REFUSED = [
    "unfitted", "unfitted pipeline", "another estimator", "features", "rows", "names", "one name", "labels",
    "test labels", "half a test set", "missing values", "no rows", "a path", "another path",
    "a pipeline without names",
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_one_sentence(name, tmp_path):
    arguments, options, message = _all_refused()[name]
    path = tmp_path / "report.html"
    with pytest.raises(MajorantError, match=message) as caught:
        report(*arguments, path, **options)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(".")
    assert not path.exists()


# Scores ----------------------------------------------------------------------------------------


def _rows(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    decision = 1.2 * (codes - 0.5) + rng.standard_normal(n)
    if n_classes > 2:
        decision = rng.standard_normal((n, n_classes))
        decision[np.arange(n), codes] += 1.0
    return ScoredRows(None, codes, decision.round(2), "test")


@pytest.mark.parametrize("n_classes", [2, 5])
def test_scores_are_those_of_scikit_learn(n_classes):
    rows = _rows(300, n_classes, 0)
    true, predicted = rows.codes, rows.predicted
    average = "binary" if n_classes == 2 else "macro"
    found = {
        re.split(r" \(|,| for", score.name)[0]: score.value
        for score in scores(rows, None, tuple("abcde"[:n_classes]))
    }
    expected = {
        "Accuracy": metrics.accuracy_score(true, predicted),
        "Balanced accuracy": metrics.balanced_accuracy_score(true, predicted),
        "Precision": metrics.precision_score(true, predicted, average=average),
        "F1": metrics.f1_score(true, predicted, average=average),
    }
    if n_classes == 2:
        expected["Recall"] = metrics.recall_score(true, predicted)
        expected["ROC AUC"] = metrics.roc_auc_score(true, rows.decision)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


def test_intervals_are_those_of_resampled_rows():
    rows = _rows(200, 2, 1)
    rng = np.random.default_rng(5)
    accuracy, area = [], []
    right = rows.codes == rows.predicted
    for _ in range(1500):
        at = rng.integers(0, 200, 200)
        accuracy.append(np.mean(right[at]))
        values = rows.decision[at]
        behind = values[rows.codes[at] == 0][:, None] - values[rows.codes[at] == 1]
        area.append(np.mean((behind < 0) + 0.5 * (behind == 0)))
    found = {score.name: score for score in scores(rows, None, ("a", "b"))}
    for name, drawn in (("Accuracy", accuracy), ("ROC AUC", area)):
        low, high = np.percentile(drawn, [2.5, 97.5])
        assert found[name].low == pytest.approx(low, abs=0.012)
        assert found[name].high == pytest.approx(high, abs=0.012)
        assert found[name].low < found[name].value < found[name].high


def test_many_different_scores_are_grouped_for_the_interval_only():
    rows = ScoredRows(None, *_many_scores(), "test")
    assert len(np.unique(rows.decision)) > MOST_STEPS
    area = scores(rows, None, ("a", "b"))[-1]
    exact = metrics.roc_auc_score(rows.codes, rows.decision)
    assert area.value == pytest.approx(exact, abs=1e-12)
    assert area.low < exact < area.high
    assert area.high - area.low < 0.03


def _many_scores():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 20_000)
    return codes, codes + rng.standard_normal(20_000)


def test_rows_of_one_class_have_no_area_but_a_page(binary):
    model, X, y = binary
    only = y == 1
    text = report(model, X, y, X_test=X[only], y_test=y[only])
    assert "ROC AUC" in text
    assert "—" in text


def test_no_mistake_is_no_certainty():
    X = np.array([[-1.0], [1.0]] * 50)
    y = np.array([0, 1] * 50)
    model = SparseSVC("l1", lam=0.1).fit(X, y)
    text = report(model, X, y, X_test=X, y_test=y)
    assert "by the rule of three, up to 3.00\u00a0%" in text
    assert "95\u00a0% interval 1.000" not in text
    assert "rule of three" not in report(model, X, y)  # these rows are not new


# Text, ticks, places ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1.00"), (-0.01234, "−0.0123"), (123456.0, "123,456"), (1e-8, "10⁻⁸"),
        (2.5e-8, "2.5\u00a0×\u00a010⁻⁸"), (-1e300, "−10³⁰⁰"), (np.nan, "—"), (np.inf, "∞"), (0.9999, "1.00"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(value, text):
    assert number(value) == text


def test_powers_are_typeset_and_the_rest_escaped():
    assert typeset("<b> 2 × 10⁻⁷") == "&lt;b&gt; 2 × 10<sup>−7</sup>"


finite = st.floats(-1e12, 1e12, allow_nan=False)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(finite, finite, st.booleans())
@example(1e12, 1e12 + 3e3, False)
@example(1e-9, 1.001e-9, True)
def test_ticks_are_few_in_order_and_different(a, b, tight):
    scale = linear_scale(min(a, b), max(a, b), tight=tight)
    values = [value for value, _ in scale.ticks]
    assert 2 <= len(values) <= 8
    assert values == sorted(values)
    assert len({label for _, label in scale.ticks}) == len(values)
    room = 1e-6 * (scale.high - scale.low)
    assert scale.low - room <= min(a, b) <= max(a, b) <= scale.high + room
    assert np.all((scale(values) >= 0.0) & (scale(values) <= 1.0))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.floats(-14, 14), st.floats(0, 20))
def test_logarithmic_ticks_as_well(start, length):
    scale = log_scale(10.0**start, 10.0 ** (start + length))
    values = [value for value, _ in scale.ticks]
    assert 2 <= len(values) <= 9
    assert values == sorted(values)
    assert len({label for _, label in scale.ticks}) == len(values)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_labels_keep_their_order_and_their_distance(wanted):
    places = spread(wanted, 15.0, 0.0, 100.0)
    order = np.argsort(wanted, kind="stable")
    assert np.all(np.diff(np.array(places)[order]) >= 15.0 - 1e-9)
    assert min(places) >= 0.0
    assert max(places) <= 100.0


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.text(max_size=60), st.floats(20, 200))
def test_text_is_cut_to_the_room_there_is(text, room):
    assert text_width(truncated(text, 12.0, room), 12.0) <= room


# Colours ---------------------------------------------------------------------------------------


def _palettes(text):
    css = re.search("<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    light, dark = re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)[:2]
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in (light, dark)]


def _linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2's ratio."""
    luminances = sorted(_linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (one, other))
    return (luminances[1] + 0.05) / (luminances[0] + 0.05)


def test_text_and_lines_have_contrast_in_both_themes(binary):
    for palette in _palettes(report(*binary)):
        for ground in ("paper", "sheet", "wash"):
            for name in ("ink", "soft", "accent"):
                assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
        for name in ("c0", "c1", "c2", "c3", "c4", "c5"):
            assert contrast(palette[name], palette["sheet"]) >= 3.0, name
        for name in ("c0", "c1"):  # also the colours of two words
            assert contrast(palette[name], palette["paper"]) >= 4.5, name
        assert contrast(palette["warn"], palette["warn-wash"]) >= 4.5
        for step in range(1, 7):
            for side in "pm":
                text = palette["on-strong" if step >= 5 else "ink"]
                assert contrast(text, palette[f"{side}{step}"]) >= 4.5, f"{side}{step}"


# Machado, Oliveira and Fernandes (2009), full severity.
BLINDNESS = {
    "none": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}


def _lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(rgb, 0.0, 1.0) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_can_be_told_apart(binary, kind):
    for palette in _palettes(report(*binary)):
        seen = [_lab(BLINDNESS[kind] @ _linear(palette[f"c{k}"])) for k in range(6)]
        distances = [np.linalg.norm(seen[i] - seen[j]) for i in range(6) for j in range(i)]
        assert min(distances) >= 20.0
        assert np.linalg.norm(seen[0] - seen[1]) >= 50.0  # for and against
