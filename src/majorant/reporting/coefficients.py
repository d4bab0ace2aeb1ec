"""The features that a model uses, as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from majorant.estimators.coef_norms import feature_norms
from majorant.reporting.cells import SHADES, Bar, Cell, make_bar
from majorant.reporting.subject import Subject
from majorant.reporting.text import NO_BREAK, number, plain_text

# What keeps the file below 1 MB, whatever the names are.
MOST_ROWS = 2000
MOST_BYTES = 600_000
# More classes than this have no column of their own.
MOST_COLUMNS = 6


@dataclass(frozen=True)
class CoefficientRow:
    """One feature."""

    rank: int
    name: str
    value: str
    bar: Bar
    by_class: tuple[Cell, ...]
    strongest: str
    frequency: str
    effect: str = ""


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """The features of a model, the largest first: by effect where that is known, else by coefficient."""

    rows: tuple[CoefficientRow, ...]
    used: int
    value_header: str
    class_headers: tuple[str, ...]
    has_strongest: bool
    has_frequency: bool
    has_effect: bool = False


def coefficient_table(subject: Subject) -> CoefficientTable:
    """Those of the features that are not zero, as many as there is room for."""
    coef, n_problems = subject.coef, len(subject.coef)
    lengths = _lengths(coef)
    support = np.flatnonzero(coef.any(axis=0))
    scaled = subject.effects
    effects = lengths if scaled is coef else _lengths(scaled)
    order = support[np.argsort(-np.abs(effects[support]), kind="stable")]
    frequency = getattr(subject.model, "selection_frequency_", None)
    columns = n_problems if 1 < n_problems <= MOST_COLUMNS else 0
    largest = float(np.abs(scaled).max()) if coef.size else 0.0
    lowest, highest = float(effects.min(initial=0.0)), float(effects.max(initial=0.0))
    rows: list[CoefficientRow] = []
    written = 0
    for i in order[:MOST_ROWS].tolist():
        name = plain_text(subject.names[i])
        strongest = _strongest(coef[:, i], subject.classes) if n_problems > MOST_COLUMNS else ""
        written += 240 + 50 * columns + len(str(escape(name + strongest)).encode())
        if written > MOST_BYTES:
            break
        rows.append(
            CoefficientRow(
                rank=len(rows) + 1,
                name=name,
                value=number(lengths[i], 4, sign=n_problems == 1, short=True),
                bar=make_bar(float(effects[i]), lowest, highest),
                by_class=tuple(
                    _shaded(w, effect, largest)
                    for w, effect in zip(coef[:, i].tolist(), scaled[:, i].tolist(), strict=True)
                )
                if columns
                else (),
                strongest=strongest,
                effect="" if effects is lengths else number(abs(effects[i]), 3, short=True),
                frequency="" if frequency is None else f"{100.0 * frequency[i]:.0f} %",
            )
        )
    return CoefficientTable(
        rows=tuple(rows),
        used=len(support),
        value_header="Coefficient" if n_problems == 1 else "Length",
        class_headers=tuple(plain_text(name, 24) for name in subject.classes) if columns else (),
        has_strongest=n_problems > MOST_COLUMNS,
        has_frequency=frequency is not None,
        has_effect=effects is not lengths,
    )


def _lengths(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """The coefficient of every feature, or the length of its coefficients over all classes."""
    return coef[0] if len(coef) == 1 else feature_norms(coef)


def _shaded(value: float, effect: float, largest: float) -> Cell:
    if value == 0.0:
        return Cell("0", "nil")
    step = max(1, math.ceil(SHADES * abs(effect) / largest)) if largest else 1
    return Cell(number(value, 3, sign=True, short=True), f"{'m' if value < 0 else 'p'}{step}")


def _strongest(coef: NDArray[np.float64], classes: tuple[str, ...]) -> str:
    order = np.argsort(-np.abs(coef), kind="stable")[:3]
    return ", ".join(
        f"{'+' if coef[k] > 0 else '−'}{NO_BREAK}{plain_text(classes[k], 24)}" for k in order if coef[k]
    )


def frequency_rows(subject: Subject, most: int = 20) -> tuple[tuple[str, Bar, str, bool], ...]:
    """The features that most folds select: name, bar, share, and whether the model uses it."""
    frequency = getattr(subject.model, "selection_frequency_", None)
    if frequency is None:
        return ()
    selected = np.flatnonzero(frequency)
    order = selected[np.lexsort((-feature_norms(subject.effects)[selected], -frequency[selected]))][:most]
    used = set(subject.model.support_.tolist())
    return tuple(
        (
            plain_text(subject.names[i], 60),
            make_bar(float(frequency[i])),
            f"{100.0 * frequency[i]:.0f} %",
            i in used,
        )
        for i in order.tolist()
    )
