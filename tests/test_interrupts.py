"""Ctrl-C at any moment of a command: an answer, and no traceback.

The commands are real processes, which press Ctrl-C themselves at the moment that is meant: a module that
Python imports at its start (`sitecustomize`) sees to that. So nothing depends on how fast they are.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from majorant.datasets import write_libsvm

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
