"""`report`: everything about a model on one page."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from majorant.errors import MajorantError
from majorant.estimators import SparseSVCCV
from majorant.estimators.path import Path
from majorant.files import check_writable, replacing
from majorant.persistence import Provenance
from majorant.reporting import charts
from majorant.reporting.classes import class_rows, confusion_table
from majorant.reporting.coefficients import coefficient_table, frequency_rows
from majorant.reporting.facts import data_facts, provenance_facts, settings, versions
from majorant.reporting.scoreboard import scoreboard
from majorant.reporting.scores import RESAMPLES, SEED, Score, scores
from majorant.reporting.subject import Origin, Subject, make_subject
from majorant.reporting.text import counted, number, plain_text, share, typeset
from majorant.reporting.words import EPSILON, certificate, interval, potential_of, summary
from majorant.status import Certificate


@dataclass(frozen=True)
class Tile:
    """One of the few numbers on top."""

    name: str
    value: str
    note: str


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    feature_names: Any = None,
    path_result: Path | None = None,
    X_test: Any = None,
    y_test: Any = None,
    provenance: Provenance | Mapping[Any, Any] | None = None,
    command: str | None = None,
    deviations: Any = None,
    trained_on: bool | None = True,
    overwrite: bool = True,
) -> str:
    """Describe a fitted model on one HTML page, which is below 1 MB and needs nothing else.

    Parameters
    ----------
    model : SparseSVC, SparseSVCCV or Pipeline
        Fitted. A pipeline must end in one of the two and know the names of its features.
    X : array, data frame or sparse matrix (n_samples, n_features), or Source
        The rows it was trained on. A source is read block by block; one number per row and class is kept.
    y : array (n_samples,)
        Their labels.
    path : path, optional
        Where to write the page; it is there as a whole or not at all.
    title : str, optional
        What to call it.
    feature_names : sequence of str, optional
        The names of the columns of X; by default those of the data frame that was fitted, else x0, x1, ….
    path_result : Path, optional
        What `sparse_svc_path` returned, for a picture of the coefficients against the strength.
    X_test, y_test : optional
        Rows that the model has not seen. Without them the training rows judge it, and the page says so.
    provenance : Provenance or mapping, optional
        What else to tell: the provenance of a model file (`majorant.persistence.load_provenance`), or
        anything, name by name.
    command : str, optional
        The line of a shell that makes this report.
    deviations : array (n_features,), optional
        Standard deviations of the features, or other units of theirs. The features are then ranked by
        effect, the coefficient times this, and not by coefficients of different units.
    trained_on : bool or None, default=True
        False says that X and y are not the rows which the model was trained on, None that it is not known.
    overwrite : bool, default=True
        Whether a file that is there already may be replaced.

    Returns
    -------
    str
        The page. The same input gives the same page, byte by byte.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from majorant import SparseSVC, report
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = (X - X.mean()) / X.std()
    >>> page = report(SparseSVC("l1", lam=20.0).fit(X, y), X, y)
    >>> "worst concave points" in page
    True
    """
    if path is not None:
        check_writable(path, overwrite=overwrite)  # before the work, not after it
    subject = make_subject(
        model, X, y, feature_names, X_test, y_test, deviations=deviations, trained_on=trained_on
    )
    _check_path(path_result, subject)
    page = _render(_content(subject, path_result, title, provenance, command))
    if path is not None:
        with replacing(path, overwrite=overwrite) as file:
            file.write(page.encode("utf-8"))
    return page


def _check_path(path: Any, subject: Subject) -> None:
    if path is None:
        return
    if not isinstance(path, Path):
        raise MajorantError(
            f"path_result must be what sparse_svc_path returns, not an object of type {type(path).__name__}"
        )
    n_features = path.models[0].n_features_in_
    if n_features != subject.n_features:
        raise MajorantError(f"path_result has {n_features} features, the model {subject.n_features}")


def _content(
    subject: Subject,
    path: Path | None,
    title: str | None,
    provenance: Provenance | Mapping[Any, Any] | None,
    command: str | None,
) -> dict[str, Any]:
    """All that the template shows, by name."""
    results = scores(subject.judged, None if subject.test is None else subject.training, subject.classes)
    pictures = [charts.draw_certificate(subject), charts.draw_objective(subject)]
    strengths = [] if path is None else [charts.draw_path(subject, path)]
    if isinstance(subject.model, SparseSVCCV):
        strengths.append(charts.draw_cv_scores(subject.model))
    return {
        "title": plain_text(title or f"{type(subject.model).__name__} on {_task(subject)}", 200),
        "summary": summary(subject, results[0]),
        "tiles": _tiles(subject, results[0]),
        "data": data_facts(subject),
        "classes": class_rows(subject),
        "n_classes": len(subject.classes),
        "convergence": [picture for picture in pictures if picture],
        "certificate": certificate(subject),
        "coefficients": coefficient_table(subject),
        "intercept": number(subject.model.intercept_[0], 4, sign=True),
        "strengths": [picture for picture in strengths if picture],
        "frequencies": frequency_rows(subject),
        "scoreboard": scoreboard(results, subject.judged),
        "resamples": f"{RESAMPLES:,}",
        "seed": SEED,
        "where": subject.judged.where,
        "given": subject.training.where,
        "trained_on": subject.trained_on,
        "n_judged": f"{len(subject.judged):,}",
        "confusion": confusion_table(subject),
        "margins": charts.draw_margins(subject),
        "settings": settings(subject),
        "provenance": provenance_facts(provenance),
        "versions": versions(),
        "command": None if command is None else plain_text(command, 2000),
        "positive": plain_text(subject.classes[-1], 40),
        "negative": plain_text(subject.classes[0], 40),
    }


def _task(subject: Subject) -> str:
    return f"{counted(len(subject.training), 'row')} of {counted(len(subject.classes), 'class', 'classes')}"


def _tiles(subject: Subject, accuracy: Score) -> list[Tile]:
    model = subject.model
    chance = f"{interval(accuracy)}, " if accuracy.low < accuracy.high else ""
    tiles = [
        Tile("Features used", f"{len(model.support_):,}", f"of {subject.n_features:,}"),
        Tile("Accuracy", share(accuracy.value), f"{chance}{subject.judged.where} rows"),
    ]
    if subject.origin is Origin.FITTED:
        name = "Stationarity" if math.isnan(model.gap_) else "Duality gap"
        error = max(Certificate(model.stationarity_, model.gap_).error, EPSILON)
        state = "converged" if model.converged_ else "not converged"
        tiles.append(Tile(name, number(error, 2), f"{state}, tolerance {number(model.tol, 2)}"))
    elif subject.origin is Origin.STREAM:
        tiles.append(Tile("Stream", f"{model.t_:,}", "rows learned from"))
    else:
        return [*tiles, Tile("Training", "not known", "the model was imported")]
    tiles.append(Tile("Strength λ", number(model.lam_), f"penalty {potential_of(subject).name}"))
    return tiles


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("majorant.reporting"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["typeset"] = typeset
    style, script = _shipped("report.css"), _shipped("report.js")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    template = environment.get_template("report.html")
    return template.render(content, style=Markup(style), script=Markup(script), policy=policy)


def _shipped(name: str) -> str:
    return (files("majorant.reporting") / "templates" / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """How a Content-Security-Policy names the one text that is allowed."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
