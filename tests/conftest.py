"""Fixtures, and two switches that .ci/run sets.

MAJORANT_NO_SKIP=1 turns a skip into a failure; MAJORANT_SHUFFLE=SEED runs the tests in a random order.
"""

from __future__ import annotations

import math
import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_svmlight_file

# The same examples every time, however slow the machine is.
settings.register_profile(
    "the same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("the same")


def pytest_collection_modifyitems(items):
    if seed := os.environ.get("MAJORANT_SHUFFLE"):
        random.Random(int(seed)).shuffle(items)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("MAJORANT_NO_SKIP"):
        report.outcome = "failed"
        report.longrepr = f"skipped where no skip is allowed: {report.longrepr}"


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Tests press it. What a script starts in the background (`pytest &`) would ignore it, without this."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    directory = os.environ.get("MAJORANT_DATA")
    if not directory:
        pytest.skip("set MAJORANT_DATA to the directory with the LIBSVM files")
    return Path(directory)


@pytest.fixture(scope="session")
def a1a(data_dir):
    """The paper's split: the first 80 % train, the last 20 % test."""
    X, y = load_svmlight_file(str(data_dir / "a1a.bz2"))
    n = math.ceil(0.8 * len(y))
    return X[:n], y[:n], X[n:], y[n:]


@pytest.fixture(scope="session")
def cina0(data_dir):
    file = scipy.io.loadmat(data_dir / "cina0.mat")
    X, y = np.asarray(file["A"], dtype=float), file["b"].ravel().astype(float)
    n = math.ceil(0.8 * len(y))
    return X[:n], y[:n], X[n:], y[n:]


@pytest.fixture(scope="session")
def w8a(data_dir):
    """A stratified split: the file has its positives in one run of rows."""
    from sklearn.model_selection import train_test_split

    X, y = load_svmlight_file(str(data_dir / "w8a.bz2"))
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    return X, y, X_test, y_test
