"""The paper's tables as printed, its misprints, and its other errors, as `paper.toml` holds them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

Entries = dict[tuple[str, str, str], float]


class SparsityRow(NamedTuple):
    """A row of a table sparsity:*."""

    zeros: int
    accuracy: float
    precision: float
    recall: float
    F1: float


class Misprint(NamedTuple):
    """A printed number that contradicts the others of its entry."""

    label: str
    place: str
    measure: str
    printed: float
    right: float
    """The number that the rest of the entry implies."""
    because: str

    def __str__(self) -> str:
        return f"{self.measure} {self.printed:g} is very likely {self.right:.4f} ({self.because})."


def _entries(tables: dict[str, dict[str, list[float]]]) -> Entries:
    """The entries by (table, regulariser, method)."""
    return {
        (name, regulariser, method): value
        for name, rows in tables.items()
        for regulariser, values in rows.items()
        for method, value in zip(METHODS, values, strict=True)
    }


_PRINTED: dict[str, Any] = tomllib.loads((files(__package__) / "paper.toml").read_text(encoding="utf-8"))

METHODS: list[str] = _PRINTED["methods"]
MEASURES: list[str] = _PRINTED["measures"]
LABELS_SWAPPED: list[str] = _PRINTED["labels_swapped"]
LABELS: dict[str, list[str]] = _PRINTED["labels"]
"""The paper's labels: the kind of runs that a table or figure shows, and the data set (none: all)."""
PANELS: dict[str, dict[str, str]] = _PRINTED["panels"]
"""The panels of fig:optimality, by data set and regulariser; the other three problems have none."""
DATA = {name: tuple(sizes) for name, sizes in _PRINTED["data"].items()}
"""tab:data: N + 1, training rows, test rows."""
TEST_POSITIVES: dict[str, int] = _PRINTED["test_positives"]
"""Not printed: the fractions in the tables imply them."""
SCORES = {name: _entries(tables) for name, tables in _PRINTED["scores"].items()}
"""tab:a1a, tab:w8a, tab:cina0: (measure, regulariser, method), with the right names of the measures."""
TIMES = _entries(_PRINTED["times"])
"""tab:time, in seconds: (data set, regulariser, method)."""
SPARSITY = {
    name: {float(lam): SparsityRow(*row) for lam, row in rows.items()}
    for name, rows in _PRINTED["sparsity"].items()
}
"""sparsity:a1a, sparsity:cina0, sparsity:w8a, by λ."""
MISPRINTS = [Misprint(**misprint) for misprint in _PRINTED["misprints"]]


def corrected_scores(name: str, regulariser: str, method: str) -> dict[str, float]:
    """The four scores of an entry, with its misprints corrected."""
    scores = {measure: SCORES[name][measure, regulariser, method] for measure in MEASURES}
    place = (f"tab:{name}", f"{regulariser}, {method}")
    return scores | {slip.measure: slip.right for slip in MISPRINTS if (slip.label, slip.place) == place}


def errata() -> list[str]:
    """All errors found in the paper, each checked: formulas, tables, single numbers."""
    return [*_PRINTED["errata"], *(f"{slip.label}, {slip.place}: {slip}" for slip in MISPRINTS)]
