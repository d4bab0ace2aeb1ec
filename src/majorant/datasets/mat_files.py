"""The numeric and sparse arrays of MATLAB files, versions 5 to 7.

scipy.io.loadmat reads more, and crashes the process on some damaged files (found by fuzzing). Here every
slice of the bytes is checked by numpy, and a damaged file raises an error.

A file is a header and elements; an element is its type, its size and its bytes. A variable is a matrix
element, or a compressed one with that inside, made of further elements: flags, shape, name, then the numbers,
in columns, stored in any type that holds them; or row indices, column starts and numbers if it is sparse.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Other", "load_mat"]

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE = 5
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_OPAQUE = 17
_OTHERS = {1: "cell array", 2: "struct", 3: "object", 4: "text", 16: "function"}
_IS_COMPLEX = 0x0800
# What a variable may take: a few kilobytes of zeros, compressed, can be gigabytes.
MOST_BYTES = 2**31


class Other(NamedTuple):
    """A variable that has no numbers to read."""

    kind: str
    shape: tuple[int, ...]


class _Element(NamedTuple):
    type: int
    data: bytes


def load_mat(data: bytes) -> dict[str, Any]:
    """The variables of a file by name: arrays, CSC arrays, or `Other`."""
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None or len(data) < _HEADER:
        raise ValueError("no MATLAB file of version 5 to 7")
    variables = {}
    for element in _elements(data[_HEADER:], order):
        if element.type == _COMPRESSED:
            (element,) = _elements(_decompressed(element.data, order), order)
        if element.type == _MATRIX and element.data:
            name, variable = _variable(element.data, order)
            variables[name] = variable
    return variables


def _decompressed(data: bytes, order: str) -> bytes:
    """The one element inside of a compressed one: as many bytes as it says, and no more."""
    stream = zlib.decompressobj()
    head = stream.decompress(data, 8)
    if len(head) < 8:
        raise ValueError("the file ends within a variable")
    size = int(np.frombuffer(head, f"{order}u4", 1, 4)[0])
    if size > MOST_BYTES:
        raise ValueError(f"a variable of {size} bytes, where {MOST_BYTES} are the most")
    body = stream.decompress(stream.unconsumed_tail, size + 8)  # room for padding
    if not stream.eof:
        raise ValueError("a compressed variable is larger than it says, or cut short")
    return head + body


def _elements(data: bytes, order: str) -> Iterator[_Element]:
    place = 0
    while place < len(data):
        if len(data) - place < 8:
            raise ValueError("the file ends within a variable")
        kind, size = np.frombuffer(data, f"{order}u4", 2, place).tolist()
        place += 8
        if kind >> 16:  # up to four bytes, in the place of the size
            yield _Element(kind & 0xFFFF, data[place - 4 : place - 4 + (kind >> 16)])
            continue
        if size > len(data) - place:
            raise ValueError("the file ends within a variable")
        yield _Element(kind, data[place : place + size])
        place += size if kind == _COMPRESSED else -(-size // 8) * 8


def _variable(data: bytes, order: str) -> tuple[str, Any]:
    elements = _elements(data, order)
    flags = int(_numbers(next(elements), order)[0])
    kind = flags & 0xFF
    if kind == _OPAQUE:
        return bytes(next(elements).data).decode(), Other("object", ())
    shape = tuple(_numbers(next(elements), order).tolist())
    name = next(elements).data.decode()
    if kind not in _CLASSES and kind != _SPARSE:
        return name, Other(_OTHERS.get(kind, "variable of an unknown kind"), shape)
    if flags & _IS_COMPLEX:
        return name, Other("complex array", shape)
    if kind == _SPARSE:
        import scipy.sparse as sp

        rows, starts, values = (_numbers(element, order) for element in elements)
        used = int(starts[-1])
        X = sp.csc_array((values[:used].astype(np.float64), rows[:used], starts), shape=shape)
        return name, X
    (element,) = elements
    return name, _numbers(element, order).astype(_CLASSES[kind]).reshape(shape, order="F")


def _numbers(element: _Element, order: str) -> NDArray[Any]:
    if element.type not in _STORED:
        raise ValueError(f"numbers of the unknown type {element.type}")
    return np.frombuffer(element.data, order + _STORED[element.type])
