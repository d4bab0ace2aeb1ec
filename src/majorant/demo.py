"""`majorant demo`: a sparse classifier on embedded data, compared with scikit-learn's."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from majorant.estimators import SparseSVC, sparse_svc_path
from majorant.reporting import report as write_report
from majorant.status import Certificate

SCORES = {
    "accuracy": accuracy_score,
    "precision": partial(precision_score, pos_label="malignant", zero_division=0),
    "recall": partial(recall_score, pos_label="malignant"),
    "F1": partial(f1_score, pos_label="malignant"),
}


def run_demo(lam: float, console: Console | None = None, report: Path | None = None) -> SparseSVC:
    """Fit, print the selected features, the scores and the times, write a report; return the model."""
    console = Console(highlight=False) if console is None else console
    data = load_breast_cancer(as_frame=False)
    X, X_test, y, y_test = train_test_split(
        data.data, data.target_names[data.target], test_size=0.3, random_state=0, stratify=data.target
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    console.print(
        f"[bold]Breast cancer Wisconsin[/]: {len(X)} training rows, {len(X_test)} test rows, "
        f"{X.shape[1]} features; {' or '.join(data.target_names)}?"
    )

    model = SparseSVC(lam=lam)
    seconds = _timed_fit(model, X, y)
    certificate = Certificate(model.stationarity_, model.gap_)
    console.print(f"{model.status_.value} ({certificate}, {model.n_iter_} iterations)\n")

    console.print(_coefficient_table(model, data.feature_names, console))
    # The second fit is measured: the first one includes imports.
    ours = SparseSVC(lam=lam)
    rows = [("SparseSVC", ours, min(seconds, _timed_fit(ours, X, y)))]
    for name, rival in {
        "LinearSVC, l1": LinearSVC(penalty="l1", dual=False, C=1.0 / lam if lam else 1e6, random_state=0),
        "LinearSVC, default (l2)": LinearSVC(random_state=0),
    }.items():
        rows.append((name, rival, _timed_fit(rival, X, y)))
    console.print(_comparison_table(rows, X_test, y_test))
    console.print(_conclusion(len(model.support_), X.shape[1]))
    if report is not None:
        write_report(
            model, X, y, report, title="Breast cancer Wisconsin", feature_names=data.feature_names,
            X_test=X_test, y_test=y_test, command=f"majorant demo --lam {lam:g}",
            path_result=sparse_svc_path(X, y, lambdas=50),
        )  # fmt: skip
        console.print(f"A report of this model, for a browser: {report.resolve()}", soft_wrap=True)
    return model


def _conclusion(used: int, available: int) -> str:
    if used == 0:
        return "The penalty is so strong that no feature is used. Try a smaller --lam."
    if used == available:
        return "The penalty is so weak that all features are used. Try a larger --lam."
    return f"The model uses {used} of {available} features. Try other strengths with --lam."


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
