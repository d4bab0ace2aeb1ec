"""`majorant demo`: from data to a sparse classifier, and what the same costs elsewhere."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from majorant.callbacks import Callback, progress_fraction
from majorant.estimators import SparseSVC
from majorant.objective import Objective
from majorant.status import Evaluated, Record, Status

SCORES = {
    "accuracy": accuracy_score,
    "precision": partial(precision_score, zero_division=0),
    "recall": recall_score,
    "F1": f1_score,
}


class ProgressBar(Callback):
    """A bar on a log10 scale of the certificate; plain lines where the output is no terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[certificate]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self.bar.add_task("training", total=1.0, certificate="")
        self._tol = 0.0

    def on_begin(self, objective: Objective, tol: float) -> None:
        self._tol = tol

    def on_iterate(self, iterate: Evaluated, record: Record) -> Status | None:
        done = progress_fraction(record.certificate.error, self._tol)
        self.bar.update(self._task, completed=done, certificate=str(record.certificate))
        return None


def run_demo(lam: float, console: Console | None = None) -> SparseSVC:
    """Train, show the features chosen, the scores and the times; return the model."""
    console = Console(highlight=False) if console is None else console
    data = load_breast_cancer(as_frame=False)
    X, X_test, y, y_test = train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    console.print(
        f"[bold]Breast cancer Wisconsin[/]: {len(X)} training rows, {len(X_test)} test rows, "
        f"{X.shape[1]} features; {' or '.join(data.target_names)}?"
    )

    progress = ProgressBar(console)
    model = SparseSVC(lam=lam).set_callbacks(progress)
    with progress.bar:
        seconds = _timed_fit(model, X, y)
    console.print(f"{model.status_.value} ({model.n_iter_} iterations of {model.solver_.name!r})\n")

    console.print(_coefficient_table(model, data.feature_names, console))
    # What a user pays is a fit in a warm process; the one above also drew the bar.
    ours = SparseSVC(lam=lam)
    rows = [("SparseSVC", ours, min(seconds, _timed_fit(ours, X, y)))]
    for name, rival in {
        "LinearSVC, l1": LinearSVC(penalty="l1", dual=False, C=1.0 / lam if lam else 1e6, random_state=0),
        "LinearSVC, default (l2)": LinearSVC(random_state=0),
    }.items():
        rows.append((name, rival, _timed_fit(rival, X, y)))
    console.print(_comparison_table(rows, X_test, y_test))
    console.print(_conclusion(len(model.support_), X.shape[1]))
    return model


def _conclusion(used: int, available: int) -> str:
    if used == 0:
        return "So strong a penalty leaves no feature at all. Try a smaller --lam."
    if used == available:
        return "So weak a penalty keeps every feature. Try a larger --lam."
    return f"{used} of {available} features are enough here. Try --lam with other strengths."


def _timed_fit(model: Any, X: Any, y: Any) -> float:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return time.perf_counter() - start


def _coefficient_table(model: SparseSVC, names: Any, console: Console) -> Table:
    table = Table("feature", "coefficient", "", title=f"{len(model.support_)} selected features")
    coef = model.coef_[0]
    positive, negative = ("█", "░") if (console.encoding or "").lower().startswith("utf") else ("+", "-")
    for i in sorted(model.support_, key=lambda i: -abs(coef[i])):
        length = round(20 * abs(coef[i]) / np.max(np.abs(coef)))
        table.add_row(names[i], f"{coef[i]:+.4f}", (positive if coef[i] > 0 else negative) * max(length, 1))
    return table


def _comparison_table(rows: list[tuple[str, Any, float]], X: Any, y: Any) -> Table:
    table = Table("model", "features used", *SCORES, "fit time", title="On the test rows")
    for name, model, seconds in rows:
        predicted = model.predict(X)
        scores = [f"{score(y, predicted):.3f}" for score in SCORES.values()]
        table.add_row(name, str(np.count_nonzero(model.coef_)), *scores, f"{1e3 * seconds:.1f} ms")
    return table
