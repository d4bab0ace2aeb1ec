"""Text from files: the syntax of numbers, and names that may contain terminal control sequences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["DECIMAL", "INTEGER", "did_you_mean", "first_duplicate", "printable"]

DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""The numbers of all text formats: `float` accepts more ("1_000", "nan", digits of other scripts)."""
INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
"""Integers with so few digits that an int64 holds them."""

# Controls (escape, bell, new line, …), line and paragraph separators.
_CONTROLS = ("Cc", "Zl", "Zp")
# Embeddings, overrides and isolates, which change the order in which text is displayed.
_REORDERING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def printable(text: str) -> str:
    r"""The text on one line, without characters that control a terminal or a browser.

    The length is the same: a space replaces each control character, "?" half a surrogate pair (which has no
    bytes). Letters, marks and signs of all scripts stay.

    >>> printable("red\x1b[31m alert\x07\nnext line")
    'red [31m alert  next line'
    """
    if text.isprintable():
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(" " if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROLS or unicodedata.bidirectional(character) in _REORDERING


def first_duplicate(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time; None if all names differ.

    >>> first_duplicate(["a", "b", "c", "b", "a"])
    'b'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known name that is closest, if one is close.

    >>> did_you_mean("Weihgt", ["weight", "height"])
    "; did you mean 'weight'?"
    >>> did_you_mean("age", ["weight", "height"])
    ''
    """
    import difflib

    by_folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""
