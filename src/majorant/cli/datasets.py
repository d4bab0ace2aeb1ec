"""`majorant datasets [NAME …]`."""

from __future__ import annotations

from typing import Annotated

import typer

from majorant.cli.grouped import grouped
from majorant.cli.output import Output, OutputOptions


@grouped
def datasets(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Data sets to fetch, unless they are here.", show_default=False
        ),
    ] = None,
    *,
    answering: OutputOptions,
) -> None:
    """List the data sets known by name, or fetch some.

    $ majorant datasets
    $ majorant datasets a1a a1a.t
    """
    from majorant.datasets import describe, find

    output = Output(answering)
    if names:
        found = {}
        for name in names:
            found[name] = str(find(name, progress=answering.talkative))
            output.answer(found[name])
        output.finish(found=found)
        return
    rows = describe()
    header = ["name", "rows", "features", "classes", "where"]
    output.table(
        header,
        [
            [row["name"], f"{row['rows']:,}", f"{row['features']:,}", str(row["classes"]), row["where"]]
            for row in rows
        ],
        right=(1, 2, 3),
    )
    output.finish(datasets=rows)
