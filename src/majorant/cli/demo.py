"""`majorant demo`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.writing import check_output


def demo(
    lam: Annotated[
        float, typer.Option(min=0.0, help="Strength of the penalty: larger, fewer features.")
    ] = 10.0,
    report: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the report; it replaces the last one.")
    ] = Path("majorant-demo.html"),
) -> None:
    """Train on data that comes with scikit-learn; write a report.

    $ majorant demo
    $ majorant demo --lam 3 --report demo.html
    """
    if not math.isfinite(lam):
        raise typer.BadParameter("must be a finite number", param_hint="--lam")
    check_output(report, force=True)
    from majorant.demo import run_demo

    run_demo(lam, report=report)
