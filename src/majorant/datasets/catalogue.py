"""The data sets known by name: what each holds, and where it is published (catalogue.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

__all__ = ["REGISTRY", "DatasetInfo"]


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read."""

    name: str
    """What to call it in `majorant.datasets.load`."""
    task: str
    """What is to be predicted, in a few words."""
    n_rows: int
    n_features: int
    """Columns of X as it is loaded: those of a training file and its test file together."""
    n_classes: int
    size: int
    """Bytes, uncompressed."""
    sha256: str
    """Of the content, uncompressed."""
    files: tuple[str, ...]
    """What the file may be called, before an ending such as `.bz2`."""
    origin: str
    """Where the data come from, in words."""
    address: str | None = None
    """Where a file with this content is published, if it is."""
    paper: bool = False
    """Whether the paper trains on it."""
    same_numbers: tuple[str, ...] = ()
    """Hashes of other files with the same numbers, spelt otherwise; as good as `sha256`."""
    last_feature: int | None = None
    """The last feature that occurs in the file, where that is not `n_features`."""

    @property
    def hashes(self) -> tuple[str, ...]:
        """All that the hash of the content may be."""
        return (self.sha256, *self.same_numbers)

    @property
    def most_bytes(self) -> int:
        """More than any spelling or compression of the content takes: what is larger is something else."""
        return 2 * self.size + 2**20


def _read_records() -> dict[str, DatasetInfo]:
    records = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for name, record in records.items():
        lists = {key: tuple(value) for key, value in record.items() if isinstance(value, list)}
        records[name] = DatasetInfo(name, **record | lists)
    return records


REGISTRY: Mapping[str, DatasetInfo] = MappingProxyType(_read_records())
"""The data sets by name."""
