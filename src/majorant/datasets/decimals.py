"""Decimal numbers as `float` reads them: the float64 that is nearest, for every one of them. Imports numba.

A number is w × 10^q with an integer w of at most 19 digits. If w ≤ 2^53 and |q| ≤ 22, both factors are
float64 numbers and one multiplication or division rounds once (Clinger, "How to read floating point numbers
accurately", 1990). Otherwise w is multiplied by the leading 128 bits of 5^q, which is always enough to round
correctly (Lemire, "Number parsing at a gigabyte per second", 2021; Mushtak and Lemire, "Fast number parsing
without fallback", 2023). Of longer numbers the first 19 digits are taken: the number is between w and w + 1
times 10^q, and if those two round to different values, it is `HARD` and left to `float`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from majorant.jit import compiled, compiled_part

Bytes = NDArray[np.uint8]
Powers = NDArray[np.uint64]

READ, NO_NUMBER, TOO_LARGE, HARD = 0, 1, 2, 3
"""What became of a number."""

# Outside of these, w × 10^q with w < 10^19 is 0 or infinite.
SMALLEST, LARGEST = -342, 308
_EXACT = 10.0 ** np.arange(23)
_MOST_DIGITS = 19
_LOW_HALF = np.uint64(2**32 - 1)
_ONE = np.uint64(1)
_HIDDEN = np.uint64(2**52)
_LARGEST_EXACT = np.uint64(2**53)


@cache
def powers_of_five() -> Powers:
    """The leading 128 bits of 5^q as two columns, for SMALLEST ≤ q ≤ LARGEST.

    Rounded up for -27 ≤ q < 0, where 5^-q is below 2^64 and w may be a multiple of it: the product is then
    barely above a whole number, and not below. Cut off elsewhere.
    """
    table = np.empty((LARGEST - SMALLEST + 1, 2), dtype=np.uint64)
    for row, q in enumerate(range(SMALLEST, LARGEST + 1)):
        power = 5 ** abs(q)
        if q < 0:
            length = power.bit_length()
            power = 2 ** (length + 127) // power + 1 if q >= -27 else 2 ** (2 * length + 128) // power
        excess = power.bit_length() - 128
        bits = power >> excess if excess > 0 else power << -excess
        table[row] = bits >> 64, bits & (2**64 - 1)
    return table


@compiled
def read_number(text: Bytes, i: int, powers: Powers) -> tuple[int, float, int]:
    """The number that begins at text[i]: what became of it, its value, and where it ends.

    The text must have a byte after the number that is no part of one, as a line has its end.
    """
    negative = text[i] == 45  # -
    if negative or text[i] == 43:  # +
        i += 1
    w = np.uint64(0)
    digits, q = 0, np.int64(0)
    some, cut = False, False
    after_point = False
    while True:
        digit = np.int64(text[i]) - 48
        if 0 <= digit <= 9:
            some = True
            if digits < _MOST_DIGITS:
                w = w * np.uint64(10) + np.uint64(digit)
                if w != 0:
                    digits += 1
                if after_point:
                    q -= 1
            else:
                cut = cut or digit != 0
                if not after_point:
                    q += 1
        elif digit == -2 and not after_point:  # .
            after_point = True
        else:
            break
        i += 1
    if not some:
        return NO_NUMBER, 0.0, i
    if text[i] == 101 or text[i] == 69:  # e, E
        i += 1
        shrinks = text[i] == 45
        if shrinks or text[i] == 43:
            i += 1
        if not 48 <= text[i] <= 57:
            return NO_NUMBER, 0.0, i
        exponent = np.int64(0)
        while 48 <= text[i] <= 57:
            if exponent < 10**15:  # longer than any file
                exponent = 10 * exponent + np.int64(text[i]) - 48
            i += 1
        q += -exponent if shrinks else exponent
    kind = READ
    if w == 0:
        value = 0.0
    elif not cut and w <= _LARGEST_EXACT and -22 <= q <= 22:
        value = np.float64(w) * _EXACT[q] if q >= 0 else np.float64(w) / _EXACT[-q]
    else:
        value = _rounded(w, q, powers)
        if cut and value != _rounded(w + _ONE, q, powers):
            kind = HARD
        elif value == np.inf:
            kind = TOO_LARGE
    return kind, -value if negative else value, i


@compiled_part
def _rounded(w: np.uint64, q: int, powers: Powers) -> float:
    """The float64 nearest to w × 10^q, for w > 0."""
    if q < SMALLEST:
        return 0.0
    if q > LARGEST:
        return np.inf
    shift = 0
    for width in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - width) == 0:
            w = w << np.uint64(width)
            shift += width
    upper, lower = _product(w, powers[q - SMALLEST, 0])
    # Only if all nine bits below those that are kept are ones could a carry from further down matter.
    if upper & np.uint64(0x1FF) == np.uint64(0x1FF):
        carry, _ = _product(w, powers[q - SMALLEST, 1])
        lower = lower + carry
        if carry > lower:
            upper = upper + _ONE
    top = upper >> np.uint64(63)
    kept = top + np.uint64(9)
    mantissa = upper >> kept  # 53 bits and one to round by
    # 217706 / 65536 is log2(10): the binary exponent of 10^q, for all q of the table.
    exponent = ((217706 * q) >> 16) + 64 + np.int64(top) - shift - 1 + 1023
    if exponent <= 0:
        if exponent <= -63:
            return 0.0
        mantissa = mantissa >> np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
        return math.ldexp(np.float64(mantissa), -1074)
    # Half-way between two float64 numbers, which only these powers can be: to the even one.
    halfway = lower <= _ONE and -4 <= q <= 23 and mantissa & np.uint64(3) == _ONE
    if halfway and mantissa << kept == upper:
        mantissa = mantissa - _ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa == _HIDDEN << _ONE:
        mantissa = _HIDDEN
        exponent += 1
    if exponent >= 2047:
        return np.inf
    return math.ldexp(np.float64(mantissa), int(exponent - 1023 - 52))


@compiled_part
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The upper and the lower 64 bits of a × b."""
    half = np.uint64(32)
    a_low, a_high = a & _LOW_HALF, a >> half
    b_low, b_high = b & _LOW_HALF, b >> half
    low, first, second, high = a_low * b_low, a_high * b_low, a_low * b_high, a_high * b_high
    middle = (low >> half) + (first & _LOW_HALF) + (second & _LOW_HALF)
    upper = high + (first >> half) + (second >> half) + (middle >> half)
    return upper, (middle << half) | (low & _LOW_HALF)
