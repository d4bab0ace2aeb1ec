"""The HTML report: complete, small, safe with any text, and right."""

import base64
import datetime
import hashlib
import html
import json
import pickle
import re
import warnings
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import majorant
from majorant import SparseSVC, SparseSVCCV, load_model, report, save_model, sparse_svc_path
from majorant.errors import MajorantError, OutputError
from majorant.persistence import Provenance, from_liblinear, from_onnx, to_liblinear, to_onnx
from majorant.potentials import Potential
from majorant.reporting.charts.chart import side_by_side, spread
from majorant.reporting.charts.scales import linear_scale, log_scale
from majorant.reporting.context import AskedScore, ScoredRows, make_context
from majorant.reporting.features import survey_features
from majorant.reporting.scores import area_interval, scores, wilson
from majorant.reporting.text import number, plain_text, text_width, truncated, typeset
from majorant.rows.sources import FunctionSource
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


def test_the_page_says_what_its_intervals_are(binary):
    text = report(*binary)
    assert "With 95 % intervals for 120 training rows" in text
    assert "Pass X_test and y_test (on the command line, --test)" in text
    y = binary[2]
    largest = max(np.mean(y), 1 - np.mean(y))
    assert f"has an accuracy of {largest:.3f} and a balanced accuracy of 0.500." in text


def test_the_page_has_a_date_the_name_of_the_data_and_the_version(binary):
    text = report(*binary, date=datetime.date(2031, 2, 3), provenance=Provenance(source="blood.csv"))
    page = Page(text)
    assert page.text["time"] == "2031-02-03"
    assert page.text["h1" if "bdi" not in text else "bdi"].startswith("blood.csv")
    assert f"majorant {majorant.__version__}</p>" in text
    assert "SparseSVC on blood.csv" in text
    assert "<bdi>named</bdi>" in report(*binary, data_name="named")
    # The provenance tells the training data, and these rows are others.
    other = report(*binary, provenance=Provenance(source="blood.csv"), trained_on=False)
    assert "on blood.csv" not in other
    today = Page(report(*binary)).text["time"]
    assert abs(datetime.date.today() - datetime.date.fromisoformat(today)) <= datetime.timedelta(days=1)


def test_a_source_names_the_data():
    X, y = problem()
    source = FunctionSource(lambda i: (X[60 * i : 60 * i + 60], y[60 * i : 60 * i + 60]), 2, 12)
    source.name = "big.svm"
    model = SparseSVC("l1", lam=5.0).fit(X, y)
    assert "SparseSVC on big.svm" in report(model, source, y)
    del source.name
    assert "SparseSVC on 120 rows" in report(model, source, y)


def test_convergence_is_a_tile_and_the_gap_a_detail(binary):
    text = report(*binary)
    assert "Converged ✓" in text
    tiles = text[text.index('class="tiles"') : text.index("</dl>")]
    assert "gap" not in tiles
    assert "Not converged" in report(*_one_iteration())


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


def test_62061_features_and_20_classes_fit_into_1_mb():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 62_061), density=0.005, format="csr", rng=rng)
    y = np.arange(60) % 20
    model = SparseSVC(solver="adam", random_state=0).partial_fit(
        X, y, classes=np.arange(20)
    )  # nothing is zero
    assert len(model.support_) > 10_000
    text = report(model, X, y)
    assert len(text.encode()) < 1_000_000
    listed = int(re.search(r"the ([\d,]+) largest are listed", text)[1].replace(",", ""))
    assert 1000 <= listed <= 2000
    assert text.count("<tr data-values=") == listed


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
        "unfitted search": ((GridSearchCV(SparseSVC(), {"lam": [1.0]}), X, y), {}, "no best_estimator_"),
        "another estimator": ((LogisticRegression().fit(X, y), X, y), {}, "LogisticRegression"),
        "features": ((model, X[:, :5], y), {}, "5 features"),
        "rows": ((model, X, y[:-1]), {}, "120 rows, but y has 119 labels"),
        "names": ((model, X, y), {"feature_names": ["a", "b"]}, "2 feature_names for the model's 12"),
        "one name": ((model, X, y), {"feature_names": "twelve names"}, "not one string"),
        "labels": ((model, X, np.where(y == 0, 7, y)), {}, "y has the label 7"),
        "test labels": ((model, X, y), {"X_test": X, "y_test": y.astype(str)}, "y_test has the label '"),
        "half a test set": ((model, X, y), {"X_test": X}, "belong together"),
        "missing values": ((model, with_nan, y), {}, "NaN"),
        "no rows": ((model, X[:0], y[:0]), {}, "0 sample"),
        "a path": ((model, X, y), {"path_result": [1, 2]}, "sparse_svc_path"),
        "another path": ((model, X, y), {"path_result": narrow}, "3 features"),
        "a pipeline without names": ((nameless, X, y), {}, "does not know the names"),
    }  # fmt: skip


REFUSED = [
    "unfitted", "unfitted pipeline", "unfitted search", "another estimator", "features", "rows", "names",
    "one name", "labels", "test labels", "half a test set", "missing values", "no rows", "a path",
    "another path", "a pipeline without names",
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


@pytest.mark.parametrize(("hits", "rows"), [(12, 12), (0, 5), (7, 9), (950, 1000), (0, 0)])
def test_wilson_is_that_of_scipy(hits, rows):
    low, high = wilson(np.array(hits), np.array(rows))
    expected = stats.binomtest(hits, rows).proportion_ci(method="wilson") if rows else (0.0, 1.0)
    assert (float(low), float(high)) == pytest.approx(tuple(expected), abs=1e-9)


def test_twelve_of_twelve_is_no_certainty():
    codes = np.arange(12) % 2
    found = {s.key: s for s in scores(ScoredRows(None, codes, 2.0 * codes - 1.0, "test"), None, ("a", "b"))}
    assert (found["accuracy"].low, found["accuracy"].high) == pytest.approx((0.7575, 1.0), abs=1e-4)
    for score in found.values():
        assert score.value == score.high == 1.0
        assert 0.5 < score.low < 0.9


def test_the_interval_of_an_area_solves_its_equation():
    """Newcombe's |θ - area| = z √V(θ), and the mirrored area has the mirrored interval."""
    low, high = area_interval(0.9, 15, 40)
    for theta in (low, high):
        variance = theta * (1 - theta) * (1 + 26.5 * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / 600
        assert abs(theta - 0.9) == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-6)
    assert area_interval(0.1, 15, 40) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert area_interval(1.0, 1, 1)[0] < 0.5


@pytest.mark.parametrize(
    ("n", "priors", "distance", "at_least"),
    [(12, [0.5, 0.5], 4.0, 0.85), (40, [0.8, 0.2], 3.0, 0.92), (60, [1 / 3] * 3, 2.0, 0.92),
     (300, [0.05] * 20, 3.0, 0.92)],
    ids=["few rows", "unequal", "three classes", "twenty classes"],
)  # fmt: skip
def test_intervals_cover_the_score_of_the_population(n, priors, distance, at_least):
    rng = np.random.default_rng(0)
    n_classes = len(priors)

    def found(n):
        codes = rng.choice(n_classes, n, p=priors)
        if n_classes == 2:
            decision = (codes - 0.5) * distance + rng.standard_normal(n)
        else:
            decision = rng.standard_normal((n, n_classes))
            decision[np.arange(n), codes] += distance
        return scores(ScoredRows(None, codes, decision, "test"), None, tuple(map(str, range(n_classes))))

    truth = {score.key: score.value for score in found(200_000)}
    covered = {key: [] for key in truth}
    for _ in range(300):
        for score in found(n):
            if score.has_interval:
                assert score.low < score.high
                covered[score.key].append(score.low <= truth[score.key] <= score.high)
    for key, inside in covered.items():
        assert np.mean(inside) >= at_least, key


def test_the_first_score_is_the_accuracy_or_balanced_if_classes_are_unequal():
    def first(n_first, n_second):
        codes = np.repeat([0, 1], [n_first, n_second])
        return scores(ScoredRows(None, codes, codes - 0.5, "test"), None, ("a", "b"))[0].key

    assert first(50, 50) == first(60, 40) == first(40, 60) == "accuracy"
    assert first(80, 20) == first(20, 80) == "balanced_accuracy"


def test_the_first_score_is_the_one_of_the_cross_validation():
    X, y = problem()
    for scoring, name in (
        ("roc_auc", "ROC AUC"), ("f1", "F1 for"), ("average_precision", "Average precision"),
        (metrics.make_scorer(metrics.matthews_corrcoef), "Score asked for"),
    ):  # fmt: skip
        model = SparseSVCCV("l1", lambdas=3, cv=2, scoring=scoring).fit(X[:80], y[:80])
        page = report(model, X[:80], y[:80], X_test=X[80:], y_test=y[80:])
        tile = re.search(r"<dt>(.*?)</dt><dd class=\"value\">(.*?)</dd>", page.split("Features used")[1])
        assert tile[1].startswith(name)
        expected = metrics.check_scoring(model, scoring=scoring)(model, X[80:], y[80:])
        assert tile[2] == f"{expected:.3f}"
    source = FunctionSource(lambda i: (X[60 * i : 60 * i + 60], y[60 * i : 60 * i + 60]), 2, 12)
    assert report(model, source, y).split("<main>")[0].count("Score asked for") == 1


def test_a_scorer_that_fails_does_not_stop_the_report():
    def scorer(model, X, y):
        raise ValueError("needs groups")

    rows = _rows(60, 2, 0)
    asked = AskedScore("mine", scorer, SparseSVC().fit(np.eye(2), [0, 1]))
    assert scores(rows, None, ("a", "b"), asked)[0].key == "accuracy"


def test_rows_of_one_class_have_no_area_but_a_page(binary):
    model, X, y = binary
    only = y == 1
    text = report(model, X, y, X_test=X[only], y_test=y[only])
    assert "ROC AUC" in text
    assert "—" in text


# Rows and features -----------------------------------------------------------------------------


def _path_points(text, name):
    """The numbers of the lines of a chart, in its own units."""
    svg = re.search(rf'<svg[^>]*aria-labelledby="{name}-title".*?</svg>', text, flags=re.DOTALL)[0]
    paths = re.findall(r'<path d="([^"]*)" class="line c0"/>', svg)
    return [
        np.array([[float(v) for v in p.split()] for p in re.split("[ML]", path)[1:]]) for path in paths
    ], svg


def test_the_curves_are_those_of_scikit_learn():
    X, y = problem(n=60)
    model = SparseSVC("l1", lam=20.0).fit(X[:30], y[:30])
    text = report(model, X[:30], y[:30], X_test=X[30:], y_test=y[30:])
    decision = model.decision_function(X[30:])
    (points,), _ = _path_points(text, "roc")
    false_rate, true_rate, _ = metrics.roc_curve(y[30:], decision)
    # Both axes run from 0 to 1: the first point is (0, 0), the last (1, 1).
    found = (points - points[0]) / (points[-1] - points[0])
    np.testing.assert_allclose(found, np.column_stack([false_rate, true_rate]), atol=2e-3)
    assert metrics.auc(found[:, 0], found[:, 1]) == pytest.approx(
        metrics.roc_auc_score(y[30:], decision), abs=5e-3
    )
    (steps,), svg = _path_points(text, "precision-recall")
    average = metrics.average_precision_score(y[30:], decision)
    assert f"average precision {average:.3f}" in text
    axis = re.search(r"M([\d.]+) ([\d.]+)H([\d.]+)\" class=\"rule axis\"", svg)
    left, bottom, right = map(float, axis.groups())
    recall, precision = (steps[:, 0] - left) / (right - left), (bottom - steps[:, 1]) / (bottom - 28.0)
    assert metrics.auc(recall, precision) == pytest.approx(average, abs=5e-3)


def test_curves_of_several_classes():
    model, X, y = _ovr()
    text = report(model, X, y)
    area = metrics.roc_auc_score(y == 2, model.decision_function(X)[:, 2])
    assert f"<bdi>2, area {area:.3f}</bdi>" in text
    model, X, y = _many_classes()
    text = report(model, X, y)
    areas = [metrics.roc_auc_score(y == k, model.decision_function(X)[:, k]) for k in range(12)]
    assert f"Mean area: {np.mean(areas):.3f}; lowest: {min(areas):.3f} (“{np.argmin(areas)}”)." in text


def test_wrong_rows_are_listed_the_worst_first():
    import pandas as pd

    X, y = problem(n=200)
    names = [f"patient {i}" for i in range(100, 300)]
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)], index=names)
    model = SparseSVC("l1", lam=200.0).fit(frame, y)
    decision = model.decision_function(frame)
    wrong = np.flatnonzero((decision > 0) != y)
    assert len(wrong) > 25
    wrong = wrong[np.argsort(-np.abs(decision[wrong]), kind="stable")]
    text = report(model, frame, y)
    table = text[text.index('id="mistakes"') :]
    cells = re.findall(r"<td[^>]*>(?:<bdi>)?(.*?)(?:</bdi>)?</td>", table[: table.index("</table>")])
    rows = np.array(cells).reshape(-1, 5)
    assert len(rows) == 25
    assert rows[:, 0].tolist() == [str(i) for i in wrong[:25]]
    assert rows[:, 1].tolist() == [names[i] for i in wrong[:25]]
    assert rows[:, 2].tolist() == [str(y[i]) for i in wrong[:25]]
    assert rows[:, 4].tolist() == [number(decision[i], sign=True, short=True) for i in wrong[:25]]
    assert f"The worst 25 of {len(wrong)} training rows" in text
    assert "patient" not in report(model, frame.reset_index(drop=True), y)


def test_without_wrong_rows_there_is_no_list():
    X = np.array([[-1.0], [1.0]] * 5)
    y = np.array([0, 1] * 5)
    assert "Wrong rows" not in report(SparseSVC("l1", lam=0.1).fit(X, y), X, y)


def _survey(model, X, y):
    return survey_features(make_context(model, X, y, None, None, None))


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "source", "sparse source", "mixed sparse"])
def test_the_survey_is_that_of_numpy(kind):
    X, y = problem(n=300, p=40)
    X = np.where(X > 0.5, X, 0.0) + (0.0 if "sparse" in kind else 1e4)
    X[:, 30:] = X[:, :10] + 0.1 * X[:, 20:30]
    model = SparseSVC("l1", lam=20.0).fit(X - X.mean(axis=0), y)
    part = [slice(70 * i, 70 * i + 70) for i in range(5)]
    given = {
        "dense": X, "float32": X.astype(np.float32), "sparse": sp.csc_array(X),
        "source": FunctionSource(lambda i: (X[part[i]], y[part[i]]), 5, 40),
        "sparse source": FunctionSource(lambda i: (sp.csr_array(X[part[i]]), y[part[i]]), 5, 40),
        "mixed sparse": FunctionSource(
            lambda i: ([sp.csr_array, np.array][i % 2](X[part[i]]), y[part[i]]), 5, 40
        ),
    }[kind]  # fmt: skip
    survey = _survey(model, given, y)
    assert survey.density == np.count_nonzero(X) / X.size
    expected = model.support_[np.argsort(-np.abs(model.coef_[0, model.support_]))][:25]
    assert survey.features.tolist() == expected.tolist()
    np.testing.assert_allclose(survey.values, X[:, expected], rtol=1e-6)
    assert survey.codes.tolist() == y.tolist()
    correlations = np.corrcoef(X.T)
    out = np.setdiff1d(np.arange(40), model.support_)
    some = 0
    for i, found in zip(survey.features, survey.correlated, strict=True):
        strong = out[np.abs(correlations[i, out]) >= 0.5]
        strong = strong[np.argsort(-np.abs(correlations[i, strong]))][:3]
        assert [k for k, _ in found] == strong.tolist()
        np.testing.assert_allclose([r for _, r in found], correlations[i, strong], atol=1e-4)
        some += len(found)
    assert some > 0


def test_a_survey_of_many_rows_takes_evenly_chosen_ones(monkeypatch):
    monkeypatch.setattr("majorant.reporting.features.MOST_ROWS", 50)
    X, y = problem(n=120)
    model = SparseSVC("l1", lam=5.0).fit(X, y)
    source = FunctionSource(lambda i: (X[50 * i : 50 * i + 50], y[50 * i : 50 * i + 50]), 3, 12)
    for rows in (X, source):
        survey = _survey(model, rows, y)
        np.testing.assert_array_equal(survey.values, X[::3][:, survey.features])
        assert survey.codes.tolist() == y[::3].tolist()


def test_a_constant_feature_has_no_correlation():
    X, y = problem(p=12)
    X[:, 5] = 7.1
    X[:, 6] = 0.0
    model = SparseSVC("l1", lam=5.0).fit(X, y)
    model.coef_ = np.where(np.arange(12) == 5, 1.0, 0.0)[None]
    assert _survey(model, X, y).correlated == [[]]


def test_features_that_are_left_out_are_listed_with_their_correlation():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    X[:, 1] = -X[:, 0] + rng.standard_normal(200)
    y = (X[:, 0] > 0).astype(int)
    model = SparseSVC("l1", lam=100.0, penalty_factor=[1.0, 9.0, 9.0, 9.0]).fit(X, y)
    assert model.support_.tolist() == [0]
    text = report(model, X, y, feature_names=["kept", "mirrored", "third", "fourth"])
    r = np.corrcoef(X[:, 0], X[:, 1])[0, 1]
    assert f'<bdi>mirrored</bdi> <span class="quiet">{number(r, 2)}</span>' in text
    assert "No feature that is left out has a correlation of 0.5" in report(model, X[:, [0, 2, 2, 3]], y)
    assert "Left out, but" not in report(SparseSVC("l2").fit(X, y), X, y)


def _chart(text, name):
    return re.search(rf'<svg[^>]*aria-labelledby="{name}-title".*?</svg>', text, flags=re.DOTALL)[0]


def test_few_rows_are_dots_and_many_are_histograms():
    X, y = problem(n=200)
    model = SparseSVC("l1", lam=5.0).fit(X, y)
    few = report(model, X, y, X_test=X[:49], y_test=y[:49])
    assert _chart(few, "margins").count("h0") == 49
    assert 'class="area' not in _chart(few, "margins")
    many = report(model, X, y, X_test=X[:50], y_test=y[:50])
    assert "h0" not in _chart(many, "margins")
    assert 'class="area' in _chart(many, "margins")


def test_features_by_class_are_dots_boxes_or_shares():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [40, 160])
    names = ["continuous", "binary", "rare"]
    X = np.column_stack([rng.standard_normal(200), rng.integers(3, 5, 200), rng.poisson(0.2, 200)])
    X[:, 0] += y
    model = SparseSVC("l2", lam=0.1).fit(X, y)
    text = report(model, X, y, feature_names=names)
    order = np.argsort(-np.abs(model.coef_[0])).tolist()
    charts = [_chart(text, f"feature-{order.index(i)}") for i in range(3)]
    assert charts[0].count("h0") == 40  # the small class, and the other one is a box
    assert charts[0].count("thick") == 1
    assert "where the value is 4, not 3" in charts[1]
    assert "where the value is not zero" in charts[2]
    for chart in charts[1:]:
        assert chart.count("thick") == 2
        assert "h0" not in chart


def test_rows_of_the_last_classes_only_have_charts():
    X, y = problem(n=300, p=20)
    y = np.arange(300) % 30
    model = SparseSVC(solver="adam", random_state=0).partial_fit(X, y, classes=np.arange(30))
    some = y >= 28
    text = report(model, X[some], y[some])
    for name in ("margins", "feature-0"):
        assert re.findall(r'class="end">(\d+)<', _chart(text, name)) == ["28", "29"]


def test_stacked_dots_do_not_overlap():
    rng = np.random.default_rng(0)
    places = np.sort(rng.uniform(0.0, 40.0, 30))
    lanes = np.array(side_by_side(places.tolist(), 2.0, 30))
    for lane in range(30):
        assert np.all(np.diff(places[lanes == lane]) >= 2.0)
    assert max(side_by_side([1.0] * 9, 2.0, 3)) == 2


def test_many_classes_have_a_heat_map():
    model, X, y = _many_classes()
    names = [f"f{i}" for i in range(12)]
    text = report(model, X, y, feature_names=names)
    table = re.search(r'<table class="confusion compact heat">.*?</table>', text, flags=re.DOTALL)[0]
    rows = re.findall(r'<tr><th scope="row"><bdi>(.*?)</bdi></th>(.*?)</tr>', table)
    order = np.argsort(-np.linalg.norm(model.coef_, axis=0), kind="stable")
    order = order[: len(model.support_)]
    assert [name for name, _ in rows] == [names[i] for i in order]
    power = np.floor(np.log10(np.abs(model.coef_).max())) - 1
    for i, (_, row) in zip(order, rows, strict=True):
        cells = re.findall(r'<td class="(.*?)">(.*?)</td>', row)
        numbers = [int(cell.replace("−", "-")) for _, cell in cells]
        assert numbers == np.round(model.coef_[:, i] / 10**power).astype(int).tolist()
        shades = [shade[0] for shade, _ in cells]
        assert shades == ["npm"[int(np.sign(w))] for w in model.coef_[:, i]]
    assert "Strongest" not in text
    assert "compact heat" not in report(*_ovr())  # whose table has the coefficients in columns


def test_the_table_has_its_exact_numbers_for_the_csv():
    for make in (_binary, _ovr, _many_classes, _cv):
        model, X, y = make()
        _, table = next(
            found for found in Page(report(model, X, y)).elements if found[1].get("id") == "coefficient-table"
        )
        columns = json.loads(table["data-columns"])
        rows = [a["data-values"] for tag, a in Page(report(model, X, y)).elements if "data-values" in a]
        values = np.array([[float(value) for value in row.split(" ")] for row in rows])
        n = len(model.coef_)
        order = np.argsort(-np.linalg.norm(model.coef_, axis=0), kind="stable")[: len(rows)]
        np.testing.assert_allclose(values[:, :n], model.coef_[:, order].T, rtol=1e-5)
        expected = ["coefficient"] if n == 1 else [str(k) for k in range(n)]
        frequency = make is _cv
        assert columns == ["feature", *expected, *["share of folds"] * frequency]
        if frequency:
            np.testing.assert_allclose(values[:, -1], model.selection_frequency_[order], rtol=1e-5)


def test_convergence_is_folded_away(binary):
    text = report(*binary)
    details = re.search(r"<details>(.*?)</details>", text, flags=re.DOTALL)[1]
    assert details.count('class="chart"') == 2
    assert "no coefficients whatsoever" in details
    summary = re.search(r"<summary>(.*?)</summary>", details)[1]
    assert summary.startswith("Converged: duality gap")


# What a notebook gets ---------------------------------------------------------------------------


def test_a_report_is_short_in_a_notebook(binary, tmp_path):
    path = tmp_path / "r.html"
    made = report(*binary, path)
    assert len(repr(made)) < 60 + len(str(path))
    assert repr(made).startswith("<majorant report: ")
    assert " KB" in repr(made)
    assert str(path) in repr(made)
    assert made.path == path
    assert str(made) == made.html == path.read_text(encoding="utf-8")
    assert type(str(made)) is str
    assert report(*binary).path is None
    again = pickle.loads(pickle.dumps(made))
    assert (again, again.path) == (made, path)


def test_a_notebook_shows_the_page_in_a_frame(binary):
    made = report(*binary, title='"><script>alert(1)</script>')
    (frame,) = Page(made._repr_html_()).elements
    assert frame[0] == "iframe"
    assert frame[1]["srcdoc"] == made.html
    assert "allow-same-origin" not in frame[1]["sandbox"]


# Searches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["search", "pipeline in search", "search in pipeline", "several scores"])
def test_a_report_of_a_search(kind):
    X, y = problem()
    grid = {"lam": [2.0, 20.0]}
    if kind == "search":
        model = GridSearchCV(SparseSVC("l1"), grid, cv=3)
    elif kind == "pipeline in search":
        inner = make_pipeline(StandardScaler(), SparseSVC("l1"))
        model = GridSearchCV(inner, {"sparsesvc__lam": grid["lam"]}, cv=3, scoring="roc_auc")
    elif kind == "search in pipeline":
        model = make_pipeline(StandardScaler(), GridSearchCV(SparseSVC("l1"), grid, cv=3, scoring="roc_auc"))
    else:
        model = GridSearchCV(SparseSVC("l1"), grid, cv=3, scoring=["accuracy", "roc_auc"], refit="roc_auc")
    model.fit(X[:80], y[:80])
    text = report(model, X[:80], y[:80], X_test=X[80:], y_test=y[80:])
    tile = re.search(r"<dt>(.*?)</dt><dd class=\"value\">(.*?)</dd>", text.split("Features used")[1])
    asked = "accuracy" if kind == "search" else "roc_auc"
    expected = metrics.get_scorer(asked)(model, X[80:], y[80:])
    assert tile[1] == ("Accuracy" if kind == "search" else "ROC AUC")
    assert tile[2] == f"{expected:.3f}"
    assert "GridSearchCV, 2 candidates: " in text
    assert ("coefficients of standardised features" in text) == ("pipeline" in kind)


def test_standardised_features_are_called_so():
    X, y = problem()
    for steps, expected in (
        ([StandardScaler()], True), ([PolynomialFeatures(2), StandardScaler()], True),
        ([StandardScaler(), SelectKBest(k=5)], True), ([StandardScaler(with_std=False)], False),
        ([StandardScaler(), PolynomialFeatures(2)], False), ([MinMaxScaler()], False), ([], False),
    ):  # fmt: skip
        model = make_pipeline(*steps, SparseSVC("l1", lam=2.0)).fit(X, y)
        text = report(model, X, y)
        assert ("coefficients of standardised features" in text) == expected
        assert ("after MinMaxScaler" in text) == any(isinstance(step, MinMaxScaler) for step in steps)


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
