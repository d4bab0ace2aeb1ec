"""The provenance of a model: the data, the command and the packages that are needed to train it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.persistence.strict import FINITE, TEXT, list_of
from majorant.status import Certificate

PACKAGES = ("majorant", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Provenance:
    """The data, the programs and the result of a training.

    All fields are optional. `Provenance.of` fills in what follows from a fitted model and its data.
    """

    source: str | None = None
    """The data: a file or a name, as the user gave it."""
    sha256: str | None = None
    """The SHA-256 of the data."""
    n_rows: int | None = None
    """The number of training rows."""
    objective: float | None = None
    """Φ at the coefficients."""
    certificate: str | None = None
    """In words, e.g. "duality gap 3.1e-07"."""
    command: Sequence[str] | None = None
    """The command line that trained the model."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the packages."""
    standardized: bool | None = None
    """Whether the features were divided by their standard deviations while training. The coefficients are
    for the features as they are; the objective and the certificate are of the scaled problem."""
    label_column: str | None = None
    """The name of the column of the labels, if the columns have names."""
    unnamed_columns: int | None = None
    """The number of columns of the data if these had no names: "column 0", "column 1", …."""
    deviations: Sequence[float] | None = None
    """The standard deviations of the features in use (`support_`), if features were divided by these while
    training. Coefficients times deviations can be compared."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, by names that are no fields: strings, finite numbers, truth values, None, and lists and
    dicts of these."""

    @classmethod
    def of(
        cls,
        model: Any,
        data: Any = None,
        command: Sequence[str] | None = None,
        *,
        standardized: bool | None = None,
        deviations: Sequence[float] | None = None,
    ) -> Self:
        """The provenance of a model that was just fitted.

        Parameters
        ----------
        model : SparseSVC or SparseSVCCV
            Fitted in this process: the versions are those of the installed packages.
        data : Data, optional
            The training data (`majorant.datasets`).
        command : sequence of str, optional
            The command line.
        standardized : bool, optional
            Whether the features were divided by their standard deviations while training. By default, whether
            the model has ``standardize=True``.
        deviations : sequence of float, optional
            The deviations of the features in use.
        """
        certificate = None
        if hasattr(model, "stationarity_"):
            certificate = str(Certificate(model.stationarity_, model.gap_))
        return cls(
            source=getattr(data, "source", None),
            sha256=getattr(data, "sha256", None),
            n_rows=getattr(model, "t_", None),
            objective=getattr(model, "objective_", None),
            certificate=certificate,
            command=None if command is None else list(command),
            versions={name: found for name in PACKAGES if (found := _version(name))},
            standardized=getattr(model, "standardize", None) if standardized is None else standardized,
            deviations=None if deviations is None else [float(deviation) for deviation in deviations],
            label_column=getattr(data, "label", None),
            unnamed_columns=getattr(data, "unnamed_columns", None),
        )

    def facts(self) -> dict[str, str]:
        """All known facts in words, by name.

        The texts are not checked, and may contain control characters: `majorant.text.printable` makes them
        safe to print.
        """
        scaled = " (of the scaled problem)" if self.standardized else ""
        known = {
            "Data": self.source,
            "SHA-256 of the data": self.sha256,
            "Column of the labels": self.label_column,
            "Columns without names": None if self.unnamed_columns is None else f"{self.unnamed_columns:,}",
            "Training rows": None if self.n_rows is None else f"{self.n_rows:,}",
            "Features": _SCALING[self.standardized],
            "Objective": None if self.objective is None else f"{self.objective:.6g}{scaled}",
            "Certificate": None if self.certificate is None else f"{self.certificate}{scaled}",
            "Trained by": None if self.command is None else shlex.join(self.command),
            "Trained with": ", ".join(f"{name} {number}" for name, number in self.versions.items()) or None,
        }
        further = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in self.more.items()
        }
        return {name: fact for name, fact in known.items() if fact is not None} | further


_SCALING = {
    None: None,
    False: "as they are",
    True: "divided by their standard deviations while training; the coefficients are for them as they are",
}


def _version(package: str) -> str | None:
    if package == "majorant":
        from majorant import __version__

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# In a file: an object with the fields that are known, and further facts -----------------------------------


def provenance_node(provenance: Provenance | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The node of a provenance, or of a dict with its fields and further facts."""
    if provenance is None:
        return None
    if isinstance(provenance, Provenance):
        provenance = _known(provenance) | dict(provenance.more)
    try:
        node: dict[str, Any] = strict.plain(provenance)
    except TypeError as error:
        raise ModelFileError(
            "provenance must be a Provenance, or a dict of strings, finite numbers, lists and such dicts "
            f"({error})"
        ) from None
    read_provenance(node)  # refuses what could not be read again
    return node


def _known(provenance: Provenance) -> dict[str, Any]:
    if mistaken := [name for name in provenance.more if name in FIELDS]:
        raise ModelFileError(f"provenance has {mistaken[0]!r} in `more`, which is a field of its own")
    known = {name: getattr(provenance, name) for name in FIELDS}
    if known["versions"] == {}:
        known["versions"] = None
    return {name: value for name, value in known.items() if value is not None}


def read_provenance(node: Any) -> Provenance | None:
    """The provenance that `provenance_node` wrote."""
    if node is None:
        return None
    if type(node) is not dict or _depth(node) > strict.DEPTH + 1:
        raise ModelFileError("provenance must be an object that is not nested deeply, or null")
    known = {
        name: read(node[name], f"provenance.{name}")
        for name, read in FIELDS.items()
        if node.get(name) is not None
    }
    return Provenance(**known, more={name: value for name, value in node.items() if name not in FIELDS})


def _read_versions(node: Any, where: str) -> dict[str, str]:
    if type(node) is not dict:
        raise ModelFileError(f"{where} must be an object, got {strict.shown(node)}")
    return {name: strict.text(number, f"{where}.{strict.shown(name)}") for name, number in node.items()}


READERS: dict[str, Callable[[Any, str], Any]] = {
    "str": strict.text,
    "int": strict.integer,
    "float": strict.finite,
    "bool": strict.boolean,
    "Sequence[str]": list_of(TEXT).read,
    "Sequence[float]": list_of(FINITE).read,
    "Mapping[str, str]": _read_versions,
}
FIELDS = {
    field.name: READERS[str(field.type).removesuffix(" | None")]
    for field in fields(Provenance)
    if field.name != "more"
}


def _depth(node: Any) -> int:
    entries = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + max(map(_depth, entries), default=0)
