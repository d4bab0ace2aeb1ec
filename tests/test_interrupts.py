"""Ctrl-C at any moment of a command: an answer, and no traceback.

The commands are real processes, which press Ctrl-C themselves at the moment that is meant: a module that
Python imports at its start (`sitecustomize`) sees to that. So nothing depends on how fast they are.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from majorant import SparseSVC, SparseSVCCV, interrupts, load_model
from majorant.callbacks import Callback
from majorant.datasets import write_libsvm
from majorant.estimators import fit_problem
from majorant.interrupts import ending_on, undisturbed
from majorant.rows import MemoryRows, csr, kernels, pass_batcher
from majorant.rows.dense import DenseBlock
from majorant.rows.pass_batcher import PassBatcher
from majorant.rows.pass_hooks import Pass, call_watchers
from majorant.solvers.newton import cd_kernels, dual_newton, model_kernels, tuning
from majorant.status import Status

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# What the processes start with: they may get Ctrl-C, also if what runs the tests does not.
START = """
import atexit, os, signal, sys, time, weakref

signal.signal(signal.SIGINT, signal.default_int_handler)


def press():
    signal.raise_signal(signal.SIGINT)


def at_import(name, action):
    class Finder:
        def find_spec(self, module, path=None, target=None):
            if module == name:
                sys.meta_path.remove(self)
                action()

    sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def command(tmp_path):
    """Run a command in a process whose start is given; how it ended."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    write_libsvm(tmp_path / "rows.txt", X, np.where(X[:, 0] > 0.0, 1, -1))

    def call(start, *words, program=("-m", "majorant")):
        (tmp_path / "sitecustomize.py").write_text(START + start)
        paths = [str(tmp_path), *sys.path]
        return subprocess.run(
            [sys.executable, *program, *words],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    return call


def assert_interrupted(ended):
    assert (ended.returncode, ended.stderr.splitlines()[-1:]) == (130, ["Interrupted."]), ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "module",
    ["majorant.cli.app", "typer", "majorant.cli.train", "numpy", "scipy.sparse", "sklearn.base", "numba"],
)
@pytest.mark.parametrize("program", [("-m", "majorant"), ("-c", "from majorant.cli import main; main()")])
def test_ctrl_c_while_something_is_imported(command, module, program):
    ended = command(f"at_import({module!r}, press)", "train", "rows.txt", "m", program=program)
    assert_interrupted(ended)


def test_an_error_that_ctrl_c_has_become_is_not_told(command):
    """Compiled modules may turn an interrupt that comes while they are imported into another error."""
    start = """
def turn():
    try:
        press()
    except KeyboardInterrupt:
        raise SystemError("something else") from None
at_import("numpy", turn)
"""
    assert_interrupted(command(start, "train", "rows.txt", "m"))
    start = start.replace("SystemError", "ImportError")
    assert_interrupted(command(start, "train", "rows.txt", "m"))


def test_ctrl_c_where_python_cannot_raise_is_not_lost(command):
    """Imports call back when a lock is gone; what is raised there is printed, and forgotten."""
    start = """
class Lock: pass
lock = Lock()
gone = weakref.ref(lock, lambda _: press())
def let_go():
    global lock
    del lock
def wait():
    while True:
        time.sleep(0.01)
at_import("typer", let_go)
at_import("majorant.cli.train", wait)
"""
    assert_interrupted(command(start, "train", "rows.txt", "m"))


@pytest.mark.parametrize(
    "start",
    [
        "atexit.register(press)",
        # Later still: when Python clears the modules, nobody handles signals any more.
        """
class Last:
    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.SIGINT):
        kill(me, number)
last = Last()
""",
    ],
    ids=["at exit", "after exit"],
)
@pytest.mark.parametrize(("words", "code"), [(("inspect", "m"), 0), (("inspect", "none"), 1)])
@pytest.mark.slow
def test_ctrl_c_after_the_work_changes_nothing(command, start, words, code):
    assert command("", "train", "rows.txt", "m").returncode == 0
    without = command("", *words)
    ended = command(start, *words)
    assert ended.returncode == without.returncode == code
    assert (ended.stdout, ended.stderr) == (without.stdout, without.stderr)


def test_a_background_command_stays_deaf_to_ctrl_c(command):
    """As `nohup` and the shell's & want it."""
    deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN); at_import('numpy', press)"
    ended = command(deaf, "train", "rows.txt", "m")
    assert ended.returncode == 0, ended.stderr


# In the middle of an iteration ----------------------------------------------------------------------------


class Watch(Callback):
    """Counts the iterates of all problems; `ready` after so many."""

    def __init__(self, first=1):
        self.first, self.iterates = first, 0

    @property
    def ready(self):
        return self.iterates >= self.first

    def on_iterate(self, iterate, record):
        self.iterates += 1


def press_in(monkeypatch, owner, name, watch, answer=lambda found: found):
    """Press Ctrl-C in the first call of a function after the watch is ready; the calls from then on."""
    real, calls = getattr(owner, name), []

    def pressing(*given, **named):
        if watch.ready:
            calls.append(watch.iterates)
            if len(calls) == 1:
                press()
        return answer(real(*given, **named)) if watch.ready else real(*given, **named)

    monkeypatch.setattr(owner, name, pressing)
    return calls


def press():
    """Ctrl-C, and it has arrived: the handler runs in the main thread, whoever presses."""
    os.kill(os.getpid(), signal.SIGINT)
    while not interrupts.CtrlC._outermost.pressed:
        time.sleep(1e-3)


def make_rows(n, p, sparse=False, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.argmax(X[:, :classes] + 0.5 * rng.standard_normal((n, classes)), axis=1)
    return (sp.csr_array(X * (rng.random(X.shape) < 0.3)) if sparse else X), y


def interrupted(model, X, y, watch, **options):
    """The model after Ctrl-C, which must have been answered in the iteration in which it was pressed."""
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(watch).fit(X, y, **options)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.objective_)
    return model


def never(found):
    """What a sweep answers that is never good enough."""
    return (np.inf, *found[1:]) if isinstance(found, tuple) else np.inf


ENGINES = {
    "conjugate gradients": (DenseBlock, "active_product", {"penalty": "l2", "lam": 0.1}, (1500, 1100), 2),
    "the rounds of a model": (
        model_kernels, "minimise_on_model", {"penalty": "l1", "lam": 0.1}, (400, 50), 2,
    ),
    "sweeps along columns": (cd_kernels, "descend_along", {"penalty": "l1", "lam": 0.1}, (1500, 1100), 2),
    "sweeps of all classes": (
        cd_kernels, "descend_along", {"penalty": "l1", "lam": 0.1, "multi_class": "joint"}, (300, 700), 3,
    ),
    "batches": (DenseBlock, "loss", {"penalty": "l2", "solver": "sgd", "tol": 0.0}, (1000, 5), 2),
    "the Gram matrix": (DenseBlock, "_gather", {"penalty": "l2"}, (20_000, 20), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_an_iteration_is_left_in_the_middle(monkeypatch, name):
    owner, function, parameters, shape, classes = ENGINES[name]
    watch = Watch()
    answer = never if owner in (cd_kernels, model_kernels) else lambda found: found
    calls = press_in(monkeypatch, owner, function, watch, answer)
    X, y = make_rows(*shape, classes=classes)
    interrupted(SparseSVC(**parameters), X, y, watch)
    # Those that were going on at the same time, and the loss at the point that is kept.
    assert 1 <= len(calls) <= (3 if function == "loss" else 2)
    assert watch.iterates - calls[0] <= 1


@pytest.mark.parametrize("function", ["rank_update", "advance"])
def test_the_gram_matrix_of_sparse_rows_is_left_in_the_middle(monkeypatch, function):
    monkeypatch.setattr(csr, "PRODUCTS", 100.0)
    watch = Watch()
    calls = press_in(monkeypatch, kernels, function, watch)
    X, y = make_rows(2000, 20, sparse=True)
    interrupted(SparseSVC("l2"), X, y, watch)
    assert 1 <= len(calls) <= 2


def test_gram_matrices_of_sparse_rows_are_the_same_in_pieces(monkeypatch):
    X, y = make_rows(3000, 20, sparse=True)
    whole = SparseSVC("l1").fit(X, y)
    monkeypatch.setattr(csr, "PRODUCTS", 5000.0)
    pieces = SparseSVC("l1").fit(X, y)
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-10)


def test_products_of_rows_are_left_in_the_middle(monkeypatch):
    watch = Watch()
    press_in(monkeypatch, MemoryRows, "design", watch)
    solves = []
    monkeypatch.setattr(dual_newton, "cholesky_solve", lambda *given: solves.append(given))
    X, y = make_rows(100, 1500)
    interrupted(SparseSVC("l2", tol=1e-14), X, y, watch)
    assert solves == []


def test_products_of_rows_are_the_same_some_features_at_a_time(monkeypatch):
    X, y = make_rows(100, 1500)
    whole = SparseSVC("l2").fit(X, y)
    monkeypatch.setattr(tuning, "DUAL_FEATURES_AT_A_TIME", 77)
    monkeypatch.setattr(tuning, "DUAL_ROWS_AT_A_TIME", 7)
    np.testing.assert_allclose(SparseSVC("l2").fit(X, y).coef_, whole.coef_, rtol=1e-7)


def test_ctrl_c_after_the_last_iterate_keeps_the_model(monkeypatch):
    """While what is delivered is made of it."""
    X, y = make_rows(300, 20)
    watch = Watch()
    calls = press_in(monkeypatch, fit_problem, "deliver", watch)
    model = SparseSVC(lam=5.0).set_callbacks(watch)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(calls) <= 2
    assert model.score(X, y) > 0.7


# Several problems -----------------------------------------------------------------------------------------


class Problems(Callback):
    """Whose iterates there were: the classes, in order."""

    def __init__(self):
        self.seen = []

    def for_problem(self, classes, positive):
        twin = Problems()
        twin.seen, twin.positive = self.seen, positive
        return twin

    def on_begin(self, objective, tol):
        if self.positive == 1:
            press()

    def on_iterate(self, iterate, record):
        self.seen.append(self.positive)


def test_ctrl_c_before_a_class_is_begun_keeps_those_before_it():
    X, y = make_rows(200, 5, classes=4)
    problems = Problems()
    model = SparseSVC("l2")
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(problems).fit(X, y)
    assert set(problems.seen) <= {0, 1}
    assert model.coef_[0].any()
    assert not model.coef_[2:].any()
    assert [len(history) > 0 for history in model.history_][2:] == [False, False]


def test_ctrl_c_ends_classes_that_are_trained_at_the_same_time(monkeypatch):
    watch = Watch(first=2)
    calls = press_in(monkeypatch, DenseBlock, "active_product", watch)
    X, y = make_rows(1500, 1100, classes=5)
    model = interrupted(SparseSVC("l2", lam=0.1, n_jobs=2), X, y, watch)
    assert 1 <= len(calls) <= 50  # the other thread may make some more before it hears of it
    assert sum(len(history) > 0 for history in model.history_) <= 4


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_ctrl_c_ends_a_cross_validation(monkeypatch, n_jobs):
    X, y = make_rows(300, 30)
    fits, solve = [], fit_problem.solve

    def counting(*given, **named):
        fits.append(threading.get_ident())
        if len(fits) == 5:
            press()
        return solve(*given, **named)

    monkeypatch.setattr(fit_problem, "solve", counting)
    with pytest.raises(KeyboardInterrupt):
        SparseSVCCV("l1", lambdas=20, cv=4, n_jobs=n_jobs).fit(X, y)
    assert 5 <= len(fits) < 80  # of the folds; a thread may begin some more before the others hear of it


def test_a_search_for_few_features_keeps_the_best_so_far(monkeypatch):
    X, y = make_rows(300, 30)
    fits, solve = [], fit_problem.solve

    def counting(*given, **named):
        fits.append(None)
        if len(fits) == 4:
            press()
        return solve(*given, **named)

    monkeypatch.setattr(fit_problem, "solve", counting)
    model = SparseSVC("l1", lam=1e-3, max_features=8)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(fits) == 4
    assert model.status_ is Status.INTERRUPTED
    assert len(model.support_) <= 8


def test_nothing_is_kept_before_the_first_iterate(monkeypatch):
    X, y = make_rows(300, 5)
    watch = Watch(first=0)
    press_in(monkeypatch, DenseBlock, "matvec", watch)
    model = SparseSVC("l2").set_callbacks(watch)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "coef_") or watch.iterates


def test_handlers_are_put_back():
    X, y = make_rows(50, 3)
    before = signal.getsignal(signal.SIGINT)
    SparseSVC("l2").fit(X, y)
    assert signal.getsignal(signal.SIGINT) is before
    assert interrupts.CtrlC._outermost is None


def test_work_that_nobody_wants_to_end_goes_on():
    with interrupts.ending_on(lambda: True):
        with interrupts.undisturbed():
            interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    interrupts.check()


@pytest.mark.slow
def test_ctrl_c_in_a_command_leaves_a_model_and_a_checkpoint(command, tmp_path):
    X, y = make_rows(1500, 1100)
    write_libsvm(tmp_path / "wide.txt", X, y)
    start = """
def press_in_conjugate_gradients():
    import majorant.linsolve as module

    real = module.conjugate_gradients

    def pressing(product, *given, **named):
        def pressed(d):
            press()
            return product(d)

        return real(pressed, *given, **named)

    module.conjugate_gradients = pressing


at_import("majorant.solvers", press_in_conjugate_gradients)
"""
    words = ["train", "wide.txt", "m", "--penalty", "l2", "--lam", "0.1", "--checkpoint", "c.npz"]
    ended = command(start, *words)
    assert ended.returncode == 130, ended.stderr
    assert "the last iterate is kept" in ended.stdout
    assert "Model written to m" in ended.stdout
    assert "Traceback" not in ended.stderr
    assert load_model(tmp_path / "m").status_ is Status.INTERRUPTED
    assert (tmp_path / "c.npz").exists()
    assert command("", *words, "--force").returncode == 0
    assert not (tmp_path / "c.npz").exists()


@pytest.mark.parametrize("measures", [False, True])
def test_ctrl_c_ends_a_shared_pass_unless_a_thread_measures_what_is_kept(measures, monkeypatch):
    monkeypatch.setattr(pass_batcher, "PATIENCE", 10.0)  # both questions share the pass
    pressed = threading.Event()

    def one_pass(question):
        for block in range(4):
            yield question(block)
            pressed.set()
            call_watchers(Pass(1, block + 1, 4, 0.0))

    batcher = PassBatcher(one_pass)
    batcher.resize(2)

    def ask(kept):
        try:
            with undisturbed() if kept else ending_on(pressed.is_set):
                return list(batcher.map_blocks(lambda block: (block, kept)))
        except KeyboardInterrupt:
            return "left off"
        finally:
            batcher.resize(-1)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(ask, False), pool.submit(ask, measures)]
        batcher.run()
    answers = [[(block, kept) for block in range(4)] for kept in (False, True)]
    assert [future.result() for future in futures] == (answers if measures else ["left off"] * 2)
