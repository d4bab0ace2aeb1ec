"""The words of the command line that several commands share."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from majorant.cli.choices import one_of, strictly_between
from majorant.cli.help import DATA, LARGE_DATA, MODEL, OUTPUT

if TYPE_CHECKING:
    from majorant.datasets import Preprocessing

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM text, CSV, TSV, Parquet, Arrow, .npz or .mat, also compressed; - for stdin; or the name "
        "of a known data set.",
        show_default=False,
    ),
]
ModelToRead = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model file: majorant's, LIBLINEAR's, or ONNX of ours; - for stdin.",
        show_default=False,
    ),
]
ModelToWrite = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL", help="The file to write.  [default: DATA.model, here]", show_default=False
    ),
]
Force = Annotated[
    bool, typer.Option("-f", "--force", help="Replace files that exist.", rich_help_panel=OUTPUT)
]
Test = Annotated[
    str | None,
    typer.Option("--test", metavar="DATA", help="Data to test the model on.", rich_help_panel=DATA),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="For data that do not fit into memory: read them block by block, and keep no more than this, "
        "e.g. 2GB.",
        show_default=False,
        rich_help_panel=LARGE_DATA,
    ),
]
Points = Annotated[int, typer.Option(min=1, help="How many strengths.", rich_help_panel=MODEL)]
Ratio = Annotated[
    float,
    typer.Option(
        help="The smallest strength, relative to the largest.",
        callback=strictly_between(0.0, 1.0),
        rich_help_panel=MODEL,
    ),
]


NFeatures = Annotated[
    int | None,
    typer.Option(
        "--n-features",
        min=1,
        help="Search for the best features of this number; path and cv: of 1 to this number.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]


def refuse_memory(n_features: int | None, memory: str | None) -> None:
    """Refuse a search for features in rows that are read block by block."""
    if n_features is not None and memory is not None:
        raise typer.BadParameter(
            "needs all rows in memory: leave out --memory, or use --max-features", param_hint="--n-features"
        )


def in_quotation_marks(name: str) -> str:
    """A name of a column as `--drop` takes it whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def split_names(words: Iterable[str]) -> list[str]:
    """The names of columns in words such as a,b; a name with a comma is in quotation marks."""
    return [name.strip() for name in chain.from_iterable(csv.reader(words))]


def _formats() -> Iterable[str]:
    from majorant.datasets.formats import FORMATS

    return FORMATS


@dataclass(frozen=True)
class DataOptions:
    """How a data file is to be read."""

    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column of the labels, if it is a table.", rich_help_panel=DATA
        ),
    ] = None
    drop: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="Columns to leave out: a,b. A name with a comma goes into quotation marks: '\"a,b\",c'.",
            rich_help_panel=DATA,
        ),
    ] = field(default_factory=list)
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="libsvm, csv, tsv, parquet, arrow, npz or mat; else by its name.",
            callback=one_of(_formats),
            rich_help_panel=DATA,
        ),
    ] = None
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header",
            help="A CSV or TSV file has no names: its columns are 0, 1, …, or -1 for the last.",
            rich_help_panel=DATA,
        ),
    ] = False
    zero_based: Annotated[
        bool,
        typer.Option(
            "--zero-based", help="The first feature of LIBSVM text is 0, not 1.", rich_help_panel=DATA
        ),
    ] = False

    def column(self, word: str | None) -> str | int | None:
        """A column by its name; where there are no names, by its position: 0 is the first, -1 the last."""
        numbered = self.no_header and word is not None and re.fullmatch(r"-?\d+", word)
        return int(numbered[0]) if numbered else word

    @property
    def reader_options(self) -> dict[str, Any]:
        """The same for the readers, but for the format."""
        return {
            "label": self.column(self.label),
            "drop": list(map(self.column, split_names(self.drop))),
            "header": not self.no_header,
            "zero_based": self.zero_based,
        }


def _imputation(word: str | None) -> str | None:
    """The callback of `--impute`."""
    if word in (None, "median", "mean", "constant"):
        return word
    try:
        if math.isfinite(float(word)):
            return word
    except ValueError:
        pass
    raise typer.BadParameter(f"{word!r} is none of median, mean, constant (0), and a number")


@dataclass(frozen=True)
class PreprocessingOptions:
    """How the columns of a table become features; a model remembers."""

    impute: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Fill in missing values of a table: the median or mean of the column in training, constant "
            "(0), or a number. The model remembers.",
            callback=_imputation,
            rich_help_panel=DATA,
        ),
    ] = None
    one_hot: Annotated[
        list[str],
        typer.Option(
            "--one-hot",
            metavar="COLUMN",
            help="Columns of categories: a,b. Each category is a feature of 0 and 1, e.g. a=red. The model "
            "remembers.",
            rich_help_panel=DATA,
        ),
    ] = field(default_factory=list)

    def preprocessing(self, reading: DataOptions) -> Preprocessing | None:
        """The same for the readers, if anything is to be done."""
        if self == PreprocessingOptions():
            return None
        from majorant.datasets import Preprocessing
        from majorant.datasets.options import column_name

        columns = [reading.column(name) for name in split_names(self.one_hot)]
        names = [column_name(name) if isinstance(name, int) else str(name) for name in columns]
        known = self.impute in (None, "median", "mean")
        return Preprocessing(
            self.impute if known else 0.0 if self.impute == "constant" else float(self.impute or 0), names
        )


@dataclass(frozen=True)
class ModelOptions:
    """What becomes of a model that was trained."""

    test: Test = None
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Fit probabilities to the decision values of held-out rows: sigmoid or isotonic.",
            callback=one_of(("sigmoid", "isotonic")),
            rich_help_panel=MODEL,
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write an HTML report of the model.", rich_help_panel=OUTPUT
        ),
    ] = None
    force: Force = False
