"""Numbers and names as text for readers."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

from markupsafe import Markup, escape

from majorant.text import printable

LONGEST_NAME = 120
NO_BREAK = "\u00a0"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_LEVEL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−")
_POWER = re.compile("10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)")


def plain_text(value: Any, longest: int = LONGEST_NAME) -> str:
    """Any object as one line of text that every encoding and every browser takes, shortened if too long."""
    text = str(value)
    return printable(text if len(text) <= longest else _shortened(text, longest - 1))


def _shortened(text: str, kept: int) -> str:
    """The beginning and the end of a text, `kept` letters in all: names often differ in the last letters."""
    begin = text[: -(-2 * kept // 3)]
    return f"{begin}…{text[len(text) - (kept - len(begin)) :]}"


def number(value: float, digits: int = 3, *, sign: bool = False, short: bool = False) -> str:
    """A number with `digits` significant digits: 0.0123, −4.56, 12,300, 7.89 × 10⁻⁸ (short: 7.89e−8)."""
    value = float(value)
    if math.isnan(value):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    size = abs(value)
    prefix = "−" if value < 0 else "+" if sign else ""
    mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
    power = int(exponent)
    if power < -4 or power > 6:
        if short:
            return f"{prefix}{mantissa}e{power}".replace("-", "−")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        # No-break spaces: a number stays on its line.
        return (
            f"{prefix}{'' if mantissa == '1' else mantissa + NO_BREAK + '×' + NO_BREAK}{power_of_ten(power)}"
        )
    return f"{prefix}{size:,.{max(digits - 1 - power, 0)}f}"


def share(value: float) -> str:
    """A score between 0 and 1, with three digits."""
    return "—" if math.isnan(value) else f"{value:.3f}"


def percent(value: float) -> str:
    """A share as 12.3 %."""
    return f"{number(100.0 * value)}{NO_BREAK}%"


def power_of_ten(exponent: int) -> str:
    """A power of ten with superscripts, as 10⁻³."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with a noun in singular or plural, as 1 row, 2 rows."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in the unit of its font size, rather overestimated."""
    return size * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if ord(letter) > 0x2E7F or unicodedata.east_asian_width(letter) in "WF":
        return 1.3
    if letter in "il.,:;|!' ":
        return 0.36
    return 0.95 if letter in "mwMW@%" else 0.74 if letter.isupper() else 0.62


def truncated(text: str, size: float, width: float) -> str:
    """The text, or as much of its beginning and its end as fits."""
    if text_width(text, size) <= width:
        return text
    shorter = (_shortened(text, kept) for kept in range(len(text) - 1, -1, -1))
    return next(shown for shown in shorter if text_width(shown, size) <= width)


def typeset(text: str) -> Markup:
    """The text as HTML, with powers as superscript elements: not every font has the characters."""
    return Markup(_POWER.sub(lambda found: f"10<sup>{found[1].translate(_LEVEL)}</sup>", str(escape(text))))
