"""What the plots show, and the shares of the folds that one of them is made of."""

import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from majorant import SparseSVC, SparseSVCCV, sparse_svc_path
from majorant.estimators import plots
from majorant.estimators.path import Path
from majorant.status import History, Record

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def iris():
    """A data frame, and labels that are names."""
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def searched(cancer):
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    return SparseSVCCV("l1", lambdas=30, cv=folds, selection="1se").fit(*cancer)


@pytest.fixture(scope="module")
def path(cancer):
    return sparse_svc_path(*cancer, "l1", lambdas=15, ratio=1e-2)


def segments(ax):
    """The lines of a path: the grey ones, and the labelled ones with the largest first."""
    grey, labelled = ax.collections
    return grey.get_segments(), labelled.get_segments()[::-1]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def vertical_lines(ax):
    return [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]


# The shares of the folds -----------------------------------------------------------------------


def test_the_selection_frequency_is_that_of_models_fitted_fold_by_fold(cancer, searched):
    X, y = cancer
    counts = np.zeros(X.shape[1])
    for train, _ in searched.cv.split(X, y):
        counts[SparseSVC("l1", lam=searched.lam_).fit(X[train], y[train]).support_] += 1
    assert np.array_equal(searched.selection_frequency_, counts / 4)
    at = list(searched.lambdas_).index(searched.lam_)
    assert searched.selection_frequency_.sum() == pytest.approx(searched.cv_results_["mean_n_features"][at])


def test_the_selection_frequency_of_a_model_without_features_is_zero(cancer):
    model = SparseSVCCV("l1", lambdas=[1e6], cv=2).fit(*cancer)
    assert np.array_equal(model.selection_frequency_, np.zeros(30))
    ax = model.plot_selection_frequency()
    assert not ax.patches
    assert "0 features" in ax.get_title()


# Convergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["time", "iteration"])
def test_convergence_shows_the_gap_and_the_tolerance(cancer, against):
    model = SparseSVC("l1", tol=1e-5).fit(*cancer)
    ax = model.plot_convergence(against=against)
    trace, end, tolerance = ax.lines
    assert np.array_equal(trace.get_xdata(), model.history_.column(against))
    assert np.array_equal(trace.get_ydata(), model.history_.column("gap"))
    assert end.get_ydata() == [model.gap_]
    assert set(tolerance.get_ydata()) == {1e-5}
    assert texts(ax) == ["tol = 1e-05"]
    assert ax.get_yscale() == "log"
    assert "gap" in ax.get_ylabel()
    assert against in ax.get_xlabel().lower()
    assert ax.get_legend() is None


def test_convergence_shows_the_stationarity_where_there_is_no_gap(cancer):
    model = SparseSVC("welsch").fit(*cancer)
    ax = model.plot_convergence()
    assert np.array_equal(ax.lines[0].get_ydata(), model.history_.column("stationarity"))
    assert ax.get_ylabel() == "Stationarity"


def test_convergence_of_several_problems_has_a_line_for_each(iris):
    model = SparseSVC("l1").fit(*iris)
    ax = model.plot_convergence()
    assert len(ax.lines) == 2 * 3 + 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["setosa", "versicolor", "virginica"]
    alone = plots.plot_convergence(model.history_)
    assert len(alone.lines) == 2 * 3
    assert not alone.texts
    assert len(plots.plot_convergence(model.history_[0]).lines) == 2


def test_convergence_of_very_many_problems_has_no_legend():
    histories = [History([Record(0, 0.0, 1.0, 0.5, np.nan, 0)])] * 11
    assert plots.plot_convergence(histories).get_legend() is None


def test_a_gap_of_zero_is_drawn_at_the_machine_precision():
    history = History([Record(0, 0.0, 1.0, 0.5, np.nan, 0), Record(1, 0.1, 0.5, 0.0, 0.0, 1)])
    ax = plots.plot_convergence(history)
    assert ax.lines[0].get_ydata().tolist() == [0.5, np.finfo(float).eps]


def test_convergence_says_what_it_cannot_draw(cancer):
    with pytest.raises(ValueError, match="'time' or 'iteration'"):
        plots.plot_convergence(History(), against="epoch")
    with pytest.raises(ValueError, match="no record"):
        plots.plot_convergence(History())
    with pytest.raises(TypeError, match="History"):
        plots.plot_convergence([1.0, 2.0])


# Paths -----------------------------------------------------------------------------------------


def test_a_path_shows_the_selected_features_and_names_the_largest(path):
    ax = path.plot()
    grey, labelled = segments(ax)
    coefs = path.coefs
    peaks = np.abs(coefs).max(axis=0)
    largest = np.argsort(-peaks)[:10]
    assert len(grey) == np.count_nonzero(peaks) - 10
    assert texts(ax) == [f"x{i}" for i in largest]
    for line, i in zip(labelled, largest, strict=True):
        assert np.array_equal(line[-len(line) :, 0], path.lambdas[-len(line) :])
        assert np.array_equal(line[:, 1], coefs[-len(line) :, i])
        assert not np.any(coefs[: -len(line), i])  # what is left out is zero
        assert np.all(line[1:2, 1] != 0.0)  # and nothing more of it is drawn than where the line begins
    assert ax.get_xscale() == "log"
    assert ax.get_xlim() == pytest.approx((path.lambdas[0], path.lambdas[-1]))  # strong penalty left
    low, high = ax.get_ylim()
    assert low < coefs.min()
    assert high > coefs.max()


@pytest.mark.parametrize("top", [10, 25])
def test_the_names_at_the_end_of_a_path_do_not_overlap(path, top):
    ax = path.plot(top=top)
    ax.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert len(boxes) == min(top, len(segments(ax)[1]))
    assert all(below.y1 <= above.y0 + 1.0 for below, above in pairwise(boxes))
    assert max(box.x1 for box in boxes) <= ax.figure.bbox.x1


def test_a_path_takes_names(cancer, iris, path):
    names = [f"gene {i}" for i in range(30)]
    names[int(np.abs(path.coefs).max(axis=0).argmax())] = "price in $ and " + 30 * "long "
    ax = path.plot(names, top=1)
    (name,) = texts(ax)
    assert name.startswith("price in $")
    assert len(name) == 30
    ax.figure.canvas.draw()  # a lone $ is no formula
    with pytest.raises(ValueError, match="2 names for 30 features"):
        path.plot(["a", "b"])


def test_a_path_of_several_classes_shows_lengths(iris):
    path = sparse_svc_path(*iris, "l1", lambdas=5, ratio=0.1)
    ax = path.plot()
    lengths = np.linalg.norm(path.coefs, axis=1)
    _, labelled = segments(ax)
    order = np.argsort(-lengths.max(axis=0))
    assert texts(ax) == [iris[0].columns[i] for i in order if lengths[:, i].any()]
    assert [line[-1, 1] for line in labelled] == pytest.approx(lengths[-1, order][: len(labelled)])
    assert ax.get_ylim()[0] == 0.0
    assert "classes" in ax.get_ylabel()


def test_paths_and_scores_of_numbers_of_features():
    X, y = load_breast_cancer(return_X_y=True)
    ax = sparse_svc_path(X, y, n_features=5).plot()
    assert ax.get_xlabel() == "Number of features"
    assert ax.get_xscale() == "linear"
    assert ax.get_xlim() == (1.0, 5.0)
    model = SparseSVCCV(n_features=4, cv=3).fit(X, y)
    ax = model.plot()
    (mean,) = (line for line in ax.lines if len(line.get_xdata()) == 4)
    assert mean.get_xdata().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert {model.n_features_best_, model.n_features_1se_} == set(vertical_lines(ax))
    assert f"Size {model.n_features_}" in model.plot_selection_frequency().get_title()


def test_a_path_of_very_many_features_draws_the_largest():
    rng = np.random.default_rng(0)
    coefs = [sp.random(1, 50_000, 0.02, format="csr", random_state=rng) for _ in range(20)]
    models = [SimpleNamespace(lam_=10.0 / k, coef_=coef, n_features=None) for k, coef in enumerate(coefs, 1)]
    ax = Path(models).plot()
    grey, labelled = segments(ax)
    assert (len(grey), len(labelled)) == (290, 10)
    peaks = np.sort(np.max([coef.toarray()[0] for coef in coefs], axis=0))
    drawn = [line[:, 1].max() for line in [*grey, *labelled]]
    assert sorted(drawn) == pytest.approx(peaks[-300:])


def test_a_path_without_any_feature_is_an_empty_picture(cancer):
    ax = sparse_svc_path(*cancer, "l1", lambdas=[1e5, 1e6]).plot()
    assert segments(ax) == ([], [])
    assert not ax.texts


def test_a_path_without_labels(path):
    ax = path.plot(top=0)
    assert not ax.texts
    assert len(segments(ax)[0]) == np.count_nonzero(path.coefs.any(axis=0))


def test_a_path_leaves_out_the_strength_zero(cancer, path):
    X, y = cancer
    ax = sparse_svc_path(X, y, "l2", lambdas=[0.0, 1.0, 10.0]).plot()
    assert ax.get_xlim() == (10.0, 1.0)
    with pytest.raises(ValueError, match="two models"):
        Path(path.models[:1]).plot()


@pytest.mark.parametrize("ends", [[0.5], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0], [0.9, 0.1, 0.12, 0.5]])
def test_spread_keeps_order_distance_and_bounds(ends):
    ends = np.array(ends)
    places = plots.strengths._spread(ends, 0.1)
    assert np.all(np.diff(places[np.argsort(ends, kind="stable")]) >= 0.1 - 1e-12)
    assert np.all((places >= 0.0) & (places <= 1.0 + 1e-12))
    apart = np.array([0.0, 0.3, 1.0])
    assert np.allclose(plots.strengths._spread(apart, 0.1), apart)


# Selection frequency ---------------------------------------------------------------------------


def test_bars_are_the_shares_of_the_folds_most_frequent_first(searched):
    ax = searched.plot_selection_frequency()
    widths = [bar.get_width() for bar in ax.patches]
    frequency = searched.selection_frequency_
    assert widths == sorted(frequency[frequency > 0.0], reverse=True)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert widths == [frequency[int(name[1:])] for name in names]
    final = [int(name[1:]) in searched.support_ for name in names]
    assert [bar.get_alpha() == 1.0 for bar in ax.patches] == final
    assert ("pale" in ax.get_xlabel()) == (not all(final))
    assert ax.yaxis_inverted()
    assert ax.get_xlim() == (0.0, 1.0)


def test_bars_end_at_top_and_say_so(searched):
    ax = searched.plot_selection_frequency(names=[f"gene {i}" for i in range(30)], top=3)
    assert len(ax.patches) == 3
    assert all(label.get_text().startswith("gene ") for label in ax.get_yticklabels())
    assert "the first 3 shown" in ax.get_title()


# Margins ---------------------------------------------------------------------------------------


def test_margins_of_two_classes(cancer):
    X, y = cancer
    model = SparseSVC("l1").fit(X, y)
    ax = model.plot_margins(X, y)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"0", "1"}
    assert vertical_lines(ax) == [0.0, 1.0]
    assert f"{100 * np.mean(margins < 1):.3g} % of the rows inside the margin" in ax.get_title()
    assert f"{100 * np.mean(model.predict(X) != y):.3g} % on the wrong side" in ax.get_title()
    highest = [
        np.histogram(margins[y == k], plots.data.bin_edges(margins, 100, 1e-3))[0].max() for k in (0, 1)
    ]
    assert sorted(outline.get_xy()[:, 1].max() for outline in ax.patches) == sorted(highest)
    edges = np.unique(ax.patches[0].get_xy()[:, 0])
    assert any(np.isclose(edges, 1.0, atol=1e-9))
    assert any(np.isclose(edges, 0.0, atol=1e-9))


def test_margins_count_every_row(cancer):
    X, y = cancer
    model = SparseSVC("l1").fit(X, y)
    margins, codes = plots.fits._margins(model, X, y)
    for rows in (margins, margins[:1], 1e4 * margins, np.ones(5)):
        edges = plots.data.bin_edges(rows, 100, 1e-3)
        assert len(edges) <= 150
        assert np.histogram(rows, edges)[0].sum() == len(rows)
    assert np.array_equal(codes, y)


def test_margins_of_several_classes_are_against_the_best_other(iris):
    X, y = iris
    model = SparseSVC("l1").fit(X, y)
    margins, _ = plots.fits._margins(model, X, y)
    assert np.array_equal(margins > 0.0, model.predict(X) == y)
    scores = model.decision_function(X)
    assert margins[0] == pytest.approx(scores[0, 0] - max(scores[0, 1:]))
    ax = model.plot_margins(X, y)
    assert len(ax.get_legend().get_texts()) == 3
    together = np.histogram(margins, plots.data.bin_edges(margins, 100, 1e-3))[0].max()
    assert max(outline.get_xy()[:, 1].max() for outline in ax.patches) == together
    assert "own class" in ax.get_xlabel()


def test_margins_of_pipelines_and_of_searches(cancer, searched):
    X, y = cancer
    model = make_pipeline(StandardScaler(), SparseSVC("l1")).fit(X, y)
    assert vertical_lines(plots.plot_margins(model, X, y)) == [0.0, 1.0]
    assert "inside the margin" in searched.plot_margins(X, y).get_title()


def test_margins_refuse_labels_they_do_not_know(cancer):
    X, y = cancer
    model = SparseSVC("l1").fit(X, y)
    with pytest.raises(ValueError, match=r"not fitted on: \[2\]"):
        model.plot_margins(X, 2 * y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.plot_margins(X, y[:-1])


# Cross-validation ------------------------------------------------------------------------------


def test_scores_against_the_strength(searched):
    ax = searched.plot()
    mean = ax.lines[0]
    results = searched.cv_results_
    assert np.array_equal(mean.get_xdata(), searched.lambdas_)
    assert np.array_equal(mean.get_ydata(), results["mean_test_score"])
    scores = np.array([results[f"split{k}_test_score"] for k in range(4)])
    error = scores.std(axis=0, ddof=1) / 2.0
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx((scores.mean(axis=0) + error).max())
    assert corners[:, 1].min() == pytest.approx((scores.mean(axis=0) - error).min())
    assert searched.lam_best_ < searched.lam_1se_
    assert vertical_lines(ax) == [searched.lam_best_, searched.lam_1se_]
    left, right = ax.get_xlim()
    assert left > searched.lambdas_[0] > searched.lambdas_[-1] > right
    (above,) = ax.child_axes
    ticks = zip(above.get_xticks(), above.get_xticklabels(), strict=True)
    labels = {lam: text.get_text() for lam, text in ticks}
    sizes = dict(zip(searched.lambdas_, results["mean_n_features"], strict=True))
    assert len(labels) > 2
    assert labels == {lam: f"{sizes[lam]:.0f}" for lam in labels}


def test_scores_are_named(cancer):
    ax = SparseSVCCV("l1", lambdas=[1.0, 10.0], cv=2, scoring="roc_auc").fit(*cancer).plot()
    assert ax.get_ylabel().startswith("roc_auc")


def test_one_line_is_enough_where_both_rules_agree(cancer):
    model = SparseSVCCV("l1", lambdas=[1.0, 1e4], cv=3).fit(*cancer)
    ax = model.plot()
    assert model.lam_best_ == model.lam_1se_ == 1.0
    assert vertical_lines(ax) == [1.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["best and 1 SE: λ = 1"]


def test_one_strength_is_no_curve(cancer):
    model = SparseSVCCV("l1", lambdas=[1.0], cv=2).fit(*cancer)
    with pytest.raises(ValueError, match="at least two strengths"):
        model.plot()


# All of them -----------------------------------------------------------------------------------


def test_everything_draws_on_the_axes_given(cancer, searched, path):
    X, y = cancer
    _, axes = plt.subplots(1, 5)
    model = SparseSVC("l1").fit(X, y)
    assert model.plot_convergence(axes[0]) is axes[0]
    assert path.plot(ax=axes[1]) is axes[1]
    assert searched.plot(axes[2]) is axes[2]
    assert searched.plot_selection_frequency(ax=axes[3]) is axes[3]
    assert model.plot_margins(X, y, axes[4]) is axes[4]
    assert len(plt.get_fignums()) == 1


def test_models_that_are_not_fitted_are_refused(cancer):
    X, y = cancer
    for draw in (
        SparseSVC().plot_convergence,
        SparseSVCCV().plot,
        SparseSVCCV().plot_selection_frequency,
        lambda: SparseSVC().plot_margins(X, y),
        lambda: SparseSVCCV().plot_margins(X, y),
    ):
        with pytest.raises(NotFittedError):
            draw()
    assert not plt.get_fignums()


def test_without_matplotlib_the_error_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        path.plot()


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, majorant.estimators.plots; print('matplotlib' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "False"
