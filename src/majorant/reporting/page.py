"""`report`: a fitted model as one HTML page."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from majorant import __version__
from majorant.errors import MajorantError
from majorant.estimators import SparseSVCCV
from majorant.estimators.fitted import Origin
from majorant.estimators.path import Path
from majorant.files import atomic_write, check_writable
from majorant.persistence import Provenance
from majorant.reporting.charts import figures
from majorant.reporting.charts.classes import draw_features, draw_margins
from majorant.reporting.charts.curves import draw_curves
from majorant.reporting.context import ReportContext, make_context
from majorant.reporting.features import LEAST_CORRELATION, survey_features
from majorant.reporting.result import Report
from majorant.reporting.scores import Score, scores
from majorant.reporting.sentences import (
    certificate,
    convergence_summary,
    data_facts,
    interval,
    potential_of,
    provenance_facts,
    settings,
    summary,
    versions,
)
from majorant.reporting.tables import (
    class_rows,
    coefficient_table,
    confusion_table,
    correlated_rows,
    frequency_rows,
    heat_map,
    mistake_table,
    score_table,
)
from majorant.reporting.text import counted, number, plain_text, share, typeset


@dataclass(frozen=True)
class Tile:
    """A number at the top of the page."""

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
    data_name: str | None = None,
    date: datetime.date | None = None,
) -> Report:
    """Describe a fitted model on one HTML page, which is below 1 MB and needs nothing else.

    Parameters
    ----------
    model : SparseSVC, SparseSVCCV, Pipeline or search
        Fitted. A pipeline must end in one of the two and know the names of its features. Of a search, such as
        `GridSearchCV`, the report is about the `best_estimator_`.
    X : array, data frame or sparse matrix (n_samples, n_features), or Source
        The rows it was trained on. A source is read block by block; one number per row and class is kept.
    y : array (n_samples,)
        Their labels.
    path : path, optional
        Where to write the page; it is there as a whole or not at all.
    title : str, optional
        The title of the page.
    feature_names : sequence of str, optional
        The names of the columns of X; by default those of the data frame that was fitted, else x0, x1, ….
    path_result : Path, optional
        What `sparse_svc_path` returned, for a picture of the coefficients against the strength.
    X_test, y_test : optional
        Rows that the model was not trained on. Without them the scores are those of the training rows, and
        the page says so.
    provenance : Provenance or mapping, optional
        Further facts: the provenance of a model file (`majorant.persistence.load_provenance`), or a mapping
        from names to facts.
    command : str, optional
        The shell command that makes this report.
    deviations : array (n_features,), optional
        Standard deviations or other units of the features; by default those of a model with
        ``standardize=True``. The features are then ranked by their effect, the coefficient times this unit.
    trained_on : bool or None, default=True
        False: the model was not trained on X and y; None: it is not known.
    overwrite : bool, default=True
        Whether an existing file may be replaced.
    data_name : str, optional
        The name of the data; by default that of the source, or for training rows that in `provenance`.
    date : datetime.date, optional
        The date of the report; today by default.

    Returns
    -------
    Report
        The page, a `str` that a notebook shows as a page; `path` is the file. The same input on the same date
        gives the same page, byte by byte.

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
        check_writable(path, overwrite=overwrite)  # an error now, not after the work
    context = make_context(
        model, X, y, feature_names, X_test, y_test, deviations=deviations, trained_on=trained_on,
        data_name=data_name or (_data_of(provenance) if trained_on else None),
    )  # fmt: skip
    _check_path(path_result, context)
    content = _content(context, path_result, title, provenance, command)
    content["date"] = (date or datetime.date.today()).isoformat()
    page = render("report.html", content, script="report.js")
    if path is not None:
        with atomic_write(path, overwrite=overwrite) as file:
            file.write(page.encode("utf-8"))
    return Report(page, path)


def _data_of(provenance: Provenance | Mapping[Any, Any] | None) -> str | None:
    """The data that the model was trained on."""
    if isinstance(provenance, Provenance):
        return provenance.source
    return None if provenance is None else provenance.get("Data")


def _check_path(path: Any, context: ReportContext) -> None:
    if path is None:
        return
    if not isinstance(path, Path):
        raise MajorantError(
            f"path_result must be what sparse_svc_path returns, not an object of type {type(path).__name__}"
        )
    n_features = path.models[0].n_features_in_
    if n_features != context.n_features:
        raise MajorantError(f"path_result has {n_features} features, the model {context.n_features}")


def _content(
    context: ReportContext,
    path: Path | None,
    title: str | None,
    provenance: Provenance | Mapping[Any, Any] | None,
    command: str | None,
) -> dict[str, Any]:
    """The values of the template, by name."""
    before = None if context.test is None else context.training
    results = scores(context.evaluated, before, context.classes, context.asked)
    survey = survey_features(context)
    convergence = [figures.draw_certificate(context), figures.draw_objective(context)]
    strengths = [] if path is None else [figures.draw_path(context, path)]
    if isinstance(context.model, SparseSVCCV):
        strengths.append(figures.draw_cv_scores(context.model))
    return {
        "title": plain_text(title or f"{type(context.model).__name__} on {_task(context)}", 200),
        "data_name": None if context.data_name is None else plain_text(context.data_name, 60),
        "version": __version__,
        "summary": summary(context, results[0]),
        "tiles": _tiles(context, results[0]),
        "data": data_facts(context, survey),
        "classes": class_rows(context),
        "n_classes": len(context.classes),
        "convergence": [chart for chart in convergence if chart],
        "convergence_summary": convergence_summary(context),
        "certificate": certificate(context),
        "coefficients": coefficient_table(context),
        "heat_map": heat_map(context),
        "correlated": correlated_rows(context, survey),
        "n_correlated": len(survey.features),
        "least_correlation": LEAST_CORRELATION,
        "left_out": len(context.model.support_) < context.n_features,
        "feature_charts": draw_features(context, survey),
        "standardized": context.standardized,
        "steps": plain_text(", then ".join(context.steps), 300),
        "intercept": number(context.model.intercept_[0], 4, sign=True),
        "strengths": [chart for chart in strengths if chart],
        "frequencies": frequency_rows(context),
        "scoreboard": score_table(results, context),
        "role": context.evaluated.role,
        "given": context.training.role,
        "trained_on": context.trained_on,
        "n_evaluated": f"{len(context.evaluated):,}",
        "confusion": confusion_table(context),
        "mistakes": mistake_table(context),
        "margins": draw_margins(context),
        "curves": draw_curves(context),
        "settings": settings(context),
        "provenance": provenance_facts(provenance),
        "versions": versions(),
        "command": None if command is None else plain_text(command, 2000),
        "positive": plain_text(context.classes[-1], 40),
        "negative": plain_text(context.classes[0], 40),
    }


def _task(context: ReportContext) -> str:
    if context.data_name is not None:
        return context.data_name
    return f"{counted(len(context.training), 'row')} of {counted(len(context.classes), 'class', 'classes')}"


def _tiles(context: ReportContext, first: Score) -> list[Tile]:
    model = context.model
    tiles = [
        Tile("Features used", f"{len(model.support_):,}", f"of {context.n_features:,}"),
        Tile(
            first.short_name,
            share(first.value),
            f"{interval(first)}, {context.evaluated.role} rows"
            if first.has_interval
            else f"{context.evaluated.role} rows",
        ),
    ]
    if context.origin is Origin.IMPORTED:
        return [*tiles, Tile("Training", "not known", "the model was imported")]
    if context.origin is Origin.STREAM:
        tiles.append(Tile("Stream", f"{model.t_:,}", "rows learned from"))
    elif model.converged_:
        tiles.append(Tile("Training", "Converged ✓", f"to the tolerance {number(model.tol, 2)}"))
    else:
        tiles.append(Tile("Training", "Not converged", "see Convergence, below"))
    tiles.append(Tile("Strength λ", number(model.lam_), f"penalty {potential_of(context).name}"))
    return tiles


def render(
    template: str,
    content: Mapping[str, Any],
    *,
    package: str = "majorant.reporting",
    style: str | None = None,
    script: str | None = None,
) -> str:
    """A page from a template, with the style of reports and a Content-Security-Policy.

    Parameters
    ----------
    template : str
        Its file in the folder `templates` of `package`.
    content : mapping
        The values of the template.
    package : str
        May have templates beside those of reports.
    style, script : str, optional
        Files in that folder: a style sheet to add to the one of reports, and a script.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(name) for name in dict.fromkeys((package, "majorant.reporting"))]
    environment = Environment(
        loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["typeset"] = typeset
    styles = _shipped("majorant.reporting", "report.css") + (_shipped(package, style) if style else "")
    scripts = _shipped(package, script) if script else ""
    allowed = f"style-src {_source(styles)}; " + (f"script-src {_source(scripts)}; " if script else "")
    policy = f"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'"
    page = environment.get_template(template)
    return page.render(content, style=Markup(styles), script=Markup(scripts), policy=policy)


def _shipped(package: str, name: str) -> str:
    return (files(package) / "templates" / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """The text's hash in the notation of a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
