"""The whole reproduction as one HTML page, with the style and the pictures of reports."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files

from markupsafe import Markup

from majorant import __version__
from majorant.experiments.agreement import all_agreements
from majorant.experiments.claims import all_claims
from majorant.experiments.errata import errata
from majorant.experiments.figures import draw_gaps, draw_stochastic, draw_zeros
from majorant.experiments.outcomes import Outcomes
from majorant.experiments.sketches import draw_sketches
from majorant.experiments.tables import all_tables
from majorant.reporting.charts.chart import Picture
from majorant.reporting.text import typeset

__all__ = ["page"]


def page(outcomes: Outcomes, missing: Mapping[str, str] | None = None) -> str:
    """Tables, verdicts and figures on one page that loads nothing.

    Parameters
    ----------
    outcomes : Outcomes
        What was run.
    missing : mapping, optional
        Data sets that were not there, and what to put where.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader("majorant.experiments"), PackageLoader("majorant.reporting")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["typeset"] = typeset
    style = _shipped("majorant.reporting", "report.css") + _shipped(
        "majorant.experiments", "reproduction.css"
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    everything = not outcomes.study.labels
    return environment.get_template("reproduction.html").render(
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        summary=(
            "Every table and every figure of the paper next to our own, each difference with its reason; "
            f"and what it claims, tested. Study: {outcomes.study.name}; majorant {__version__}."
        ),
        missing=list((missing or {}).values()),
        agreements=all_agreements(outcomes) if everything else [],
        claims=all_claims(outcomes) if everything else [],
        errata=errata() if everything else [],
        tables=all_tables(outcomes),
        pictures=_pictures(outcomes),
    )


def _pictures(outcomes: Outcomes) -> list[Picture]:
    """In the paper's order; the classifier, losses and potentials only where everything is wanted."""
    sketches = [] if outcomes.study.labels else draw_sketches()
    gaps = [picture for pair in draw_gaps(outcomes) for picture in pair]
    return [*sketches, *draw_stochastic(outcomes), *gaps, *draw_zeros(outcomes)]


def _shipped(package: str, name: str) -> str:
    return (files(package) / "templates" / name).read_text(encoding="utf-8")
