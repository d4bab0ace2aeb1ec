"""What commands say: lines for people, or one JSON document for programs."""

from __future__ import annotations

import json
import math
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from majorant.cli.help import OUTPUT
from majorant.cli.messages import in_options
from majorant.text import printable

COMMAND: ContextVar[tuple[str, ...]] = ContextVar("COMMAND", default=())
"""The words of the command line that is being run."""


def command_words() -> list[str]:
    """The command, word by word."""
    return ["majorant", *COMMAND.get()]


def command_line() -> str:
    """The command as it can be typed again."""
    return shlex.join(command_words())


@dataclass(frozen=True)
class OutputOptions:
    """How a command answers."""

    json: Annotated[
        bool,
        typer.Option("--json", help="One JSON document on stdout, nothing else.", rich_help_panel=OUTPUT),
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", help="Say nothing but errors and what was asked for.", rich_help_panel=OUTPUT
        ),
    ] = False

    @property
    def talkative(self) -> bool:
        """Whether there is to be progress and prose."""
        return not (self.json or self.quiet)


@dataclass
class Output:
    """Collects facts for a program, or says them to a person.

    Parameters
    ----------
    options : OutputOptions
    to_stderr : bool
        Whether prose goes there, since stdout may be for something else: the labels that were predicted.
    """

    options: OutputOptions
    to_stderr: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """A line for people."""
        if self.options.talkative:
            self._echo(text, err=self.to_stderr)

    def answer(self, text: str, *, to_stderr: bool = False) -> None:
        """Print the line that the user asked for, also with --quiet; with --json, `facts` hold the answer."""
        if not self.options.json:
            self._echo(text, err=to_stderr)

    @staticmethod
    def _echo(text: str, *, err: bool) -> None:
        """Print; if the reader of a pipe is gone, the work goes on all the same."""
        with suppress(OSError):
            typer.echo(printable(text), err=err)

    def warn(self, text: str) -> None:
        """A line that must not be lost, on stderr; and among the facts. Each text once."""
        if text in self.facts.get("warnings", ()):
            return
        self.facts.setdefault("warnings", []).append(text)
        if not self.options.json:
            self._echo(f"warning: {text}", err=True)

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        right: Sequence[int] = (),
        *,
        prose: bool = False,
    ) -> None:
        """Rows of text; `right` are the columns of numbers. Drawn on a terminal, plain columns elsewhere.

        `prose` is a table that was not asked for: it goes where prose goes, and not if quiet.
        """
        if self.options.json or (prose and self.options.quiet):
            return
        err = prose and self.to_stderr
        header, rows = list(map(printable, header)), [list(map(printable, row)) for row in rows]
        if (sys.stderr if err else sys.stdout).isatty():
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            drawn = Table()
            for k, name in enumerate(header):
                drawn.add_column(name, justify="right" if k in right else "left")
            for row in rows:
                drawn.add_row(*map(Text, row))
            Console(stderr=err).print(drawn)
            return
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in (header, *rows):
            cells = (
                cell.rjust(width) if k in right else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            line = "  ".join(cells).rstrip()
            if prose:
                self._echo(line, err=err)
            else:
                typer.echo(line)

    def finish(self, **facts: Any) -> None:
        """Print the facts, if a program asked for them."""
        self.facts |= facts
        if self.options.json:
            typer.echo(json.dumps(_plain(self.facts), allow_nan=False))

    @contextmanager
    def relayed_warnings(self) -> Iterator[None]:
        """What is warned of meanwhile, in a line each, once it is over."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for each in caught:
            if issubclass(each.category, UserWarning):
                self.warn(in_options(str(each.message)))

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that something is going on, on a terminal, while it does."""
        if not (self.options.talkative and sys.stderr.isatty()):
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts, as JSON has them; nan and infinity become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
