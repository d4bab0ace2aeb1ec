"""`majorant reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions


@grouped
def reproduce(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer splits and a coarser search: minutes; needs no data.")
    ] = False,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Where results, tables and report go.")
    ] = Path("reproduction"),
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, help="Cells at the same time.  [default: all cores]")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Only this table or figure, by the paper's label; repeatable."),
    ] = None,
    download: Annotated[bool, typer.Option(help="Fetch data that are not on this machine.")] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew instead of going on.")] = False,
    answering: OutputOptions,
) -> None:
    """Run the paper's experiments again, next to its own figures.

    $ majorant reproduce --quick
    $ majorant reproduce --out results --jobs 2
    """
    from majorant.experiments.reproduction import reproduce as run

    output = Output(answering)
    run(out, output, quick=quick, jobs=jobs, only=tuple(only or ()), download=download, fresh=fresh)
