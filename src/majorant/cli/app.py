"""All commands in one application, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from majorant import __version__, interrupts
from majorant.cli.convert import convert
from majorant.cli.cv import cv
from majorant.cli.datasets import datasets
from majorant.cli.demo import demo
from majorant.cli.help import WIDTH, add_command
from majorant.cli.inspect import inspect
from majorant.cli.liblinear import translated
from majorant.cli.messages import sentence
from majorant.cli.output import COMMAND
from majorant.cli.path import path
from majorant.cli.predict import predict
from majorant.cli.report import report
from majorant.cli.reproduce import reproduce
from majorant.cli.train import train
from majorant.text import printable

app = typer.Typer(
    name="majorant",
    help="Sparse linear support vector machines: from a file to a model that uses few features.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is there in half the time
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)
for command in (train, predict, path, cv, inspect, report, convert, datasets, reproduce, demo):
    add_command(app, command, no_args_is_help=command not in (datasets, reproduce, demo))


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


def execute(arguments: Sequence[str]) -> int:
    """Run a command; the exit code. What goes wrong is one sentence on stderr; Ctrl-C is for the caller."""
    COMMAND.set(tuple(arguments))
    _open_closed_streams()
    try:
        app(args=translated(arguments), prog_name="majorant")
    except SystemExit as end:  # how typer ends, also when all is well
        if _came_from_ctrl_c(end):
            raise KeyboardInterrupt from None
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:
        # The reader of our output has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, MemoryError, ImportError) as error:
        if os.environ.get("MAJORANT_DEBUG") or interrupts.was_pressed():
            raise
        typer.echo(f"error: {printable(sentence(error))}", err=True)
        return 2 if _wrong_word(error) else 1
    return 0


def _open_closed_streams() -> None:
    """Let those that were closed by the caller (`>&-`) lead nowhere; Python has None in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _came_from_ctrl_c(end: BaseException) -> bool:
    """Whether this is what typer has made of a `KeyboardInterrupt`."""
    before: BaseException | None = end
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before is not None


def _wrong_word(error: BaseException) -> bool:
    """Whether an error is about the command line, not about a file."""
    if "sklearn" not in sys.modules:
        return False
    from sklearn.utils._param_validation import InvalidParameterError

    return isinstance(error, InvalidParameterError)
