"""A statement, whether it holds in the results, and the figures that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Verdict", "listed"]


@dataclass(frozen=True)
class Verdict:
    """Whether something that can be computed is so."""

    statement: str
    holds: bool | None
    """None where the results do not have what it takes to say."""
    because: str

    @property
    def word(self) -> str:
        """What stands before the reason."""
        if self.holds is None:
            return "not tested here"
        return "holds" if self.holds else "does not hold here"

    def __str__(self) -> str:
        return f"{self.statement}: {self.word}, {'since' if self.holds is None else 'because'} {self.because}"


def listed(words: Sequence[str], most: int = 4) -> str:
    """Words in a sentence, the first few of them."""
    shown = list(words[:most])
    rest = len(words) - len(shown)
    if rest:
        shown.append(f"{rest} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
