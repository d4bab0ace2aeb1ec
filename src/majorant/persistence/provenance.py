"""Where a model comes from: what a reader of the file needs to train it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from typing import Any, Self

import numpy as np

from majorant.errors import ModelFileError
from majorant.persistence import strict
from majorant.status import Certificate

PACKAGES = ("majorant", "numpy", "scipy", "scikit-learn")
DEPTH = 8


@dataclass(frozen=True)
class Provenance:
    """Which data, which programs, and how good the result was.

    All fields may be left out. `Provenance.of` fills in what a fitted model and the data it was trained on
    know.
    """

    source: str | None = None
    """The data: a file or a name, as the user gave it."""
    sha256: str | None = None
    """Of the data."""
    n_rows: int | None = None
    """How many rows the model was trained on."""
    objective: float | None = None
    """Φ at the coefficients."""
    certificate: str | None = None
    """In words, e.g. "duality gap 3.1e-07"."""
    command: Sequence[str] | None = None
    """The command line that trained the model."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the packages that it was trained with."""

    @classmethod
    def of(cls, model: Any, data: Any = None, command: Sequence[str] | None = None) -> Self:
        """What can be known of a model.

        Parameters
        ----------
        model : SparseSVC or SparseSVCCV
            Fitted here and now: the versions are those of the packages installed.
        data : Data, optional
            What it was trained on (`majorant.datasets`).
        command : sequence of str, optional
            The command line.
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
        )


def _version(package: str) -> str | None:
    if package == "majorant":
        from majorant import __version__

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def provenance_node(provenance: Provenance | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A record or a dict of JSON's own types, written down."""
    if provenance is None:
        return None
    known = asdict(provenance) if isinstance(provenance, Provenance) else provenance
    node: dict[str, Any] = _plain(known, DEPTH)
    return node


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str) or value is None:
        return value if value is None else str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral) and len(str(int(value))) < strict.MAX_DIGITS:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and np.isfinite(float(value)):
        return float(value)
    if depth and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(entry, depth - 1) for key, entry in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_plain(entry, depth - 1) for entry in value]
    raise ModelFileError(
        "provenance must be a Provenance, or a dict of strings, finite numbers, lists and such dicts, got "
        f"{strict.shown(value)}"
    )


def read_provenance(node: Any) -> dict[str, Any] | None:
    """What `provenance_node` wrote."""
    if node is None:
        return None
    if type(node) is not dict or _depth(node) > DEPTH + 1:
        raise ModelFileError("provenance must be an object that is not nested deeply, or null")
    return dict(node)


def _depth(node: Any) -> int:
    entries = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + max(map(_depth, entries), default=0)
