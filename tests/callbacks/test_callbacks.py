"""Watching a fit: early stopping, the progress bar, scikit-learn's callbacks."""

import io
import pickle
import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from majorant import SparseSVC
from majorant.callbacks import Callback, Checkpoint, EarlyStopping, LiveProgress, Progress, TimeLimit
from majorant.objective import Objective
from majorant.potentials import L2, Hyperbolic
from majorant.rows import MemoryRows
from majorant.solvers import MM, Newton, Solver, solve
from majorant.status import Iterate, Status
from tests.problems import random_objective


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(300, 20, n_informative=5, flip_y=0.2, random_state=0)
    return train_test_split(X, np.where(y == 1, "yes", "no"), test_size=0.5, random_state=0)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


class Scripted(Solver):
    """Yields (w, β) as told, of a problem with one feature."""

    def __init__(self, *thetas):
        self.thetas = thetas

    def iterates(self, objective, theta, seed):
        for theta in self.thetas:
            yield Iterate(np.array(theta, dtype=float))
        while True:
            yield Iterate(np.array(self.thetas[-1], dtype=float))


class Trace(Callback):
    def __init__(self):
        self.thetas = []

    def on_iterate(self, iterate, record):
        self.thetas.append(iterate.theta.copy())


# Early stopping --------------------------------------------------------------------------------


# Thresholds on the line 1, 2, …, 6: how many of the rows are right with each.
LINE = np.arange(1.0, 7.0)[:, None]
SIDES = np.array([-1, -1, -1, 1, 1, 1])


def threshold(t):
    return (2.0, -2.0 * t)  # not the minimum, wherever t is


def run_scripted(*thetas, **options):
    objective = Objective(MemoryRows(LINE, SIDES), L2(1.0))
    early = EarlyStopping(LINE, SIDES, **options)
    return solve(Scripted(*thetas), objective, tol=0.0, callbacks=[early]), early


def test_it_stops_after_so_many_iterations_without_improvement_and_keeps_the_best():
    worse = [threshold(t) for t in (5.5, 4.5, 3.5, 4.6, 4.7, 4.8, 4.9)]
    result, early = run_scripted(*worse, patience=3)
    assert (result.status, result.n_iter) == (Status.STOPPED, 5)
    assert np.array_equal(result.iterate.theta, threshold(3.5))
    assert np.array_equal(early.best_theta, threshold(3.5))
    assert early.best_score == 1.0
    assert len(result.history) == 6


def test_the_certificate_is_that_of_the_model_that_is_kept():
    result, early = run_scripted(threshold(3.5), threshold(4.5), threshold(5.5), patience=2)
    objective = Objective(MemoryRows(LINE, SIDES), L2(1.0))
    at, certificate = objective.certify(early.best_theta)
    assert result.certificate == certificate
    assert result.iterate.value == at.value


def test_of_equally_good_ones_the_last_is_kept():
    result, _ = run_scripted(threshold(3.5), threshold(3.6), threshold(3.4), threshold(5.5), patience=3)
    assert np.array_equal(result.iterate.theta, threshold(3.4))


def test_an_improvement_within_tol_does_not_buy_time():
    steps = [threshold(t) for t in (6.5, 5.5, 4.5, 3.5)]  # 1/6 better each
    assert run_scripted(*steps, (1.0, 0.0), patience=1, tol=0.2)[0].n_iter == 1
    result, _ = run_scripted(*steps, (1.0, 0.0), patience=1, tol=0.1)
    assert result.n_iter == 4
    assert np.array_equal(result.iterate.theta, threshold(3.5))


def test_iterations_that_leave_theta_do_not_count():
    """As while a solver is underway over surrogates."""
    from majorant.status import Provisional

    class Travelling(Scripted):
        def iterates(self, objective, theta, seed):
            yield Iterate(np.array(threshold(5.5)))
            for _ in range(10):
                yield Provisional(np.array(threshold(5.5)), 1.0)
            yield from super().iterates(objective, theta, seed)

    objective = Objective(MemoryRows(LINE, SIDES), L2(1.0))
    early = EarlyStopping(LINE, SIDES, patience=2)
    solver = Travelling(threshold(3.5), threshold(4.5), threshold(4.6), threshold(4.7))
    result = solve(solver, objective, tol=0, max_iter=99, callbacks=[early])
    assert (result.status, result.n_iter) == (Status.STOPPED, 13)


def test_weights_decide_what_is_best():
    early = EarlyStopping(LINE, SIDES, sample_weight=[0, 0, 0, 0, 1, 3])
    assert early.score(np.array(threshold(5.5))) == 0.75
    assert early.score(np.array(threshold(3.5))) == 1.0


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_fitted_model_is_the_best_on_the_validation_set(binary, container):
    X, X_valid, y, y_valid = binary
    trace = Trace()
    early = EarlyStopping(container(X_valid), y_valid, patience=4)
    options = {"penalty": "l2", "lam": 1e-3, "solver": "mm-gradient", "max_iter": 200}
    model = SparseSVC(**options).set_callbacks(early, trace)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # it was asked for
        model.fit(X, y)
    labels = np.array(["no", "yes"])
    scores = [
        accuracy_score(y_valid, labels[(X_valid @ theta[:-1] + theta[-1] > 0).astype(int)])
        for theta in trace.thetas
    ]
    assert model.status_ is Status.STOPPED
    assert not model.converged_
    assert len(model.history_) == len(scores) < 200
    assert model.score(X_valid, y_valid) == max(scores) == pytest.approx(early.best_score)
    assert np.array_equal(np.append(model.coef_, model.intercept_), early.best_theta)
    assert scores[-1] < max(scores)  # or the test would say nothing


def test_one_class_against_the_rest_has_a_score_of_its_own(iris):
    X, y = iris
    early = EarlyStopping(X[::2], y[::2], patience=3)
    model = SparseSVC("l2", lam=0.1, solver="mm-subspace", max_iter=500, n_jobs=2).set_callbacks(early)
    model.fit(X[1::2], y[1::2])
    assert list(early.by_class) == ["a", "b", "c"]
    assert early.best_theta is None
    for row, (label, watcher) in enumerate(early.by_class.items()):
        assert np.array_equal(np.append(model.coef_[row], model.intercept_[row]), watcher.best_theta)
        decision = model.decision_function(X[::2])[:, row] > 0
        assert watcher.best_score == pytest.approx(balanced_accuracy_score(y[::2] == label, decision))


def test_all_classes_at_once_are_scored_by_their_accuracy(iris):
    X, y = iris
    early = EarlyStopping(X[::2], y[::2], patience=2)
    model = SparseSVC("l2", lam=0.1, multi_class="joint").set_callbacks(early).fit(X[1::2], y[1::2])
    assert early.best_score == model.score(X[::2], y[::2])
    assert np.array_equal(np.column_stack([model.coef_, model.intercept_]).ravel(), early.best_theta)


def test_a_validation_set_that_does_not_fit_is_refused(binary):
    X, X_valid, y, y_valid = binary
    with pytest.raises(ValueError, match=r"validation rows with 7 features.*trained on 20"):
        SparseSVC().set_callbacks(EarlyStopping(X_valid[:, :7], y_valid)).fit(X, y)
    with pytest.raises(ValueError, match=r"not trained on: \['maybe'\]"):
        SparseSVC().set_callbacks(EarlyStopping(X_valid, ["maybe", *y_valid[1:]])).fit(X, y)
    with pytest.raises(ValueError, match="patience=0"):
        EarlyStopping(X_valid, y_valid, patience=0)
    with pytest.raises(ValueError, match="inconsistent"):
        EarlyStopping(X_valid, y_valid[1:])
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        EarlyStopping(X_valid, y_valid, sample_weight=np.zeros(len(y_valid)))


def test_a_model_stopped_early_by_choice_hides_no_iteration_limit(iris):
    """One class stops early, another runs into the limit: the user is told of the limit."""
    X, y = iris

    class StopFirst(Callback):
        def for_problem(self, classes, positive):
            return StopNow() if positive == "a" else Callback()

    class StopNow(Callback):
        def on_iterate(self, iterate, record):
            return Status.STOPPED

    model = SparseSVC("l2", solver="mm-gradient", max_iter=3).set_callbacks(StopFirst())
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_ITER


def test_every_class_has_a_checkpoint_of_its_own(iris, tmp_path):
    model = SparseSVC("l2").set_callbacks(Checkpoint(tmp_path / "fit.npz")).fit(*iris)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"fit-{k}.npz" for k in range(3)]
    for row in range(3):
        expected = np.append(model.coef_[row], model.intercept_[row])
        assert np.allclose(np.load(tmp_path / f"fit-{row}.npz")["theta"], expected)


# The progress bar ------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def seconds(monkeypatch):
    """A clock that each look at it moves on."""
    now = [0.0, 0.0]

    def look():
        now[0] += now[1]
        return now[0]

    # Theirs alone: threads of others that look at Python's clock would move it, too.
    for module in ("checkpoint", "progress"):
        monkeypatch.setattr(f"majorant.callbacks.{module}.time", SimpleNamespace(monotonic=look))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return now


@pytest.fixture
def objective():
    return random_objective(Hyperbolic(0.3, 0.1))


def test_a_short_fit_draws_no_bar(objective, seconds):
    terminal = Terminal()
    result = solve(Newton(), objective, callbacks=[LiveProgress(stream=terminal)])
    plural = "" if result.n_iter == 1 else "s"
    assert terminal.getvalue() == (
        f"{Status.CONVERGED.value} ({result.certificate}, {result.n_iter} iteration{plural})\n"
    )


def test_a_bar_is_drawn_on_a_terminal_and_goes_away(objective, seconds):
    seconds[1] = 0.3
    terminal = Terminal()
    result = solve(MM(), objective, tol=1e-4, max_iter=400, callbacks=[LiveProgress(stream=terminal)])
    text = terminal.getvalue()
    percent = [int(found) for found in re.findall(r"(\d+)%", text)]
    assert percent == sorted(percent)
    assert percent[-1] == 100
    assert f"iteration {result.n_iter}" in text
    assert "duality gap" in text
    # The cursor is back, the bar erased, and one line is left.
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    rest = text.split("\x1b[2K")[-1].removeprefix("\x1b[?25h\r")
    assert rest == f"{Status.CONVERGED.value} ({result.certificate}, {result.n_iter} iterations)\n"


def test_it_is_not_redrawn_more_than_ten_times_a_second(objective, seconds):
    seconds[1] = 0.02
    terminal = Terminal()
    solve(MM(), objective, tol=0, max_iter=60, callbacks=[LiveProgress(stream=terminal)])
    # 1.2 seconds, of which the first half a second draws nothing; and once when it ends.
    assert 6 <= terminal.getvalue().count("%") <= 10


def test_without_a_terminal_there_is_a_line_every_few_seconds(objective, seconds):
    seconds[1] = 0.5
    stream = io.StringIO()
    live = LiveProgress(every=3.0, stream=stream)
    solve(MM(), objective, tol=0, max_iter=29, callbacks=[live])
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6  # 30 looks at the clock make 15 seconds
    assert all(re.match(r" *\d+%  .* s  iteration \d+  duality gap", line) for line in lines[:-1])
    assert lines[-1].startswith(Status.MAX_ITER.value)
    assert "\x1b" not in stream.getvalue()


def test_the_bar_says_which_class(iris, seconds, monkeypatch):
    seconds[1] = 0.3
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    model = SparseSVC("l2", verbose=1).fit(*iris)
    text = terminal.getvalue()
    for number, label in enumerate("abc", start=1):
        assert f"class '{label}' ({number} of 3)" in text
    assert text.count(Status.CONVERGED.value) == 1
    assert text.endswith(f"{model.n_iter_} iterations)\n")
    assert text.count("\x1b[?25l") == 1


def test_a_fit_that_fails_leaves_no_bar_behind(binary, seconds, monkeypatch):
    seconds[1] = 0.3
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    class Fail(Callback):
        def on_iterate(self, iterate, record):
            if record.iteration == 6:
                raise OSError("no")

    X, _, y, _ = binary
    with pytest.raises(OSError, match="no"):
        SparseSVC("l2", solver="mm-gradient", verbose=1).set_callbacks(Fail()).fit(X, y)
    text = terminal.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_verbose_2_is_a_line_per_iteration_with_its_class(iris, capsys):
    model = SparseSVC("l2", verbose=2).fit(*iris)
    lines = capsys.readouterr().err.splitlines()
    for label, history in zip("abc", model.history_, strict=True):
        mine = [line for line in lines if line.startswith(f"class '{label}'")]
        assert len(mine) == len(history) + 1
        assert mine[-1].endswith(")")
    assert len(lines) == sum(map(len, model.history_)) + 3


def test_progress_callbacks_can_be_pickled():
    for callback in (Progress(), LiveProgress()):
        assert isinstance(pickle.loads(pickle.dumps(callback)), type(callback))


# scikit-learn's callbacks ----------------------------------------------------------------------


class Recorder:
    """Follows scikit-learn's protocol, and asks for everything."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.begun, self.ended, self.models = [], [], []
        self.phases = []

    def setup(self, estimator, context):
        self.phases.append("setup")

    def teardown(self, estimator, context):
        self.phases.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(path_of(context))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.ended.append(path_of(context))
        if isinstance(fitted_estimator, SparseSVC):
            score = fitted_estimator.score(X, y, **(metadata or {}))
            self.models.append((path_of(context), fitted_estimator, score))
        return context.task_name == "iteration" and context.task_id == self.stop_at


def path_of(context):
    here = (context.task_name, context.task_id)
    return (here,) if context.parent is None else (*path_of(context.parent), here)


def iterations(paths):
    return [path for path in paths if path[-1][0] == "iteration"]


def test_an_iteration_is_a_task(binary):
    X, _, y, _ = binary
    recorder = Recorder()
    model = SparseSVC("l2").set_callbacks(recorder).fit(X, y)
    root = ("fit", 0)
    assert recorder.begun == [(root,)] + [(root, ("iteration", k)) for k in range(model.n_iter_)]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.ended[-1] == (root,)
    assert recorder.phases == ["setup", "teardown"]
    assert not [name for name in vars(model) if "ctx" in name or "teardown" in name]


def test_the_estimator_on_offer_is_what_fit_would_leave(binary):
    """A callback's own True stops the fit, whose model is then the one that the callback saw."""
    X, _, y, _ = binary
    options = {"penalty": "hyperbolic", "lam": 3.0, "delta": 0.01, "solver": "mm", "tol": 1e-3}
    recorder = Recorder(stop_at=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SparseSVC(**options).set_callbacks(recorder).fit(X, y)
    assert model.status_ is Status.STOPPED
    assert model.n_iter_ == 7
    (_, seen, _), (_, left, _) = recorder.models[-2:]
    for fitted in (seen, left):
        assert np.array_equal(fitted.coef_, model.coef_)
        assert np.array_equal(fitted.intercept_, model.intercept_)
        assert np.array_equal(fitted.support_, model.support_)
        assert np.array_equal(fitted.predict(X), model.predict(X))
    assert 0 < len(model.support_) < X.shape[1]  # rounded to zero, as fit does
    first = recorder.models[0][1]
    assert not np.array_equal(first.coef_, model.coef_)


def test_every_step_has_an_end_whatever_ended_the_run(binary):
    X, _, y, _ = binary

    class StopAtThree(Callback):
        def on_iterate(self, iterate, record):
            return Status.STOPPED if record.iteration == 3 else None

    recorder = Recorder()
    SparseSVC("l2", solver="mm-gradient").set_callbacks(StopAtThree(), recorder).fit(X, y)
    assert len(iterations(recorder.begun)) == 4  # the last was not taken
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert len(iterations([path for path, _, _ in recorder.models])) == 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_more_tasks_than_announced(binary):
    X, _, y, _ = binary
    recorder = Recorder()
    SparseSVC("l2", solver="mm-gradient", max_iter=5).set_callbacks(recorder).fit(X, y)
    assert len(iterations(recorder.begun)) == len(iterations(recorder.ended)) == 5


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_class_is_a_task_with_iterations(iris, n_jobs):
    X, y = iris
    recorder = Recorder()
    model = SparseSVC("l2", n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    for number, (label, history) in enumerate(zip("abc", model.history_, strict=True)):
        task = (("fit", 0), (f"class '{label}'", number))
        assert [path[-1][1] for path in iterations(recorder.ended) if path[:2] == task] == list(
            range(len(history) - 1)
        )
        assert task in recorder.ended
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert all(fitted.coef_.shape == (3, 4) for _, fitted, _ in recorder.models)
    path, last, score = recorder.models[-1]
    assert path == (("fit", 0),)
    assert score == model.score(X, y)
    classes = [fitted for path, fitted, _ in recorder.models if path[-1][0].startswith("class")]
    assert np.array_equal(classes[-1].coef_, model.coef_)
    if n_jobs == 1:
        assert not classes[0].coef_[1:].any()  # the others have not begun
    assert last is not model


def test_all_classes_at_once_are_one_task(iris):
    X, y = iris
    recorder = Recorder()
    model = SparseSVC("l2", multi_class="joint").set_callbacks(recorder).fit(X, y)
    assert len(iterations(recorder.ended)) == model.n_iter_
    _, fitted, score = [entry for entry in recorder.models if entry[0][-1][0] == "iteration"][-1]
    assert np.allclose(fitted.coef_, model.coef_)
    assert score == model.score(X, y)


def test_a_limit_on_features_makes_runs(binary):
    X, _, y, _ = binary
    recorder = Recorder()
    model = SparseSVC("l1", lam=0.1, max_features=3).set_callbacks(recorder).fit(X, y)
    runs = {path[1] for path in recorder.ended if len(path) > 1}
    assert runs == {("run", k) for k in range(len(runs))}
    assert len(runs) > 3
    assert recorder.models[-1][2] == model.score(X, y)


def test_a_scoring_monitor_gets_scores_per_iteration(binary):
    X, _, y, _ = binary
    weights = np.linspace(0.1, 1.0, len(y))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    monitor = ScoringMonitor(scoring="accuracy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also on names of columns
        model = SparseSVC("l2").set_callbacks(monitor).fit(frame, y, sample_weight=weights)
    rows = monitor.get_logs().data
    steps = [row["accuracy"] for row in rows if row["task_name"] == "iteration"]
    assert len(steps) == model.n_iter_
    assert steps[-1] == pytest.approx(model.score(frame, y, weights))


def test_a_progress_bar_of_scikit_learns(iris, capsys):
    SparseSVC("l2").set_callbacks(ProgressBar()).fit(*iris)
    text = capsys.readouterr().out
    assert "SparseSVC - fit" in text
    assert "SparseSVC - class 'b' #1" in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_callbacks_of_a_grid_search_reach_the_models_in_other_processes(binary):
    X, _, y, _ = binary

    search = GridSearchCV(
        SparseSVC("l2", solver="mm-gradient", max_iter=4).set_callbacks(TimeLimit(3600.0)),
        {"lam": [1.0, 10.0]},
        cv=2,
        n_jobs=2,
    )
    monitor = PropagatedMonitor(scoring="accuracy")
    bar = ProgressBar(max_propagation_depth=None)
    search.set_callbacks(monitor, bar).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert {row["estimator_name"] for row in rows} == {"SparseSVC"}
    # Two strengths in two folds, and the final fit.
    parents = {row["parent_task_id_path"] for row in rows}
    assert len(parents) == 5
    assert len(rows) == 5 * 4
    best = search.best_estimator_
    assert isinstance(best._callbacks[0], TimeLimit)
    assert not hasattr(best, "_skl_callbacks")
    final = [row["accuracy"] for row in rows if row["parent_task_id_path"] == max(parents)]
    assert final[-1] == best.score(X, y)


class PropagatedMonitor(ScoringMonitor):
    """scikit-learn's own stays where it is set."""

    max_propagation_depth = None

    def setup(self, estimator, context):
        self._scorer_for(estimator)

    def _scorer_for(self, estimator):
        from sklearn.metrics import check_scoring

        self._estimator_scorers[estimator] = check_scoring(SparseSVC(), self._scoring)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None, metadata=None):
        # Set up for the search alone, it meets the models here.
        self._scorer_for(estimator)
        super().on_fit_task_end(
            estimator, context, X=X, y=y, fitted_estimator=fitted_estimator, metadata=metadata
        )


def test_early_stopping_of_a_users_own_in_a_grid_search(binary):
    """A True at the end of the second iteration is the same as a limit of two, in other processes too."""
    X, _, y, _ = binary
    stop = Recorder(stop_at=1)
    stop.max_propagation_depth = None

    def search(**options):
        model = SparseSVC("l2", solver="mm-gradient", **options)
        return GridSearchCV(model, {"lam": [0.1, 100.0]}, cv=3, n_jobs=2)

    stopped = search().set_callbacks(stop).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        limited = search(max_iter=2).fit(X, y)
    for fold in range(3):
        name = f"split{fold}_test_score"
        assert np.array_equal(stopped.cv_results_[name], limited.cv_results_[name])
    assert stopped.best_estimator_.status_ is Status.STOPPED
    assert np.array_equal(stopped.best_estimator_.coef_, limited.best_estimator_.coef_)


def test_a_grid_search_of_models_with_a_monitor(binary):
    """What is set on the model itself is kept by its clones, in other processes too."""
    X, _, y, _ = binary
    monitor = ScoringMonitor(scoring="accuracy")
    model = SparseSVC("l2").set_callbacks(monitor)
    search = GridSearchCV(model, {"lam": [1.0, 10.0]}, cv=2, n_jobs=2, refit=False).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len({row["parent_task_id_path"] for row in rows}) == 4
    assert len(search.cv_results_["param_lam"]) == 2


def test_a_pipeline_hands_its_callbacks_on(binary):
    X, _, y, _ = binary
    recorder = Recorder()
    recorder.max_propagation_depth = None
    model = make_pipeline(StandardScaler(), SparseSVC("l2")).set_callbacks(recorder).fit(X, y)
    assert len(iterations(recorder.ended)) == model[-1].n_iter_
    assert recorder.phases == ["setup", "teardown"]
    assert recorder.models[-1][1].coef_.shape == (1, 20)


def test_both_kinds_live_side_by_side_and_survive_cloning(binary):
    X, _, y, _ = binary
    trace, recorder = Trace(), Recorder()
    model = SparseSVC("l2").set_callbacks(recorder, trace)
    twin = clone(model).fit(X, y)
    assert len(trace.thetas) == twin.n_iter_ + 1
    assert len(iterations(recorder.ended)) == twin.n_iter_
    clone(model.set_callbacks()).fit(X, y)
    assert len(trace.thetas) == twin.n_iter_ + 1
    assert recorder.phases == ["setup", "teardown"]
    for wrong in (print, Recorder, TimeLimit):
        with pytest.raises(TypeError, match="FitCallback"):
            model.set_callbacks(wrong)


def test_a_callback_that_fails_is_torn_down(binary):
    X, _, y, _ = binary

    class Failing(Recorder):
        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "iteration":
                raise OSError("no")

    failing = Failing()
    with pytest.raises(OSError, match="no"):
        SparseSVC("l2").set_callbacks(failing).fit(X, y)
    assert failing.phases == ["setup", "teardown"]


def test_a_fit_without_callbacks_makes_no_contexts(binary, monkeypatch):
    X, _, y, _ = binary

    def refuse(*args, **options):
        raise AssertionError("a context was made")

    monkeypatch.setattr("sklearn.callback._callback_context.CallbackContext._from_estimator", refuse)
    assert SparseSVC("l2").fit(X, y).converged_
    assert SparseSVC("l2").set_callbacks(Trace()).fit(X, y).converged_
    with pytest.raises(AssertionError, match="context"):
        SparseSVC("l2").set_callbacks(Recorder()).fit(X, y)


OLDER = """
import builtins
real = builtins.__import__

def older(name, variables=None, *rest):
    if name == "sklearn.callback" and (variables or {}).get("__name__", "").startswith("majorant"):
        raise ImportError(name)
    return real(name, variables, *rest)

builtins.__import__ = older
import numpy as np
from sklearn.base import clone
from majorant import SparseSVC
from majorant.callbacks import Callback

class StopAtTwo(Callback):
    def on_iterate(self, iterate, record):
        return __import__("majorant.status").status.Status.STOPPED if record.iteration == 2 else None

class Foreign:
    def setup(self, estimator, context): ...
    teardown = on_fit_task_begin = on_fit_task_end = setup

X = np.random.default_rng(0).standard_normal((50, 4))
model = clone(SparseSVC("l2", solver="mm-gradient").set_callbacks(StopAtTwo())).fit(X, X[:, 0] > 0)
print(SparseSVC.__mro__[2].__module__, model.n_iter_, SparseSVC(verbose=1).fit(X, X[:, 0] > 0).converged_)
try:
    model.set_callbacks(Foreign())
except TypeError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_scikit_learns_callbacks_ours_still_work():
    run = subprocess.run([sys.executable, "-c", OLDER], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first == "majorant.estimators.sklearn_callbacks 2 True"
    assert "scikit-learn 1.9" in second
    assert Status.CONVERGED.value in run.stderr
