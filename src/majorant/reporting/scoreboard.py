"""The table of scores: numbers as text, intervals as little pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from majorant.reporting.scores import Score
from majorant.reporting.subject import Rows
from majorant.reporting.text import percent, share


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table."""

    name: str
    value: str
    interval: str
    training: str
    mark: tuple[str, str, str] | None
    """Where the interval begins, the score is and the interval ends, in percent of the cell."""


@dataclass(frozen=True)
class Scoreboard:
    """All scores, and where the axis of their pictures begins."""

    rows: tuple[ScoreRow, ...]
    floor: str
    caution: str


def scoreboard(scores: tuple[Score, ...], rows: Rows) -> Scoreboard:
    """Make the table; the axis of all pictures ends at 1 and begins at a tenth below all that is shown."""
    lowest = min([0.9, *(x for score in scores for x in (score.low, score.value) if not math.isnan(x))])
    floor = math.floor(10.0 * lowest) / 10.0
    caution = ""
    if scores[0].value == 1.0:
        caution = "No row is mistaken, so no resample has a mistake either, and the intervals tell nothing"
        if rows.where == "test":
            caution += (
                f"; by the rule of three, up to {percent(min(3.0 / len(rows), 1.0))} of new rows may be"
            )
        caution += "."
    return Scoreboard(tuple(_row(score, floor) for score in scores), f"{floor:g}", caution)


def _row(score: Score, floor: float) -> ScoreRow:
    ends = (score.low, score.value, score.high)
    known = not any(math.isnan(end) for end in ends)
    low, value, high = (f"{100.0 * (end - floor) / (1.0 - floor):.1f}" for end in ends)
    return ScoreRow(
        name=score.name,
        value=share(score.value),
        interval=f"{share(score.low)} – {share(score.high)}" if known else "—",
        training="" if score.training is None else share(score.training),
        mark=(low, value, high) if known else None,
    )
