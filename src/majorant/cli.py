"""The command line: thin, and it imports what a command needs only when that command runs."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from majorant import __version__

app = typer.Typer(
    name="majorant",
    help="Sparse linear support vector machines by majorization-minimization.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"majorant {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that stand before the command."""


@app.command()
def demo(
    lam: Annotated[
        float, typer.Option(min=0.0, help="Strength of the penalty: larger, fewer features.")
    ] = 10.0,
) -> None:
    """Train on data that comes with scikit-learn and show what came out."""
    if not math.isfinite(lam):
        raise typer.BadParameter("must be a finite number", param_hint="--lam")
    from majorant.demo import run_demo

    run_demo(lam)


def main() -> None:
    """Run the command; Ctrl-C ends it with the usual exit code and no traceback."""
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        raise SystemExit(130) from None
