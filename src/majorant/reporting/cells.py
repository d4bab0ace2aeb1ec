"""What a cell of a table shows besides its text."""

from __future__ import annotations

from dataclasses import dataclass

# Steps of shading, as many as the style sheet has.
SHADES = 6


@dataclass(frozen=True)
class Bar:
    """A bar in a cell: where it begins and how long it is, in percent of the cell."""

    start: str
    length: str
    classes: str


@dataclass(frozen=True)
class Cell:
    """A number, and how strong and in which colour its background is."""

    text: str
    shade: str = ""


def make_bar(share: float, lowest: float = 0.0, highest: float = 1.0) -> Bar:
    """A bar from zero to `share`, in a cell that reaches from `lowest` ≤ 0 to `highest` ≥ 0."""
    width = (highest - lowest) / 100.0
    length = abs(share) / width
    start = (min(share, 0.0) - lowest) / width
    return Bar(f"{start:.4g}", f"{max(length, 0.4):.4g}", "minus" if share < 0.0 else "plus")
