"""The help of a command: options in groups, examples at the end, at most 80 columns wide.

The groups are typer's `rich_help_panel`, which typer itself shows only with rich, whose import takes longer
than all of the help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
import typer.core

MODEL, CLASSES, DATA, OUTPUT = "Model", "Classes", "Data", "Output"
LARGE_DATA, LIBLINEAR, OTHERS = "Large data", "LIBLINEAR", "Options"
GROUPS = ("Arguments", MODEL, CLASSES, DATA, OUTPUT, LARGE_DATA, LIBLINEAR, OTHERS)
"""The groups of arguments and options, in the order in which they are shown."""
WIDTH = 80


class CommandWithExamples(typer.core.TyperCommand):
    """A command that shows its options by group; the lines of its epilog are examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in GROUPS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                group = getattr(parameter, "rich_help_panel", None) or OTHERS
                rows["Arguments" if argument else group].append(record)
        for name, group_rows in rows.items():
            if group_rows:
                with formatter.section(name):
                    formatter.write_dl(group_rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"  {line}\n")


def add_command(app: typer.Typer, command: Callable[..., None], *, no_args_is_help: bool) -> None:
    """Add a command whose docstring is its help; the lines that begin with "$ " are its examples."""
    lines = inspect.cleandoc(command.__doc__ or "").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("$ "))
    examples = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    app.command(cls=CommandWithExamples, help=text.strip(), epilog=examples, no_args_is_help=no_args_is_help)(
        command
    )
