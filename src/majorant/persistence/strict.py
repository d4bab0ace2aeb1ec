"""Strict JSON: UTF-8, each key once, and only finite numbers.

The functions below return a node if it has the required type and content; otherwise they raise a
`ModelFileError` that says where the file differs. Sizes are checked before memory is allocated.

msgspec cannot replace this module: its decoder keeps the last of two equal keys, accepts integers of any
length, and its messages name no line. The checksum needs a tree of plain objects in any case. Most checks
depend on other fields (lengths, types of numpy, registered classes), which msgspec's schemas cannot express.
"""

from __future__ import annotations

import gc
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from majorant.errors import ModelFileError
from majorant.text import first_duplicate

# The largest file that is read or written: 10 million coefficients or more.
MAX_BYTES = 2**29
# The largest array whose size, but not its entries, is in the file: 2 GiB of float64.
MAX_ENTRIES = 2**28
# The largest array whose entries are in the file: every string takes the size of the longest.
MAX_ARRAY_BYTES = 2**28
# The digits of the largest uint64, and a sign.
MAX_DIGITS = 21
# The deepest nesting of lists and objects in parameters and provenance.
DEPTH = 8
# A list whose text is longer than this has a line for every entry.
LINE = 100

T = TypeVar("T")

# Replaces every digit by 0, and E by e.
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
# A power of three digits or more, followed by the end of a number: checksums often contain e and three
# digits.
_LARGE_POWER = re.compile(rb"e\+?000+(?:[\s,\]}]|\Z)")

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turn Python's garbage collector off while many small lists are created, none of which is garbage.

    Its repeated passes took as long as reading the lists.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def render(document: dict[str, Any]) -> bytes:
    """The text of a document, with line breaks that make a diff readable."""
    # Half of a surrogate pair in a label is no character; it is written as JSON's escape.
    return ("".join(_pieces(document, "\n")) + "\n").encode("utf-8", errors="backslashreplace")


def canonical(document: dict[str, Any]) -> bytes:
    """The bytes whose checksum is stored: they do not depend on the order of keys and on white space."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def plain(value: Any, depth: int = DEPTH) -> Any:
    """The value as JSON's own types; a TypeError if that is not possible.

    Possible are None, strings, truth values, integers and finite numbers, also those of numpy; and, `depth`
    levels deep, lists, tuples and dicts with strings as keys.
    """
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral) and len(str(int(value))) < MAX_DIGITS:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and math.isfinite(float(value)):
        return float(value)
    if depth and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): plain(entry, depth - 1) for key, entry in value.items()}
    if depth and isinstance(value, list | tuple):
        return [plain(entry, depth - 1) for entry in value]
    raise TypeError(f"{shown(value)} has no equivalent in JSON")


def _pieces(node: Any, newline: str) -> Sequence[str]:
    inner = newline + " "
    if isinstance(node, dict) and node:
        entries = [(f"{_encode(key)}: ", value) for key, value in node.items()]
        opening, closing = "{", "}"
    elif isinstance(node, list) and not _fits_a_line(node):
        if rows := _rows_of_numbers(node, inner):
            return [f"[{inner}", rows, f"{newline}]"]
        entries = [("", value) for value in node]
        opening, closing = "[", "]"
    else:
        return [_encode(node)]
    pieces = [opening]
    for key, value in entries:
        pieces += [inner, key, *_pieces(value, inner), ","]
    return [*pieces[:-1], newline, closing]


def _fits_a_line(node: list[Any]) -> bool:
    if any(isinstance(value, dict | list) and value for value in node):
        return False
    return len(node) <= LINE // 3 and len(_encode(node)) <= LINE


def _rows_of_numbers(node: list[Any], newline: str) -> str | None:
    """The text of a list of lists of numbers, one list per line; None for other lists.

    These lists are most of a file, so they are encoded in one call.
    """
    # Checks the first entries only, since encoding a million coefficients in vain takes seconds.
    if not all(isinstance(row, list) and row and not isinstance(row[0], list) for row in node[:LINE]):
        return None
    text = _encode(node)
    if "[[" in text[1:] or any(mark in text for mark in '"{') or "[]" in text:
        return None
    return text[1:-1].replace("], [", f"],{newline}[")


def parse(data: bytes) -> Any:
    """The document of a text in UTF-8."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"it is not UTF-8 text (byte {error.start})") from None
    try:
        numbers: dict[str, Any] = (
            {"parse_float": _float, "parse_int": _integer} if _has_long_numbers(data) else {}
        )
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, **numbers)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip():
            raise ModelFileError(f"it ends too early (line {error.lineno}): it was cut short") from None
        raise ModelFileError(
            f"it is not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except RecursionError:
        raise ModelFileError("it is nested deeper than any model file") from None


def _has_long_numbers(data: bytes) -> bool:
    """Whether the text may contain a number that exceeds its type.

    Otherwise json needs no parsing functions of ours, which double its time.
    """
    shape = data.translate(_SHAPE)
    return b"0" * MAX_DIGITS in shape or _LARGE_POWER.search(shape) is not None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    node = dict(pairs)
    if len(node) < len(pairs):
        raise ModelFileError(f"the key {shown(first_duplicate(key for key, _ in pairs))} is there twice")
    return node


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ModelFileError(f"the number {shown(text)} is beyond double precision")
    return number


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ModelFileError(f"an integer has {len(text)} digits")
    return int(text)


def _constant(text: str) -> Any:
    raise ModelFileError(f"it holds {text}, which is not JSON")


# What a node must be ---------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value in a message, shortened if it is long."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expect(node: Any, kinds: type | tuple[type, ...], where: str, what: str) -> None:
    # By `type`, not `isinstance`, since True is no integer here.
    if type(node) not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise ModelFileError(f"{where} must be {what}, got {shown(node)}")


def keys(node: Any, where: str, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """An object with all of the required keys and no unknown ones."""
    _expect(node, dict, where, "an object")
    if missing := [key for key in required if key not in node]:
        raise ModelFileError(f"{where} has no {shown(missing[0])}")
    if unknown := [key for key in node if key not in required and key not in optional]:
        raise ModelFileError(f"{where} has {shown(unknown[0])}, which is unknown")
    return dict(node)


def items(node: Any, where: str, length: int | None = None) -> list[Any]:
    """A list, of that length if one is given."""
    _expect(node, list, where, "a list")
    if length is not None and len(node) != length:
        raise ModelFileError(f"{where} must have {length} entries, got {len(node)}")
    return list(node)


def text(node: Any, where: str) -> str:
    """A string."""
    _expect(node, str, where, "a string")
    return str(node)


def one_of(node: Any, where: str, choices: Sequence[str]) -> str:
    """One of these strings."""
    if text(node, where) not in choices:
        raise ModelFileError(f"{where} must be one of {', '.join(choices)}, got {shown(node)}")
    return str(node)


def boolean(node: Any, where: str) -> bool:
    """True or false."""
    _expect(node, bool, where, "true or false")
    return bool(node)


def integer(node: Any, where: str, low: int = 0, high: int = 2**63 - 1) -> int:
    """An integer between two bounds."""
    _expect(node, int, where, "an integer")
    if not low <= node <= high:
        raise ModelFileError(f"{where} must be between {low} and {high}, got {shown(node)}")
    return int(node)


def finite(node: Any, where: str) -> float:
    """A finite number."""
    _expect(node, (float, int), where, "a number")
    return float(node)  # an integer has too few digits to overflow


def number(node: Any, where: str) -> float:
    """A number that may be null, which is nan, or "inf" or "-inf"."""
    if node is None:
        return math.nan
    if node in ("inf", "-inf"):
        return float(node)
    return finite(node, where)


def number_node(value: Any) -> float | str | None:
    """The node that `number` reads."""
    number = float(value)
    if math.isfinite(number):
        return number
    return None if math.isnan(number) else str(number)


def each(read: Callable[..., T], nodes: list[Any], where: str) -> list[T]:
    """All entries of a list, each read in the same way."""
    return [read(node, f"{where}[{position}]") for position, node in enumerate(nodes)]


# Forms: how a value of each kind is written to a document, and read from one --------------------------------


class Form(NamedTuple):
    """A pair of functions that write and read values of one kind."""

    write: Callable[[Any], Any]
    """Value ↦ node of JSON's own types."""
    read: Callable[[Any, str], Any]
    """(node, its place in the document) ↦ value; raises a `ModelFileError`."""

    def converted(self, before: Callable[[Any], Any], after: Callable[[Any], Any]) -> Form:
        """The form of values that are converted before they are written, and after they are read."""
        return Form(
            lambda value: self.write(before(value)), lambda node, where: after(self.read(node, where))
        )


def integer_between(low: int = 0, high: int = 2**63 - 1) -> Form:
    """The form of an integer between two bounds."""
    return Form(int, partial(integer, low=low, high=high))


def list_of(form: Form, length: int | None = None) -> Form:
    """The form of a list whose entries have one form; of that length if one is given."""
    return Form(
        lambda values: [form.write(value) for value in values],
        lambda node, where: each(form.read, items(node, where, length), where),
    )


def record(forms: Mapping[str, Form]) -> Form:
    """The form of a dict with exactly these keys, whose values have these forms."""

    def read(node: Any, where: str) -> dict[str, Any]:
        entries = keys(node, where, list(forms))
        return {name: form.read(entries[name], f"{where}.{name}") for name, form in forms.items()}

    return Form(lambda values: {name: form.write(values[name]) for name, form in forms.items()}, read)


def mapping_of(form: Form) -> Form:
    """A dict with any strings as keys, as an object."""

    def read(node: Any, where: str) -> dict[str, Any]:
        _expect(node, dict, where, "an object")
        return {name: form.read(entry, f"{where}.{shown(name)}") for name, entry in node.items()}

    return Form(lambda values: {name: form.write(value) for name, value in values.items()}, read)


COUNT = integer_between()
NUMBER = Form(number_node, number)
FINITE = Form(float, finite)
TEXT = Form(str, text)
BIT = integer_between(0, 1)
UINT32 = integer_between(0, 2**32 - 1)
# The forms of the fields of a dataclass, by their annotation.
BY_ANNOTATION = {"int": COUNT, "float": NUMBER}
